//! The addresses at which the system answers over HTTP: one for everything, or one for each function. Starts no
//! function.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::functions::Functions;
use crate::gateway::{self, Authorizer, ConnectionLimits, Gateway, Host};
use crate::options::Options;

/// Listening sockets that are not served yet.
pub(crate) struct Addresses {
    page: Option<(TcpListener, String)>,
    ingest: Option<(TcpListener, String)>,
}

impl Addresses {
    /// Opens the listening sockets that the options ask for.
    pub(crate) async fn listen(options: &Options) -> anyhow::Result<Self> {
        let listening = async |port: Option<u16>, option: &str| {
            let Some(port) = port.filter(|_| options.listens) else { return Ok(None) };
            let listener = gateway::listen(options.host, port, option).await?;
            let url = own_url(listener.local_addr()?);
            anyhow::Ok(Some((listener, url)))
        };
        let page = listening(Some(options.port), "--port").await?;
        Ok(Self { page, ingest: listening(options.ingest_port, "--ingest-port").await? })
    }

    /// The address of the web page; empty if the system listens on no port.
    pub(crate) fn url(&self) -> String {
        self.page.as_ref().map(|(_, url)| url.clone()).unwrap_or_default()
    }

    /// The address that stores readings, if the ingest function has an address of its own.
    pub(crate) fn ingest_url(&self) -> Option<String> {
        self.ingest.as_ref().map(|(_, url)| url.clone())
    }

    /// Serves HTTP until it is stopped.
    pub(crate) fn serve(
        self,
        functions: &Functions,
        authorizer: Option<&Arc<Authorizer>>,
        stopped: &watch::Receiver<bool>,
    ) -> Vec<JoinHandle<()>> {
        let page = self.url();
        let host = if self.ingest.is_some() { Host::Query } else { Host::Both };
        let hosts = [(self.page, host), (self.ingest, Host::Ingest { page })];

        let serving = hosts.into_iter().filter_map(|(listening, host)| {
            let (listener, _) = listening?;
            let (functions, authorizer) = (functions.clone(), authorizer.cloned());
            let gateway = Gateway::new(functions, authorizer, host);
            Some(tokio::spawn(gateway::serve(
                listener,
                gateway,
                ConnectionLimits::OWN,
                stopped.clone(),
            )))
        });

        serving.collect()
    }
}

/// The address for clients on this machine: the loopback address replaces the unspecified one (0.0.0.0 or ::).
fn own_url(mut address: SocketAddr) -> String {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    format!("http://{address}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_listens_on_all_addresses_is_asked_on_this_machine() {
        for (address, url) in [
            ("0.0.0.0:8080", "http://127.0.0.1:8080"),
            ("[::]:8080", "http://[::1]:8080"),
            ("192.0.2.1:80", "http://192.0.2.1:80"),
        ] {
            assert_eq!(own_url(address.parse().unwrap()), url);
        }
    }
}
