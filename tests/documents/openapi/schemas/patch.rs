//! The shapes of what a person edits and deletes. Has no shape of readings or rollups.

use domain::{MAX_JUDGEMENTS, MAX_PATCHED_METRICS, MAX_TAGS, Verdict};
use query::MAX_PATCHED_ATTRIBUTES;
use serde_json::{Value, json};

use super::super::reference::reference;

/// The schemas by name.
pub(super) fn schemas() -> Value {
    let text = json!({"type": ["string", "null"]});
    json!({
        "Exchange": {"type": "object", "required": ["timestamp", "old", "new"], "additionalProperties": false, "properties": {
            "timestamp": {"type": ["string", "number"], "description": "When the new meter took over"},
            "old": {"type": "number", "description": "The last figure of the old meter"},
            "new": {"type": "number", "description": "The first figure of the new meter"},
        }},
        "Verdict": {"type": "object", "required": ["timestamp", "verdict"], "additionalProperties": false, "properties": {
            "timestamp": {"type": ["string", "number"], "description": "The timestamp of the reading that ends the step"},
            "verdict": {"enum": Verdict::ALL.map(Verdict::as_str), "description": "accept: it counts; discard: it counts nothing; reset, wrap, dip: what a fall was. One that changes nothing of the step is refused"},
        }},
        "Deletion": {
            "type": "object",
            "required": ["deleted", "has_more"],
            "properties": {
                "begun": {"type": "string", "format": "date-time", "description": "Which deletion of a device it is: send it with the next request"},
                "deleted": {"type": "integer"},
                "has_more": {"type": "boolean", "description": "Whether it is not over: send the request again"},
                "left": {"type": "integer", "description": "The number of readings or items that are left"},
                "left_at_least": {"type": "integer", "description": "Instead of left, where more are left than are counted"},
                "wait_seconds": {"type": "integer", "description": "Nothing is left; after so many seconds the same request ends the deletion, if nothing has come meanwhile"},
            },
        },
        "DevicePatch": {
            "type": "object",
            "minProperties": 1,
            "properties": {
                "name": text,
                "room": {"oneOf": [reference("Id"), {"type": "null"}], "description": "null: the readings decide again"},
                "room_since": {"type": ["string", "number"], "description": "Since when the device is in the room, or in none; now without it. Only together with room"},
                "kind": text,
                "tags": {"type": ["array", "null"], "items": {"type": "string"}, "maxItems": MAX_TAGS},
                "attributes": {"type": "object", "maxProperties": MAX_PATCHED_ATTRIBUTES, "additionalProperties": {
                    "type": ["string", "number", "array", "null"], "items": {"type": ["string", "number"]}, "minItems": 1,
                }, "description": "Named [a-z][a-z0-9_]{0,63}; null removes one"},
                "behind": {"oneOf": [reference("Id"), {"type": "null"}], "description": "The device behind whose meter it is: sums of rooms and homes leave it out"},
                "in_room_means": {"type": ["boolean", "null"], "description": "Whether the means of rooms, homes and all have what the device measures; null: its kind decides"},
                "metrics": {"type": "object", "maxProperties": MAX_PATCHED_METRICS, "additionalProperties": {
                    "type": ["object", "null"],
                    "description": "null: the metric is dropped until it is sent again",
                    "properties": {
                        "kind": {"enum": ["gauge", "counter", null]},
                        "unit": text,
                        "modulus": {"type": ["number", "null"], "exclusiveMinimum": 0},
                        "max_w": {"type": ["number", "null"], "exclusiveMinimum": 0},
                        "tolerance": {"type": ["number", "null"], "exclusiveMinimum": 0},
                        "hold": {"type": ["string", "null"], "description": "The longest time for which a power holds, such as 90s, 15m or 1h"},
                        "exchanges": {"type": ["array", "null"], "items": reference("Exchange"), "maxItems": MAX_JUDGEMENTS},
                        "verdicts": {"type": ["array", "null"], "items": reference("Verdict"), "maxItems": MAX_JUDGEMENTS},
                        "role": {"oneOf": [reference("Role"), {"type": "null"}], "description": "null: its sender may teach one again"},
                        "net": {"type": ["boolean", "null"], "description": "A net meter: a fall is negative, no reset"},
                        "cycle": {"type": ["string", "null"], "description": "The metric of the same readings that tells in which cycle the counter is: where it differs, the counter has begun again"},
                        "in_room_means": {"type": ["boolean", "null"], "description": "Whether the means of rooms, homes and all have this metric; null: its name, the device and its kind decide"},
                        "hourly_until": {"type": ["string", "null"], "format": "date-time", "description": "The time until which an import found hourly means only"},
                    },
                    "additionalProperties": false,
                }},
            },
            "additionalProperties": false,
        },
        "RoomPatch": {
            "type": "object",
            "minProperties": 1,
            "properties": {
                "name": text,
                "home": {"oneOf": [reference("Id"), {"type": "null"}], "description": "null: the room is of no home"},
                "outside": {"type": ["boolean", "null"], "description": "Whether the room is outside; null: nobody says"},
            },
            "additionalProperties": false,
        },
    })
}
