//! Two addresses, as where each function has its own: what each answers, and what a page may ask. Opens no browser.

use std::time::Duration;

use local::{Options, System};
use serde_json::json;

use crate::client::send_to;

const READING: &[u8] = br#"{"device_id": "my-sensor", "temperature": 21.5}"#;

async fn two_addresses() -> (System, String, String) {
    let (ingest_port, registry_max_age) = (Some(0), Duration::ZERO);
    let options = Options { ingest_port, registry_max_age, ..Options::default() };
    let system = System::start(options).await.expect("it starts");
    let ingest = system.ingest_url().expect("another address").to_owned();
    let page = system.url().to_owned();
    assert_ne!(ingest, page);
    (system, ingest, page)
}

#[tokio::test]
async fn readings_are_stored_at_one_address_and_read_at_the_other() {
    let (system, ingest, page) = two_addresses().await;
    assert_eq!(send_to(&ingest, "POST", "/readings", "", READING).await.status, 201);
    let latest = send_to(&page, "GET", "/devices/my-sensor/latest", "", b"").await;
    assert_eq!(latest.json()["metrics"]["temperature"]["value"], json!(21.5));
    for (url, method, path, output) in [
        (&page, "POST", "/readings", "IngestUrl"),
        (&page, "POST", "/write", "IngestUrl"),
        (&ingest, "GET", "/", "PageUrl"),
        (&ingest, "GET", "/devices/my-sensor", "PageUrl"),
        (&ingest, "DELETE", "/devices/my-sensor", "PageUrl"),
        (&ingest, "GET", "/query?db=x&q=SELECT+*+FROM+t", "PageUrl"),
    ] {
        let answer = send_to(url, method, path, "", READING).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, 404, "{method} {path}: {text}");
        assert!(text.contains(output), "{method} {path}: {text}");
    }
    // A client of InfluxDB meets the same at both.
    for path in ["/ping", "/ready", "/influx/health", "/query?q=SHOW+DATABASES"] {
        let [here, there] = [&ingest, &page].map(|url| send_to(url, "GET", path, "", b""));
        let (here, there) = (here.await, there.await);
        assert_eq!(here.status, there.status, "{path}");
        assert_eq!(here.header("x-influxdb-version"), Some("1.8.10"), "{path}");
        if path != "/ready" {
            assert_eq!(here.body, there.body, "{path}");
        }
    }
    system.shutdown().await.expect("stops");
}

#[tokio::test]
async fn the_page_names_the_other_address_and_alone_may_ask_it() {
    let (system, ingest, page) = two_addresses().await;
    let html = send_to(&page, "GET", "/", "", b"").await;
    let policy = html.header("content-security-policy").expect("a policy").to_owned();
    assert!(policy.contains(&format!("connect-src 'self' {ingest};")), "{policy}");
    let html = String::from_utf8(html.body).expect("text");
    assert!(html.contains(&format!(r#"<meta name="ingest" content="{ingest}">"#)), "{html}");
    for (origin, status, allowed) in
        [(page.as_str(), 201, Some("*")), ("https://example.org", 403, None)]
    {
        let asks = format!("Origin: {origin}\r\nAccess-Control-Request-Method: POST\r\n");
        let before = send_to(&ingest, "OPTIONS", "/readings", &asks, b"").await;
        assert_eq!(before.header("access-control-allow-origin"), allowed, "{origin}");
        let header = format!("Origin: {origin}\r\n");
        let answer = send_to(&ingest, "POST", "/readings", &header, READING).await;
        assert_eq!(answer.status, status, "{origin}");
        assert_eq!(answer.header("access-control-allow-origin"), allowed, "{origin}");
    }
    system.shutdown().await.expect("stops");
}
