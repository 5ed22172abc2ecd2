//! The answers of InfluxDB 1 to queries: chunks of JSON, parsed as they arrive. Sends no request.

use std::collections::BTreeMap;
use std::io::Read;

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A chunk of an answer.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    results: Vec<Results>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Results {
    #[serde(default)]
    series: Vec<Series>,
    error: Option<String>,
    /// Whether another chunk follows.
    #[serde(default)]
    partial: bool,
}

/// The rows of one series in a chunk.
#[derive(Deserialize)]
pub(super) struct Series {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) tags: BTreeMap<String, String>,
    #[serde(default)]
    values: Vec<Vec<Box<RawValue>>>,
}

/// A value; a number keeps its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cell {
    Null,
    Boolean(bool),
    Number(String),
    Text(String),
}

impl Cell {
    fn of(value: &RawValue) -> Self {
        match value.get() {
            "null" => Self::Null,
            "true" => Self::Boolean(true),
            "false" => Self::Boolean(false),
            text if text.starts_with('"') => {
                serde_json::from_str(text).map_or(Self::Null, Self::Text)
            }
            text => Self::Number(text.to_owned()),
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(super) fn number(&self) -> Option<&str> {
        if let Self::Number(text) = self { Some(text) } else { None }
    }
}

impl Series {
    /// Returns the rows.
    pub(super) fn rows(&self) -> impl Iterator<Item = Vec<Cell>> {
        self.values.iter().map(|row| row.iter().map(|value| Cell::of(value)).collect())
    }
}

/// Reads all chunks and calls `each` with their series. Even an answer with status 200 may contain an error. An answer
/// is incomplete if its last chunk says `partial`.
pub(super) fn read(reader: impl Read, mut each: impl FnMut(Series)) -> anyhow::Result<()> {
    let mut is_partial = false;
    let mut chunks = 0;
    for answer in serde_json::Deserializer::from_reader(reader).into_iter::<Answer>() {
        let answer = answer.context("the answer of InfluxDB cannot be read")?;
        chunks += 1;
        if let Some(error) = answer.error {
            bail!("InfluxDB answers: {error}");
        }
        for results in answer.results {
            if let Some(error) = results.error {
                bail!("InfluxDB answers: {error}");
            }
            is_partial = results.partial;
            results.series.into_iter().for_each(&mut each);
        }
    }
    ensure!(chunks > 0, "InfluxDB answers nothing");
    ensure!(
        !is_partial,
        "the answer of InfluxDB is not whole: its last part says that another one follows"
    );
    Ok(())
}
