//! Versions of the Model Context Protocol, and how a request shows its version. Answers no method.
//!
//! Since 2026-07-28 each request names its version, and HTTP headers repeat parts of the request. Before, a client
//! agreed on a version by `initialize`. The agreement is not stored, because no answer depends on it.
//!
//! Source: <https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning>

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::excerpt;
use serde_json::{Value, json};

use super::message::{Code, Failure, Request};

/// The version in which every request names its version.
const MODERN: &str = "2026-07-28";
/// The versions that `initialize` agrees on, newest first. Earlier versions have batches, or no HTTP.
const LEGACY: [&str; 2] = ["2025-11-25", "2025-06-18"];

/// The members of `_meta` with the version, and with the capabilities of the client.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
/// The member of `_meta` in which an answer names the server.
pub(super) const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// The way in which a client names its version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// By `initialize`, before other requests.
    Legacy,
    /// In each request.
    Modern,
}

/// All supported versions, newest first.
pub(super) fn versions() -> Vec<&'static str> {
    [MODERN].into_iter().chain(LEGACY).collect()
}

/// The version that `initialize` agrees on: the client's if it is supported, else the newest in the list.
pub(super) fn agreed(requested: &str) -> &'static str {
    LEGACY.into_iter().find(|version| *version == requested).unwrap_or(LEGACY[0])
}

impl Era {
    /// Finds out how a request names its version. Refuses versions that are not supported.
    pub(super) fn of(http: &api::Request, request: &Request) -> Result<Self, Failure> {
        let sent = http.header("mcp-protocol-version");
        let meta = request.params.get("_meta");
        let member = |key: &str| meta.and_then(|meta| meta.get(key));

        let Some(version) = member(VERSION_KEY) else {
            return match sent {
                None => Ok(Self::Legacy),
                Some(MODERN) => Err(lacks(VERSION_KEY)),
                // No version is agreed on yet, so the header does not matter.
                Some(_) if request.method == "initialize" => Ok(Self::Legacy),
                Some(version) if LEGACY.contains(&version) => Ok(Self::Legacy),
                Some(version) => Err(unsupported(version)),
            };
        };

        let Some(version) = version.as_str() else { return Err(lacks(VERSION_KEY)) };
        if !member(CAPABILITIES_KEY).is_some_and(Value::is_object) {
            return Err(lacks(CAPABILITIES_KEY));
        }

        ensure_same(http, "mcp-protocol-version", version)?;
        ensure_same(http, "mcp-method", &request.method)?;
        if request.method == "tools/call" {
            let name = request.params.get("name").and_then(Value::as_str).unwrap_or_default();
            ensure_same(http, "mcp-name", name)?;
        }

        if version == MODERN { Ok(Self::Modern) } else { Err(unsupported(version)) }
    }
}

fn lacks(key: &str) -> Failure {
    Failure::new(Code::InvalidParams, format!("params._meta lacks {key}, or it is of another type"))
}

fn unsupported(version: &str) -> Failure {
    let data = json!({"supported": versions(), "requested": excerpt(version)});
    let failure = Failure::new(Code::UnsupportedVersion, "Unsupported protocol version");
    Failure { data: Some(data), ..failure }
}

/// Refuses a request whose header contradicts its body, because a proxy may act by the header.
fn ensure_same(http: &api::Request, header: &str, expected: &str) -> Result<(), Failure> {
    let sent = http.header(header);
    if sent.and_then(decoded).as_deref() == Some(expected) {
        return Ok(());
    }

    let sent = sent
        .map_or_else(|| "is missing".to_owned(), |version| format!("is {:?}", excerpt(version)));
    let expected = excerpt(expected);
    let message = format!("Header mismatch: {header} {sent}; the body says {expected:?}");
    Err(Failure::new(Code::HeaderMismatch, message))
}

/// The text of a header, decoded if a prefix marks it as base64. Returns `None` if the base64 is damaged.
fn decoded(header: &str) -> Option<String> {
    let coded = header.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    match coded {
        None => Some(header.to_owned()),
        Some(coded) => String::from_utf8(STANDARD.decode(coded).ok()?).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn era(method: &str, params: &Value, headers: &[(&str, &str)]) -> Result<Era, Code> {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let http = api::Request { headers: headers.collect(), ..api::Request::default() };
        let params = params.as_object().expect("an object").clone();
        let request = Request { id: json!(1), method: method.to_owned(), params };
        Era::of(&http, &request).map_err(|failure| failure.code)
    }

    #[test]
    fn a_request_without_a_version_of_its_own_is_of_an_older_one() {
        let of = |method: &str, headers: &[(&str, &str)]| era(method, &json!({}), headers);
        let version = "mcp-protocol-version";
        assert_eq!(of("tools/list", &[]), Ok(Era::Legacy));
        for known in LEGACY {
            assert_eq!(of("tools/list", &[(version, known)]), Ok(Era::Legacy));
        }
        assert_eq!(of("initialize", &[(version, "2024-11-05")]), Ok(Era::Legacy));
        for unknown in ["2025-03-26", "2030-01-01", ""] {
            assert_eq!(of("tools/list", &[(version, unknown)]), Err(Code::UnsupportedVersion));
        }
        assert_eq!(of("tools/list", &[(version, MODERN)]), Err(Code::InvalidParams));
        assert_eq!(agreed("2025-06-18"), "2025-06-18");
        assert_eq!((agreed("2024-11-05"), agreed(MODERN)), (LEGACY[0], LEGACY[0]));
    }

    #[test]
    fn the_headers_of_a_newer_request_say_what_its_body_says() {
        let meta = |version: &str| json!({VERSION_KEY: version, CAPABILITIES_KEY: {}});
        let call = |version: &str| json!({"_meta": meta(version), "name": "Küche"});
        let version = ("mcp-protocol-version", MODERN);
        let (method, name) = (("mcp-method", "tools/call"), ("mcp-name", "=?base64?S8O8Y2hl?="));
        let all = [version, method, name];
        assert_eq!(era("tools/call", &call(MODERN), &all), Ok(Era::Modern));
        let listed = [version, ("mcp-method", "tools/list")];
        assert_eq!(era("tools/list", &json!({"_meta": meta(MODERN)}), &listed), Ok(Era::Modern));
        for wrong in [
            vec![],
            vec![method, name],
            vec![("mcp-protocol-version", LEGACY[0]), method, name],
            vec![version, name],
            vec![version, ("mcp-method", "tools/list"), name],
            vec![version, method],
            vec![version, method, ("mcp-name", "Kitchen")],
            vec![version, method, ("mcp-name", "=?base64?%?=")],
        ] {
            let refused = era("tools/call", &call(MODERN), &wrong);
            assert_eq!(refused, Err(Code::HeaderMismatch), "{wrong:?}");
        }
        let later = [("mcp-protocol-version", "2027-01-01"), method, name];
        assert_eq!(era("tools/call", &call("2027-01-01"), &later), Err(Code::UnsupportedVersion));
        for lacking in [
            json!({"_meta": {VERSION_KEY: MODERN}, "name": "Küche"}),
            json!({"_meta": {VERSION_KEY: 1, CAPABILITIES_KEY: {}}, "name": "Küche"}),
        ] {
            assert_eq!(era("tools/call", &lacking, &all), Err(Code::InvalidParams), "{lacking}");
        }
    }
}
