//! What an answer has, and what is there in its place.

use super::*;

impl Answer {
    pub(super) fn of(body: &Value) -> Self {
        Self { status: 200, headers: Value::Null, text: body.to_string(), event_bytes: 0 }
    }

    /// The body as JSON, or as a text.
    pub(super) fn body(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| json!(self.text))
    }

    /// Whether the status is that of a line, and the rest of the line is true.
    fn has_status(&self, expected: &str) -> bool {
        let (status, rest) = expected.split_once(' ').unwrap_or((expected, ""));
        status == self.status.to_string()
            && match rest.chars().next() {
                None => true,
                Some('{' | '[') => holds(&self.body(), &parsed(rest)),
                Some('=') => self.body() == parsed(&rest[2..]),
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
}

impl Run {
    /// What is there in the place of what a line says of the answer.
    pub(super) fn difference(&self, expected: &str) -> Option<String> {
        let (first, rest) = expected.split_once(' ').unwrap_or((expected, ""));
        let answer = &self.answer;
        if first.parse::<i64>().is_ok() {
            let found = || format!("{} {}", answer.status, answer.text);
            return (!answer.has_status(expected)).then(found);
        }
        if first.starts_with(['/', '.']) {
            return answer.difference_at(first, rest);
        }

        let found = match first {
            "reads" => self.calls.reads.to_string(),
            "writes" => self.calls.registry_writes.to_string(),
            "log" => return differs(&json!(self.bench.log()), rest),
            header => {
                let name = header.strip_suffix(':').unwrap_or_else(|| panic!("{expected}"));
                answer.header(name).to_owned()
            }
        };
        (found != rest).then_some(found)
    }
}

pub(super) fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{text}: {why}"))
}

/// What is there in the place of what a verb and its value say.
fn differs(found: &Value, expected: &str) -> Option<String> {
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
pub(super) fn find(value: &Value, place: &str) -> Option<Value> {
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
