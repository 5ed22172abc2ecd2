//! Pages of a list of readings. Sends no request itself.

use std::collections::BTreeMap;

use anyhow::Context as _;
use domain::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::source_api::cursor_after;

/// The maximum number of readings in a page.
pub(super) const MAX_PAGE: usize = 10_000;

/// The members of a reading, each with its JSON from the server.
pub(super) type Row = BTreeMap<String, Box<RawValue>>;

/// A page of a list of readings.
#[derive(Default, Deserialize)]
pub(super) struct Page {
    pub(super) data: Vec<Row>,
    pub(super) next_cursor: Option<String>,
}

/// Returns the time of a reading.
pub(super) fn time_of(row: &Row) -> anyhow::Result<Timestamp> {
    let json = row.get("timestamp").context("a reading has no timestamp")?;
    Ok(Timestamp::parse_absolute(&serde_json::from_str::<String>(json.get())?)?)
}

/// Returns at most `count` of the first readings of a list. `get` returns a page, or `None` if the list does not exist.
///
/// With a filter for metrics, the server applies `limit` before the filter. So a page may be empty although others
/// follow, and each request has a greater limit than the one before.
pub(super) fn first(
    path: &str,
    count: usize,
    get: impl Fn(&str) -> anyhow::Result<Option<Page>>,
) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let (mut page_path, mut before, mut limit) = (path.to_owned(), None, count);

    loop {
        let Some(page) = get(&format!("{page_path}&limit={limit}"))? else { break };
        rows.extend(page.data);

        let Some(cursor) = page.next_cursor.filter(|_| rows.len() < count) else { break };
        page_path = format!("{path}&cursor={}", cursor_after(before.as_deref(), &cursor, path)?);
        (before, limit) = (Some(cursor), MAX_PAGE.min(limit * 10));
    }

    rows.truncate(count);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_pages_are_turned_until_there_are_enough_readings() {
        let get = |path: &str| {
            let page = match path {
                "/r?metrics=e&limit=2" => r#"{"data": [], "next_cursor": "a b"}"#,
                "/r?metrics=e&cursor=a+b&limit=20" => r#"{"data": [{"e": 1}], "next_cursor": "c"}"#,
                "/r?metrics=e&cursor=c&limit=200" => {
                    r#"{"data": [{"e": 2.50}, {"e": 3}], "next_cursor": "d"}"#
                }
                other => panic!("{other}"),
            };
            Ok(Some(serde_json::from_str(page)?))
        };
        let rows = first("/r?metrics=e", 2, get).unwrap();
        let values: Vec<_> = rows.iter().map(|row| row["e"].get()).collect();
        assert_eq!(values, ["1", "2.50"]);
    }

    #[test]
    fn pages_without_an_end_are_left() {
        let page = r#"{"data": [], "next_cursor": "a"}"#;
        let get = |_: &str| Ok(Some(serde_json::from_str(page)?));
        let error = first("/r?metrics=e", 1, get).unwrap_err().to_string();
        assert!(error.contains("its pages would never end"), "{error}");
        assert!(first("/r?metrics=e", 1, |_| Ok(None)).unwrap().is_empty());
    }
}
