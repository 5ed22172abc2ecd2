//! The API as an `OpenAPI` 3.1 document, made of the table of endpoints and the types of answers. `query` serves the file.

mod reference;
mod schemas;

use api::endpoints::{Access, Endpoint, Kind, Operation, Parameter, Reply};
use api::{MAX_BODY, MAX_INFLATED};
use serde_json::{Map, Value, json};

use crate::generated::assert_is;
use crate::openapi::own_endpoints;
use reference::reference;

#[test]
fn the_document_is_made_of_the_code() {
    assert_is("functions/query/openapi.json", &text(&document()));
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
    for endpoint in own_endpoints() {
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
        "components": { "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}, "schemas": schemas::all(), "responses": { "Problem": {
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
        Kind::Conditions => {
            json!({"type": "object", "additionalProperties": {"type": "string"}})
        }
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
            Operation::PutAlert
                | Operation::PutChannel
                | Operation::PutSource
                | Operation::PutTariff
                | Operation::AcknowledgeAlert
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
    if matches!(
        endpoint.reply,
        Reply::Rows(_) | Reply::One("ConditionsSchema" | "AlertPreview" | "SourceTest")
    ) || endpoint.operation == Operation::ListDevices
    {
        statuses.push(422);
    }
    if endpoint.body.is_some() {
        statuses.extend([413, 415]);
    }
    statuses
}

fn responses(endpoint: &Endpoint) -> Value {
    let mut responses = successes(endpoint);
    if endpoint.body == Some("Payload") {
        responses["200"] = answer(
            "The payload is understood, and nothing of it is stored; ignored names what it has",
            &reference("Receipt"),
        );
        responses["204"] =
            json!({"description": "The payload is understood and has nothing to store"});
    }
    if endpoint.method == "GET" && is_cached(endpoint) {
        responses["304"] = json!({"description": "The list or entry has not changed since the ETag in If-None-Match"});
    }

    for status in failures(endpoint) {
        responses[status.to_string()] = json!({"$ref": "#/components/responses/Problem"});
    }
    if let Reply::Message(schema) = endpoint.reply {
        let mut refusal = answer("A message that is refused", &reference(schema));
        responses["404"] = refusal.clone();
        refusal["content"]["application/problem+json"] = json!({"schema": reference("Problem")});
        responses["400"] = refusal;
    }
    responses
}

/// The answers that are no failures, by their status.
fn successes(endpoint: &Endpoint) -> Value {
    let summary = endpoint.summary;
    match endpoint.reply {
        Reply::One(schema) => json!({"200": answer(summary, &reference(schema))}),
        Reply::Made(schema) => json!({"201": answer(summary, &reference(schema))}),
        Reply::Page(schema) => json!({"200": table("A page", &list(schema))}),
        Reply::Rows(schema) => json!({"200": table("Rows", &reference(schema))}),
        Reply::Progress(schema) => json!({
            "200": answer("Nothing is left", &reference(schema)),
            "202": answer("Something is left; the same request goes on with it", &reference(schema)),
        }),
        Reply::Message(schema) => json!({
            "200": answer("The answer to a request", &reference(schema)),
            "202": {"description": "A notification, which has no answer"},
        }),
        // InfluxDB's are in its own documentation.
        Reply::Influx => json!({"204": {"description": summary}}),
        Reply::File(types) => {
            let content = types.iter().map(|name| ((*name).to_owned(), text_of_a_type()));
            json!({"200": {"description": summary, "content": content.collect::<Map<_, _>>()}})
        }
        Reply::Receipt(schema) => json!({
            "201": answer("All are stored", &reference(schema)),
            "207": answer("Some are refused, the others stored", &reference(schema)),
        }),
    }
}

/// Whether an answer has an `ETag`.
fn is_cached(endpoint: &Endpoint) -> bool {
    match endpoint.reply {
        Reply::One(schema) | Reply::Page(schema) => matches!(schema, "Device" | "Room" | "Home"),
        Reply::Rows(_) => true,
        _ => endpoint.operation == Operation::WebPage,
    }
}

fn answer(description: &str, schema: &Value) -> Value {
    json!({"description": description, "content": {"application/json": {"schema": schema}}})
}

/// An answer that is a table in CSV and NDJSON.
fn table(description: &str, schema: &Value) -> Value {
    let mut answer = answer(description, schema);
    answer["content"]["text/csv"] = text_of_a_type();
    answer["content"]["application/x-ndjson"] = text_of_a_type();
    answer
}

fn text_of_a_type() -> Value {
    json!({"schema": {"type": "string"}})
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
            "rooms_lack": {"type": "string", "description": "Why devices of the room may be missing"},
        },
    })
}
