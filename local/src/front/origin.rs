//! Which requests come from web pages of other origins. Asks for no token.

use std::net::IpAddr;

use http::HeaderMap;
use http::header::{HOST, ORIGIN};

/// Whether a web page of another origin asks, under its own name or, after DNS rebinding, under ours.
///
/// `Sec-Fetch-Site` is a second look: a browser sends it with requests that have no `Origin`, such as
/// for an image, and no page can change it. Programs that are no browser send neither.
pub(super) fn is_foreign(headers: &HeaderMap) -> bool {
    let header = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host = header(HOST).unwrap_or_default().to_ascii_lowercase();
    let host = host.as_str();
    let name = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
    let name = name.map_or(host, |(name, _)| name).trim_end_matches('.');
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_ours = name.is_empty() || name == "localhost" || address.is_ok();
    let is_own_page = header(ORIGIN).is_none_or(|origin| origin == format!("http://{host}"));
    // `none` is a person who types an address. A page on another port of this machine is same-site.
    let site = headers.get("sec-fetch-site");
    let is_own_site = site.is_none_or(|site| site == "same-origin" || site == "none");
    !(is_ours && is_own_page && is_own_site)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_our_own_are_answered_without_tokens() {
        let foreign = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            is_foreign(&headers)
        };
        for host in [
            "localhost:8080",
            "LOCALHOST:8080",
            "localhost.",
            "127.0.0.1:8080",
            "[::1]:8080",
            "[::1]",
            "127.0.0.1",
        ] {
            assert!(!foreign(host, None), "{host}");
            let page = format!("http://{}", host.to_lowercase());
            assert!(!foreign(host, Some(&page)), "{host}");
            assert!(foreign(host, Some("https://example.org")), "{host}");
            assert!(foreign(host, Some("null")), "{host}");
        }
        assert!(foreign("rebound.example.org:8080", None));
        assert!(!is_foreign(&HeaderMap::new()), "curl --http1.0 has no host");
    }

    #[test]
    fn a_browser_that_says_that_another_site_asks_is_believed() {
        for (site, foreign) in [
            ("same-origin", false),
            ("none", false),
            ("same-site", true),
            ("cross-site", true),
            ("", true),
        ] {
            let headers = [(HOST, "localhost:8080"), ("sec-fetch-site".parse().unwrap(), site)];
            let headers = headers.map(|(name, value)| (name, value.parse().unwrap()));
            assert_eq!(is_foreign(&HeaderMap::from_iter(headers)), foreign, "{site:?}");
        }
    }
}
