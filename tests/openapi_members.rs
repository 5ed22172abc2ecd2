//! The members of answers that the OpenAPI document names: which of them are sent, and whether CSV has them. Knows no
//! request but those for CSV.

use std::collections::BTreeSet;

use api::endpoints::{ENDPOINTS, Reply};
use serde_json::{Value, json};

use crate::client::{get, post, send, system};

/// A document's schemas without room for members that they do not name.
///
/// A schema that is a part of another does not know the other's members.
pub(crate) fn strict(document: &Value) -> Value {
    let mut components = document["components"].clone();
    let parts = names_in_all_of(&components);
    for (name, schema) in components["schemas"].as_object_mut().expect("schemas") {
        if !parts.contains(name) {
            close(schema);
        }
    }
    components
}

/// The names of the schemas that others are made of.
fn names_in_all_of(components: &Value) -> BTreeSet<String> {
    let schemas = components["schemas"].as_object().expect("schemas").values();
    let all_of = schemas.filter_map(|schema| schema["allOf"].as_array()).flatten();
    all_of.filter_map(|part| Some(name_of(part["$ref"].as_str()?))).collect()
}

/// Refuses members that are not named, in a schema and all within it.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(close);
            let is_of_object = members.get("type").is_some_and(|kind| kind == "object");
            if is_of_object && members.contains_key("properties") {
                members.entry("unevaluatedProperties").or_insert(json!(false));
            }
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(close),
        _ => {}
    }
}

fn name_of(reference: &str) -> String {
    reference.rsplit('/').next().expect("a name").to_owned()
}

/// The members of answers, each by the name of its schema.
#[derive(Debug)]
pub(crate) struct Members<'a> {
    document: &'a Value,
    pub(crate) found: BTreeSet<String>,
}

impl<'a> Members<'a> {
    /// None yet.
    pub(crate) fn of(document: &'a Value) -> Self {
        Self { document, found: BTreeSet::new() }
    }

    /// Adds all members of a schema, which has a name.
    pub(crate) fn add_documented(&mut self, schema: &Value, name: &str) {
        self.walk(schema, name, None);
    }

    /// Adds those members of a schema that an answer has.
    pub(crate) fn add_sent(&mut self, schema: &Value, name: &str, answer: &Value) {
        self.walk(schema, name, Some(answer));
    }

    fn walk(&mut self, schema: &Value, name: &str, answer: Option<&Value>) {
        if !schema.is_object() {
            return;
        }
        if let Some(reference) = schema["$ref"].as_str() {
            let target = self.document.pointer(&reference[1..]).expect("it leads somewhere");
            self.walk(target, &name_of(reference), answer);
        }
        for choice in ["oneOf", "allOf"] {
            for schema in schema[choice].as_array().into_iter().flatten() {
                self.walk(schema, name, answer);
            }
        }
        for (member, schema) in schema["properties"].as_object().into_iter().flatten() {
            let value = answer.map(|answer| &answer[member]);
            if value.is_some_and(Value::is_null) {
                continue;
            }
            let path = format!("{name}.{member}");
            if self.found.insert(path.clone()) || answer.is_some() {
                self.walk(schema, &path, value);
            }
        }
        self.walk_further(schema, name, answer);
    }

    /// The elements of a list, and the members that have no name of their own.
    fn walk_further(&mut self, schema: &Value, name: &str, answer: Option<&Value>) {
        let (items, others) = (&schema["items"], &schema["additionalProperties"]);
        let Some(answer) = answer else {
            self.walk(items, name, None);
            self.walk(others, name, None);
            return;
        };
        for element in answer.as_array().into_iter().flatten() {
            self.walk(items, name, Some(element));
        }
        for (member, value) in answer.as_object().into_iter().flatten() {
            if schema["properties"].get(member).is_none() {
                self.walk(others, name, Some(value));
            }
        }
    }
}

