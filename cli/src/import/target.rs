//! Where an import goes: to a server, or into a directory that no server has open. Sends nothing.
//!
//! A directory that is new is made when the first reading is about to be sent: a source that cannot be read leaves none,
//! nor does an import that stores no reading.

use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::Handle;

use crate::client::{self, Client};
use crate::here::Here;
use crate::output::print;
use crate::place::Place;

/// The address of a server that is started without options.
const DEFAULT: &str = "http://127.0.0.1:8080";
/// The time in which a server of this machine takes a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Where an import goes.
#[derive(Debug, Clone, Default)]
pub(super) enum Target {
    /// To the server that is started without options; nobody has looked whether it runs.
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
    /// Finds out where an import goes that sends readings.
    pub(super) async fn of(url: Option<&str>, place: &Place) -> anyhow::Result<Self> {
        if let Some(url) = url {
            return Ok(Self::Server(url.to_owned()));
        }
        if place.is_named() {
            return Ok(Self::Here(Directory::at(&place.data_dir).await?));
        }
        if is_listening(DEFAULT) {
            return Ok(Self::Default);
        }
        let hint = || format!("no server answers at {DEFAULT}; one at another address needs --url");
        let directory = Directory::at(&place.data_dir).await.with_context(hint)?;
        print(format_args!("no server answers at {DEFAULT}: storing into {}", directory.name));
        Ok(Self::Here(directory))
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

/// Whether something listens at an address of this machine.
fn is_listening(url: &str) -> bool {
    let host = url.trim_start_matches("http://");
    let addresses = host.to_socket_addrs().into_iter().flatten();
    addresses
        .into_iter()
        .any(|address| TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).is_ok())
}
