//! The API as an `OpenAPI` 3.1 document, generated from the route table. Answers nothing itself.

use serde_json::{Map, Value, json};
use shared::http::routes::{Operation, ROUTES};

/// The document.
pub(crate) fn document() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.to_lowercase()] = operation(route.operation, route.path, route.summary);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Roomtide",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Readings of power, temperature and humidity: stored, listed, found again. \
                Instants are RFC 3339 with any offset, an epoch number whose unit follows from its size, \
                or relative to now: now, -24h, now-7d (s, m, h, d, w). Ranges include from and exclude to.",
        },
        "paths": paths,
        "security": [{"token": []}],
        "components": { "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}, "schemas": schemas(), "responses": { "Problem": {
            "description": "What went wrong, where",
            "content": { "application/problem+json": { "schema": reference("Problem") } },
        } } },
    })
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

fn operation(operation: Operation, path: &str, summary: &str) -> Value {
    let parameters: Vec<Value> =
        path.contains("{id}").then(id).into_iter().chain(query_parameters(operation)).collect();
    let mut described = json!({
        "operationId": format!("{operation:?}"),
        "summary": summary,
        "parameters": parameters,
        "responses": responses(operation),
    });
    if operation == Operation::Health {
        described["security"] = json!([]);
    }
    let body = match operation {
        Operation::PostReadings => json!({"oneOf": [
            reference("Reading"),
            {"type": "array", "items": reference("Reading"), "maxItems": 10_000},
            {"type": "object", "required": ["readings"], "properties": {
                "readings": {"type": "array", "items": reference("Reading"), "maxItems": 10_000},
            }},
        ]}),
        Operation::EditDevice => reference("DevicePatch"),
        Operation::EditRoom => reference("RoomPatch"),
        _ => return described,
    };
    let mut content = json!({"application/json": {"schema": body}});
    if operation == Operation::PostReadings {
        content["application/x-ndjson"] = json!({"schema": {"type": "string"}});
    }
    described["requestBody"] = json!({"required": true, "content": content});
    described
}

fn id() -> Value {
    json!({"name": "id", "in": "path", "required": true, "schema": reference("Id")})
}

fn query_parameters(operation: Operation) -> Vec<Value> {
    let parameter = |name: &str, description: &str, schema: Value| json!({"name": name, "in": "query", "description": description, "schema": schema});
    let limit = |default: u32, most: u32| {
        let schema = json!({"type": "integer", "minimum": 1, "maximum": most, "default": default});
        parameter("limit", "How many entries a page holds at the most", schema)
    };
    let cursor =
        || parameter("cursor", "next_cursor of the page before", json!({"type": "string"}));
    let format = || {
        let schema = json!({"enum": ["json", "csv", "ndjson"], "default": "json"});
        parameter("format", "The form of the answer; Accept works as well", schema)
    };
    let latest = || {
        parameter("latest", "Adds the newest values", json!({"type": "boolean", "default": false}))
    };
    let text = || json!({"type": "string"});
    match operation {
        Operation::ListDevices => {
            let room = parameter("room", "Only devices in this room", reference("Id"));
            vec![room, latest(), limit(100, 1_000), cursor(), format()]
        }
        Operation::RoomDevices => vec![latest(), limit(100, 1_000), cursor(), format()],
        Operation::ListRooms | Operation::RoomLatest => {
            vec![limit(100, 1_000), cursor(), format()]
        }
        Operation::DeviceReadings | Operation::RoomReadings => vec![
            parameter("from", "The first instant; 24 hours before to without it", text()),
            parameter("to", "The first instant behind the range; now without it", text()),
            parameter(
                "order",
                "Oldest or newest first",
                json!({"enum": ["asc", "desc"], "default": "asc"}),
            ),
            parameter("metrics", "Only these metrics, separated by commas", text()),
            limit(1_000, 10_000),
            cursor(),
            format(),
        ],
        _ => Vec::new(),
    }
}

fn responses(operation: Operation) -> Value {
    let answer = |description: &str, schema: Value| json!({"description": description, "content": {"application/json": {"schema": schema}}});
    let rows = |schema: &str| {
        let mut rows = answer("A page", list(schema));
        rows["content"]["text/csv"] = json!({"schema": {"type": "string"}});
        rows["content"]["application/x-ndjson"] = json!({"schema": {"type": "string"}});
        rows
    };
    let problem = || json!({"$ref": "#/components/responses/Problem"});
    let mut responses = match operation {
        Operation::PostReadings => {
            return json!({
                "201": answer("All are stored", reference("Receipt")),
                "207": answer("Some are refused, the others stored", reference("Receipt")),
                "400": problem(), "401": problem(), "403": problem(), "413": problem(), "429": problem(), "503": problem(),
            });
        }
        Operation::ListDevices | Operation::RoomDevices => json!({"200": rows("Device")}),
        Operation::ListRooms => json!({"200": rows("Room")}),
        Operation::DeviceReadings | Operation::RoomReadings => {
            json!({"200": rows("StoredReading")})
        }
        Operation::RoomLatest => json!({"200": rows("Latest")}),
        Operation::ShowDevice | Operation::EditDevice => {
            json!({"200": answer("The device", reference("Device"))})
        }
        Operation::ShowRoom | Operation::EditRoom => {
            json!({"200": answer("The room", reference("Room"))})
        }
        Operation::DeviceLatest => json!({"200": answer("The values", reference("Latest"))}),
        Operation::Health => {
            return json!({"200": answer("It answers", json!({"type": "object", "required": ["status"]}))});
        }
        Operation::OpenApi => {
            return json!({"200": answer("This document", json!({"type": "object"}))});
        }
    };
    for status in ["400", "401", "403", "404", "429", "503"] {
        responses[status] = problem();
    }
    responses
}

