//! The examples of README.md and docs/: each block of JSON is saved as its page says, each `curl` to Roomtide is answered by
//! a home, each `./deploy` names parameters of the template. cli/src/tests.rs reads the calls of `roomtide`.

use std::fs;
use std::time::Duration;

use api::endpoints::find_path;
use serde_json::{Deserializer, Value, json};
use table::memory_db::MemoryDb;

use super::blocks::{Block, blocks_of, commands, documented_blocks};
use super::parameters::parameters;
use crate::architecture::root;
use crate::given::{at, percent_encoded, request};
use crate::home::{Home, Options};

/// What the JSON of a page is: the path below which it is saved.
const SAVED: [(&str, &str); 3] = [
    ("docs/guide/channels.md", "/channels"),
    ("docs/guide/cost.md", "/tariffs"),
    ("docs/connect/sources.md", "/sources"),
];

/// Other JSON, and what reads it.
const OTHER_JSON: [(&str, &str); 1] = [(
    "docs/connect/mcp.md",
    "a client's settings; cli/src/tests.rs reads the words of the command",
)];

/// Languages that are no commands of ours, and what holds them.
const OTHER_LANGUAGES: [(&str, &str); 4] = [
    ("text", "a picture, or what a program prints"),
    ("yaml", "settings of ESPHome and of Home Assistant, which these read"),
    ("ini", "a drop-in of systemd, which systemd reads"),
    ("python", "a receiver's check of a signature; tests/home/alerts.py runs it as it stands"),
];

/// Programs in blocks of a shell that are not of this project, and what holds their lines.
const OTHER_PROGRAMS: [(&str, &str); 10] = [
    ("roomtide cargo", "read by cli/src/tests.rs; other words of cargo are CONTRIBUTING's own"),
    ("aws sam", "need an account; tests/deploy runs the same calls on an emulator"),
    ("rustup tools/release tar", "tests/deploy/run makes a release and unpacks it"),
    ("tools/demo", "tests/web/demo.mjs records one and walks through it"),
    ("docker skopeo", "tests/release/image.py runs the image"),
    ("systemctl loginctl", "need a user's systemd"),
    ("influx_inspect influxd", "InfluxDB's own export; tests/history/check.py imports such files"),
    ("duckdb", "tests/export/run asks it"),
    ("mosquitto_pub python3 sudo", "tests/mosquitto/check.py runs the bridge"),
    ("cat cd cp date echo eval export gzip mkdir printf read sed sh tail umask :", "a shell's own"),
];

/// The addresses of Roomtide in the examples.
const ADDRESSES: [&str; 6] = [
    "http://127.0.0.1:8080",
    "localhost:8080",
    "https://INGEST.lambda-url.REGION.on.aws",
    "https://ID.lambda-url.REGION.on.aws",
    "INGEST_URL",
    "$PAGE",
];

/// The dates that a shell puts into an address, on the day of the examples.
const DATES: [(&str, &str); 2] =
    [("$(date -d yesterday +%F)", "2026-01-10"), ("$(date +%F)", "2026-01-11")];

/// Addresses of others, from which something is fetched.
const ELSEWHERE: [&str; 3] = ["RELEASE/", "https://www.amazontrust.com/", "http://192.168.1.30/"];

