//! The API as an `OpenAPI` 3.1 document, generated from the route table. Answers nothing itself.

use api::routes::{Operation, ROUTES};
use api::{MAX_BODY, MAX_INFLATED, MAX_READINGS};
use domain::{MAX_METRICS, MAX_TAGS};
use serde_json::{Map, Value, json};

use crate::edit::MAX_PATCHED_METRICS;
use crate::{ranges, registry};

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
                Timestamps are RFC 3339 with any offset, an epoch number whose unit follows from its size, \
                or relative to now: now, -24h, now-7d (s, m, h, d, w). Ranges include from and exclude to. \
                What answers GET answers HEAD as well. Unknown parameters are refused.",
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
    let query = operation.parameters().iter().map(|name| query_parameter(operation, name));
    let parameters: Vec<Value> = path.contains("{id}").then(id).into_iter().chain(query).collect();
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
            {"type": "array", "items": reference("Reading"), "maxItems": MAX_READINGS},
            {"type": "object", "required": ["readings"], "properties": {
                "readings": {"type": "array", "items": reference("Reading"), "maxItems": MAX_READINGS},
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
    let description = format!(
        "At most {MAX_BODY} bytes as sent, {MAX_INFLATED} inflated; Content-Encoding: gzip is taken"
    );
    described["requestBody"] =
        json!({"required": true, "description": description, "content": content});
    described
}

fn id() -> Value {
    json!({"name": "id", "in": "path", "required": true, "schema": reference("Id")})
}

/// A parameter of a query, as the table of routes names it.
fn query_parameter(operation: Operation, name: &str) -> Value {
    let text = json!({"type": "string"});
    let (description, schema) = match name {
        "from" => ("The first timestamp; 24 hours before to without it", text),
        "to" => ("The first timestamp behind the range; now without it", text),
        "order" => ("Oldest or newest first", json!({"enum": ["asc", "desc"], "default": "asc"})),
        "metrics" => ("Only these metrics, each once, separated by commas", text),
        "room" => ("Only devices in this room", reference("Id")),
        "latest" => ("Adds the newest values", json!({"type": "boolean", "default": false})),
        "limit" => {
            let (default, most) = match operation {
                Operation::DeviceReadings | Operation::RoomReadings => {
                    (ranges::DEFAULT_LIMIT, ranges::MAX_LIMIT)
                }
                _ => (registry::DEFAULT_LIMIT, registry::MAX_LIMIT),
            };
            let schema =
                json!({"type": "integer", "minimum": 1, "maximum": most, "default": default});
            ("How many entries a page holds at the most; fewer where they are large", schema)
        }
        "rooms" => (
            "given takes rooms as they are sent, for history: none is filled in from the registry, and \
             no room that a person chose replaces one",
            json!({"enum": ["given"]}),
        ),
        "merge" => (
            "Sets the metrics given and keeps the others of that device and timestamp; without it a \
             reading replaces the one before it",
            json!({"type": "boolean", "default": false}),
        ),
        "cursor" => ("next_cursor of the page before", text),
        "format" => {
            let schema = json!({"enum": ["json", "csv", "ndjson"], "default": "json"});
            ("The form of the answer; Accept works as well", schema)
        }
        other => unreachable!("{other:?} is in the table of routes and not described here"),
    };
    json!({"name": name, "in": "query", "description": description, "schema": schema})
}

/// The failures of an operation. Every one can fail by a mistake of ours, and any may be asked for
/// too often.
fn failures(operation: Operation) -> Vec<u16> {
    let own: &[u16] = match operation {
        Operation::Health => &[],
        Operation::PostReadings => &[401, 403, 413, 415],
        Operation::EditDevice | Operation::EditRoom => &[401, 403, 404, 413, 415],
        Operation::OpenApi | Operation::ListDevices | Operation::ListRooms => &[401, 403],
        _ => &[401, 403, 404],
    };
    [&[400], own, &[405, 429, 500, 503]].concat()
}

fn responses(operation: Operation) -> Value {
    let answer = |description: &str, schema: Value| json!({"description": description, "content": {"application/json": {"schema": schema}}});
    let rows = |schema: &str| {
        let mut rows = answer("A page", list(schema));
        rows["content"]["text/csv"] = json!({"schema": {"type": "string"}});
        rows["content"]["application/x-ndjson"] = json!({"schema": {"type": "string"}});
        rows
    };
    let mut responses = match operation {
        Operation::PostReadings => json!({
            "201": answer("All are stored", reference("Receipt")),
            "207": answer("Some are refused, the others stored", reference("Receipt")),
        }),
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
            json!({"200": answer("It answers", json!({"type": "object", "required": ["status"]}))})
        }
        Operation::OpenApi => json!({"200": answer("This document", json!({"type": "object"}))}),
    };
    if matches!(
        operation,
        Operation::ListDevices
            | Operation::RoomDevices
            | Operation::ListRooms
            | Operation::ShowDevice
            | Operation::ShowRoom
    ) {
        responses["304"] = json!({"description": "If-None-Match names what it is still"});
    }
    for status in failures(operation) {
        responses[status.to_string()] = json!({"$ref": "#/components/responses/Problem"});
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
    let timestamp = json!({"type": "string", "format": "date-time"});
    let text = json!({"type": ["string", "null"]});
    let metric = json!({"type": "number"});
    json!({
        "Id": {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"},
        "Reading": {
            "type": "object",
            "description": "Every other member is a metric, named [a-z][a-z0-9_]{0,63}.",
            "required": ["device_id"],
            "minProperties": 2,
            "maxProperties": MAX_METRICS + 3,
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
                "more_rejected": {"type": "array", "items": {"type": "integer"}, "description": "The places of those refused beyond the first megabyte of refusals"},
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
                "more_errors": {"type": "array", "items": {"type": "integer"}, "description": "The places of those refused beyond the first megabyte of refusals"},
                "not_stored": {"type": "array", "items": {"type": "integer"}},
            },
        },
        "StoredReading": {
            "type": "object",
            "required": ["device_id", "timestamp"],
            "properties": {"device_id": reference("Id"), "timestamp": timestamp, "room": reference("Id")},
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
                "first_seen": timestamp,
                "latest": {"oneOf": [reference("LatestValues"), {"type": "null"}]},
            },
            "additionalProperties": false,
        },
        "Room": {
            "type": "object",
            "required": ["room_id", "name", "first_seen"],
            "properties": {"room_id": reference("Id"), "name": text, "first_seen": timestamp},
            "additionalProperties": false,
        },
        "LatestValues": {
            "type": "object",
            "required": ["timestamp", "as_of", "metrics"],
            "properties": {
                "timestamp": timestamp,
                "as_of": {"type": "string", "format": "date-time", "description": "How far back was looked: a metric that is missing was not sent since then"},
                "metrics": {"type": "object", "additionalProperties": {
                    "type": "object",
                    "required": ["value", "timestamp"],
                    "properties": {"value": metric, "timestamp": timestamp},
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
                "tags": {"type": ["array", "null"], "items": {"type": "string"}, "maxItems": MAX_TAGS},
                "metrics": {"type": "object", "maxProperties": MAX_PATCHED_METRICS, "additionalProperties": {
                    "type": ["object", "null"],
                    "description": "null: the metric is dropped until it is sent again",
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
