//! Cases of a function's tests: a text with steps, and what the answer to a step has. Each function runs its own steps.
//!
//! `# SENTENCE` begins a case, with an empty table. Steps are lines without an indent, and the first word of a step says
//! what it does; `METHOD URL [HEADER: VALUE] BODY` is a request everywhere. Lines below a request, indented by four,
//! are what its answer has:
//!
//! - `STATUS`; without one it is 2xx. `STATUS TEXT`: the detail begins so. `STATUS JSON`: these members are in the body,
//!   where null is absent. `STATUS = JSON`: they are all of it. `STATUS ~ TEXT`: the body contains it. `STATUS | TEXT`: the
//!   body is this line.
//! - `PLACE = JSON`, `!= JSON`, `has JSON` (these members), `~ TEXT` (contains), `!~ TEXT`, `counts NUMBER`, `is absent`
//!   (not even null). A place is a JSON pointer, in which `*` is each row and `1..` are the cells of a row from there on;
//!   `.` is the body.
//! - `HEADER: TEXT`; a header without a text is not there. Lines `| TEXT` are the whole body.
//!
//! `the table times out`, `is throttled`, `refuses` or `is unreachable` is a step of each function: the next request to the
//! table fails so, or the one `after 2` others; `the registry times out`: its next write does; `the table panics`.
//!
//! A line that is indented by eight goes on with the line above. `@16:05` is a time of 2026-01-11, `@10T16:05` of another
//! day of that month. `{/place}`, `{:header}` and `{:link}`, the address of the next page, are from the answer before.
//! `//` begins a comment.

use std::path::{Path, PathBuf};

use chrono::TimeDelta;
use domain::given;
use serde_json::{Value, json};
use table::StoreError;
use table::memory_db::MemoryDb;

/// Makes a test of each text in the folder of cases. The module above has the function `run`, which runs a case and
/// returns its failures.
macro_rules! texts {
    ($($name:ident)+) => {
        pub(super) const TEXTS: &[&str] = &[$(stringify!($name)),+];

        $(#[tokio::test]
        async fn $name() {
            crate::tests::scenario::check(stringify!($name), super::run).await;
        })+
    };
}
pub(crate) use texts;

/// A line, with its number.
pub(crate) struct Line {
    pub number: usize,
    pub text: String,
}

/// What is done, and what its answer has.
pub(crate) struct Step {
    pub line: Line,
    pub expected: Vec<Line>,
}

pub(crate) struct Case {
    pub sentence: String,
    pub steps: Vec<Step>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/cases")
}

/// The names of the texts in the folder.
pub(crate) fn names() -> Vec<String> {
    let files = std::fs::read_dir(folder()).expect("a folder");
    let files = files.map(|file| file.expect("an entry").file_name().into_string().expect("UTF-8"));
    let mut names: Vec<String> =
        files.filter_map(|file| Some(file.strip_suffix(".txt")?.to_owned())).collect();
    names.sort();
    names
}

pub(crate) fn read(name: &str) -> Vec<Case> {
    let text = std::fs::read_to_string(folder().join(format!("{name}.txt"))).expect(name);
    let mut cases: Vec<Case> = Vec::new();
    for (number, text) in (1..).zip(text.lines()) {
        if text.is_empty() || text.starts_with("//") {
            continue;
        }
        if let Some(sentence) = text.strip_prefix("# ") {
            cases.push(Case { sentence: sentence.to_owned(), steps: Vec::new() });
            continue;
        }

        let steps = &mut cases.last_mut().expect("a sentence is first").steps;
        let line = Line { number, text: with_times(text.trim_start()) };
        let indent = text.len() - text.trim_start().len();
        match (indent, steps.last_mut()) {
            (0, _) => steps.push(Step { line, expected: Vec::new() }),
            (4, Some(step)) => step.expected.push(line),
            (8, Some(step)) => {
                let above = step.expected.last_mut().unwrap_or(&mut step.line);
                above.text = format!("{} {}", above.text, line.text);
            }
            _ => panic!("{name}.txt:{number}: is indented by {indent}"),
        }
    }
    cases
}

