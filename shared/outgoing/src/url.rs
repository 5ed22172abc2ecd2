//! The address of a server, checked before it is stored. Resolves no name: the IP addresses of a name are checked for
//! each connection.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use http::Uri;

use crate::address::{ForbiddenAddress, Reach};

/// The largest length of an address in characters.
const MAX_LENGTH: usize = 2_048;

/// The address of a server or of a webhook.
///
/// Parsed as the HTTP client parses it, so that the client connects to the checked address. The path of a webhook is
/// its password: neither `Debug` nor an error shows any part of the path.
#[derive(Clone, PartialEq, Eq)]
pub struct Url(Uri);

/// The reasons for which a text is not a [`Url`]. They show nothing of the text except an IP address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The text does not have the form of an address.
    #[error("is not an address; expected one like https://example.org/path")]
    Unreadable,
    /// The text has more than 2,048 characters.
    #[error("is {0} characters long; at most {MAX_LENGTH} are allowed")]
    TooLong(usize),
    /// A character must be written with a percent sign.
    #[error("contains a space or a character that an address writes with a percent sign")]
    Character,
    /// The scheme is not `https`.
    #[error("must begin with https://; a deployed server sends nothing without TLS")]
    NotHttps,
    /// The scheme is neither `http` nor `https`.
    #[error("must begin with https:// or http://")]
    NotHttp,
    /// A name or a password stands before the host.
    #[error("has a user name or a password before the host; leave it out")]
    UserInfo,
    /// The port is not a number from 1 to 65535.
    #[error("has a port that is not a number from 1 to 65535")]
    Port,
    /// The host is a number, which some resolvers read as an IPv4 address.
    #[error("has a number as its host; write an IPv4 address like 192.168.1.20")]
    Number,
    /// The host is an IP address that the client may not connect to.
    #[error("has the address {0}")]
    Forbidden(ForbiddenAddress),
}

impl Url {
    /// Reads an address and checks it.
    ///
    /// Every port is allowed. On a deployed server, TLS with a valid certificate proves the host. On a laptop, home
    /// servers have ports of all kinds.
    pub fn parse(text: &str, reach: Reach) -> Result<Self, UrlError> {
        match text.chars().count() {
            length if length > MAX_LENGTH => return Err(UrlError::TooLong(length)),
            _ if !text.bytes().all(|byte| byte.is_ascii_graphic()) => {
                return Err(UrlError::Character);
            }
            _ => {}
        }

        let uri: Uri = text.parse().map_err(|_| UrlError::Unreadable)?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(UrlError::Unreadable);
        };

        match (scheme, reach) {
            ("https", _) | ("http", Reach::Local) => {}
            (_, Reach::Public) => return Err(UrlError::NotHttps),
            (_, Reach::Local) => return Err(UrlError::NotHttp),
        }

        if authority.as_str().contains('@') {
            return Err(UrlError::UserInfo);
        }

        let host = authority.host();
        let has_port = authority.as_str().len() > host.len();
        if has_port && authority.port_u16().is_none_or(|port| port == 0) {
            return Err(UrlError::Port);
        }

        let bare = host.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(ip) => reach.check(ip).map_err(UrlError::Forbidden)?,
            Err(_) if bare.is_empty() || host.starts_with('[') => return Err(UrlError::Unreadable),
            Err(_) if is_number(bare) => return Err(UrlError::Number),
            Err(_) => {}
        }

        Ok(Self(uri))
    }

    /// The address in the HTTP client's form.
    pub const fn uri(&self) -> &Uri {
        &self.0
    }

    /// The same server with another path.
    #[must_use]
    pub fn with_path(&self, path: &str) -> Self {
        let mut parts = self.0.clone().into_parts();
        parts.path_and_query = path.parse().ok();
        Self(Uri::from_parts(parts).unwrap_or_else(|_| self.0.clone()))
    }

    /// The path without its last slash.
    pub fn base(&self) -> &str {
        self.0.path().trim_end_matches('/')
    }

    /// The address as a text, which [`parse`](Self::parse) reads again.
    pub fn text(&self) -> String {
        self.0.to_string()
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Url")
    }
}

/// Whether a host ends in a number: `getaddrinfo` reads `127.1`, `0x7f.1`, `0177.0.0.1` and `2130706433` as 127.0.0.1,
/// and browsers do so in URLs too (<https://url.spec.whatwg.org/#ends-in-a-number-checker>).
fn is_number(host: &str) -> bool {
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let hex = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
        || hex.is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_number && host.parse::<Ipv4Addr>().is_err()
}

#[cfg(test)]
mod tests {
    use domain::given::cases;

    use super::*;

    fn parsed(reach: Reach, text: &str) -> String {
        match Url::parse(text, reach) {
            Ok(url) => {
                assert_eq!(format!("{url:?}"), "Url", "the address is a secret");
                url.text().clone()
            }
            Err(error) => format!("refused: {error}"),
        }
    }

    /// A case is whose address it is, of a `public` server or a `local` one, and the address in quotation marks.
    #[test]
    fn each_address_is_kept_or_refused_as_its_case_says() {
        for case in cases(include_str!("url.txt")) {
            let (reach, text) = case.given.split_once(' ').expect("REACH ADDRESS");
            let reach = if reach == "public" { Reach::Public } else { Reach::Local };
            let text: String = serde_json::from_str(text).expect("an address in quotation marks");
            assert_eq!(parsed(reach, &text), case.answer(), "{case}");
        }
    }

    #[test]
    fn a_long_address_is_refused_without_its_text() {
        let long = format!("https://example.org/{}", "x".repeat(MAX_LENGTH));
        let refused = "refused: is 2068 characters long; at most 2048 are allowed";
        assert_eq!(parsed(Reach::Local, &long), refused);
    }
}
