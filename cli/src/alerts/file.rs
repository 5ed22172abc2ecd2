//! Alert rules and channels as a TOML file. Holds no secret unless a person writes one into it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Value as Toml;

use crate::settings_file;

/// The comment at the top of an exported file.
const HEAD: &str = "\
# Rules and channels of alerts: roomtide alerts import FILE saves them.
# What is secret of the channels is not in it; a channel that is not there yet needs it.
";
/// Members of the server's answers that a person does not write; an export leaves them out.
const EXTRAS: [&str; 12] = [
    "id",
    "changed",
    "states",
    "firing",
    "pending",
    "has_more_states",
    "silent_after",
    "warnings",
    "failing_since",
    "next",
    "waiting",
    "waiting_since",
];

/// The rules and channels of a file, by id.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Parts {
    pub(super) rules: Vec<(String, Map<String, Value>)>,
    pub(super) channels: Vec<(String, Map<String, Value>)>,
}

/// The text of an export file, made from the server's answers.
pub(super) fn text(rules: &Value, channels: &Value) -> anyhow::Result<String> {
    let mut file = toml::Table::new();
    for (part, entries) in [("channels", channels), ("rules", rules)] {
        let mut table = toml::Table::new();
        for entry in entries.as_array().into_iter().flatten() {
            let id = entry["id"].as_str().context("an answer without an id")?;
            let mut members = entry.as_object().cloned().unwrap_or_default();
            EXTRAS.iter().for_each(|extra| drop(members.remove(*extra)));
            table.insert(id.to_owned(), Toml::try_from(members)?);
        }
        file.insert(part.to_owned(), Toml::Table(table));
    }
    Ok(format!("{HEAD}\n{}", toml::to_string(&file)?))
}

/// Reads a TOML file of rules and channels.
pub(super) fn read(path: &Path) -> anyhow::Result<Parts> {
    let name = path.display();
    parse(&settings_file::content(path)?).with_context(|| format!("{name}"))
}

/// The members of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    #[serde(default)]
    rules: BTreeMap<String, toml::Table>,
    #[serde(default)]
    channels: BTreeMap<String, toml::Table>,
}

fn parse(text: &str) -> anyhow::Result<Parts> {
    let RulesFile { rules, channels } = toml::from_str(text)?;
    let json = |entries: BTreeMap<String, toml::Table>| {
        entries.into_iter().map(|(id, members)| (id, json_of_table(members))).collect()
    };
    Ok(Parts { rules: json(rules), channels: json(channels) })
}

fn json_of_table(members: toml::Table) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (name, json_of(value))).collect()
}

/// A TOML value as JSON for the API, where a time is text.
fn json_of(value: Toml) -> Value {
    match value {
        Toml::String(text) => text.into(),
        Toml::Integer(number) => number.into(),
        Toml::Float(number) => number.into(),
        Toml::Boolean(flag) => flag.into(),
        Toml::Datetime(at) => at.to_string().into(),
        Toml::Array(values) => values.into_iter().map(json_of).collect(),
        Toml::Table(members) => Value::Object(json_of_table(members)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_written_is_read_back() {
        let rules = json!([
            {"id": "air.1:a", "name": "Air \"fresh\" ❄", "device": "f", "above": "-12.5", "on": true,
             "counter": ["reset"], "states": [], "firing": 0, "pending": 0, "changed": "x",
             "has_more_states": false, "paused_until": "2026-01-11T16:00:00.000Z"},
        ]);
        let channels = json!([{"id": "phone", "kind": "ntfy", "name": "Phone", "waiting": 3, "failing_since": "x"}]);
        let text = text(&rules, &channels).unwrap();
        assert!(text.starts_with("# Rules") && text.contains("\n[rules.\"air.1:a\"]\n"), "{text}");
        let expected = json!({"name": "Air \"fresh\" ❄", "device": "f", "above": "-12.5", "on": true,
            "counter": ["reset"], "paused_until": "2026-01-11T16:00:00.000Z"});
        let parts = parse(&text).unwrap();
        assert_eq!(parts.rules, [("air.1:a".to_owned(), expected.as_object().unwrap().clone())]);
        let expected = json!({"kind": "ntfy", "name": "Phone"});
        assert_eq!(parts.channels, [("phone".to_owned(), expected.as_object().unwrap().clone())]);
    }

    #[test]
    fn what_a_person_writes_is_read() {
        let file = "[rules.a]\nabove = 30.5\nclear = 28\npaused_until = 2026-01-11T16:00:00Z\n";
        let expected = json!({"above": 30.5, "clear": 28, "paused_until": "2026-01-11T16:00:00Z"});
        assert_eq!(parse(file).unwrap().rules[0].1, *expected.as_object().unwrap());
        assert_eq!(parse("").unwrap(), Parts::default());
        for (file, why) in [
            ("[rule.a]", "unknown field `rule`, expected `rules` or `channels`"),
            ("rules = 5", "expected a map"),
            ("[rules]\na = 5", "expected a map"),
            ("[rules.a]\nabove = ", "TOML parse error at line 2"),
            ("[rules.a]\n[rules.a]", "duplicate"),
        ] {
            let refused = format!("{:#}", parse(file).unwrap_err());
            assert!(refused.contains(why), "{refused}");
        }
    }
}