/// Runs the cases of a text.
pub(crate) async fn check(name: &str, run: impl AsyncFn(&Case) -> Vec<String>) {
    let file = format!("functions/{}/src/tests/cases/{name}.txt", env!("CARGO_PKG_NAME"));
    let mut failures = Vec::new();
    for case in read(name) {
        let place = format!("{}\n  {file}", case.sentence);
        failures.extend(run(&case).await.iter().map(|failure| format!("{place}:{failure}")));
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// A text with whole timestamps in the place of `@16:05`.
fn with_times(text: &str) -> String {
    let mut parts = text.split('@');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let length = part.find(|c: char| !matches!(c, '0'..='9' | ':' | 'T' | '.'));
        let time = part[..length.unwrap_or(part.len())].trim_end_matches([':', '.']);
        let rest = &part[time.len()..];
        if !time.contains(':') {
            whole.extend(["@", part]);
            continue;
        }
        let (day, time) = time.split_once('T').unwrap_or(("11", time));
        let seconds = if time.len() == 5 { ":00" } else { "" };
        let time = given::at(&format!("2026-01-{day}T{time}{seconds}Z"));
        whole.extend([&time.to_string(), rest]);
    }
    whole
}

/// Takes the headers in brackets with which a text begins. Returns them, and the rest.
pub(crate) fn headers(mut text: &str) -> (Value, &str) {
    let mut headers = json!({});
    while let Some((name, value, rest)) = header(text) {
        headers[name] = json!(value);
        text = rest;
    }
    (headers, text)
}

fn header(text: &str) -> Option<(&str, &str, &str)> {
    let (header, rest) = text.strip_prefix('[')?.split_once(']')?;
    let (name, value) = header.split_once(": ")?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    is_name.then(|| (name, value, rest.trim_start()))
}

pub(crate) fn duration(text: &str) -> TimeDelta {
    let (number, unit) = text.split_at(text.trim_end_matches(char::is_alphabetic).len());
    let number: i64 = number.parse().expect(text);
    match unit {
        "ms" => TimeDelta::milliseconds(number),
        "s" => TimeDelta::seconds(number),
        "m" => TimeDelta::minutes(number),
        "h" => TimeDelta::hours(number),
        "d" => TimeDelta::days(number),
        _ => panic!("{text} is no duration"),
    }
}

/// Lets the table fail once, as `the table times out after 1` says. Returns whether this is such a step.
pub(crate) fn fail(store: &MemoryDb, step: &str) -> bool {
    let (step, after) = step.split_once(" after ").unwrap_or((step, "0"));
    let error = match step {
        "the table times out" => StoreError::TimedOut,
        "the table is throttled" => StoreError::Throttled("for now".into()),
        "the table refuses" => StoreError::Refused("no permission".into()),
        "the table is unreachable" => StoreError::Unavailable("connection refused".into()),
        "the table panics" => {
            store.panic_after(0, "index out of bounds");
            return true;
        }
        "the registry times out" => {
            store.fail_registry_writes_with([StoreError::TimedOut]);
            return true;
        }
        _ => return false,
    };
    store.fail_after(after.parse().expect(after), [error]);
    true
}

/// The answer to a request.
pub(crate) struct Answer {
    pub status: i64,
    pub headers: Value,
    pub text: String,
    /// The size of the whole event that Lambda has to carry.
    pub event_bytes: usize,
}

impl Answer {
    /// An answer with this body, as no request has it.
    pub(crate) fn of(body: &Value) -> Self {
        Self { status: 200, headers: Value::Null, text: body.to_string(), event_bytes: 0 }
    }

    /// The answer that is in the reply of a function.
    pub(crate) fn in_reply(reply: &Value) -> Self {
        Self {
            event_bytes: reply.to_string().len(),
            status: reply["statusCode"].as_i64().expect("a status"),
            text: reply["body"].as_str().unwrap_or_default().to_owned(),
            headers: reply["headers"].clone(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {}", self.text))
    }

    /// The body as JSON, or as a text.
    pub(crate) fn body(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| json!(self.text))
    }

    /// What a refusal says: its status and its detail.
    pub(crate) fn problem(&self) -> String {
        let detail = self.json()["detail"].as_str().unwrap_or_default().to_owned();
        format!("{} {detail}", self.status)
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].as_str().unwrap_or_default()
    }

    /// The address of the next page.
    pub(crate) fn next(&self) -> Option<&str> {
        self.header("link").strip_prefix('<')?.split('>').next()
    }

    /// A text with what it takes from this answer.
    pub(crate) fn filled_in(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("{/").into_iter().chain(rest.find("{:")).min() {
            let end = start + rest[start..].find('}').expect("{/place}");
            filled.push_str(&rest[..start]);
            filled.push_str(&self.value_of(&rest[start + 1..end]));
            rest = &rest[end + 1..];
        }
        filled + rest
    }

    fn value_of(&self, place: &str) -> String {
        match place.strip_prefix(':') {
            Some("link") => self.next().expect("a link").to_owned(),
            Some(header) => self.header(header).to_owned(),
            None => match find(&self.body(), place.trim_end_matches('/')) {
                Some(Value::String(text)) => text,
                found => found.unwrap_or_default().to_string(),
            },
        }
    }

    /// Whether the status is that of a line, and the rest of the line is true.
    fn has_status(&self, expected: &str) -> bool {
        let (status, rest) = expected.split_once(' ').unwrap_or((expected, ""));
        status == self.status.to_string()
            && match rest.chars().next() {
                None => true,
                Some('{' | '[') => holds(&self.body(), &parsed(rest)),
                Some('=') => self.body() == parsed(&rest[2..]),
                Some('~') => self.text.contains(&rest[2..]),
                Some('|') => self.text.lines().eq([rest[1..].trim_start()]),
                Some(_) => self.problem().starts_with(expected),
            }
    }

    fn difference_at(&self, place: &str, expected: &str) -> Option<String> {
        if place == "." && expected.contains("~ ") {
            return differs(&json!(self.text), expected);
        }
        let body = self.body();
        let found = find(&body, place.trim_start_matches('.'));
        if expected == "is absent" {
            return found.map(|found| found.to_string());
        }
        let difference = differs(&found.unwrap_or_default(), expected);
        difference.map(|found| if found == "null" { format!("nothing in {body}") } else { found })
    }

    /// What is there in the place of what a line says of the answer; a line that says nothing of it goes to `otherwise`.
    fn difference(
        &self,
        expected: &str,
        otherwise: &impl Fn(&str) -> Option<String>,
    ) -> Option<String> {
        let (first, rest) = expected.split_once(' ').unwrap_or((expected, ""));
        if first.parse::<i64>().is_ok() {
            let found = || format!("{} {}", self.status, self.text);
            return (!self.has_status(expected)).then(found);
        }
        if first.starts_with(['/', '.']) {
            return self.difference_at(first, rest);
        }
        if let Some(name) = first.strip_suffix(':') {
            return (self.header(name) != rest).then(|| self.header(name).to_owned());
        }
        otherwise(expected)
    }

    /// What is not as the lines below a request say. A line that says nothing of the answer goes to `otherwise`, which
    /// returns what is there instead.
    pub(crate) fn differences(
        &self,
        request: &Line,
        expected: &[&Line],
        otherwise: impl Fn(&str) -> Option<String>,
    ) -> Vec<String> {
        let Line { number, text: request } = request;
        let mut differences = Vec::new();
        let states_status = expected.iter().any(|line| line.text.as_bytes()[0].is_ascii_digit());
        if !states_status && !(200..300).contains(&self.status) {
            let Self { status, text, .. } = self;
            differences.push(format!("{number}: {request}\n    but {status} {text}"));
        }

        let (body, others): (Vec<&Line>, Vec<&Line>) =
            expected.iter().copied().partition(|line| line.text.starts_with("| "));
        if !body.is_empty() && self.text.lines().ne(body.iter().map(|line| &line.text[2..])) {
            differences.push(format!("{number}: {request}\n    but the body is\n{}", self.text));
        }
        for Line { number, text } in others {
            if let Some(found) = self.difference(text, &otherwise) {
                let expected = format!("{number}: {request}\n    expected {text}");
                differences.push(format!("{expected}\n    but {found}"));
            }
        }
        differences
    }
}

pub(crate) fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{text}: {why}"))
}

