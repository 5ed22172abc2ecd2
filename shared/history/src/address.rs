//! The address of a server, and the difference between the answers of a Roomtide and an InfluxDB. Sends nothing.

use std::net::IpAddr;

use anyhow::ensure;
use serde_json::Value;

/// The path that every Roomtide and InfluxDB answers without a token, at each address and in each version.
pub const READY: &str = "/ready";

/// The predicate of a sentence about a server that redirects; `None` for any other answer. No redirect is followed: the
/// next request would be a GET even if the first was a change, and would go to an address that the user did not name.
pub fn redirection<B>(response: &http::Response<B>) -> Option<String> {
    let status = response.status();
    if !status.is_redirection() {
        return None;
    }

    let location = response.headers().get("location").and_then(|value| value.to_str().ok());
    let location = location.unwrap_or("no address");
    Some(format!(
        "answers {} and points to {location}; no redirect is followed: name the address of the server itself",
        status.as_u16()
    ))
}

/// Whether a text begins as the address of an HTTP server does.
pub fn is_http(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// Fails if an address has a query or a fragment, because no path can follow it. The error does not repeat them: they
/// may be a secret.
pub fn ensure_no_query(url: &str) -> anyhow::Result<()> {
    ensure!(
        !url.contains(['?', '#']),
        "an address ends before a ? or a #; in a password these are %3F and %23"
    );
    Ok(())
}

/// The user name and password of an address, and the address without them.
pub fn split_login(url: &str) -> (Option<&str>, String) {
    let parts = url.split_once("://").and_then(|(scheme, rest)| {
        rest.rsplit_once('@').map(|(login, host)| (login, format!("{scheme}://{host}")))
    });
    match parts {
        Some((login, address)) => (Some(login), address),
        None => (None, url.to_owned()),
    }
}

/// The proxy for an address, from the environment. Requests to this machine use no proxy, because for a proxy the same
/// address means the proxy's own machine.
pub fn proxy_to(url: &str) -> Option<ureq::Proxy> {
    let uri: http::Uri = url.parse().unwrap_or_default();
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_local = |address: IpAddr| address.is_loopback() || address.is_unspecified();
    if host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_local) {
        return None;
    }
    ureq::Proxy::try_from_env()
}

/// Whether an answer to `GET /ready` comes from Roomtide. InfluxDB answers with its uptime. Roomtide's uptime is always
/// 0, because its functions do not run between requests.
pub fn says_roomtide(status: u16, text: &str) -> bool {
    let told: Value = serde_json::from_str(text).unwrap_or_default();
    status == 200 && told["status"] == "ready" && told["up"] == "0s"
}
