//! Sources as a JSON file. Not TOML, which has no null, with which a source leaves a device out. Holds no secret unless
//! a person writes one into it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::settings_file;

/// The member of a file with the sources by id.
const SOURCES: &str = "sources";
/// Members of the server's answers that a person does not write; an export leaves them out.
pub(super) const EXTRAS: [&str; 7] =
    ["id", "state", "host", "devices", "credit", "lacks_secrets", "warnings"];

/// The text of an export file, made from the sources in the server's answer.
pub(super) fn text(rows: &[Value]) -> anyhow::Result<String> {
    let mut sources = Map::new();
    for row in rows {
        let id = row["id"].as_str().context("an answer without an id")?;
        let mut members = row.as_object().cloned().unwrap_or_default();
        ensure!(
            members.contains_key("secrets"),
            "the settings of {id} are shown to an admin only (see --token)"
        );
        EXTRAS.iter().for_each(|extra| drop(members.remove(*extra)));
        sources.insert(id.to_owned(), members.into());
    }
    Ok(serde_json::to_string_pretty(&json!({ SOURCES: sources }))?)
}

/// Reads the sources of a file, by id.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<(String, Map<String, Value>)>> {
    let name = path.display();
    sources(&settings_file::content(path)?).with_context(|| format!("{name}"))
}

/// The members of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SourcesFile {
    sources: BTreeMap<String, Map<String, Value>>,
}

fn sources(text: &str) -> anyhow::Result<Vec<(String, Map<String, Value>)>> {
    let SourcesFile { sources } = serde_json::from_str(text)
        .context("expected an object with the member sources, which has a source by its id")?;
    Ok(sources.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_back() {
        let rows = [
            json!({"id": "remo", "kind": "remo", "host": "h", "devices": ["a1"], "on": true,
                "state": {"state": "ok"}, "secrets": ["token"], "rooms": {"b2": null}}),
            json!({"id": "w", "kind": "weather", "on": false, "every": "2h",
                "secrets": [], "credit": "c", "latitude": "52.5"}),
        ];
        let text = text(&rows).unwrap();
        let file: Value = serde_json::from_str(&text).unwrap();
        let expected = json!({"sources": {
            "remo": {"kind": "remo", "on": true, "secrets": ["token"], "rooms": {"b2": null}},
            "w": {"kind": "weather", "on": false, "every": "2h", "secrets": [], "latitude": "52.5"},
        }});
        assert_eq!(file, expected);
        let read = sources(&text).unwrap().into_iter();
        assert_eq!(read.map(|(id, _)| id).collect::<Vec<_>>(), ["remo", "w"]);
    }

    /// With a read token a source would be exported without all that it is.
    #[test]
    fn a_source_whose_settings_are_not_shown_is_not_exported() {
        let refused = text(&[json!({"id": "remo", "kind": "remo"})]).unwrap_err().to_string();
        assert_eq!(refused, "the settings of remo are shown to an admin only (see --token)");
    }

    #[test]
    fn what_is_no_file_of_sources_is_refused() {
        for (file, why) in [
            (json!([]), "expected an object with the member sources"),
            (json!({"kind": "remo"}), "unknown field `kind`, expected `sources`"),
            (json!({"sources": {"a": 5}}), "expected a map"),
            (json!({"sources": {}, "rules": {}}), "unknown field `rules`, expected `sources`"),
        ] {
            let error = format!("{:#}", sources(&file.to_string()).unwrap_err());
            assert!(error.contains(why), "{error}");
        }
    }
}