/// What is there in the place of what a verb and its value say.
pub(crate) fn differs(found: &Value, expected: &str) -> Option<String> {
    let (verb, text) = expected.split_once(' ').expect("a verb and a value");
    let shown = || found.as_str().map_or_else(|| found.to_string(), ToOwned::to_owned);
    let is_so = match verb {
        "=" => *found == parsed(text),
        "!=" => !found.is_null() && *found != parsed(text),
        "has" => holds(found, &parsed(text)),
        "~" => shown().contains(text),
        "!~" => !found.is_null() && !shown().contains(text),
        "counts" => found.as_array().map(Vec::len) == text.parse().ok(),
        _ => panic!("{verb} is no verb"),
    };
    (!is_so).then(shown)
}

/// Whether a value has the members of another, where null is absent.
fn holds(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(_), Value::Object(members)) => {
            members.iter().all(|(name, expected)| holds(&found[name], expected))
        }
        (Value::Array(rows), Value::Array(expected)) => {
            let mut pairs = rows.iter().zip(expected);
            rows.len() == expected.len() && pairs.all(|(row, expected)| holds(row, expected))
        }
        _ => found == expected,
    }
}

/// What is at a place.
fn find(value: &Value, place: &str) -> Option<Value> {
    let Some(path) = place.strip_prefix('/') else { return Some(value.clone()) };
    let (name, _) = path.split_once('/').unwrap_or((path, ""));
    let further = &path[name.len()..];
    if name == "*" {
        let rows = value.as_array()?.iter();
        return Some(rows.map(|row| find(row, further).unwrap_or_default()).collect());
    }
    if let Some(first) = name.strip_suffix("..") {
        let cells = value.as_array()?.get(first.parse().expect(name)..)?;
        return Some(json!(cells));
    }
    find(value.pointer(&format!("/{name}"))?, further)
}
