//! Refuses requests from web pages of other origins. Checks no token.

use std::net::IpAddr;

use domain::excerpt;
use http::Method;
use http::header::{HOST, ORIGIN};
use http::request::Parts;

/// Returns the reason to refuse a request, if it may come from a web page whose origin is neither ours nor `page`. Such
/// a page sends its own `Origin` or, after DNS rebinding, its own name as `Host`.
///
/// `Sec-Fetch-Site` is a second check: a browser sends that header also with requests without `Origin`, such as for an
/// image, and no page can change it. Programs that are not browsers send neither header. Our own page may be opened by
/// a link or in a frame: the page has no readings, its policy limits the frames, and its requests come from our origin.
pub(super) fn refusal(parts: &Parts, page: Option<&str>) -> Option<String> {
    let headers = &parts.headers;
    let header = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host = header(HOST).unwrap_or_default().to_ascii_lowercase();
    let host = host.as_str();

    let name = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
    let name = name.map_or(host, |(name, _)| name).trim_end_matches('.');
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_ours = name.is_empty() || name == "localhost" || address.is_ok();
    if !is_ours {
        return Some(format!(
            "Without --auth this server answers to localhost and IP addresses only; Host is {:?}.",
            excerpt(host)
        ));
    }

    let refused = |name: &str, value: &str| {
        let value = excerpt(value);
        Some(format!(
            "Without --auth no web page of another origin is answered; {name} is {value:?}."
        ))
    };

    if page.is_some_and(|page| header(ORIGIN) == Some(page)) {
        return None;
    }
    if let Some(origin) = header(ORIGIN).filter(|origin| *origin != format!("http://{host}")) {
        return refused("Origin", origin);
    }

    // `none` means that a person typed the address. A page on another port of this machine is `same-site`.
    let site = headers.get("sec-fetch-site").map(|value| value.to_str().unwrap_or_default());
    let is_followed = parts.method == Method::GET
        && parts.uri.path() == "/"
        && headers.get("sec-fetch-mode").is_some_and(|mode| mode == "navigate");
    site.filter(|site| !is_followed && !matches!(*site, "same-origin" | "none"))
        .and_then(|site| refused("Sec-Fetch-Site", site))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Request};

    use super::*;

    fn refusal(headers: &HeaderMap, page: Option<&str>) -> Option<String> {
        let (mut parts, ()) = Request::get("/devices").body(()).unwrap().into_parts();
        parts.headers.clone_from(headers);
        super::refusal(&parts, page)
    }

    #[test]
    fn only_pages_of_our_own_are_answered_without_tokens() {
        let foreign = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            refusal(&headers, None)
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
            assert_eq!(foreign(host, None), None, "{host}");
            let page = format!("http://{}", host.to_lowercase());
            assert_eq!(foreign(host, Some(&page)), None, "{host}");
            for origin in ["https://example.org", "null"] {
                let why = foreign(host, Some(origin)).unwrap();
                assert!(why.ends_with(&format!("Origin is {origin:?}.")), "{host}: {why}");
            }
        }

        let why = foreign("rebound.example.org:8080", None).unwrap();
        assert!(why.ends_with("Host is \"rebound.example.org:8080\"."), "{why}");
        assert!(!why.contains("web page"), "a program may have sent it: {why}");
        assert_eq!(refusal(&HeaderMap::new(), None), None, "curl --http1.0 has no host");
    }

    #[test]
    fn the_page_of_the_other_address_is_answered_and_no_third_one() {
        let headers = |origin: &str| {
            let headers = [(HOST, "127.0.0.1:8081"), (ORIGIN, origin)];
            let site = ("sec-fetch-site".parse().unwrap(), "same-site".parse().unwrap());
            let headers = headers.map(|(name, value)| (name, value.parse().unwrap()));
            headers.into_iter().chain([site]).collect::<HeaderMap>()
        };
        let page = Some("http://127.0.0.1:8080");
        assert_eq!(refusal(&headers("http://127.0.0.1:8080"), page), None);
        for origin in ["http://127.0.0.1:8082", "https://127.0.0.1:8080", "https://example.org"] {
            assert!(refusal(&headers(origin), page).is_some(), "{origin}");
        }
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
            let why = refusal(&HeaderMap::from_iter(headers), None);
            assert_eq!(why.is_some(), foreign, "{site:?}");
            assert!(why.is_none_or(|why| why.contains("Sec-Fetch-Site")), "{site:?}");
        }
    }

    #[test]
    fn a_link_to_the_page_is_followed_and_nothing_else_is() {
        for (method, path, mode, host, followed) in [
            ("GET", "/", "navigate", "localhost:8080", true),
            ("GET", "/?lang=de", "navigate", "127.0.0.1", true),
            ("GET", "/", "no-cors", "localhost:8080", false),
            ("POST", "/", "navigate", "localhost:8080", false),
            ("GET", "/devices", "navigate", "localhost:8080", false),
            ("GET", "/", "navigate", "rebound.example.org", false),
        ] {
            let request = Request::builder().method(method).uri(path).header(HOST, host);
            let request = request.header("sec-fetch-mode", mode);
            let request = request.header("sec-fetch-site", "cross-site").body(()).unwrap();
            let why = super::refusal(&request.into_parts().0, None);
            assert_eq!(why.is_none(), followed, "{method} {path} {mode} {host}: {why:?}");
        }
    }
}
