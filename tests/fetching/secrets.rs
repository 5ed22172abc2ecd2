//! Secrets of sources, looked for wherever anything is stored, answered, logged, sent or given up.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use table::ReadSourceSecrets as _;

use super::*;
use crate::home::Consumer;
use crate::records;

/// Part of each secret here. It is the same in a percent-encoded text.
const PART: &str = "geheim-";

/// The maker's answers, which repeat the whole request where they can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Good,
    /// Values and names are what the request has.
    Parrot,
    Refuses,
    Breaks,
    NoJson,
    Busy,
    Panics,
}

/// The last one is good again, so that the end of failures is told too.
const MOODS: [Mood; 8] = [
    Mood::Good,
    Mood::Parrot,
    Mood::Refuses,
    Mood::Breaks,
    Mood::NoJson,
    Mood::Busy,
    Mood::Panics,
    Mood::Good,
];

/// A maker of all kinds that repeats the requests that it gets.
#[derive(Clone)]
struct Maker(Arc<Mutex<Mood>>);

impl FetchAnswer for Maker {
    fn fetch(&self, request: &Request) -> Result<Fetched, Unanswered> {
        let mood = *self.0.lock().expect("no panic while held");
        let repeated = format!("{} {:?} {}", request.uri(), request.headers(), request.body());
        assert!(repeated.contains(PART) || repeated.contains("Basic "), "{repeated}");
        if mood == Mood::Panics {
            std::panic::resume_unwind(Box::new(repeated));
        }

        let value = if mood == Mood::Good { json!(21.5) } else { json!(repeated) };
        let time = "2026-01-11T15:00:00Z";
        let body = match request.uri().path() {
            "/1/devices" => {
                json!([{"id": "a1", "name": "Desk", "newest_events": {"te": {"val": value, "created_at": time}}, "x": repeated}])
            }
            "/1/appliances" => json!([{"id": "b2", "smart_meter": {"echonetlite_properties": [
                {"epc": 231, "val": value, "updated_at": time}]}, "x": repeated}]),
            "/v1.1/devices" => {
                json!({"statusCode": 100, "body": {"deviceList": [{"deviceId": "C0FFEE", "enableCloudService": true}]}, "message": repeated})
            }
            path if path.starts_with("/v1.1/") => {
                json!({"statusCode": 100, "body": {"deviceId": "C0FFEE", "temperature": value, "x": repeated}, "message": repeated})
            }
            path if path.starts_with("/v1/electricity") => {
                json!({"next": null, "results": [{"consumption": value, "interval_start": time}], "x": repeated})
            }
            _ => json!({"flow": value, "x": repeated, "list": [{"key": repeated}]}),
        };
        let (status, body) = match mood {
            Mood::Good | Mood::Parrot | Mood::Panics => (200, body.to_string()),
            Mood::Refuses => (401, json!({"message": repeated}).to_string()),
            Mood::Breaks => (500, repeated),
            Mood::NoJson => (200, repeated),
            Mood::Busy => (429, repeated),
        };
        Ok(Fetched { status, headers: Vec::new(), body: body.into_bytes() })
    }
}

/// The function fetching, as query invokes it.
struct Tried(Fetching<MemoryDb, TestClock>);

impl InvokeFunction for Tried {
    fn invoke(&self, event: String, deadline: Deadline) -> Invoking<'_> {
        Box::pin(async move {
            let event = serde_json::from_str(&event).expect("an event");
            let reply = Box::pin(self.0.handle(event, deadline)).await;
            let reply = reply.map_err(|why| NotInvoked(why.to_string()))?;
            Ok(json!(reply).to_string())
        })
    }
}

/// A home whose sources are asked, and all that it has said.
struct Watched {
    home: Home<MemoryDb>,
    fetching: Fetching<MemoryDb, TestClock>,
    mood: Arc<Mutex<Mood>>,
    /// The readings that were delivered to those who read the stream.
    delivered: usize,
    /// Who said what.
    said: Vec<(String, String)>,
}

