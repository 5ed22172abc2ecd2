//! The API as an `OpenAPI` 3.1 document, made of the table of endpoints and the types of answers. `query` serves the file.

mod alerts;
mod annotations;
mod conditions;
mod energy;
mod patch;
mod reference;
mod series;
mod tokens;

use api::endpoints::{Access, ENDPOINTS, Endpoint, Kind, Operation, Parameter, Reply};
use api::{MAX_BODY, MAX_INFLATED, MAX_READINGS};
use domain::MAX_METRICS;
use serde_json::{Map, Value, json};

use crate::generated::assert_is;
use reference::reference;

/// The file that `query` serves, and its text.
const FILE: &str = "functions/query/openapi.json";
const SERVED: &str = include_str!("../../functions/query/openapi.json");

#[test]
fn the_document_is_made_of_the_code() {
    assert_is(FILE, SERVED, &text(&document()));
}

/// A document with a line for each operation and for each schema, so that a change of one is a changed line.
fn text(document: &Value) -> String {
    let mut text = String::new();
    write(&mut text, document, 0);
    text + "\n"
}

/// Writes the members of an object, each in a line, where there may be operations or schemas in them.
fn write(text: &mut String, value: &Value, depth: usize) {
    let Some(members) = value.as_object().filter(|members| depth < 3 && !members.is_empty()) else {
        text.push_str(&value.to_string());
        return;
    };
    text.push('{');
    for (n, (name, member)) in members.iter().enumerate() {
        let separator = if n > 0 { "," } else { "" };
        text.push_str(&format!("{separator}\n{}{}: ", "  ".repeat(depth + 1), json!(name)));
        write(text, member, depth + 1);
    }
    text.push_str(&format!("\n{}}}", "  ".repeat(depth)));
}

/// The document.
fn document() -> Value {
    let mut paths = Map::new();
    for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.dialect().is_none()) {
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        path[endpoint.method.to_lowercase()] = operation(endpoint);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Roomtide",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Readings of power, temperature and humidity: stored, listed, found again. \
                Timestamps are RFC 3339 with any offset, an epoch number whose unit follows from its size, \
                or relative to now: now, -24h, now-7d (s, m, h, d, w). Ranges include from and exclude to. \
                Whatever answers GET and changes nothing answers HEAD as well. Unknown parameters are refused.",
        },
        "paths": paths,
        "security": [{"token": []}],
        "components": { "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}, "schemas": all_schemas(), "responses": { "Problem": {
            "description": "What went wrong, where",
            "content": { "application/problem+json": { "schema": reference("Problem") } },
        } } },
    })
}

fn operation(endpoint: &Endpoint) -> Value {
    let id = json!({"name": "id", "in": "path", "required": true, "schema": reference("Id")});
    let query = endpoint.parameters.iter().map(query_parameter);
    let parameters: Vec<Value> = endpoint.has_id().then_some(id).into_iter().chain(query).collect();
    let mut operation = json!({
        "operationId": endpoint.operation.name(),
        "summary": endpoint.summary,
        "parameters": parameters,
        "responses": responses(endpoint),
    });
    if endpoint.operation == Operation::Health {
        // Its details are for those who may read.
        operation["security"] = json!([{}, {"token": []}]);
    } else if endpoint.access == Access::Public {
        operation["security"] = json!([]);
    }
    if let Some(schema) = endpoint.body {
        operation["requestBody"] = request_body(endpoint, schema);
    }
    operation
}

fn query_parameter(parameter: &Parameter) -> Value {
    let schema = match parameter.kind {
        Kind::Timestamp | Kind::Metrics | Kind::Cursor | Kind::Zone | Kind::Word => {
            json!({"type": "string"})
        }
        Kind::Age => json!({"type": "string", "pattern": "^[0-9]+[smhdw]$"}),
        Kind::Like | Kind::Where => json!({"type": "array", "items": {"type": "string"}}),
        Kind::Id => reference("Id"),
        Kind::Flag => json!({"type": "boolean", "default": false}),
        Kind::Count { default, max } => {
            json!({"type": "integer", "minimum": 1, "maximum": max, "default": default})
        }
        Kind::Choice { of, default: Some(default) } => json!({"enum": of, "default": default}),
        Kind::Choice { of, default: None } => json!({"enum": of}),
        Kind::Words { of } => {
            json!({"type": "string", "description": format!("Some of {}", of.join(", "))})
        }
        Kind::Format => json!({"enum": ["json", "csv", "ndjson"], "default": "json"}),
        Kind::Conditions => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        Kind::Values => json!({"type": "object", "additionalProperties": {"type": "number"}}),
    };
    let Parameter { name, description, .. } = parameter;
    if matches!(parameter.kind, Kind::Conditions | Kind::Values) {
        // Each member of the object is a parameter of its own.
        return json!({"name": name, "in": "query", "description": description, "style": "form", "explode": true, "schema": schema});
    }
    json!({"name": name, "in": "query", "description": description, "schema": schema})
}

