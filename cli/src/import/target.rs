//! Where an import goes: to a server, or into a directory that no server has open. Sends nothing.

use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

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
    /// Into data that this process has open.
    Here(Arc<Here>),
}

impl Target {
    /// Finds out where an import goes that sends readings.
    pub(super) async fn of(url: Option<&str>, place: &Place) -> anyhow::Result<Self> {
        let directory = &place.data_dir;
        if let Some(url) = url {
            return Ok(Self::Server(url.to_owned()));
        }
        if place.is_named() {
            return Ok(Self::Here(Box::pin(Here::open(directory)).await?));
        }
        if is_listening(DEFAULT) {
            return Ok(Self::Default);
        }
        let name = directory.display();
        let hint = || format!("no server answers at {DEFAULT}; one at another address needs --url");
        let here = Box::pin(Here::open(directory)).await.with_context(hint)?;
        print(format_args!("no server answers at {DEFAULT}: storing into {name}"));
        Ok(Self::Here(here))
    }

    /// Returns the name that tells it from others.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Default => DEFAULT,
            Self::Server(url) => url,
            Self::Here(here) => here.name(),
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
            Self::Here(here) => Client::of(here),
        }
    }

    /// Closes what was opened. Every client must be gone.
    pub(super) async fn close(self) -> anyhow::Result<()> {
        match self {
            Self::Here(here) => Box::pin(Here::close(here)).await,
            Self::Default | Self::Server(_) => Ok(()),
        }
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
