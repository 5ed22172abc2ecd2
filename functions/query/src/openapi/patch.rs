//! The shapes of what a person edits. Has no shape of an answer.

use domain::{MAX_JUDGEMENTS, MAX_TAGS};
use serde_json::{Value, json};

use super::reference;
use crate::patch::{MAX_PATCHED_ATTRIBUTES, MAX_PATCHED_METRICS};

/// The schemas by name.
pub(super) fn schemas() -> Value {
    let text = json!({"type": ["string", "null"]});
    json!({
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
            },
            "additionalProperties": false,
        },
    })
}
