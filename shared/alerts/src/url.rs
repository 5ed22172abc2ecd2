//! The address that a channel is reached at, checked before it is stored. Resolves no name: what a name leads to is
//! checked when it is connected to.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use http::Uri;

use crate::address::{ForbiddenAddress, Reach};

/// The most characters of an address.
const MAX_LENGTH: usize = 2_048;

/// The address of a server or of a webhook.
///
/// Parsed as the HTTP client parses it, so that the checked address is the one of the connection. The path of a webhook
/// is its password: neither `Debug` nor an error shows any part of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Url(Uri);

/// The reasons for which a text is not a [`Url`]. They show nothing of it but an IP address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The text has no form of an address.
    #[error("is not an address; expected one like https://example.org/path")]
    Unreadable,
    /// The text has more than 2,048 characters.
    #[error("is {0} characters long; at most {MAX_LENGTH} are allowed")]
    TooLong(usize),
    /// A character is not written as addresses write it.
    #[error("contains a space or a character that an address writes with a percent sign")]
    Character,
    /// The scheme is another than `https`.
    #[error("must begin with https://; a deployed server sends nothing without TLS")]
    NotHttps,
    /// The scheme is another than `http` and `https`.
    #[error("must begin with https:// or http://")]
    NotHttp,
    /// A name or a password stands before the host.
    #[error("has a user name or a password before the host; leave it out")]
    UserInfo,
    /// The port is not one.
    #[error("has a port that is not a number from 1 to 65535")]
    Port,
    /// The host is a number, which some resolvers read as an IPv4 address.
    #[error("has a number as its host; write an IPv4 address like 192.168.1.20")]
    Number,
    /// The host is an address that is not connected to.
    #[error("has the address {0}")]
    Forbidden(ForbiddenAddress),
}

impl Url {
    /// Reads an address.
    ///
    /// Every port is allowed: TLS with a valid certificate answers for the host on a deployed server, and on a laptop
    /// home servers have ports of all kinds.
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

    /// The address as the HTTP client takes it.
    #[must_use]
    pub const fn uri(&self) -> &Uri {
        &self.0
    }

    /// The same server with another path.
    pub(crate) fn with_path(&self, path: &str) -> Self {
        let mut parts = self.0.clone().into_parts();
        parts.path_and_query = path.parse().ok();
        Self(Uri::from_parts(parts).unwrap_or_else(|_| self.0.clone()))
    }

    /// The path without its last slash.
    pub(crate) fn base(&self) -> &str {
        self.0.path().trim_end_matches('/')
    }

    /// The text that is parsed again.
    pub(crate) fn text(&self) -> String {
        self.0.to_string()
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Url")
    }
}

