//! Where an import goes: to a server, or into a directory that no server has open. Sends nothing.
//!
//! A directory that is new is made when the first reading is about to be sent: a source that cannot be read leaves none,
//! nor does an import that stores no reading.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use tokio::runtime::Handle;

use crate::client::{self, Client};
use crate::here::Here;
use crate::output::print;
use crate::place::Place;

/// The address of a server that is started without options.
const DEFAULT: &str = "http://127.0.0.1:8080";

/// Where an import goes.
#[derive(Debug, Clone, Default)]
pub(super) enum Target {
    /// To the server that is started without options.
    #[default]
    Default,
    /// To a server.
    Server(String),
    /// Into a directory.
    Here(Arc<Directory>),
}

/// A directory, and its data once this process has them open.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    name: String,
    opened: OnceLock<Arc<Here>>,
}

impl Target {
    /// Finds out where an import goes that sends readings: to what is named, else to Roomtide on this machine, else into
    /// the directory. A token is for a server.
    pub(super) async fn of(
        url: Option<&str>,
        place: &Place,
        has_token: bool,
    ) -> anyhow::Result<Self> {
        match url {
            Some(url) => Ok(Self::Server(url.to_owned())),
            None => Self::by_default(DEFAULT, place, has_token).await,
        }
    }

    /// Where an import goes for which no server is named, and `default` is the address at which one may run.
    async fn by_default(default: &str, place: &Place, has_token: bool) -> anyhow::Result<Self> {
        if place.is_named() {
            return Ok(Self::Here(Directory::at(place.data_dir()).await?));
        }
        let url = default.to_owned();
        match tokio::task::spawn_blocking(move || ensure_roomtide(&url)).await? {
            Ok(()) => return Ok(Self::Default),
            Err(why) if has_token => {
                return Err(why.context("--token is for a server, and no --url names it"));
            }
            Err(_) => {}
        }
        let hint =
            || format!("no Roomtide answers at {default}; at another address it needs --url");
        let directory = Directory::at(place.data_dir()).await.with_context(hint)?;
        print(format_args!("no Roomtide answers at {default}: storing into {}", directory.name));
        Ok(Self::Here(directory))
    }

    /// Whether it is a server.
    pub(super) const fn is_server(&self) -> bool {
        matches!(self, Self::Default | Self::Server(_))
    }

    /// Returns the name that tells it from others.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Default => DEFAULT,
            Self::Server(url) => url,
            Self::Here(directory) => &directory.name,
        }
    }

    /// Returns the address of a server that has what is imported.
    pub(super) fn url(&self) -> &str {
        match self {
            Self::Server(url) => url,
            Self::Default | Self::Here(_) => DEFAULT,
        }
    }

    /// Makes a client.
    pub(super) fn client(&self, token: Option<&str>) -> anyhow::Result<Client> {
        match self {
            Self::Default | Self::Server(_) => {
                let token = token.map(client::token).transpose()?;
                Client::new(self.name(), token.as_deref())
            }
            Self::Here(directory) => Client::of(&directory.opened()?),
        }
    }

    /// Closes what was opened. Every client must be gone. A directory that an import has made and stored nothing in is
    /// removed.
    pub(super) async fn close(self) -> anyhow::Result<()> {
        match self {
            Self::Here(directory) => {
                let opened = Arc::into_inner(directory).and_then(|it| it.opened.into_inner());
                match opened {
                    Some(here) => Box::pin(Here::close(here)).await,
                    None => Ok(()),
                }
            }
            Self::Default | Self::Server(_) => Ok(()),
        }
    }
}

impl Directory {
    /// Opens the data of a directory that is there.
    async fn at(path: &Path) -> anyhow::Result<Arc<Self>> {
        let (name, opened) = (path.display().to_string(), OnceLock::new());
        if path.exists() {
            let here = Box::pin(Here::open(path)).await?;
            opened.get_or_init(|| here);
        }
        Ok(Arc::new(Self { path: path.to_owned(), name, opened }))
    }

    /// Opens the data, if they are not. Blocks, so not for a thread of the runtime.
    fn opened(&self) -> anyhow::Result<Arc<Here>> {
        if let Some(here) = self.opened.get() {
            return Ok(Arc::clone(here));
        }
        let here = Handle::current().block_on(Box::pin(Here::open(&self.path)))?;
        Ok(Arc::clone(self.opened.get_or_init(|| here)))
    }
}

/// Fails if no Roomtide answers at an address. Blocks.
fn ensure_roomtide(url: &str) -> anyhow::Result<()> {
    Client::new(url, None)?.ensure_roomtide(&AtomicBool::new(false))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::import::fake_server::{self, Reply};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        place: Place,
    }

    const ROOMTIDE: &str = r#"{"status":"ready","up":"0s"}"#;

    /// Where an import goes for which these places are named, while this is answered at the default address.
    async fn chosen(
        words: &[&str],
        has_token: bool,
        ready: &'static str,
    ) -> anyhow::Result<Target> {
        let server = fake_server::serve(move |_, _| Reply::of(200, ready));
        let place = Line::parse_from([&["import"], words].concat()).place;
        Target::by_default(&server.url, &place, has_token).await
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_named_wins_and_what_is_no_roomtide_gets_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let named = ["--data-dir", path.to_str().unwrap()];
        for (words, has_token, ready, expected) in [
            (&[][..], false, ROOMTIDE, "a server"),
            (&[], true, ROOMTIDE, "a server"),
            (&named, false, ROOMTIDE, "a directory"),
            (&[], false, "hello", "a directory"),
            (&[], true, "hello", "an error"),
        ] {
            let found = match chosen(words, has_token, ready).await {
                Ok(Target::Here(_)) => "a directory",
                Ok(Target::Default | Target::Server(_)) => "a server",
                Err(error) => {
                    let error = format!("{error:#}");
                    assert!(error.contains("--token") && error.contains("no Roomtide"), "{error}");
                    "an error"
                }
            };
            assert_eq!(found, expected, "{words:?} {has_token} {ready}");
        }
        assert!(!path.exists(), "nothing is made before a reading is sent");
    }
}