impl Watched {
    fn new() -> Self {
        let home = Home::at(MemoryDb::default(), at(0));
        let mood = Arc::new(Mutex::new(Mood::Good));
        let maker = Maker(Arc::clone(&mood));
        let fetching = asking(&home, Arc::new(maker.clone()));
        home.try_sources_by(Tried(asking(&home, Arc::new(maker))));
        Self { home, fetching, mood, delivered: 0, said: Vec::new() }
    }

    /// Sends a request whose body may be broken. Returns the status of the answer, which is kept whole.
    async fn ask(&mut self, method: &str, path: &str, query: &str, body: &str) -> i64 {
        let mut event = crate::given::request(method, path, query, None);
        event.body = Some(body.to_owned());
        let answer = Box::pin(self.home.query().handle(event, minute())).await;
        let answer = json!(answer);
        let asked = format!("the answer to {method} {path}?{query} {body}");
        self.said.push((asked, answer.to_string()));
        answer["statusCode"].as_i64().expect("a status")
    }

    async fn ask_json(&mut self, method: &str, path: &str, body: &Value) -> i64 {
        self.ask(method, path, "", &body.to_string()).await
    }

    /// Saves the sources, a rule on each, and a channel that tells.
    async fn save(&mut self) {
        let channel = json!({"kind": "ntfy", "name": "Phone", "topic": "a-topic-of-a-test"});
        assert_eq!(self.ask_json("PUT", "/channels/phone", &channel).await, 200);
        for (id, source) in sources() {
            assert_eq!(self.ask_json("PUT", &format!("/sources/{id}"), &source).await, 200, "{id}");
            let device = format!("source:{id}");
            let rule = json!({"name": id, "device": device, "metric": "failing", "above": 0});
            assert_eq!(self.ask_json("PUT", &format!("/alerts/{id}"), &rule).await, 200, "{id}");
        }
    }

    /// Writes secrets where they do not belong; each is refused.
    async fn misplace(&mut self) {
        let places = [("PUT", "/sources/remo"), ("PUT", "/sources/new"), ("POST", "/sources/test")];
        for body in misplaced() {
            for (method, path) in places {
                let status = self.ask(method, path, "", &body).await;
                assert!((400..500).contains(&status), "{status}: {method} {path} {body}");
            }
        }
    }

    /// People try the sources, with the stored secrets and with others.
    async fn try_all(&mut self) {
        for (id, mut source) in sources() {
            source["id"] = json!(id);
            self.ask_json("POST", "/sources/test", &source).await;
            source.as_object_mut().expect("an object").remove("secrets");
            self.ask_json("POST", "/sources/test", &source).await;
        }
    }

    /// Two hours in which the sources are asked; then the stream is delivered, and alerts are told.
    async fn pass_two_hours(&mut self) {
        for _ in 0..130 {
            self.home.clock.advance(Duration::from_secs(60));
            Box::pin(self.fetching.handle(Event::Schedule, minute())).await.expect("done");
        }

        let readings = self.home.store.readings();
        let records = records::all_stored(self.delivered, &readings[self.delivered..]);
        self.delivered = readings.len();
        for consumer in [Consumer::Registry, Consumer::Rollup] {
            self.home.hand_all(consumer, &records).await;
        }
        self.home.schedule().await.expect("done");
        self.home.alert(alerting::Event::Schedule, minute()).await.expect("done");
    }

