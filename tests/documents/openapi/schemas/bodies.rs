//! The schemas of bodies, which are written by hand. Has no body of alerts, and none that edits a device.

use api::MAX_READINGS;
use domain::{MAX_FIELDS, MAX_VIEWED};
use polling::SOURCE_KINDS;
use serde_json::{Value, json};

use super::super::reference::reference;

/// The schemas of what is stored.
pub(super) fn readings() -> Value {
    let metric = json!({"type": "number"});
    json!({
        "Id": {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"},
        "Reading": {
            "type": "object",
            "description": "Every other member is a metric, named [a-z][a-z0-9_]{0,63}. Says what it measures in about.",
            "required": ["device_id"],
            "minProperties": 2,
            "maxProperties": MAX_FIELDS + 4,
            "properties": {
                "device_id": reference("Id"),
                "timestamp": {
                    "type": ["string", "number", "null"],
                    "description": "The time of arrival without it",
                },
                "room": {"oneOf": [reference("Id"), {"type": "null"}], "description": "The device's room without it"},
                "about": {"oneOf": [reference("About"), metric.clone()], "description": "What the sender says about the device; a number is a metric of this name"},
            },
            "additionalProperties": metric,
            "examples": [{"device_id": "remo-e", "timestamp": "2026-01-11T16:00:00Z", "room": "chiyoda1-a", "current_w": 512}],
        },
        "Readings": {"oneOf": [
            reference("Reading"),
            {"type": "array", "items": reference("Reading"), "maxItems": MAX_READINGS},
            {"type": "object", "required": ["readings"], "properties": {
                "readings": {"type": "array", "items": reference("Reading"), "maxItems": MAX_READINGS},
            }},
        ]},
        "Payload": {
            "type": ["object", "array"],
            "description": "What the device, its script or its maker's cloud sends by itself, at most 128 KiB",
        },
    })
}

/// The schemas of what people save.
pub(super) fn others() -> Value {
    let end = json!({"type": ["string", "null"], "format": "date-time", "description": "null of a single moment; at most 31 days after its begin"});
    let text = json!({"type": "string", "minLength": 1, "maxLength": 100});
    let ids = json!({"type": "array", "items": reference("Id"), "maxItems": MAX_VIEWED});
    let name = json!({"type": ["string", "null"], "minLength": 1, "maxLength": 100});
    let scope = json!({"enum": ["write", "view"]});
    json!({
        "NewAnnotation": {
            "type": "object",
            "description": "One of device, room and home says what it is about",
            "required": ["text"],
            "properties": {
                "device": reference("Id"),
                "room": reference("Id"),
                "home": reference("Id"),
                "to": end,
                "text": text,
            },
            "additionalProperties": false,
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
        "NewSource": {
            "type": "object",
            "description": "Beside these members, those of the kind: GET /sources lists them, docs/connect/sources.md has those of json. A test also takes id, to use stored secrets. What an answer has beside them is passed over.",
            "required": ["kind"],
            "properties": {
                "kind": {"enum": SOURCE_KINDS.map(|kind| kind.name)},
                "secrets": {
                    "type": ["object", "array", "null"],
                    "additionalProperties": {"type": "string"},
                    "description": "Secrets by their names; without them, those stored for the same request stay",
                },
                "room": {"oneOf": [reference("Id"), {"type": "null"}], "description": "The room of devices that rooms does not name"},
                "rooms": {
                    "type": ["object", "null"],
                    "description": "The room of each device, or null for a device that is left out",
                    "additionalProperties": {"oneOf": [reference("SourceRoom"), {"type": "null"}]},
                },
                "every": {"type": ["string", "null"], "description": "How often it is asked, such as 5m"},
                "since": {"type": ["string", "null"], "description": "From when on the past is asked for, where the kind has one"},
                "on": {"type": ["boolean", "null"], "description": "Whether it is asked"},
            },
            "examples": [{"kind": "remo", "secrets": {"token": "..."}, "room": "home"}],
        },
        "SourceRoom": {"type": "object", "required": ["room"], "additionalProperties": false, "properties": {
            "room": reference("Id"), "name": {"type": "string", "description": "The name of the room, where it has none yet"},
        }},
        "NewToken": {
            "type": "object",
            "description": "write goes with device, view with rooms and homes and needs expires",
            "required": ["scope"],
            "properties": {
                "scope": scope,
                "device": {"oneOf": [reference("Id"), {"type": "null"}], "description": "The device whose readings, and whose parts' readings, it stores"},
                "rooms": ids,
                "homes": ids,
                "name": name,
                "expires": {"type": ["string", "null"], "pattern": "^[0-9]+[hdw]$", "description": "How long it is valid"},
            },
            "additionalProperties": false,
        },
    })
}