/// Requests that a home without tokens and e-mail refuses, by a part of their address or body.
const REFUSED: [(&str, i64, &str); 3] = [
    ("p=TOKEN", 401, "a reading in an address needs a token that was made"),
    (r#""kind":"email""#, 400, "the stack has to have a topic"),
    ("@-", 400, "the body comes from another program"),
];

#[tokio::test]
async fn each_example_of_the_documents_works() {
    let blocks = documented_blocks();
    let mut wrong = Vec::new();
    for page in blocks.chunk_by(|one, next| one.page == next.page) {
        wrong.extend(wrong_examples(page).await);
    }
    assert!(blocks.len() > 100, "{}", blocks.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn an_example_that_does_not_work_is_seen() {
    for (text, expected) in [
        ("```\nx\n```", "a block without a language"),
        ("```sql\nx\n```", "sql: no test reads it"),
        ("```json\n{]\n```", "key must be a string"),
        ("```json\n{\"name\": \"x\"}\n```", ": 400"),
        ("```sh\nsome-program x\n```", "some-program: no test reads it"),
        ("```sh\ncurl -X PATCH localhost:8080/readings -d '{}'\n```", "MethodNotAllowed"),
        ("```sh\ncurl localhost:8080/devices?rooms=hall\n```", "unknown parameter"),
        ("```sh\ncurl localhost:8080/alerts/x -X PUT --json '{\"above\": }'\n```", ": 400"),
        ("```sh\ncurl http://example.org/x\n```", "no address of Roomtide"),
        ("```sh\n./deploy --parameter RoomsIndex=on\n```", "RoomsIndex: no parameter"),
    ] {
        let wrong = wrong_examples(&blocks_of("docs/guide/cost.md", text)).await;
        assert!(wrong.len() == 1 && wrong[0].contains(expected), "{text}: {wrong:?}");
    }
}

/// What is wrong with the examples of a page. They are asked one after another, in a home of their own.
async fn wrong_examples(blocks: &[Block]) -> Vec<String> {
    let home = home().await;
    let mut wrong = Vec::new();
    let (json, others): (Vec<_>, Vec<_>) =
        blocks.iter().partition(|block| block.language == "json");
    for block in json.into_iter().chain(others) {
        let found = match block.language.as_str() {
            "" => Err("a block without a language".to_owned()),
            "json" => save_json(&home, block).await,
            "sh" => run_commands(&home, &block.text).await,
            other if OTHER_LANGUAGES.iter().any(|(language, _)| *language == other) => Ok(()),
            other => Err(format!("{other}: no test reads it")),
        };
        wrong.extend(found.err().map(|why| format!("{}: {why}", block.place())));
    }
    wrong
}

/// A home with the devices of the examples, at 16:05 of the day of the examples.
async fn home() -> Home<MemoryDb> {
    let options = Options { registry_max_age: Duration::ZERO, ..Options::at(at(300_000)) };
    let home = Home::with(MemoryDb::with_conditions_index(), options);
    let readings = json!([
        {"device_id": "meter", "current_w": 420, "cumulative_kwh_p": 8123.4},
        {"device_id": "kitchen-air", "room": "kitchen", "temperature": 23.5, "humidity": 44},
        {"device_id": "hall-air", "room": "hall", "temperature": 20.5, "humidity": 48},
        {"device_id": "study-air", "room": "study", "temperature": 21.5, "humidity": 45},
        {"device_id": "study", "room": "study", "co2": 640},
        {"device_id": "freezer", "room": "kitchen", "temperature": -18.5},
        {"device_id": "fridge-plug", "room": "kitchen", "current_w": 60},
        {"device_id": "roof", "energy": 512.5},
    ]);
    let seeds = [
        Call::new("POST", "/readings", readings.to_string()),
        Call::new("PATCH", "/rooms/kitchen", r#"{"home": "stambruges"}"#.to_owned()),
    ];
    for seed in seeds {
        send(&home, &seed).await.expect("a home begins");
    }
    home
}

/// Saves each value of a block of JSON as its page says.
async fn save_json(home: &Home<MemoryDb>, block: &Block) -> Result<(), String> {
    let values: Result<Vec<Value>, _> = Deserializer::from_str(&block.text).into_iter().collect();
    let values = values.map_err(|error| error.to_string())?;
    if OTHER_JSON.iter().any(|(page, _)| *page == block.page) {
        return Ok(());
    }
    let saved = SAVED.iter().find(|(page, _)| *page == block.page);
    let (_, folder) = saved.ok_or("no test reads JSON of this page: add what it is to SAVED")?;

    for (number, value) in values.iter().enumerate() {
        send(home, &Call::new("PUT", &format!("{folder}/example-{number}"), value.to_string()))
            .await?;
    }
    Ok(())
}

/// Runs the commands of a block of a shell, as far as they ask Roomtide.
async fn run_commands(home: &Home<MemoryDb>, text: &str) -> Result<(), String> {
    for words in commands(text) {
        let program = words[0].as_str();
        if program == "curl" {
            if let Some(call) = Call::read(&words[1..])? {
                send(home, &call).await?;
            }
        } else if program == "./deploy" {
            ensure_parameters(&words)?;
        } else {
            let mut known = OTHER_PROGRAMS.iter().flat_map(|(programs, _)| programs.split(' '));
            if !known.any(|known| known == program) {
                return Err(format!("{program}: no test reads it"));
            }
        }
    }
    Ok(())
}

/// The parameters that a `./deploy` sets are those of the template.
fn ensure_parameters(words: &[String]) -> Result<(), String> {
    let template = fs::read_to_string(root().join("template.yaml")).expect("a template");
    let known = parameters(&template);
    for pair in words.windows(2).filter(|pair| pair[0] == "--parameter") {
        let name = pair[1].split('=').next().unwrap_or_default();
        if !known.iter().any(|(known, _)| known == name) {
            return Err(format!("{name}: no parameter of the template"));
        }
    }
    Ok(())
}

/// A request to Roomtide.
struct Call {
    method: String,
    /// The path and the parameters.
    target: String,
    body: Option<String>,
}

impl Call {
    fn new(method: &str, target: &str, body: String) -> Self {
        Self { method: method.to_owned(), target: target.to_owned(), body: Some(body) }
    }

    /// Reads the words behind `curl`; `None` if it asks somebody else.
    fn read(words: &[String]) -> Result<Option<Self>, String> {
        let (mut method, mut url, mut body) = (None, None, None);
        let mut parameters = Vec::new();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            match word.as_str() {
                "-X" => method = rest.next().cloned(),
                "-H" => drop(rest.next()),
                "-d" | "--json" | "--data-binary" => body = rest.next().cloned(),
                "--data-urlencode" => parameters.extend(rest.next().map(|text| encoded(text))),
                flags if flags.starts_with('-') => {}
                address => url = Some(address),
            }
        }
        let url = url.ok_or("curl without an address")?;
        if ELSEWHERE.iter().any(|start| url.starts_with(start)) {
            return Ok(None);
        }
        let target = ADDRESSES.iter().find_map(|address| url.strip_prefix(address));
        let target = target.ok_or_else(|| format!("{url} has no address of Roomtide"))?;

        let mut target = target.to_owned();
        for (command, date) in DATES {
            target = target.replace(command, date);
        }
        for parameter in parameters {
            target.push(if target.contains('?') { '&' } else { '?' });
            target.push_str(&parameter);
        }
        let usual = if body.is_some() { "POST" } else { "GET" };
        let method = method.unwrap_or_else(|| usual.to_owned());
        Ok(Some(Self { method, target, body }))
    }
}

/// `NAME=TEXT` with the text percent-encoded, as curl does.
fn encoded(parameter: &str) -> String {
    let (name, text) = parameter.split_once('=').unwrap_or((parameter, ""));
    format!("{name}={}", percent_encoded(text))
}

/// Sends a request to the function that its endpoint names. A refusal that is not listed is an error.
async fn send(home: &Home<MemoryDb>, call: &Call) -> Result<(), String> {
    let Call { method, target, body } = call;
    let (path, parameters) = target.split_once('?').unwrap_or((target, ""));
    let (endpoint, _) = find_path(method, path)
        .map_err(|problem| format!("{method} {target}: {:?} {}", problem.kind, problem.detail))?;
    let mut event = request(method, path, parameters, None);
    event.body.clone_from(body);
    let event = serde_json::to_string(&event).expect("an event is JSON");
    let answer = home.invoke(endpoint.function.name(), &event).await;

    let status = answer["statusCode"].as_i64().unwrap_or_default();
    let asked = format!("{target} {}", body.as_deref().unwrap_or_default());
    let refused = REFUSED.iter().find(|(part, ..)| asked.contains(part));
    let is_right = refused.map_or(status < 400, |(_, expected, _)| status == *expected);
    is_right.then_some(()).ok_or_else(|| format!("{method} {asked}: {status} {}", answer["body"]))
}
