//! The names, nodes and units of feeds, from `feed/list.json` or the dump of Emoncms' database. Reads no value.
//!
//! Source: <https://github.com/emoncms/emoncms/blob/master/Modules/feed/feed_schema.php>

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::dump;
use super::files::Files;

/// Emoncms' engines by their numbers:
/// <https://github.com/emoncms/emoncms/blob/master/Modules/feed/feed_model.php>, `class Engine`.
const ENGINES: [(&str, &str); 7] = [
    ("0", "in MySQL"),
    ("2", "of PHPTimeSeries"),
    ("5", "of PHPFina"),
    ("6", "of PHPFiwa"),
    ("7", "virtual"),
    ("8", "in the memory of MySQL"),
    ("10", "in Cassandra"),
];

/// The description of a feed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Described {
    pub(super) name: Option<String>,
    pub(super) node: Option<String>,
    pub(super) unit: Option<String>,
    engine: String,
}

impl Described {
    /// Reads a description from columns, by the names that Emoncms gives them. An empty text counts as absent.
    fn of(column: impl Fn(&str) -> Option<String>) -> Self {
        let filled =
            |name| column(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        Self {
            name: filled("name"),
            node: filled("tag"),
            unit: filled("unit"),
            engine: filled("engine").unwrap_or_default(),
        }
    }

    /// Returns whether the feed's engine is `PHPFina`; `None` if the engine is unknown.
    pub(super) fn is_of_fina(&self) -> Option<bool> {
        match self.engine.as_str() {
            "5" => Some(true),
            "2" => Some(false),
            _ => None,
        }
    }

    /// Returns the name of the feed's engine.
    pub(super) fn engine_name(&self) -> &'static str {
        let known = ENGINES.iter().find(|(number, _)| *number == self.engine);
        known.map_or("of another engine", |(_, name)| name)
    }
}

/// The descriptions of feeds, by the feeds' numbers.
#[derive(Debug, Default)]
pub(super) struct Feeds(BTreeMap<u64, Described>);

impl Feeds {
    /// Reads the descriptions of the feeds in these files: from the list, or else from the dump.
    pub(super) fn of(files: &Files) -> anyhow::Result<Self> {
        if let Some(path) = files.list() {
            return Self::in_list(path)
                .context("the list of feeds (list.json) is not as feed/list.json answers");
        }
        let Some(path) = files.dump() else { return Ok(Self::default()) };
        let mut feeds = BTreeMap::new();
        let file = BufReader::new(File::open(path)?);
        dump::read(file, "feeds", |column| {
            if let Some(id) = column("id").and_then(|id| id.parse().ok()) {
                feeds.insert(id, Described::of(column));
            }
        })
        .context("emoncms.sql cannot be read")?;
        Ok(Self(feeds))
    }

    fn in_list(path: &Path) -> anyhow::Result<Self> {
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let rows = match serde_json::from_slice(&std::fs::read(path)?)? {
            Value::Array(rows) => rows,
            other => bail!("expected a list, found {}", domain::excerpt(&other.to_string())),
        };
        let mut feeds = BTreeMap::new();
        for row in rows {
            let column = |name: &str| text(row.get(name)?);
            let id = column("id").and_then(|id| id.parse().ok());
            let id = id.with_context(|| {
                format!("a feed has no id: {}", domain::excerpt(&row.to_string()))
            })?;
            feeds.insert(id, Described::of(column));
        }
        Ok(Self(feeds))
    }

    /// Returns whether no feed has a description.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the numbers of the feeds.
    pub(super) fn ids(&self) -> impl Iterator<Item = u64> {
        self.0.keys().copied()
    }

    /// Returns the description of a feed.
    pub(super) fn of_id(&self, id: u64) -> Described {
        self.0.get(&id).cloned().unwrap_or_default()
    }
}
