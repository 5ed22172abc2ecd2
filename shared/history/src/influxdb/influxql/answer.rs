//! The answers of InfluxDB 1 to queries: chunks of JSON, parsed as they arrive. Sends no request.

use std::cell::Cell as Shared;
use std::collections::BTreeMap;
use std::io::{self, Read};

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The maximum number of bytes in a chunk, which is parsed as a whole in memory.
const MAX_CHUNK: usize = if cfg!(test) { 1 << 20 } else { 256 << 20 };

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
    let left = Shared::new(MAX_CHUNK);
    let reader = Limited { reader, left: &left };

    for answer in serde_json::Deserializer::from_reader(reader).into_iter::<Answer>() {
        let answer = answer.context("the answer of InfluxDB cannot be read")?;
        left.set(MAX_CHUNK);
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

/// A reader that fails after `left` further bytes.
struct Limited<'a, R> {
    reader: R,
    left: &'a Shared<usize>,
}

impl<R: Read> Read for Limited<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        let left = self.left.get().checked_sub(count);
        self.left.set(left.ok_or_else(|| {
            io::Error::other(format!("a part of it is longer than {MAX_CHUNK} bytes"))
        })?);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_may_be_long_and_a_part_of_it_may_not() {
        let chunk = r#"{"results":[{"series":[{"name":"m","values":[[1]]}]}]}"#.to_owned() + "\n";
        let many = chunk.repeat(2 * MAX_CHUNK / chunk.len());
        let mut rows = 0;
        read(many.as_bytes(), |series| rows += series.rows().count()).unwrap();
        assert_eq!(rows, 2 * MAX_CHUNK / chunk.len());

        let endless = r#"{"results":[{"series":[{"name":""#.as_bytes().chain(io::repeat(b'a'));
        let error = format!("{:#}", read(endless, |_| ()).unwrap_err());
        assert!(error.contains("a part of it is longer than 1048576 bytes"), "{error}");
    }
}
