//! The secret of a token, and every endpoint with a view token. All else is in `tests/cases/tokens.txt`.

use domain::{Token, WritableDevices};
use table::ManageTokens as _;

use super::*;

async fn guarded() -> Bench {
    Bench::with(true).with_house("that is guarded").await
}

fn bearer(secret: &str) -> Value {
    json!({"authorization": format!("Bearer {secret}")})
}

impl Bench {
    async fn issue(&self, body: &str) -> Answer {
        self.send("POST", "/tokens", bearer(&given::secret("admin")), body).await
    }

    async fn view(&self, method: &str, url: &str, body: &str) -> Answer {
        self.send(method, url, bearer(&given::secret("view")), body).await
    }

    async fn issued(&self) -> Vec<Token> {
        let mut all = self.store.tokens(&invocation()).await.expect("memory");
        all.retain(|token| token.issued_by.is_some());
        all
    }
}

#[tokio::test]
async fn an_admin_makes_a_write_token_of_one_device_that_stores_its_readings_and_nothing_else() {
    let bench = guarded().await;
    let answer = bench
        .issue(r#"{"scope": "write", "device": "new:plug", "name": "desk", "expires": "2w"}"#)
        .await;
    assert_eq!((answer.status, answer.header("cache-control")), (201, "no-store"));
    let shown = answer.json();
    let secret = shown["token"].as_str().expect("a secret").to_owned();
    let [token] = &bench.issued().await[..] else { panic!("one") };
    assert_eq!(token.hash, domain::TokenHash::of(&secret));
    assert_eq!(token.issued_by, Some(given::token("admin", Scope::Admin).hash));
    let Scope::Write(scope) = &token.scope else { panic!("{token:?}") };
    let device: DeviceId = given::device("new:plug");
    assert_eq!(scope.devices, WritableDevices::Only([device].into()));
    assert!(scope.device_tags.is_empty() && scope.room_tag.is_none());
    let expected = json!({
        "token": secret, "id": token.hash.short(), "scope": "write", "device": "new:plug", "name": "desk",
        "created": at_minute(60), "expires": at_minute(60 + 14 * 24 * 60),
    });
    assert_eq!(shown, expected);
    let other = bench.issue(r#"{"scope": "write", "device": "b"}"#).await.json();
    assert_ne!(other["token"], shown["token"]);
    assert_eq!((&other["name"], &other["expires"]), (&Value::Null, &Value::Null));
    // It reads nothing, and makes no token itself.
    for (method, url) in [("GET", "/devices"), ("POST", "/tokens"), ("PUT", "/annotations/x")] {
        let answer = bench.send(method, url, bearer(&secret), "{}").await;
        assert_eq!(answer.status, 403, "{method} {url}");
    }
    assert!(!bench.log().contains(&secret[3..20]), "no secret is in a log");
    assert!(bench.log().contains(&format!("\"token.issued\":\"{}\"", token.hash.short())));
}

#[tokio::test]
async fn a_view_token_reads_what_is_under_its_rooms_and_homes_and_is_refused_everywhere_else() {
    let bench = guarded().await;
    for url in [
        "/rooms/r",
        "/rooms/r/devices?latest=1",
        "/rooms/r/readings?from=-2h",
        "/rooms/r/stays",
        "/rooms/r/series?from=-2h&every=1h&devices=1",
        "/rooms/r/conditions?from=-2h&temperature=1..",
        "/homes/villa",
        "/homes/villa/rooms",
        "/homes/villa/devices?latest=1",
        "/homes/villa/series?from=-2h&rooms=1",
        "/homes/villa/conditions?from=-2h&temperature=1..",
        "/rooms/%72",
        "/rooms/r/",
        "/health",
        "/",
    ] {
        let answer = bench.view("GET", url, "").await;
        assert_eq!(answer.status, 200, "{url}: {}", answer.text);
        assert_eq!(bench.view("HEAD", url, "").await.status, 200, "HEAD {url}");
    }
    // Other answers than 403 tell something of what is there.
    for endpoint in api::endpoints::ENDPOINTS.iter().filter(|it| it.function == Function::Query) {
        let is_public = endpoint.access == api::endpoints::Access::Public;
        for id in ["a", "s", "c", "villa2", "r%2Fx", "..", "R", "r%20", "x".repeat(300).as_str()] {
            let url = endpoint.path.replace("{id}", id);
            let answer = bench.view(endpoint.method, &url, "{}").await;
            if !is_public && (endpoint.has_id() || id == "a") {
                assert_eq!(answer.status, 403, "{} {url}: {}", endpoint.method, answer.text);
            }
        }
        for id in ["r", "villa"] {
            let changes = endpoint.method != "GET";
            let url = endpoint.path.replace("{id}", id);
            if changes && !is_public {
                let answer = bench.view(endpoint.method, &url, r#"{"name": "x"}"#).await;
                assert_eq!(answer.status, 403, "{} {url}: {}", endpoint.method, answer.text);
            }
        }
    }
    for url in ["/health?details=1", "/rooms/villa", "/homes/r/rooms", "/devices?room=r"] {
        let answer = bench.view("GET", url, "").await;
        assert_eq!(answer.status, 403, "{url}");
        let detail = answer.json()["detail"].as_str().expect("a detail").to_owned();
        assert_eq!(detail, "The token shows the room r and the home villa, and nothing else.");
    }
    let room = "r".parse().expect("an id");
    let room = bench.store.room(&room, &invocation()).await.expect("memory");
    assert_eq!(room.expect("it is there").name, None, "nothing is edited");
}

/// No body is read further than it may be long, and nothing is made.
#[tokio::test]
async fn a_large_body_makes_no_token() {
    let bench = guarded().await;
    let reads = bench.store.calls().reads;
    let large = json!({"scope": "x".repeat(40_000)}).to_string();
    let told = bench.issue(&large).await.problem();
    assert!(told.starts_with("413 The body is 40012 bytes long"), "{told}");
    let kettle = "/annotations/2026-01-11T16:00:00.000Z-kettle";
    let body = json!({"device": "a", "text": "x".repeat(9_000)}).to_string();
    let headers = bearer(&given::secret("admin"));
    let told = bench.send("PUT", kettle, headers, &body).await.problem();
    assert!(told.starts_with("413 The body is 9024 bytes long"), "{told}");
    assert_eq!(bench.store.calls().reads, reads);
    assert_eq!(bench.issued().await, []);
}