/// Whether a host ends in a number: `getaddrinfo` reads `127.1`, `0x7f.1`, `0177.0.0.1` and `2130706433` as
/// 127.0.0.1, and the URLs of browsers do so too (<https://url.spec.whatwg.org/#ends-in-a-number-checker>).
fn is_number(host: &str) -> bool {
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let hex = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
        || hex.is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_number && host.parse::<Ipv4Addr>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str, reach: Reach) -> String {
        Url::parse(text, reach).expect_err(text).to_string()
    }

    #[test]
    fn an_address_is_kept_as_it_was_written() {
        for text in [
            "https://hooks.slack.com/services/T0/B0/abc",
            "https://example.org:8443/a?b=c&d=%20",
            "https://[2606:4700::6810:1]/x",
            "https://8.8.8.8/",
            "https://xn--bcher-kva.example/",
            "https://a_b.example.org/~x",
            "https://example.org./x",
        ] {
            for reach in [Reach::Public, Reach::Local] {
                let url = Url::parse(text, reach).expect(text);
                assert_eq!(url.text(), text);
                assert_eq!(format!("{url:?}"), "Url");
            }
        }
        // A fragment is never sent.
        let url = Url::parse("https://example.org/a#secret", Reach::Public).expect("an address");
        assert_eq!(url.text(), "https://example.org/a");
    }

    #[test]
    fn a_laptop_may_send_by_http_and_to_its_network() {
        for text in [
            "http://homeassistant.local:8123/api/webhook/abc",
            "http://192.168.1.20:8123/x",
            "http://localhost:8080/",
            "http://127.0.0.1/",
            "http://[::1]:80/",
            "http://100.101.102.103/",
            "HTTP://example.org/",
        ] {
            assert!(Url::parse(text, Reach::Local).is_ok(), "{text}");
            assert!(why(text, Reach::Public).starts_with("must begin with https://"), "{text}");
        }
        for text in ["http://169.254.169.254/latest", "http://[fe80::1]/", "http://0.0.0.0/"] {
            assert!(why(text, Reach::Local).starts_with("has the address "), "{text}");
        }
    }

    #[test]
    fn forbidden_literals_are_refused_when_they_are_written() {
        for text in [
            "https://127.0.0.1/",
            "https://10.1.2.3/",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[64:ff9b::7f00:1]/",
            "https://169.254.169.254/",
        ] {
            let why = why(text, Reach::Public);
            assert!(why.starts_with("has the address ") && why.contains("public addresses only"));
        }
    }

    /// The client's parser leaves such hosts as they are and the resolver reads them as numbers, so they are refused.
    #[test]
    fn odd_spellings_of_ipv4_addresses_are_refused() {
        for host in [
            "0x7f.1",
            "0X7F.1",
            "0x7f000001",
            "2130706433",
            "127.1",
            "127.0.1",
            "0177.0.0.1",
            "0",
            "127.0.0.1.",
            "1.2.3.4.5",
            "256.1.1.1",
            "0x",
        ] {
            for reach in [Reach::Public, Reach::Local] {
                let text = format!("https://{host}/");
                assert_eq!(Url::parse(&text, reach), Err(UrlError::Number), "{host}");
            }
        }
        assert!(Url::parse("https://1.2.3.example/", Reach::Public).is_ok());
    }

    #[test]
    fn every_other_text_is_refused_with_the_reason_and_without_the_text() {
        for (text, error) in [
            ("", UrlError::Unreadable),
            ("example.org", UrlError::Unreadable),
            ("/api/webhook/abc", UrlError::Unreadable),
            ("https://", UrlError::Unreadable),
            ("https:///x", UrlError::Unreadable),
            ("https://:443/x", UrlError::Unreadable),
            ("https://[fe80::1%25eth0]/", UrlError::Unreadable),
            ("https://[127.0.0.1/", UrlError::Unreadable),
            ("https://[v1.a]/", UrlError::Unreadable),
            ("https://a\\@b/", UrlError::Unreadable),
            ("https://127%2e0.0.1/", UrlError::Unreadable),
            ("https://a b/", UrlError::Character),
            (" https://example.org/", UrlError::Character),
            ("https://example.org/\r\nx: y", UrlError::Character),
            ("https://exämple.org/", UrlError::Character),
            ("https://１２７.0.0.1/", UrlError::Character),
            ("ftp://example.org/", UrlError::NotHttps),
            ("file:///etc/passwd", UrlError::Unreadable),
            ("https://user@example.org/", UrlError::UserInfo),
            ("https://user:secret@example.org/", UrlError::UserInfo),
            ("https://example.org:0/", UrlError::Port),
            ("https://example.org:65536/", UrlError::Port),
            ("https://example.org:/", UrlError::Port),
        ] {
            assert_eq!(Url::parse(text, Reach::Public), Err(error.clone()), "{text}");
            assert!(!error.to_string().contains("secret"));
        }
        let long = format!("https://example.org/{}", "x".repeat(MAX_LENGTH));
        assert_eq!(why(&long, Reach::Local), "is 2068 characters long; at most 2048 are allowed");
        assert_eq!(Url::parse("ftp://example.org/", Reach::Local), Err(UrlError::NotHttp));
    }
}
