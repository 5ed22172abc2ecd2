//! The readings of a list, page by page.

use std::collections::BTreeMap;

use anyhow::Context as _;
use domain::Timestamp;
use serde_json::value::RawValue;

use crate::client::Client;
use crate::pages::{ListPages, NotThere};

/// The maximum number of readings in a page.
pub(super) const MAX_PAGE: usize = 10_000;

/// The members of a reading, each with its JSON from the server.
pub(super) type Row = BTreeMap<String, Box<RawValue>>;

/// Returns the time of a reading.
pub(super) fn time_of(row: &Row) -> anyhow::Result<Timestamp> {
    let json = row.get("timestamp").context("a reading has no timestamp")?;
    Ok(Timestamp::parse_absolute(&serde_json::from_str::<String>(json.get())?)?)
}

/// Returns at most `count` of the first readings of a list; none if the list does not exist.
///
/// With a filter for metrics, the server applies `limit` before the filter. So a page may be empty although others
/// follow, and each request has a greater limit than the one before.
pub(super) fn first(client: &Client, path: &str, count: usize) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut pages = ListPages::<Row>::of(client, path, count);
    while rows.len() < count
        && let Some(page) = pages.next()
    {
        match page {
            Ok(page) => rows.extend(page),
            Err(error) if error.is::<NotThere>() => break,
            Err(error) => return Err(error),
        }
        pages.limit = MAX_PAGE.min(pages.limit * 10);
    }

    rows.truncate(count);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fake_server::{self, Reply};

    #[test]
    fn empty_pages_are_turned_until_there_are_enough_readings() {
        let server = fake_server::serve(|_, request| match &*request.path {
            "/r?metrics=e&limit=2" => Reply::of(200, r#"{"data": [], "next_cursor": "a"}"#),
            "/r?metrics=e&limit=20&cursor=a" => {
                Reply::of(200, r#"{"data": [{"e": 1}], "next_cursor": "c"}"#)
            }
            "/r?metrics=e&limit=200&cursor=c" => {
                Reply::of(200, r#"{"data": [{"e": 2.50}, {"e": 3}], "next_cursor": "d"}"#)
            }
            _ => Reply::of(404, "{}"),
        });
        let client = server.client();
        let rows = first(&client, "/r?metrics=e", 2).unwrap();
        let values: Vec<_> = rows.iter().map(|row| row["e"].get()).collect();
        assert_eq!(values, ["1", "2.50"]);
        assert!(first(&client, "/none", 1).unwrap().is_empty());
    }
}