fn request_body(endpoint: &Endpoint, schema: &str) -> Value {
    let mut content = json!({"application/json": {"schema": reference(schema)}});
    if endpoint.operation == Operation::PostReadings {
        content["application/x-ndjson"] = json!({"schema": {"type": "string"}});
    }
    let description = format!(
        "At most {MAX_BODY} bytes as sent, {MAX_INFLATED} inflated; Content-Encoding: gzip is taken"
    );
    json!({"required": true, "description": description, "content": content})
}

/// The statuses of failures. Every endpoint can fail by a mistake of ours, and any may be asked for too
/// often.
fn failures(endpoint: &Endpoint) -> Vec<u16> {
    let mut statuses = vec![400, 405, 429, 500, 503];
    if endpoint.access != Access::Public || endpoint.operation == Operation::Health {
        statuses.extend([401, 403]);
    }
    if endpoint.operation == Operation::WebFile {
        statuses.push(406);
    }
    if endpoint.has_id()
        || matches!(
            endpoint.operation,
            Operation::ShowConditionsSchema | Operation::AcknowledgeByLink
        )
    {
        statuses.push(404);
    }
    if matches!(endpoint.reply, Reply::Progress(_))
        || matches!(
            endpoint.operation,
            Operation::PutAlert | Operation::PutChannel | Operation::AcknowledgeAlert
        )
    {
        statuses.push(409);
    }
    let is_of_device = endpoint.path.starts_with("/devices/{id}");
    if is_of_device && endpoint.operation != Operation::DeleteDevice
        || matches!(endpoint.reply, Reply::Receipt(_))
        || endpoint.operation == Operation::PutAnnotation
    {
        statuses.push(410);
    }
    if matches!(endpoint.reply, Reply::Rows(_) | Reply::One("ConditionsSchema" | "AlertPreview"))
        || endpoint.operation == Operation::ListDevices
    {
        statuses.push(422);
    }
    if endpoint.body.is_some() {
        statuses.extend([413, 415]);
    }
    statuses
}

fn responses(endpoint: &Endpoint) -> Value {
    let answer = |description: &str, schema: Value| json!({"description": description, "content": {"application/json": {"schema": schema}}});
    let mut responses = match endpoint.reply {
        Reply::One(schema) => json!({"200": answer(endpoint.summary, reference(schema))}),
        Reply::Made(schema) => json!({"201": answer(endpoint.summary, reference(schema))}),
        Reply::Page(schema) => {
            let mut page = answer("A page", list(schema));
            page["content"]["text/csv"] = json!({"schema": {"type": "string"}});
            page["content"]["application/x-ndjson"] = json!({"schema": {"type": "string"}});
            json!({"200": page})
        }
        Reply::Rows(schema) => {
            let mut rows = answer("Rows", reference(schema));
            rows["content"]["text/csv"] = json!({"schema": {"type": "string"}});
            rows["content"]["application/x-ndjson"] = json!({"schema": {"type": "string"}});
            json!({"200": rows})
        }
        Reply::Progress(schema) => json!({
            "200": answer("Nothing is left", reference(schema)),
            "202": answer("Something is left; the same request goes on with it", reference(schema)),
        }),
        Reply::Message(schema) => json!({
            "200": answer("The answer to a request", reference(schema)),
            "202": {"description": "A notification, which has no answer"},
        }),
        // InfluxDB's are in its own documentation.
        Reply::Influx => json!({"204": {"description": endpoint.summary}}),
        Reply::File(types) => {
            let content: Map<String, Value> = types
                .iter()
                .map(|name| ((*name).to_owned(), json!({"schema": {"type": "string"}})))
                .collect();
            json!({"200": {"description": endpoint.summary, "content": content}})
        }
        Reply::Receipt(schema) => json!({
            "201": answer("All are stored", reference(schema)),
            "207": answer("Some are refused, the others stored", reference(schema)),
        }),
    };
    if endpoint.body == Some("Payload") {
        responses["200"] = answer(
            "The payload is understood, and nothing of it is stored; ignored names what it has",
            reference("Receipt"),
        );
        responses["204"] =
            json!({"description": "The payload is understood and has nothing to store"});
    }
    let is_cached = matches!(endpoint.reply, Reply::One(it) | Reply::Page(it) if matches!(it, "Device" | "Room" | "Home"))
        || matches!(endpoint.reply, Reply::Rows(_))
        || endpoint.operation == Operation::WebPage;
    if endpoint.method == "GET" && is_cached {
        responses["304"] = json!({"description": "The list or entry has not changed since the ETag in If-None-Match"});
    }
    for status in failures(endpoint) {
        responses[status.to_string()] = json!({"$ref": "#/components/responses/Problem"});
    }
    if let Reply::Message(schema) = endpoint.reply {
        let mut refusal = answer("A message that is refused", reference(schema));
        responses["404"] = refusal.clone();
        refusal["content"]["application/problem+json"] = json!({"schema": reference("Problem")});
        responses["400"] = refusal;
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
            "plan": reference("Plan"),
        },
    })
}

