//! The pages of a list of the API. Knows no list.

use std::marker::PhantomData;

use anyhow::ensure;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::client::Client;

/// The maximum number of successive empty pages; no list of Roomtide has as many.
const MAX_EMPTY_PAGES: u32 = 1_000;

/// The pages of a list, one after the other, each with its entries.
pub(crate) struct ListPages<'a, T> {
    client: &'a Client,
    /// The path and the query, without limit and cursor.
    path: &'a str,
    /// The maximum number of entries of the next page.
    pub(crate) limit: usize,
    /// The cursor of the next page; `None` before the first page.
    cursor: Option<String>,
    is_over: bool,
    empty_pages: u32,
    entries: PhantomData<T>,
}

/// A page of a list.
#[derive(Default, Deserialize)]
pub(crate) struct Page<T> {
    pub(crate) data: Vec<T>,
    pub(crate) next_cursor: Option<String>,
}

/// The answer of a list whose device or room does not exist, or is deleted meanwhile.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct NotThere(String);

impl<'a, T: DeserializeOwned> ListPages<'a, T> {
    /// The pages of a list.
    pub(crate) const fn of(client: &'a Client, path: &'a str, limit: usize) -> Self {
        let (cursor, is_over, empty_pages) = (None, false, 0);
        Self { client, path, limit, cursor, is_over, empty_pages, entries: PhantomData }
    }

    /// Calls `each` with every entry.
    pub(crate) fn each(self, mut each: impl FnMut(T) -> anyhow::Result<()>) -> anyhow::Result<()> {
        for page in self {
            page?.into_iter().try_for_each(&mut each)?;
        }
        Ok(())
    }

    /// Reads the next page. The pages must come to an end: no page has the cursor of the one before.
    fn read(&mut self) -> anyhow::Result<Vec<T>> {
        let Self { client, path, limit, .. } = *self;
        client.ensure_roomtide()?;
        let separator = if path.contains('?') { '&' } else { '?' };
        let mut page_path = format!("{path}{separator}limit={limit}");
        if let Some(cursor) = &self.cursor {
            page_path += "&cursor=";
            page_path.extend(form_urlencoded::byte_serialize(cursor.as_bytes()));
        }

        let answer = client.get(&page_path)?;
        if matches!(answer.status, 404 | 410) {
            return Err(NotThere(client.error(path, &answer).to_string()).into());
        }
        if answer.status != 200 {
            return Err(client.error(path, &answer));
        }
        let Page { data, next_cursor } = client.parsed(path, &answer)?;

        self.empty_pages = if data.is_empty() { self.empty_pages + 1 } else { 0 };
        let is_repeated = next_cursor.is_some() && next_cursor == self.cursor;
        ensure!(
            !is_repeated && self.empty_pages < MAX_EMPTY_PAGES,
            "{page_path} is answered with the next_cursor that was asked for, or with {MAX_EMPTY_PAGES} pages in a row that have \
             no entry: its pages would never end"
        );
        self.is_over = next_cursor.is_none();
        self.cursor = next_cursor;
        Ok(data)
    }
}

impl<T: DeserializeOwned> Iterator for ListPages<'_, T> {
    type Item = anyhow::Result<Vec<T>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let page = self.read();
        self.is_over |= page.is_err();
        Some(page)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::client;
    use crate::tests::fake_server::{self, Reply};

    /// The error of a list that a server answers with empty pages; `same` is the cursor of all.
    fn error_of(ready: &'static str, same: Option<&'static str>) -> String {
        let server = fake_server::serve(move |n, request| {
            assert!(n < 1_100, "for ever");
            let cursor = same.map_or(n.to_string(), str::to_owned);
            let page = format!(r#"{{"data": [], "next_cursor": "{cursor}"}}"#);
            Reply::of(200, if request.path == client::READY { ready } else { &page })
        });
        let client = Client::new(&server.url, None).unwrap();
        let pages = ListPages::<Value>::of(&client, "/devices", 1_000);
        pages.each(|_| Ok(())).unwrap_err().to_string()
    }

    #[test]
    fn pages_without_an_end_are_left() {
        for same in [None, Some("c")] {
            let error = error_of(r#"{"status":"ready","up":"0s"}"#, same);
            assert!(error.contains("its pages would never end"), "{error}");
        }
    }

    #[test]
    fn a_list_is_of_roomtide_also_without_a_token() {
        let error = error_of("hello", None);
        assert!(
            error.contains("/ready answers 200") && error.contains("is no Roomtide"),
            "{error}"
        );
    }

    #[test]
    fn a_cursor_is_encoded_and_a_list_that_is_gone_is_told() {
        let server = fake_server::serve(|_, request| match &*request.path {
            "/r?metrics=e&limit=2" => Reply::of(200, r#"{"data": [1], "next_cursor": "a b"}"#),
            "/r?metrics=e&limit=2&cursor=a+b" => Reply::of(410, "{}"),
            other => panic!("{other}"),
        });
        let client = server.client();
        let mut pages = ListPages::<u8>::of(&client, "/r?metrics=e", 2);
        assert_eq!(pages.next().unwrap().unwrap(), [1]);
        assert!(pages.next().unwrap().unwrap_err().is::<NotThere>());
        assert!(pages.next().is_none());
    }
}
