//! Access tokens through the whole system: each way to send one, each scope, revocation. Deploys nothing.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::endpoints::{Access, ENDPOINTS, Operation};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::{Scope, ViewScope};
use dynamodb::DynamoStore;
use local::{Options, System};
use runtime::clock::Deadline;
use runtime::telemetry::Telemetry;
use serde_json::json;
use table::given::secret;
use table::{AddToken as _, Invocation, ManageTokens as _, given};

use crate::client::{Answer, send_with};

const READING: &str =
    r#"{"device_id": "meter", "timestamp": "2026-01-11T16:00:00Z", "current_w": 1}"#;

async fn guarded(telemetry: Telemetry) -> System {
    let options =
        Options { auth: true, registry_max_age: Duration::ZERO, telemetry, ..Options::default() };
    let system = System::start(options).await.expect("it starts");
    let store = DynamoStore::connect(system.store_config(), table::layout::Layout::default());
    let invocation = Invocation::until(Deadline::after(Duration::from_secs(10)));
    let device = ["meter".parse().expect("an id")].into();
    for (secret, scope) in [
        ("canary-write", Scope::Write(device)),
        ("canary-read", Scope::Read),
        ("canary-view", Scope::View(view())),
        ("canary-admin", Scope::Admin),
    ] {
        let token = given::token(secret, scope);
        store.add_token(&token, &invocation).await.expect("kept");
        assert!(store.add_token(&token, &invocation).await.is_err(), "done twice, it is refused");
    }
    assert_eq!(store.tokens(&invocation).await.expect("listed").len(), 4);
    system
}

/// The rooms and homes of the view token.
fn view() -> ViewScope {
    ViewScope {
        rooms: ["hall".parse().expect("an id")].into(),
        homes: ["villa".parse().expect("an id")].into(),
    }
}

async fn ask(system: &System, method: &str, path: &str, token: &str, body: &str) -> Answer {
    let header = format!("Authorization: Bearer {}\r\n", secret(token));
    send_with(system, method, path, &header, body.as_bytes()).await
}

#[tokio::test]
async fn every_way_to_send_a_token_works_and_nothing_works_without() {
    let system = guarded(Telemetry::silent()).await;
    let admin = secret("canary-admin");
    for header in [
        format!("Authorization: Bearer {admin}\r\n"),
        format!("authorization: Token {admin}\r\n"),
        format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("anybody:{admin}"))),
    ] {
        let answer = send_with(&system, "GET", "/devices", &header, b"").await;
        assert_eq!(answer.status, 200, "{header}");
    }
    let in_address = async |token: &str| {
        let path = format!("/devices?u=x&p={}", secret(token));
        send_with(&system, "GET", &path, "", b"").await.status
    };
    assert_eq!(in_address("canary-read").await, 200);
    assert_eq!(in_address("canary-admin").await, 403, "logs keep addresses");
    for (method, path) in [
        ("GET", "/devices"),
        ("POST", "/readings"),
        ("PATCH", "/rooms/r"),
        ("GET", "/openapi.json"),
    ] {
        let answer = send_with(&system, method, path, "", READING.as_bytes()).await;
        assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Bearer")));
    }
    // Whoever forgets the scheme did send a token.
    let no_scheme = format!("Authorization: {admin}\r\n");
    let answer = send_with(&system, "GET", "/devices", &no_scheme, b"").await;
    assert_eq!(answer.status, 401);
    let detail = answer.json()["detail"].to_string();
    assert!(detail.contains("with the word Bearer"), "{detail}");
    assert_eq!(send_with(&system, "GET", "/health", "", b"").await.status, 200);
    system.shutdown().await.expect("stops");
}

