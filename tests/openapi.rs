//! The OpenAPI document: valid by itself, complete against the endpoints, true of real answers.

use std::collections::BTreeSet;
use std::time::Duration;

use api::MAX_BODY;
use api::endpoints::{ENDPOINTS, Endpoint, Operation, Reply, find_path};
use domain::Scope;
use dynamodb::DynamoStore;
use local::System;
use runtime::clock::Deadline;
use serde_json::{Value, json};
use table::layout::Layout;
use table::{AddToken as _, Invocation, given};

use crate::client::{Answer, get, post, send, send_with, system};
use crate::openapi_members::{Members, strict};

/// The places of a document at which something stands for something else.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                found.insert(reference.clone());
            }
            members.values().for_each(|value| references(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

/// The endpoints but InfluxDB's, which its own documentation describes.
pub(crate) fn own_endpoints() -> impl Iterator<Item = &'static Endpoint> {
    ENDPOINTS.iter().filter(|endpoint| endpoint.dialect().is_none())
}

#[tokio::test]
async fn the_document_is_valid_and_lists_every_endpoint() {
    let system = system().await;
    let document = get(&system, "/openapi.json").await.json();
    oas3::from_json(document.to_string()).expect("OpenAPI 3.1");

    let mut found = BTreeSet::new();
    references(&document, &mut found);
    for reference in found {
        let pointer = reference.strip_prefix('#').expect("local");
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    for endpoint in own_endpoints() {
        let operation = &document["paths"][endpoint.path][endpoint.method.to_lowercase()];
        assert_eq!(operation["summary"], endpoint.summary, "{} {}", endpoint.method, endpoint.path);
        let named =
            operation["parameters"].as_array().expect("a list").iter().any(|p| p["in"] == "path");
        assert_eq!(named, endpoint.has_id(), "{}", endpoint.path);
    }
    let operations: usize = document["paths"]
        .as_object()
        .expect("paths")
        .values()
        .map(|path| path.as_object().expect("methods").len())
        .sum();
    assert_eq!(operations, own_endpoints().count(), "nothing but the endpoints");
    system.shutdown().await.expect("stops");
}

/// A parameter that is documented is known to its endpoint, and one that is not is refused.
#[tokio::test]
async fn the_parameters_are_those_that_the_code_takes() {
    let system = system().await;
    let reading = json!({"device_id": "x", "room": "x", "t": 1});
    assert_eq!(post(&system, &reading).await.status, 201);
    assert_eq!(send(&system, "PATCH", "/rooms/x", br#"{"home": "x"}"#).await.status, 200);
    let rule = r#"{"name": "x", "device": "x", "metric": "t", "above": 5}"#;
    assert_eq!(send(&system, "PUT", "/alerts/x", rule.as_bytes()).await.status, 200);
    add_writer(&system).await;
    let document = get(&system, "/openapi.json").await.json();
    let names: BTreeSet<&str> =
        ENDPOINTS.iter().flat_map(|endpoint| endpoint.parameters).map(|it| it.name).collect();
    for endpoint in own_endpoints() {
        let operation = &document["paths"][endpoint.path][endpoint.method.to_lowercase()];
        let parameters = operation["parameters"].as_array().expect("a list");
        let documented: BTreeSet<&str> = parameters
            .iter()
            // An object's members are parameters of their own.
            .filter(|parameter| parameter["in"] == "query" && parameter["explode"] != true)
            .map(|parameter| parameter["name"].as_str().expect("a name"))
            .collect();
        // Where metrics are parameters, any further name is a metric's.
        let unknown = (!endpoint.takes_conditions()).then_some("unknown");
        for name in names.iter().copied().chain(unknown) {
            // A reading in an address needs a token on this open system, too.
            let token = format!("&p={}", given::secret("writer"));
            let token = if endpoint.takes_values() { &token } else { "" };
            let url = format!("{}?{name}=%20{token}", endpoint.path.replace("{id}", "x"));
            let body = if endpoint.method == "POST" { reading.to_string() } else { String::new() };
            let answer = send(&system, endpoint.method, &url, body.as_bytes()).await;
            let text = String::from_utf8(answer.body).expect("UTF-8");
            let refused =
                answer.status == 400 && text.contains(&format!("{name}: unknown parameter"));
            // The page's script reads its address itself.
            let takes_any = endpoint.operation == Operation::WebPage;
            let expected = !takes_any && !documented.contains(name);
            assert_eq!(refused, expected, "{} {url}: {text}", endpoint.method);
        }
        for parameter in parameters.iter().filter(|parameter| parameter["name"] == "limit") {
            let most = parameter["schema"]["maximum"].as_u64().expect("a number");
            for (limit, status) in [(most, 200), (most + 1, 400), (0, 400)] {
                let url = format!("{}?limit={limit}", endpoint.path.replace("{id}", "x"));
                assert_eq!(get(&system, &url).await.status, status, "{url}");
            }
        }
    }
    system.shutdown().await.expect("stops");
}

/// A token for the readings of `x`.
async fn add_writer(system: &System) {
    let scope = Scope::Write(["x".parse().expect("an id")].into());
    let token = given::token("writer", scope);
    let store = DynamoStore::connect(system.store_config(), Layout::default());
    let invocation = Invocation::until(Deadline::after(Duration::from_secs(10)));
    store.add_token(&token, &invocation).await.expect("kept");
}

#[tokio::test]
async fn failures_of_http_itself_are_in_the_document() {
    let system = system().await;
    let document = get(&system, "/openapi.json").await.json();
    let large = vec![b' '; MAX_BODY + 1];
    for (method, path, headers, body, status) in [
        ("DELETE", "/devices", "", &b""[..], 405),
        ("POST", "/readings", "", &large, 413),
        ("POST", "/readings", "Content-Encoding: br\r\n", b"{}", 415),
        ("PATCH", "/rooms/{id}", "Content-Encoding: br\r\n", b"{}", 415),
        ("PATCH", "/rooms/{id}", "", &large, 413),
        ("GET", "/rooms/{id}", "", b"", 404),
    ] {
        let url = path.replace("{id}", "x");
        let answer = send_with(&system, method, &url, headers, body).await;
        assert_eq!(answer.status, status, "{method} {url}");
        let operations = document["paths"][path].as_object().expect("methods");
        let mut concerned = operations
            .iter()
            .filter(|(known, _)| status == 405 || **known == method.to_lowercase());
        let told = concerned.all(|(_, it)| it["responses"][status.to_string()].is_object());
        assert!(told, "{method} {path}: {status} is not in the document");
    }
    let answer = send(&system, "HEAD", "/openapi.json", b"").await;
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    let length = answer.header("content-length").and_then(|length| length.parse().ok());
    assert_eq!(length, Some(get(&system, "/openapi.json").await.body.len()));
    system.shutdown().await.expect("stops");
}

/// A request of `openapi/requests.txt`, with its line.
struct Asked {
    line: usize,
    method: &'static str,
    url: String,
    body: String,
}

/// The requests of the file, which says their grammar.
fn requests() -> Vec<Asked> {
    let hour = "from=2026-01-11T16:00:00Z&to=2026-01-11T17:00:00Z";
    let day = "from=2026-01-11T00:00:00Z&limit=1";

    let mut requests: Vec<Asked> = Vec::new();
    for (line, text) in lines(include_str!("openapi/requests.txt")) {
        if text.starts_with(' ') {
            let last = requests.last_mut().expect("a body follows a request");
            last.body.push_str(text);
            continue;
        }
        let mut parts = text.splitn(3, ' ');
        let mut part = || parts.next().unwrap_or_default();
        let (method, url, body) = (part(), part(), part().to_owned());
        let url = url.replace("{hour}", hour).replace("{day}", day);
        requests.push(Asked { line, method, url, body });
    }
    requests.extend(unknown_payloads());
    requests
}

/// A payload of no format to each format's endpoint.
fn unknown_payloads() -> impl Iterator<Item = Asked> {
    let endpoints = ENDPOINTS.iter().filter(|endpoint| endpoint.body == Some("Payload"));
    endpoints.map(|endpoint| Asked {
        line: 0,
        method: endpoint.method,
        url: endpoint.path.to_owned(),
        body: "{}".to_owned(),
    })
}

/// The lines of a text with their numbers, without comments.
fn lines(text: &'static str) -> impl Iterator<Item = (usize, &'static str)> {
    let lines = (1..).zip(text.lines());
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with("//"))
}

#[tokio::test]
async fn real_answers_are_what_the_document_says() {
    let system = system().await;
    let document = get(&system, "/openapi.json").await.json();
    let components = strict(&document);
    let mut asked = BTreeSet::new();
    let mut sent = Members::of(&document);

    for Asked { line, method, url, body } in requests() {
        let context = format!("tests/openapi/requests.txt:{line}: {method} {url}");
        let path = url.split('?').next().expect("a path");
        let found = find_path(method, path);
        let (endpoint, _) = found.unwrap_or_else(|problem| panic!("{context}: {problem:?}"));
        asked.insert((endpoint.method, endpoint.path));

        let answer = send(&system, method, &url, body.as_bytes()).await;
        system.settle().await.expect("delivered");
        let schema = schema_of(&document, endpoint, &answer);
        let status = answer.status;
        assert!(schema.is_object(), "{context}: {status} of this type is not in the document");
        sent.add_sent(&schema, "List", &answer.json());

        let mut root = json!({"components": components});
        let members = schema.as_object().expect("an object").clone();
        root.as_object_mut().expect("an object").extend(members);
        let validator = jsonschema::validator_for(&root).expect("a schema");
        let answered = answer.json();
        let errors = validator.iter_errors(&answered).map(|error| error.to_string());
        let errors: Vec<_> = errors.collect();
        assert!(errors.is_empty(), "{context}: {errors:?} in {answered}");
    }
    let of_values = own_endpoints().filter(|endpoint| !matches!(endpoint.reply, Reply::File(_)));
    let of_values = of_values.map(|endpoint| (endpoint.method, endpoint.path));
    let not_asked: Vec<_> = of_values.filter(|endpoint| !asked.contains(endpoint)).collect();
    assert_eq!(not_asked, [], "this test asks each endpoint once");
    assert_all_is_sent(&document, &sent);

    // The validation can fail: an answer of another kind does not pass as a device.
    let root = json!({"components": document["components"], "$ref": "#/components/schemas/Device"});
    let validator = jsonschema::validator_for(&root).expect("a schema");
    assert!(!validator.is_valid(&get(&system, "/rooms/hall").await.json()));
    system.shutdown().await.expect("stops");
}

/// The schema that the document has for the status and the type of an answer; `null` if it has none.
fn schema_of(document: &Value, endpoint: &Endpoint, answer: &Answer) -> Value {
    let operation = &document["paths"][endpoint.path][endpoint.method.to_lowercase()];
    let mut response = &operation["responses"][answer.status.to_string()];
    if let Some(reference) = response["$ref"].as_str() {
        response = document.pointer(&reference[1..]).expect("it leads somewhere");
    }
    let content_type = answer.header("content-type").expect("a type");
    response["content"][content_type]["schema"].clone()
}

/// Asserts that the document names no member that no answer has.
fn assert_all_is_sent(document: &Value, sent: &Members<'_>) {
    let mut documented = Members::of(document);
    for endpoint in own_endpoints() {
        let operation = &document["paths"][endpoint.path][endpoint.method.to_lowercase()];
        for response in operation["responses"].as_object().expect("statuses").values() {
            let schema = &response["content"]["application/json"]["schema"];
            documented.add_documented(schema, "List");
        }
    }
    let elsewhere = lines(include_str!("openapi/sent_elsewhere.txt"));
    let elsewhere = elsewhere.map(|(_, member)| member.to_owned());
    let sent: BTreeSet<String> = sent.found.iter().cloned().chain(elsewhere).collect();
    let not_sent: Vec<&String> = documented.found.difference(&sent).collect();
    assert!(not_sent.is_empty(), "the document names what no answer of these has: {not_sent:?}");
}
