//! The schemas of answers that are written member by member: the health, and messages of the Model Context Protocol.

use serde_json::{Value, json};

/// The schemas by name.
pub(super) fn schemas() -> Value {
    let timestamp = json!({"type": "string", "format": "date-time"});
    let text = json!({"type": ["string", "null"]});
    json!({
        "Health": {"type": "object", "required": ["status"], "properties": {
            "status": {"const": "pass"},
            "name": {"const": "influxdb", "description": "Clients of InfluxDB ask for it"},
            "message": {"type": "string"},
            "checks": {"type": "array", "maxItems": 0},
            "version": {"type": "string", "description": "The version of InfluxDB that is answered as"},
            "commit": {"type": "string"},
            "zone_database": {"type": "string", "description": "Only with details: the version of the time zones"},
            "rollups": {"type": ["object", "null"], "description": "Only with details; null before there are any", "properties": {
                "tz": text, "since": timestamp, "sealed": timestamp,
                "queue": {"type": ["object", "null"], "description": "What waited to be rolled up again when that was last counted, about every 15 minutes", "properties": {
                    "messages": {"type": "integer"}, "at": timestamp,
                }},
                "backlog": {"type": ["object", "null"], "description": "The last changes of past readings that reached the rollups late, and when the oldest of them was written", "properties": {
                    "since": timestamp, "at": timestamp,
                }},
                "folded_until": {"type": "string", "description": "Every change of a past reading that was stored before this instant is in the rollups"},
                "at": {"type": "string", "description": "What the server's clock shows"},
            }},
        }},
        "OpenApi": {"type": "object"},
        "McpMessage": {
            "type": "object",
            "description": "A request or a notification of the Model Context Protocol, 2025-06-18 to 2026-07-28; no batches",
            "required": ["jsonrpc", "method"],
            "properties": {
                "jsonrpc": {"const": "2.0"},
                "id": {"type": ["string", "integer"], "description": "A notification has none"},
                "method": {"type": "string", "examples": ["tools/list", "tools/call"]},
                "params": {"type": "object"},
            },
        },
        "McpAnswer": {
            "type": "object",
            "required": ["jsonrpc", "id"],
            "properties": {
                "jsonrpc": {"const": "2.0"},
                "id": {"type": ["string", "integer", "null"]},
                "result": {"type": "object"},
                "error": {"type": "object", "required": ["code", "message"], "properties": {
                    "code": {"type": "integer"}, "message": {"type": "string"},
                }},
            },
        },
    })
}
