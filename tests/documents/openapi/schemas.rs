//! The schemas of answers, which their types give, beside those of bodies, and of answers that have no type.

mod alerts;
mod bodies;
mod messages;
mod patch;

use ingest::Receipt;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::{Map, Value, json};

/// The schemas of answers by their types, and those of bodies and answers that have no type.
pub(super) fn all() -> Map<String, Value> {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.definitions_path = "/components/schemas".into();
    settings.transforms.push(Box::new(RecursiveTransform(make_exact)));
    let mut generator = settings.into_generator();
    query::schemas::add_to(&mut generator);
    api::problem::add_schema_to(&mut generator);
    api::about::add_schema_to(&mut generator);
    generator.subschema_for::<Receipt>();

    let mut all = generator.take_definitions(true);
    for further in [
        alerts::schemas(),
        bodies::readings(),
        bodies::others(),
        messages::schemas(),
        patch::schemas(),
    ] {
        all.extend(further.as_object().expect("an object").clone());
    }
    all
}

/// Says what a type of Rust does not: a member that may be absent is not `null`, one of several schemas is the only one,
/// a number has no size, and a text no ends of lines.
fn make_exact(schema: &mut Schema) {
    if schema.get("format").is_some_and(|format| format != "date-time") {
        schema.remove("format");
        let is_size = |largest: &Value| *largest == u8::MAX || *largest == u16::MAX;
        if schema.get("maximum").is_some_and(is_size) {
            schema.remove("maximum");
        }
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }

    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required =
        |name: &str| required.as_array().is_some_and(|names| names.contains(&json!(name)));
    for (name, member) in
        schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
    {
        let member = member.as_object_mut().expect("a schema");
        let is_nullable = member.remove("nullable").is_some();
        if !is_required(name) && !is_nullable {
            remove_null(member);
        }
    }
    if let Some(schemas) = schema.remove("anyOf") {
        schema.insert("oneOf".to_owned(), schemas);
    }
}

/// Leaves what a member is where it is not `null`.
fn remove_null(member: &mut Map<String, Value>) {
    let null = json!({"type": "null"});
    if let Some([schema, other]) = member.get("anyOf").and_then(Value::as_array).map(Vec::as_slice)
        && *other == null
    {
        let schema = schema.as_object().expect("an object").clone();
        member.remove("anyOf");
        member.extend(schema);
    } else if let Some([kind, other]) =
        member.get("type").and_then(Value::as_array).map(Vec::as_slice)
        && other == "null"
    {
        let kind = kind.clone();
        member.insert("type".to_owned(), kind);
    }
}
