//! The API to read from: of a server, of a deployed table, or of a data directory. Writes nothing.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use aws::StoreConfig;
use http::Request;
use local::{DataDirectory, TableApi};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::{self, Answer, Ask, Client, Units};
use crate::pace::{HALF, Pace};
use crate::place::Place;

/// The maximum number of attempts on a busy table, and the pause after the first; the pause doubles each time.
const ATTEMPTS: u32 = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The maximum number of successive empty pages; no list of Roomtide has as many.
const MAX_EMPTY_PAGES: u32 = 1_000;

/// An API to read from.
pub(crate) enum SourceApi {
    /// The API of a server, over HTTP.
    Server(Arc<Client>, Arc<Pace>),
    /// A table; the functions that answer run in this process.
    Table(Box<TableApi>, Pace),
    /// The data in a directory of this machine.
    Local(DataDirectory),
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    data: Vec<&'a RawValue>,
    next_cursor: Option<String>,
}

impl SourceApi {
    /// Returns the API of a server if one is named, else that of the place.
    pub(crate) async fn of(
        url: Option<&str>,
        token: Option<&str>,
        place: &Place,
    ) -> anyhow::Result<Self> {
        match (url, place.deployed()?) {
            (Some(url), _) => Self::server(url, token),
            (None, Some(config)) => Self::table(config).await,
            (None, None) => Self::local(place.data_dir()).await,
        }
    }

    /// Returns the API of the server at `url`.
    fn server(url: &str, token: Option<&str>) -> anyhow::Result<Self> {
        let token = token.map(client::token).transpose()?;
        let client = Client::new(url, token.as_deref())?;
        Ok(Self::Server(Arc::new(client), Arc::new(Pace::of(HALF))))
    }

    /// Opens the API of a deployed table, or of one restored from a backup. Only the table has to exist.
    async fn table(config: StoreConfig) -> anyhow::Result<Self> {
        let name = config.table.clone();
        let api = Box::pin(TableApi::connect(config)).await;
        let api = api.with_context(|| format!("the table {name} cannot be read"))?;
        let pace = Pace::half_of(api.max_read_units());
        Ok(Self::Table(Box::new(api), pace))
    }

    /// Opens the API of the data in a directory.
    async fn local(directory: &Path) -> anyhow::Result<Self> {
        let Some(data) = DataDirectory::open(directory).await? else {
            bail!(
                "there is no data in {}; start the server once, or name another --data-dir or a --url",
                directory.display()
            )
        };
        // The registry lacks changes that the stream still holds.
        data.settle().await?;
        Ok(Self::Local(data))
    }

    /// Calls `each` with every entry of a list, page by page.
    pub(crate) async fn pages(
        &self,
        path: &str,
        each: impl FnMut(&RawValue) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        match self.pages_while_there(path, each).await? {
            None => Ok(()),
            Some(why) => bail!("{why}"),
        }
    }

    /// Calls `each` with every entry of a list, page by page. Returns the server's answer if the device or room of the
    /// list does not exist or is deleted meanwhile; some entries may have been read by then.
    pub(crate) async fn pages_while_there(
        &self,
        path: &str,
        mut each: impl FnMut(&RawValue) -> anyhow::Result<()>,
    ) -> anyhow::Result<Option<String>> {
        self.ensure_roomtide().await?;
        let (mut page_path, mut before) = (path.to_owned(), None);
        let mut empty_pages = 0;
        loop {
            let answer = self.answer(&page_path).await?;
            if matches!(answer.status, 404 | 410) {
                return Ok(Some(self.error(&page_path, &answer).to_string()));
            }
            if answer.status != 200 {
                return Err(self.error(&page_path, &answer));
            }
            let page: Page<'_> = serde_json::from_str(&answer.text)
                .with_context(|| format!("{} {}", self.asked(path), answer.strange()))?;
            empty_pages = if page.data.is_empty() { empty_pages + 1 } else { 0 };
            ensure!(
                empty_pages < MAX_EMPTY_PAGES,
                "{} answers {MAX_EMPTY_PAGES} pages in a row that have no entry and a next_cursor: its pages would never end",
                self.asked(path)
            );
            page.data.into_iter().try_for_each(&mut each)?;
            let Some(cursor) = page.next_cursor else { return Ok(None) };
            page_path =
                format!("{path}&cursor={}", cursor_after(before.as_deref(), &cursor, path)?);
            before = Some(cursor);
        }
    }

