//! The shapes of series, events and of what they rest on. Has no shape of the registry's lists.

use domain::Verdict;
use serde_json::{Value, json};

use super::reference::reference;

/// The schemas by name.
pub(super) fn schemas() -> Value {
    let timestamp = json!({"type": "string", "format": "date-time"});
    let text = json!({"type": ["string", "null"]});
    let metric = json!({"type": "number"});
    json!({
        "NotOfRoom": {"type": "object", "required": ["device_id", "metric", "not_of_room"], "properties": {
            "device_id": reference("Id"), "metric": {"type": "string"}, "not_of_room": reference("NotOfRoomReason"),
        }},
        "Combine": {"type": "object", "additionalProperties": {"enum": ["mean_of_devices", "sum_of_devices"]}},
        "NotCombined": {"type": "array", "items": {"oneOf": [reference("LeftOut"), reference("NotOfRoom")]}},
        "NotOfRoomReason": {"enum": ["person", "kind", "metric"], "description": "Why the means of rooms leave it out: a person said so, or the kind of the device or the name of the metric does"},
        "RollupsLack": {
            "type": "object",
            "description": "From the first moment and while rollups may be behind: the answer may lack this",
            "properties": {
                "changes_since": {"type": "string", "format": "date-time", "description": "Changes of past readings since then"},
                "quarters": {"type": "integer", "description": "Quarters of an hour that could not be rolled up yet"},
                "outdated": {"type": "integer", "description": "Rollups of before somebody changed the settings of a device, which are folded again within minutes: those of more than 31 days, for so much is made from readings meanwhile"},
            },
        },
        "RoomsLack": {"type": "string", "description": "Only where devices of the rooms may be missing: rollups are hours behind, or of more devices than memory holds there is no index by room"},
        "Series": {
            "type": "object",
            "required": ["data", "from", "to", "every", "tz", "source", "units"],
            "properties": {
                "data": {"type": "array", "items": {
                    "type": "object",
                    "description": "Every other member is a metric with the functions asked for.",
                    "required": ["timestamp"],
                    "properties": {
                        "timestamp": timestamp,
                        "device_id": reference("Id"), "room_id": reference("Id"),
                        "partial": {"type": "boolean", "description": "The unit is not over yet"},
                        "coverage": {"type": "number", "description": "The count against the device's usual interval"},
                        "value": {"type": "number", "description": "The only function of the only metric"},
                    },
                    "additionalProperties": {"type": "object", "additionalProperties": metric},
                }},
                "from": timestamp, "to": timestamp, "every": text, "tz": {"type": "string"},
                "rollups_lack": reference("RollupsLack"),
                "rooms_lack": reference("RoomsLack"),
                "without_room": {"type": "array", "description": "Only with rooms: the devices that sent something in the range that is of no room, or of one that the registry no longer has; no row has it", "items": reference("Id")},
                "source": {"type": "string", "description": "readings, m15, day, joined by +"},
                "units": {"type": "object", "additionalProperties": text},
                "combine": reference("Combine"),
                "devices": {"type": "array", "items": reference("Id")},
                "left_out": reference("NotCombined"),
                "moved_meters": reference("MovedMeters"),
                "rooms": {"type": "array", "description": "Only with rooms: how each room combines which devices", "items": {
                    "type": "object", "required": ["room_id", "combine", "devices"], "properties": {
                        "room_id": reference("Id"), "combine": reference("Combine"),
                        "devices": {"type": "array", "items": reference("Id")}, "left_out": reference("NotCombined"),
                        "moved_meters": reference("MovedMeters"),
                    },
                }},
            },
        },
        "Event": {
            "type": "object",
            "required": ["timestamp", "device_id", "metric", "events"],
            "properties": {
                "timestamp": timestamp, "device_id": reference("Id"), "metric": {"type": "string"},
                "events": {"type": "array", "items": {"enum": ["dip", "wrapped", "reset", "suspect", "exchanged", "accepted", "discarded", "ambiguous"]}},
                "amount": metric, "size": metric,
                "amount_if_wrapped": {"type": "number", "description": "Of an ambiguous fall, which counts as a reset: what would count if the counter passed its modulus"},
                "verdict": {"enum": Verdict::ALL.map(Verdict::as_str), "description": "The verdict by which it counts"},
                "verdicts": {"type": "array", "items": {"enum": Verdict::ALL.map(Verdict::as_str)}, "description": "Those that would change it"},
                "from": reference("EventValue"), "to": reference("EventValue"),
                "until": {"type": "string", "format": "date-time", "description": "The end of a bucket whose readings are gone"},
            },
        },
        "EventValue": {"type": "object", "required": ["timestamp", "value"], "properties": {"timestamp": timestamp, "value": metric}},
        "Events": {"type": "object", "required": ["data", "has_more"], "properties": {
            "data": {"type": "array", "items": reference("Event")}, "has_more": {"type": "boolean"},
            "rollups_lack": reference("RollupsLack"),
        }},
    })
}