/// Who is let in is told by the status: 401 and 403 keep out, whatever else the request lacks.
#[tokio::test]
async fn every_endpoint_lets_in_the_scopes_that_it_is_for_and_no_other() {
    let system = guarded(Telemetry::silent()).await;
    let mut let_in = 0;
    for endpoint in ENDPOINTS {
        let asks_in_words = matches!(endpoint.operation, Operation::InfluxQl);
        let (id, of_view) = match endpoint.subject() {
            "room" => ("hall", endpoint.has_id()),
            "home" => ("villa", endpoint.has_id()),
            _ => ("meter", false),
        };
        let path = endpoint.path.replace("{id}", id);
        for token in
            ["", "canary-unknown", "canary-write", "canary-read", "canary-view", "canary-admin"]
        {
            // Whether it may ask is told once there is a question.
            if asks_in_words && token == "canary-write" {
                continue;
            }
            let permitted = match (endpoint.access, token) {
                (Access::Public, _)
                | (Access::Write | Access::Address, "canary-write")
                | (Access::Any, "canary-write" | "canary-read")
                | (Access::Read, "canary-read") => true,
                (Access::Read, "canary-view") => of_view,
                (access, "canary-admin") => access != Access::Address,
                _ => false,
            };
            let body = if endpoint.method == "GET" { "" } else { READING };
            let answer = ask(&system, endpoint.method, &path, token, body).await;
            let told = format!("{} {path} with {token:?}: {}", endpoint.method, answer.status);
            let kept_out = matches!(answer.status, 401 | 403);
            assert_eq!(permitted, !kept_out, "{told} {:?}", String::from_utf8_lossy(&answer.body));
            let_in += usize::from(permitted);
        }
    }
    assert!(let_in > 200, "{let_in}");
    system.shutdown().await.expect("stops");
}

/// What the API makes is a token for the whole system, and nothing but what it says.
#[tokio::test]
async fn a_token_that_an_admin_makes_over_http_stores_readings_of_its_device() {
    let system = guarded(Telemetry::silent()).await;
    let body = r#"{"scope": "write", "device": "plug", "expires": "1h"}"#;
    let made = ask(&system, "POST", "/tokens", "canary-admin", body).await;
    assert_eq!(made.status, 201);
    let header =
        format!("Authorization: Bearer {}\r\n", made.json()["token"].as_str().expect("a token"));
    for (device, status) in [("plug", 201), ("plug:relay", 201), ("meter", 403)] {
        let reading = json!({"device_id": device, "current_w": 1}).to_string();
        let answer = send_with(&system, "POST", "/readings", &header, reading.as_bytes()).await;
        assert_eq!(answer.status, status, "{device}");
    }
    system.shutdown().await.expect("stops");
}

#[tokio::test]
async fn no_token_and_no_query_string_reaches_a_log() {
    let lines = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&lines);
    let telemetry =
        Telemetry::to(Arc::new(move |line| sink.lock().expect("no panic").push_str(line)));
    let system = guarded(telemetry).await;
    ask(&system, "POST", "/readings", "canary-write", READING).await;
    ask(&system, "GET", "/devices?room=canary-room", "canary-unknown", "").await;
    let address = format!("/devices/meter/readings?p={}&from=canary", secret("canary-read"));
    send_with(&system, "GET", &address, "", b"").await;
    ask(&system, "GET", "/rooms/hall?from=canary", "canary-view", "").await;
    let body = r#"{"scope": "view", "rooms": ["canary-room"], "expires": "1h"}"#;
    let made = ask(&system, "POST", "/tokens", "canary-admin", body).await.json();
    let made = made["token"].as_str().expect("a token").to_owned();
    system.shutdown().await.expect("stops");
    let lines = lines.lock().expect("no panic").clone();
    assert!(lines.contains("http.status"));
    assert!(!lines.contains("canary") && !lines.contains(&made[3..20]), "{lines}");
}

#[tokio::test]
async fn without_tokens_a_page_elsewhere_is_not_answered() {
    let origin = "Origin: https://example.org\r\n";
    let open = System::start(Options::default()).await.expect("it starts");
    assert_eq!(send_with(&open, "POST", "/readings", origin, READING.as_bytes()).await.status, 403);
    assert_eq!(send_with(&open, "GET", "/devices/meter", "", b"").await.status, 404, "not stored");
    open.shutdown().await.expect("stops");
    let system = guarded(Telemetry::silent()).await;
    let with_token = format!("{origin}Authorization: Bearer {}\r\n", secret("canary-admin"));
    assert_eq!(send_with(&system, "GET", "/devices", &with_token, b"").await.status, 200);
    system.shutdown().await.expect("stops");
}

#[tokio::test]
async fn without_tokens_only_this_machine_may_be_listened_to() {
    let open = Options { host: Ipv4Addr::UNSPECIFIED.into(), ..Options::default() };
    let error = System::start(open.clone()).await.expect_err("it is refused").to_string();
    assert!(error.contains("add --auth"), "{error}");
    let guarded = System::start(Options { auth: true, ..open }).await.expect("it starts");
    guarded.shutdown().await.expect("stops");
}