/// The members of rows that are other columns in CSV, and which. A metric is in columns of its own.
const OTHER_COLUMNS: [(&str, &str, &[&str]); 8] = [
    // Of the lines of a bill, which have columns of their own.
    ("Cost", "name", &[]),
    ("Cost", "per", &[]),
    ("Cost", "quantity", &[]),
    ("Cost", "zone", &[]),
    // Beside the devices of a list, each metric's newest value has a column.
    ("Device", "latest", &["latest_timestamp", "latest_as_of"]),
    ("Events", "from", &["from_timestamp", "from_value"]),
    ("Events", "to", &["to_timestamp", "to_value"]),
    // The only function of the only metric, which has a column of its own as well.
    ("Series", "value", &[]),
];

/// A request for each kind of rows, with which none of its members is left out for not being asked for.
const ROWS: [(&str, &str); 12] = [
    ("Annotation", "/annotations?"),
    ("Conditions", "/devices/x/conditions?current_w=0..&"),
    ("Cost", "/cost?"),
    ("Device", "/devices?latest=1&"),
    ("Energy", "/energy?devices=1&"),
    ("Events", "/devices/x/events?"),
    ("Home", "/homes?"),
    ("Room", "/rooms?"),
    ("Series", "/series?rooms=1&"),
    ("Stay", "/devices/x/stays?"),
    ("StoredReading", "/devices/x/readings?from=-1d&"),
    ("LoggedMessage", "/alerts/x/history?"),
];

#[tokio::test]
async fn csv_has_a_column_for_each_member_of_a_row() {
    let system = system().await;
    let reading = json!({"device_id": "x", "room": "x", "current_w": 1});
    assert_eq!(post(&system, &reading).await.status, 201);
    assert_eq!(send(&system, "PATCH", "/rooms/x", br#"{"home": "x"}"#).await.status, 200);
    let rule = br#"{"name": "x", "device": "x", "metric": "current_w", "above": 5}"#;
    assert_eq!(send(&system, "PUT", "/alerts/x", rule).await.status, 200);

    let document = get(&system, "/openapi.json").await.json();
    let kinds: BTreeSet<&str> = ENDPOINTS
        .iter()
        .filter_map(|endpoint| match endpoint.reply {
            Reply::Page(schema) | Reply::Rows(schema) => Some(schema),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, ROWS.iter().map(|(schema, _)| *schema).collect(), "each kind is asked for");

    for (schema, url) in ROWS {
        let answer = get(&system, &format!("{url}format=csv")).await;
        let text = String::from_utf8(answer.body).expect("UTF-8");
        assert_eq!(answer.status, 200, "{url}: {text}");
        let is_of_metric = |name: &&str| name.split('.').next() == Some("current_w");
        let header = text.lines().next().expect("a header");
        let columns: BTreeSet<&str> = header.split(',').filter(|it| !is_of_metric(it)).collect();

        let members = row_members(&document, schema);
        let expected: BTreeSet<&str> = members
            .iter()
            .flat_map(|member| {
                match OTHER_COLUMNS.iter().find(|it| it.0 == schema && it.1 == member) {
                    Some((.., others)) => others.to_vec(),
                    None => vec![member.as_str()],
                }
            })
            .collect();
        assert_eq!(columns, expected, "{url}");
    }
    system.shutdown().await.expect("stops");
}

/// The names of the members of a row, as the document has them.
fn row_members(document: &Value, schema: &str) -> BTreeSet<String> {
    let schemas = &document["components"]["schemas"];
    let rows = &schemas[schema]["properties"]["data"]["items"];
    let mut row = if rows.is_object() { rows } else { &schemas[schema] };
    if let Some(reference) = row["$ref"].as_str() {
        row = &schemas[name_of(reference)];
    }
    let parts = row["allOf"].as_array().into_iter().flatten();
    let parts = parts.map(|part| &schemas[name_of(part["$ref"].as_str().expect("a name"))]);
    let own = std::iter::once(row).chain(parts);
    own.flat_map(|it| it["properties"].as_object().expect("members").keys().cloned()).collect()
}
