//! The target of an import: a server, or a directory that no server has open. Sends nothing.
//!
//! A new directory is made only when the first reading is about to be sent. So an unreadable source leaves no
//! directory, and neither does an import that stores no reading.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::{fs, io};

use anyhow::Context as _;
use tokio::runtime::Handle;

use crate::client::{self, Client, NotRoomtide, Unreached};
use crate::here::Here;
use crate::output::print;
use crate::place::Place;

/// The address of a server that is started without options.
const DEFAULT: &str = "http://127.0.0.1:8080";

/// The target of an import.
#[derive(Debug, Clone, Default)]
pub(super) enum Target {
    /// The server at the default address.
    #[default]
    Default,
    /// A server at this address.
    Server(String),
    /// A directory on this machine.
    Here(Arc<Directory>),
}

/// A directory, and its data once this process has opened them.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    name: String,
    opened: OnceLock<Arc<Here>>,
}

impl Target {
    /// Finds the target of an import: the named server or directory, else a Roomtide at the default address, else the
    /// default directory. A token requires a server.
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

    /// The target if no server is named. `default` is the address where one may run.
    async fn by_default(default: &str, place: &Place, has_token: bool) -> anyhow::Result<Self> {
        if place.is_named() {
            return Ok(Self::Here(Directory::at(place.data_dir()).await?));
        }

        let url = default.to_owned();
        let asked = tokio::task::spawn_blocking(move || ensure_roomtide(&url)).await?;
        let Err(error) = asked else { return Ok(Self::Default) };
        if has_token {
            return Err(error.context("--token is for a server, and no --url names it"));
        }

        let said = absence(default, &error).ok_or_else(|| unclear(default, error))?;
        let hint = || format!("{said}; at another address Roomtide needs --url");
        let directory = Directory::at(place.data_dir()).await.with_context(hint)?;
        print(format_args!("{said}: storing into {}", directory.name));
        Ok(Self::Here(directory))
    }

    /// Whether the target is a server.
    pub(super) const fn is_server(&self) -> bool {
        matches!(self, Self::Default | Self::Server(_))
    }

    /// Returns the name that identifies the target.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Default => DEFAULT,
            Self::Server(url) => url,
            Self::Here(directory) => &directory.name,
        }
    }

    /// Returns the address of the server; `None` for a directory, which any server may have later.
    pub(super) fn url(&self) -> Option<&str> {
        match self {
            Self::Default => Some(DEFAULT),
            Self::Server(url) => Some(url),
            Self::Here(_) => None,
        }
    }

    /// Makes a client of the target.
    pub(super) fn client(&self, token: Option<&str>) -> anyhow::Result<Client> {
        match self {
            Self::Default | Self::Server(_) => {
                let token = token.map(client::token).transpose()?;
                Client::new(self.name(), token.as_deref())
            }
            Self::Here(directory) => Client::of(&directory.opened()?),
        }
    }

    /// Closes the data that were opened. All clients must be dropped before. A new directory is removed if the import
    /// stored nothing there.
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
    /// Opens the data if the directory exists.
    async fn at(path: &Path) -> anyhow::Result<Arc<Self>> {
        let name = canonical(&std::path::absolute(path)?)?.display().to_string();
        let opened = OnceLock::new();
        if path.exists() {
            let here = Box::pin(Here::open(path)).await?;
            opened.get_or_init(|| here);
        }
        Ok(Arc::new(Self { path: path.to_owned(), name, opened }))
    }

    /// Opens the data, if they are not open. Blocks, so it must not run on a thread of the runtime.
    fn opened(&self) -> anyhow::Result<Arc<Here>> {
        if let Some(here) = self.opened.get() {
            return Ok(Arc::clone(here));
        }
        let here = Handle::current().block_on(Box::pin(Here::open(&self.path)))?;
        Ok(Arc::clone(self.opened.get_or_init(|| here)))
    }
}

/// The absolute path of a directory without links; the directory may be new. The progress of an import names its
/// directory in this form, because a relative path means another directory elsewhere.
fn canonical(path: &Path) -> io::Result<PathBuf> {
    match (fs::canonicalize(path), path.parent(), path.file_name()) {
        (Err(_), Some(parent), Some(name)) => Ok(canonical(parent)?.join(name)),
        (found, ..) => found,
    }
}

/// The remark if an address certainly has no Roomtide: nothing listens there, or another program answers. `None` if the
/// error does not prove that, for example for a busy server.
fn absence(url: &str, error: &anyhow::Error) -> Option<String> {
    if error.is::<NotRoomtide>() {
        return Some(format!("what answers at {url} is no Roomtide"));
    }
    let is_refused = error.downcast_ref().is_some_and(Unreached::is_refused);
    is_refused.then(|| format!("no Roomtide answers at {url}"))
}

/// The error of an import that would have to guess its target.
fn unclear(url: &str, error: anyhow::Error) -> anyhow::Error {
    error.context(format!(
        "{url} does not tell whether it is Roomtide, and nothing is imported; name a server with --url, or a directory \
         with --data-dir"
    ))
}

/// Fails unless Roomtide answers at an address. Blocks.
fn ensure_roomtide(url: &str) -> anyhow::Result<()> {
    Client::new(url, None)?.ensure_roomtide(&AtomicBool::new(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_server::{self, Reply};
    use crate::tests::parsed;

    const ROOMTIDE: &str = r#"{"status":"ready","up":"0s"}"#;

    /// Where an import goes for which these places are named, while this is answered at the default address.
    async fn chosen(
        words: &[&str],
        has_token: bool,
        ready: &'static str,
    ) -> anyhow::Result<Target> {
        let server = fake_server::always(200, ready);
        Target::by_default(&server.url, &place(words), has_token).await
    }

    fn place(words: &[&str]) -> Place {
        parsed([&["import"], words].concat()).unwrap()
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

    /// Another name would be another target, into which an import that was interrupted does not go on.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_directory_is_called_the_same_wherever_it_is_named() {
        let name_of = async |path: &str| Directory::at(Path::new(path)).await.unwrap().name.clone();
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        let expected = here.join("no-data").display().to_string();
        let climbing = format!("{}/src/../no-data", here.display());
        for path in ["no-data", "./no-data", "src/../no-data", &climbing] {
            assert_eq!(name_of(path).await, expected, "{path}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_server_that_does_not_say_what_it_is_ends_the_import() {
        let busy = fake_server::serve(|_, _| Reply::with(503, "retry-after: 0\r\n", "busy"));
        let mute = fake_server::serve(|_, _| Reply::NONE);
        // What it points to refuses connections, which says nothing of the server itself.
        let away = "location: http://127.0.0.1:1/ready\r\n";
        let redirecting = fake_server::serve(move |_, _| Reply::with(302, away, ""));
        for (server, expected) in [
            (busy, "/ready answers 503"),
            (mute, "cannot reach"),
            (redirecting, "/ready answers 302 and points to http://127.0.0.1:1/ready"),
        ] {
            let chosen = Target::by_default(&server.url, &place(&[]), false).await;
            let error = format!("{:#}", chosen.unwrap_err());
            for expected in [&*server.url, "--url", "--data-dir", expected] {
                assert!(error.contains(expected), "{expected:?} is not in {error}");
            }
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn where_nothing_listens_the_directory_is_taken() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let chosen = Target::by_default(&url, &place(&[]), false).await.unwrap();
        assert!(matches!(chosen, Target::Here(_)), "{chosen:?}");
    }
}
