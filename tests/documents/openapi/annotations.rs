//! The shapes of annotations.

use serde_json::{Value, json};

use super::reference::reference;

/// The schemas by name.
pub(super) fn schemas() -> Value {
    let timestamp = json!({"type": "string", "format": "date-time"});
    let end = json!({"type": ["string", "null"], "format": "date-time", "description": "null of a single moment; at most 31 days behind its begin"});
    let text = json!({"type": "string", "minLength": 1, "maxLength": 100});
    json!({
        "Annotation": {
            "type": "object",
            "description": "It is about one device, room or home",
            "required": ["annotation_id", "from", "to", "text"],
            "properties": {
                "annotation_id": {"type": "string", "description": "Its begin, a hyphen and up to 64 letters, digits or - _ . :", "examples": ["2026-01-11T16:00:00.000Z-kettle"]},
                "from": timestamp,
                "to": end,
                "device": reference("Id"),
                "room": reference("Id"),
                "home": reference("Id"),
                "text": text,
            },
            "additionalProperties": false,
        },
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
    })
}