    /// Reads everything: also what an export asks for, and a language model.
    async fn read_all(&mut self) {
        for (path, query) in READ {
            assert_eq!(self.ask("GET", path, query, "").await, 200, "{path}");
        }
        for name in TOOLS {
            let of_source =
                json!({"device": "source:remo", "query": "source", "metric": "failing"});
            for arguments in [of_source, json!({})] {
                let tool = json!({"name": name, "arguments": arguments});
                let call =
                    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool});
                assert_eq!(self.ask_json("POST", "/mcp", &call).await, 200, "{name}");
            }
        }
    }

    /// Records of the secrets themselves, as if no filter held them back from those who read the stream.
    async fn deliver_secrets(&self) {
        let items = self.home.store.items();
        let items = items.iter().map(|item| format!("{item:?}"));
        let of_secrets = items.filter(|item| item.contains("POLL#SECRETS"));
        let records: Vec<Value> = of_secrets
            .enumerate()
            .map(|(number, item)| {
                let image = json!({"pk": {"S": "POLL#SECRETS"}, "sk": {"S": "remo"}, "secrets": {"S": item}});
                records::of_item(number, "MODIFY", &image)
            })
            .collect();
        for consumer in [Consumer::Registry, Consumer::Rollup] {
            self.home.hand(consumer, &records).await;
        }
    }

    /// Adds what is said beside answers: logs, messages, letters, and what a panic would print.
    async fn listen(&mut self) {
        let Self { home, said, .. } = self;
        let messages = home.receiver.messages().join("\n");
        for (id, _) in sources() {
            assert!(messages.contains(&format!("source:{id}")), "{id}: {messages}");
            let id = id.parse().expect("an id");
            let secrets = home.store.source_secrets(&id, &invocation()).await.expect("read");
            assert!(secrets.is_some());
            said.push((format!("Debug of the secrets of {id}"), format!("{secrets:?}")));
        }

        let log = home.log.text();
        assert!(log.contains("fetching") && log.contains("ingest"), "{log}");
        let stored = home.store.sources(&invocation()).await.expect("read");
        for (who, text) in [
            ("the messages", messages),
            ("the log", log),
            ("Debug of the sources", format!("{stored:?}")),
            ("the dead letters", format!("{:?}", home.letters.messages())),
            ("the work queue", format!("{:?}", home.work.messages())),
        ] {
            said.push((who.to_owned(), text));
        }
    }
}

/// What is read in the end: paths and their parameters.
const READ: [(&str, &str); 14] = [
    ("/sources", ""),
    ("/sources/remo", ""),
    ("/sources/body", ""),
    ("/alerts", ""),
    ("/channels", ""),
    ("/alerts/remo/history", ""),
    ("/devices", "latest=1"),
    ("/rooms", ""),
    ("/annotations", ""),
    ("/devices/source:remo", ""),
    ("/devices/source:remo/readings", "from=-3d"),
    ("/devices/pump/readings", "from=-3d"),
    ("/health", "details=1"),
    ("/query", "db=home&q=SHOW%20SERIES"),
];
const TOOLS: [&str; 8] = [
    "list_devices",
    "find_devices",
    "latest_values",
    "series",
    "energy",
    "events",
    "conditions",
    "health",
];