    /// Sends a GET request. Fails unless the status is 200 and the answer is an object with `member`, which every
    /// answer of Roomtide has.
    pub(crate) async fn get(&self, path: &str, member: &str) -> anyhow::Result<Value> {
        let answer = self.answer(path).await?;
        if answer.status != 200 {
            return Err(self.error(path, &answer));
        }
        let value = answer.json_with(member);
        value.with_context(|| format!("{} {}", self.asked(path), answer.strange()))
    }

    /// Fails if another program answers at the server's address.
    async fn ensure_roomtide(&self) -> anyhow::Result<()> {
        let Self::Server(client, _) = self else { return Ok(()) };
        let client = Arc::clone(client);
        let asked = move || client.ensure_roomtide(&AtomicBool::new(false));
        tokio::task::spawn_blocking(asked).await?
    }

    fn error(&self, path: &str, answer: &Answer) -> anyhow::Error {
        match self {
            Self::Server(client, _) => client.error(path, answer),
            Self::Table(..) | Self::Local(_) => {
                anyhow!("{path} answers {}: {}", answer.status, answer.reason())
            }
        }
    }

    /// The address of a request; for data in this process, its path.
    fn asked(&self, path: &str) -> String {
        match self {
            Self::Server(client, _) => client.asked(path),
            Self::Table(..) | Self::Local(_) => path.to_owned(),
        }
    }

    async fn answer(&self, path: &str) -> anyhow::Result<Answer> {
        let response = match self {
            Self::Server(client, pace) => {
                tokio::time::sleep(pace.take(0.0)).await;
                let (client, path) = (Arc::clone(client), path.to_owned());
                let pace = Arc::clone(pace);
                return tokio::task::spawn_blocking(move || {
                    let answer = client.send(Ask::get(&path), &AtomicBool::new(false))?;
                    pace.learn(answer.units.max_read);
                    pace.settle(0.0, answer.units.read);
                    Ok(answer)
                })
                .await?;
            }
            Self::Table(api, pace) => {
                let mut pause = FIRST_PAUSE;
                let mut attempt = 1;
                loop {
                    tokio::time::sleep(pace.take(0.0)).await;
                    let response = api.send(Request::get(path).body(Vec::new())?).await?;
                    pace.settle(0.0, Units::of(response.headers()).read);
                    // The table has no more capacity in this second.
                    if !matches!(response.status().as_u16(), 429 | 503) || attempt == ATTEMPTS {
                        break response;
                    }
                    tokio::time::sleep(pause).await;
                    (attempt, pause) = (attempt + 1, pause * 2);
                }
            }
            Self::Local(data) => data.send(Request::get(path).body(Vec::new())?).await?,
        };
        let (parts, body) = response.into_parts();
        Ok(Answer {
            status: parts.status.as_u16(),
            text: String::from_utf8(body)?,
            units: Units::of(&parts.headers),
            retry_after: None,
        })
    }

    /// Closes the data directory, if one is open.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        match self {
            Self::Local(data) => data.close().await,
            Self::Server(..) | Self::Table(..) => Ok(()),
        }
    }
}

/// The cursor of the next page, encoded for a path. Fails if it is the cursor of this page, which would return the same
/// page for ever.
pub(crate) fn cursor_after(
    before: Option<&str>,
    cursor: &str,
    path: &str,
) -> anyhow::Result<String> {
    ensure!(
        before != Some(cursor),
        "{path} is answered with the next_cursor that was asked for: its pages would never end"
    );
    Ok(form_urlencoded::byte_serialize(cursor.as_bytes()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_server::{self, Reply};

    /// The error of a list that a server answers with empty pages.
    async fn error_of(ready: &'static str) -> String {
        let server = fake_server::serve(move |n, request| {
            assert!(n < 1_100, "for ever");
            let page = format!(r#"{{"data": [], "next_cursor": "{n}"}}"#);
            Reply::of(200, if request.path == client::READY { ready } else { &page })
        });
        let api = SourceApi::server(&server.url, None).unwrap();
        api.pages("/devices?limit=1000", |_| Ok(())).await.unwrap_err().to_string()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn empty_pages_without_an_end_are_left() {
        let error = error_of(r#"{"status":"ready","up":"0s"}"#).await;
        assert!(error.contains("its pages would never end"), "{error}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_list_is_of_roomtide_also_without_a_token() {
        let error = error_of("hello").await;
        assert!(
            error.contains("/ready answers 200") && error.contains("is no Roomtide"),
            "{error}"
        );
    }
}