fn all_schemas() -> Value {
    let mut all = schemas();
    for further in [
        alerts::schemas(),
        annotations::schemas(),
        conditions::schemas(),
        energy::schemas(),
        patch::schemas(),
        series::schemas(),
        tokens::schemas(),
    ] {
        for (name, schema) in further.as_object().expect("an object") {
            all[name] = schema.clone();
        }
    }
    all
}

/// A metric of a device.
fn known_metric() -> Value {
    let metric = json!({"type": "number"});
    json!({
        "type": "object",
        "required": ["kind", "unit"],
        "properties": {
            "kind": {"enum": ["gauge", "counter"]},
            "unit": {"type": ["string", "null"]}, "modulus": metric, "max_w": metric, "tolerance": metric,
            "hold": {"type": "string"},
            "exchanges": {"type": "array", "items": reference("Exchange")},
            "verdicts": {"type": "array", "items": reference("Verdict")},
            "in_room_means": {"type": "boolean", "description": "Whether a person said that the means of rooms have it"},
            "hourly_until": {"type": "string", "format": "date-time", "description": "The time until which an import found hourly means only"},
            "not_of_room": reference("NotOfRoomReason"),
            "role": reference("Role"),
            "net": {"type": "boolean", "description": "A net meter: a fall is negative"},
            "cycle": {"type": "string", "description": "The metric of the same readings that tells in which cycle the counter is"},
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
        "Receipt": {
            "type": "object",
            "required": ["accepted"],
            "properties": {
                "accepted": {"type": "integer"},
                "accepted_before": {"type": "integer", "description": "How many an earlier attempt of the same request has stored and this one has passed over; what was deleted since is not there"},
                "rejected": {"type": "array", "items": reference("FieldError")},
                "more_rejected": {"type": "array", "items": {"type": "integer"}, "description": "The places of those refused beyond the first megabyte of refusals"},
                "ignored": {"type": "array", "items": {"type": "string"}, "description": "The names of what a device's payload has and is not stored: words, and numbers that have no place"},
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
                "ignored": {"type": "array", "items": {"type": "string"}, "description": "The names of what a device's payload has and is not stored: words, and numbers that have no place"},
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
                "attributes": {"type": "object", "additionalProperties": {
                    "type": ["string", "number", "array"], "items": {"type": ["string", "number"]},
                }, "description": "What people say of it in words of their own"},
                "behind": {"oneOf": [reference("Id")], "description": "The device behind whose meter it is"},
                "in_room_means": {"type": "boolean", "description": "Whether a person said that the means of rooms have it"},
                "metrics": {"type": "object", "additionalProperties": known_metric()},
                "first_seen": timestamp,
                "latest": {"oneOf": [reference("LatestValues"), {"type": "null"}]},
            },
            "additionalProperties": false,
        },
        "Plan": {
            "type": "object",
            "description": "Only of devices with explain: how they were found",
            "required": ["source", "estimated_read_units", "consumed_read_units"],
            "properties": {
                "source": {"enum": ["registry", "index"], "description": "registry: from the function's memory"},
                "driver": {"type": "string", "description": "The condition whose entries of the index are read"},
                "newest_values": {"type": "integer", "description": "The number of devices whose newest values were read"},
                "estimated_read_units": metric,
                "consumed_read_units": metric,
            },
            "additionalProperties": false,
        },
        "Room": {
            "type": "object",
            "required": ["room_id", "name", "home", "outside", "first_seen"],
            "properties": {
                "room_id": reference("Id"),
                "name": text,
                "home": {"oneOf": [reference("Id"), {"type": "null"}]},
                "outside": {"type": ["boolean", "null"], "description": "Whether it is outside; null where nobody said so"},
                "first_seen": timestamp,
            },
            "additionalProperties": false,
        },
        "Home": {
            "type": "object",
            "description": "A home is nothing but its rooms: PATCH /rooms/{id} sets the home of each",
            "required": ["home_id", "rooms", "first_seen"],
            "properties": {
                "home_id": reference("Id"),
                "rooms": {"type": "integer", "description": "The number of its rooms"},
                "first_seen": timestamp,
            },
            "additionalProperties": false,
        },
        "Stay": {
            "type": "object",
            "required": ["device_id", "room", "since", "until"],
            "properties": {
                "device_id": reference("Id"),
                "room": reference("Id"),
                "since": timestamp,
                "until": {"type": ["string", "null"], "format": "date-time", "description": "null while it lasts"},
            },
            "additionalProperties": false,
        },
        "LatestValues": {
            "type": "object",
            "required": ["timestamp", "as_of", "metrics"],
            "properties": {
                "timestamp": timestamp,
                "as_of": {"type": "string", "format": "date-time", "description": "How far back was looked: a metric that is missing was not sent since then, and a value that is older may not be the newest"},
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
    })
}