fn list(schema: &str) -> Value {
    json!({
        "type": "object",
        "required": ["data", "has_more", "next_cursor"],
        "properties": {
            "data": {"type": "array", "items": reference(schema)},
            "has_more": {"type": "boolean"},
            "next_cursor": {"type": ["string", "null"]},
        },
    })
}

#[expect(clippy::too_many_lines, reason = "one list of shapes, as the document has it")]
fn schemas() -> Value {
    let instant = json!({"type": "string", "format": "date-time"});
    let text = json!({"type": ["string", "null"]});
    let metric = json!({"type": "number"});
    json!({
        "Id": {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"},
        "Reading": {
            "type": "object",
            "description": "Every other member is a metric, named [a-z][a-z0-9_]{0,63}.",
            "required": ["device_id"],
            "minProperties": 2,
            "properties": {
                "device_id": reference("Id"),
                "timestamp": {
                    "type": ["string", "number", "null"],
                    "description": "The time of arrival without it",
                },
                "room": {"oneOf": [reference("Id"), {"type": "null"}], "description": "The device's room without it"},
            },
            "additionalProperties": metric,
            "examples": [{"device_id": "remo-e", "timestamp": "2026-01-11T16:00:00Z", "room": "chiyoda1-a", "current_w": 512}],
        },
        "Receipt": {
            "type": "object",
            "required": ["accepted"],
            "properties": {
                "accepted": {"type": "integer"},
                "rejected": {"type": "array", "items": reference("FieldError")},
            },
        },
        "FieldError": {
            "type": "object",
            "required": ["message"],
            "properties": {
                "index": {"type": "integer", "description": "Which of several readings, from 0"},
                "field": {"type": "string"},
                "message": {"type": "string"},
            },
        },
        "Problem": {
            "type": "object",
            "description": "RFC 9457",
            "required": ["type", "title", "status", "detail"],
            "properties": {
                "type": {"type": "string"},
                "title": {"type": "string"},
                "status": {"type": "integer"},
                "detail": {"type": "string"},
                "errors": {"type": "array", "items": reference("FieldError")},
                "not_stored": {"type": "array", "items": {"type": "integer"}},
            },
        },
        "StoredReading": {
            "type": "object",
            "required": ["device_id", "timestamp"],
            "properties": {"device_id": reference("Id"), "timestamp": instant, "room": reference("Id")},
            "additionalProperties": metric,
        },
        "Device": {
            "type": "object",
            "required": ["device_id", "name", "room", "room_pinned", "kind", "tags", "metrics", "first_seen"],
            "properties": {
                "device_id": reference("Id"),
                "name": text,
                "room": {"oneOf": [reference("Id"), {"type": "null"}]},
                "room_pinned": {"type": "boolean", "description": "A person chose the room: no reading moves the device"},
                "kind": text,
                "tags": {"type": "array", "items": {"type": "string"}},
                "metrics": {"type": "object", "additionalProperties": {
                    "type": "object",
                    "required": ["kind", "unit"],
                    "properties": {
                        "kind": {"enum": ["gauge", "counter"]},
                        "unit": text, "modulus": metric, "max_w": metric, "dip": metric,
                    },
                }},
                "first_seen": instant,
                "latest": {"oneOf": [reference("LatestValues"), {"type": "null"}]},
            },
            "additionalProperties": false,
        },
        "Room": {
            "type": "object",
            "required": ["room_id", "name", "first_seen"],
            "properties": {"room_id": reference("Id"), "name": text, "first_seen": instant},
            "additionalProperties": false,
        },
        "LatestValues": {
            "type": "object",
            "required": ["timestamp", "metrics"],
            "properties": {
                "timestamp": instant,
                "metrics": {"type": "object", "additionalProperties": {
                    "type": "object",
                    "required": ["value", "timestamp"],
                    "properties": {"value": metric, "timestamp": instant},
                }},
            },
        },
        "Latest": {
            "type": "object",
            "allOf": [reference("LatestValues")],
            "required": ["device_id"],
            "properties": {"device_id": reference("Id")},
        },
        "DevicePatch": {
            "type": "object",
            "minProperties": 1,
            "properties": {
                "name": text,
                "room": {"oneOf": [reference("Id"), {"type": "null"}], "description": "null: the readings decide again"},
                "kind": text,
                "tags": {"type": ["array", "null"], "items": {"type": "string"}, "maxItems": 50},
                "metrics": {"type": "object", "additionalProperties": {
                    "type": "object",
                    "properties": {
                        "unit": text,
                        "modulus": {"type": ["number", "null"], "exclusiveMinimum": 0},
                        "max_w": {"type": ["number", "null"], "exclusiveMinimum": 0},
                        "dip": {"type": ["number", "null"], "exclusiveMinimum": 0},
                    },
                    "additionalProperties": false,
                }},
            },
            "additionalProperties": false,
        },
        "RoomPatch": {
            "type": "object",
            "minProperties": 1,
            "properties": {"name": text},
            "additionalProperties": false,
        },
    })
}
