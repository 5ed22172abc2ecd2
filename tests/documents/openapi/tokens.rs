//! The schemas of new access tokens.

use domain::MAX_VIEWED;
use serde_json::{Value, json};

use super::reference::reference;

/// The schemas by name.
pub(super) fn schemas() -> Value {
    let ids = json!({"type": "array", "items": reference("Id"), "maxItems": MAX_VIEWED});
    let name = json!({"type": ["string", "null"], "minLength": 1, "maxLength": 100});
    let scope = json!({"enum": ["write", "view"]});
    json!({
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
        "IssuedToken": {
            "type": "object",
            "required": ["token", "id", "scope", "name", "created", "expires"],
            "properties": {
                "token": {"type": "string", "description": "It is shown here and nowhere again"},
                "id": {"type": "string", "description": "By which roomtide token lists and revokes it"},
                "scope": scope,
                "device": reference("Id"),
                "rooms": ids,
                "homes": ids,
                "name": name,
                "created": {"type": "string", "format": "date-time"},
                "expires": {"type": ["string", "null"], "format": "date-time"},
            },
            "additionalProperties": false,
        },
    })
}
