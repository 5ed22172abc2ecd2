//! Resolves the names of hosts to addresses that the client may connect to. Opens no connection.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use http::Uri;
use http::uri::Scheme;
use outgoing::Reach;
use ureq::config::Config;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// The largest number of a host's addresses that the client takes.
const MAX_ADDRESSES: usize = 16;

/// Resolves the names of hosts.
pub trait LookUpHost: Send + Sync + 'static {
    /// The addresses of a host, the preferred one first.
    fn look_up(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// Resolves names with the system's resolver.
#[derive(Debug, Clone, Copy)]
pub struct SystemNames;

impl LookUpHost for SystemNames {
    fn look_up(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok((host, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
    }
}

/// A resolver that returns only addresses which have passed [`Reach::check`]. There is one look-up for each connection,
/// and the client connects to the checked address. So a name that leads elsewhere a moment later changes nothing.
pub(crate) struct CheckedNames {
    pub(crate) names: Arc<dyn LookUpHost>,
    pub(crate) reach: Reach,
}

impl Resolver for CheckedNames {
    fn resolve(
        &self,
        uri: &Uri,
        _: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let host = uri.host().unwrap_or_default();
        let is_https = uri.scheme() == Some(&Scheme::HTTPS);
        let port = uri.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let found = match bare.parse::<IpAddr>() {
            Ok(ip) => vec![ip],
            Err(_) => self.look_up(bare, timeout)?,
        };
        let mut checked = self.empty();
        let mut forbidden = None;

        for ip in found {
            match self.reach.check(ip) {
                Ok(()) if checked.len() < MAX_ADDRESSES => checked.push(SocketAddr::new(ip, port)),
                Ok(()) => break,
                Err(why) => forbidden = forbidden.or(Some(why)),
            }
        }

        match forbidden {
            _ if !checked.is_empty() => Ok(checked),
            Some(why) => Err(ureq::Error::Other(Box::new(why))),
            None => Err(ureq::Error::HostNotFound),
        }
    }
}

impl CheckedNames {
    /// Looks up a host in a thread of its own. The system's resolver has no time limit, so after the timeout nobody
    /// waits for the thread.
    fn look_up(&self, host: &str, timeout: NextTimeout) -> Result<Vec<IpAddr>, ureq::Error> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let (names, host) = (Arc::clone(&self.names), host.to_owned());
        thread::spawn(move || sender.send(names.look_up(&host)).ok());
        match receiver.recv_timeout(*timeout.after) {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(_)) | Err(mpsc::RecvTimeoutError::Disconnected) => {
                Err(ureq::Error::HostNotFound)
            }
            Err(mpsc::RecvTimeoutError::Timeout) => Err(ureq::Error::Timeout(timeout.reason)),
        }
    }
}

impl fmt::Debug for CheckedNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckedNames").field("reach", &self.reach).finish_non_exhaustive()
    }
}
