//! The shapes of energy, and of what a sum leaves out. Has no shape of series.

use serde_json::{Value, json};

use super::reference::reference;

/// The schemas by name.
pub(super) fn schemas() -> Value {
    let timestamp = json!({"type": "string", "format": "date-time"});
    let text = json!({"type": ["string", "null"]});
    let metric = json!({"type": "number"});
    json!({
        "LeftOut": {"type": "object", "required": ["device_id", "reason"], "properties": {
            "device_id": reference("Id"),
            "reason": {"enum": ["behind", "moved", "production", "storage", "none"], "description": "behind: another device measures it too; moved: a meter that was elsewhere for more than half of the range, so its devices count; else the role of the metrics"},
            "behind": reference("Id"),
            "metrics": {"type": "array", "items": {"type": "string"}, "description": "What is left out of the device; where it is absent, all"},
        }},
        "MovedMeters": {
            "type": "array",
            "description": "The meters that were in the rooms for a part of the range only: what their devices used meanwhile may be lacking, and each part of the range has it",
            "items": {"type": "object", "required": ["device_id", "during"], "properties": {
                "device_id": reference("Id"),
                "during": {
                    "type": "array",
                    "description": "When the meter was there",
                    "items": {"type": "object", "required": ["from", "to"], "properties": {"from": timestamp, "to": timestamp}},
                },
            }},
        },
        "Unsure": {
            "type": "object",
            "description": "A device of several in a sum, of one value and a name that does not tell its role: it counts as consumption until a person says more",
            "required": ["device_id", "metrics"],
            "properties": {"device_id": reference("Id"), "metrics": {"type": "array", "items": {"type": "string"}}},
        },
        "Energy": {
            "type": "object",
            "required": ["data", "from", "to", "every", "tz", "total_kwh", "devices"],
            "properties": {
                "data": {"type": "array", "items": {
                    "type": "object",
                    "required": ["timestamp", "kwh", "flags"],
                    "properties": {
                        "timestamp": timestamp,
                        "device_id": reference("Id"),
                        "partial": {"type": "boolean"},
                        "kwh": {"type": ["number", "null"]},
                        "kwh_sold": metric,
                        "flags": {"type": "array", "items": {"type": "string"}},
                        "estimated": {"type": "boolean", "description": "A part of a step of more than 15 minutes is in it"},
                    },
                }},
                "from": timestamp, "to": timestamp, "every": text, "tz": {"type": "string"},
                "rollups_lack": reference("RollupsLack"),
                "rooms_lack": reference("RoomsLack"),
                "total_kwh": {"type": ["number", "null"]},
                "total_kwh_sold": metric,
                "counted_kwh": {"type": ["number", "null"], "description": "With devices=1: the sum of the devices of consumption that nothing is behind"},
                "rest_kwh": {"type": ["number", "null"], "description": "With devices=1, if a device is behind a meter: total_kwh without counted_kwh, which the meter measured and no device behind it; null where the meter measured nothing or was elsewhere"},
                "rest": {"type": "array", "description": "The same, row by row", "items": {"type": "object", "required": ["timestamp", "kwh"], "properties": {
                    "timestamp": timestamp, "kwh": {"type": ["number", "null"]},
                }}},
                "metric": {"type": "string"},
                "source": {"enum": ["counter", "power"]},
                "devices": {"type": "array", "items": reference("EnergyDevice")},
                "left_out": {"type": "array", "items": reference("LeftOut")},
                "moved_meters": reference("MovedMeters"),
                "unsure": {"type": "array", "items": reference("Unsure")},
                "events": {"type": "array", "items": reference("Event")},
                "events_has_more": {"type": "boolean", "description": "Whether there are more events than these: narrow from and to"},
            },
        },
        "EnergyDevice": {
            "type": "object",
            "required": ["device_id", "metric", "metrics", "source", "total_kwh"],
            "properties": {
                "device_id": reference("Id"),
                "metric": {"type": "string", "description": "The first of its metrics that count"},
                "metrics": {"type": "array", "items": {"type": "string"}, "description": "Those that add up to what is used"},
                "metric_sold": {"type": "string"},
                "metrics_sold": {"type": "array", "items": {"type": "string"}},
                "role": reference("Role"),
                "source": {"enum": ["counter", "power"]},
                "not_counted": {"type": "object", "description": "Its other metrics of energy and power, each with why it counts nothing", "additionalProperties": {"type": "string"}},
                "total_kwh": {"type": ["number", "null"]},
                "total_kwh_sold": metric,
            },
        },
    })
}
