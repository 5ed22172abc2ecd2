//! The shapes of conditions and of the schema of their index. Has no shape of series.

use serde_json::{Value, json};

use super::reference::reference;

/// The schemas by name.
pub(super) fn schemas() -> Value {
    let timestamp = json!({"type": "string", "format": "date-time"});
    let metric = json!({"type": "number"});
    json!({
        "Conditions": {
            "type": "object",
            "required": ["data", "from", "to", "conditions", "basis", "devices"],
            "properties": {
                "data": {"type": "array", "items": {
                    "type": "object",
                    "description": "Every other member is a metric asked for, with its extremes.",
                    "required": ["device_id", "from", "to", "minutes", "basis"],
                    "properties": {
                        "device_id": reference("Id"), "from": timestamp, "to": timestamp,
                        "minutes": {"type": "number"},
                        "basis": reference("Basis"),
                    },
                    "additionalProperties": {"type": "object", "required": ["min", "max"], "properties": {"min": metric, "max": metric}},
                }},
                "from": timestamp, "to": timestamp,
                "conditions": {"type": "object", "additionalProperties": {"type": "string"}},
                "basis": reference("Basis"),
                "devices": {"type": "array", "items": reference("Id")},
                "left_out": {"type": "array", "items": reference("NotOfRoom")},
                "rollups_lack": reference("RollupsLack"),
                "rooms_lack": reference("RoomsLack"),
                "explain": reference("ConditionsExplanation"),
            },
        },
        "ConditionsExplanation": {
            "type": "object",
            "description": "The plan that the episodes come from, and what each plan would cost and did cost",
            "required": ["plan", "plans", "consumed_read_units"],
            "properties": {
                "plan": {"enum": ["plain", "z-order"]},
                "consumed_read_units": metric,
                "plans": {"type": "array", "items": {
                    "type": "object", "required": ["plan", "estimated_read_units", "consumed_read_units"], "properties": {
                        "plan": {"enum": ["plain", "z-order"]},
                        "estimated_read_units": {"type": ["number", "null"]},
                        "consumed_read_units": metric,
                        "ranges": {"type": "integer"},
                        "reason": {"type": "string", "description": "Why it was not tried or not brought to its end"},
                    },
                }},
            },
        },
        "SchemaMetric": {"type": "object", "required": ["metric"], "additionalProperties": false, "properties": {
            "metric": {"type": "string"},
            "encoding": {"enum": ["decimal", "time", "unsigned", "signed", "float"], "default": "decimal", "description": "How a mean becomes a code of so many bits, in the same order"},
            "domain": {"type": "array", "items": {"type": ["number", "string"]}, "description": "Of decimal 2 to 65 numbers that increase, two ends or quantiles; of time two timestamps"},
            "bits": {"type": "integer", "minimum": 1, "maximum": 32, "default": 12},
        }},
        "NewConditionsSchema": {"type": "object", "required": ["metrics"], "additionalProperties": false, "properties": {
            "metrics": {"type": "array", "minItems": 2, "maxItems": 8, "items": reference("SchemaMetric")},
        }},
        "ConditionsSchema": {"type": "object", "required": ["version", "ready", "metrics"], "properties": {
            "version": {"type": "integer"},
            "ready": {"type": "boolean", "description": "Whether the index is complete: false until roomtide rollups rebuild has run"},
            "metrics": {"type": "array", "items": reference("SchemaMetric")},
        }},
        "Basis": {"enum": ["mean15", "readings"], "description": "Means of 15 minutes, in which a spike hides; or readings"},
    })
}