/// Sources with a secret in each place of a request that there is.
fn sources() -> Vec<(&'static str, Value)> {
    let json = |request: Value, key: &str| {
        let mut source = json!({
            "kind": "json", "device": "pump", "metrics": {"temperature": "/flow"}, "every": "1m", "secrets": {"key": key},
        });
        let members = source.as_object_mut().expect("an object");
        members.extend(request.as_object().expect("an object").clone());
        source
    };
    vec![
        ("remo", json!({"kind": "remo", "secrets": {"token": "geheim-remo+/1="}})),
        (
            "bot",
            json!({"kind": "switchbot", "secrets": {"token": "geheim-token+/2=", "secret": "geheim-key+/3="}}),
        ),
        (
            "flat",
            json!({"kind": "octopus", "mpan": "1000000000000", "serial": "11L1111111", "secrets": {"key": "geheim-flat+/4="}}),
        ),
        (
            "header",
            json(
                json!({"url": "https://a.example.org/h", "headers": {"x-api-key": "{key}"}}),
                "geheim-header+/5=",
            ),
        ),
        (
            "address",
            json(json!({"url": "https://a.example.org/q?auth_key={key}"}), "geheim-address+/6="),
        ),
        (
            "body",
            json(
                json!({"url": "https://a.example.org/b", "method": "POST", "body": r#"{"key": "{key}"}"#}),
                "geheim-body+/7=",
            ),
        ),
        (
            "basic",
            json(
                json!({"url": "https://a.example.org/u", "basic": {"user": "me", "password": "{key}"}}),
                "geheim-basic+/8=",
            ),
        ),
    ]
}

/// What people write who take a secret for something else.
fn misplaced() -> Vec<String> {
    let json = |member: &str, value: Value| {
        let mut source = json!({
            "kind": "json", "url": "https://a.example.org/", "metrics": {"temperature": "/flow"},
        });
        source[member] = value;
        source.to_string()
    };
    let remo = |secrets: Value| json!({"kind": "remo", "secrets": secrets}).to_string();
    let secret = "geheim-misplaced+/9=";
    vec![
        json!({"kind": "remo", "token": secret}).to_string(),
        remo(json!(secret)),
        remo(json!({secret: "token"})),
        remo(json!({"token": [secret]})),
        remo(json!({"key": secret})),
        remo(json!({"token": secret, "key": secret})),
        remo(json!({"token": format!("{secret}\n")})),
        json("url", json!(format!("https://a.example.org/?token={secret}"))),
        json("url", json!("https://me:geheim-misplaced@a.example.org/")),
        json("url", json!(secret)),
        json("headers", json!({"authorization": secret})),
        json("headers", json!({"x-api-key": format!("Bearer {secret}")})),
        json("headers", json!(secret)),
        json("basic", json!({"user": "me", "password": secret})),
        json("basic", json!(secret)),
        json("body", json!([secret])),
        json!({
            "kind": "json", "url": "https://a.example.org/", "metrics": {"temperature": "/flow"},
            "method": "POST", "body": {"sign_in": {"password": secret}},
        })
        .to_string(),
        json("metrics", json!(secret)),
        json("metrics", json!({"temperature": secret})),
        json("method", json!(secret)),
        format!(r#"{{"kind": "remo", "secrets": {{"token": "{secret}"#),
        format!(r#"{{"kind": "remo", "secrets": {{"token": {secret}}}}}"#),
    ]
}

/// The ways in which part of a secret is found in a text: as it is, and in Base64 wherever it begins.
fn needles() -> Vec<String> {
    let encoded = (0..3).map(|before| {
        let text = STANDARD.encode([&vec![b' '; before], PART.as_bytes()].concat());
        // Without the characters that depend on what stands before and behind.
        let (from, to) = (before + usize::from(before > 0), (before + PART.len()) * 8 / 6);
        text[from..to].to_owned()
    });
    encoded.chain([PART.to_owned()]).collect()
}

#[test]
fn a_secret_is_found_raw_percent_encoded_and_in_base64() {
    for before in ["", "a", "ab", "abc"] {
        let text = format!("{before}geheim-x+/=");
        for text in [
            text.clone(),
            STANDARD.encode(&text),
            crate::given::percent_encoded(&text).replace("%2D", "-"),
        ] {
            assert!(needles().iter().any(|needle| text.contains(needle)), "{text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn secrets_are_in_their_items_and_nowhere_else() {
    let mut watched = Watched::new();
    watched.save().await;
    watched.misplace().await;
    for mood in MOODS {
        *watched.mood.lock().expect("no panic while held") = mood;
        watched.try_all().await;
        watched.pass_two_hours().await;
    }
    watched.read_all().await;
    watched.deliver_secrets().await;
    watched.listen().await;

    let needles = needles();
    let is_told = |text: &str| needles.iter().any(|needle| text.contains(needle));
    for (who, text) in &watched.said {
        assert!(!is_told(text), "{who}: {text}");
    }
    let items = watched.home.store.items();
    let with_secrets = items.iter().filter(|item| is_told(&format!("{item:?}")));
    let keys: BTreeSet<String> =
        with_secrets.map(|item| format!("{:?} {:?}", item["pk"], item["sk"])).collect();
    assert_eq!(keys.len(), sources().len(), "{keys:?}");
    assert!(keys.iter().all(|key| key.contains("POLL#SECRETS")), "{keys:?}");

    for (id, _) in sources() {
        let deleted = watched.home.ask("DELETE", &format!("/sources/{id}"), "", None).await;
        assert_eq!(deleted.status, 200);
    }
    let items = watched.home.store.items();
    let left = items.iter().filter(|item| is_told(&format!("{item:?}"))).count();
    assert_eq!(left, 0, "secrets go with their sources");
}
