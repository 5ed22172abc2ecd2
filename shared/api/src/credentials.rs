//! Takes the token's secret from a request's headers or query. Does not check it.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The parameters of a query that carry a user and a password, as InfluxDB's clients send them.
const PARAMETERS: [&str; 2] = ["u", "p"];

/// A token's secret. Its `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenSecret {
    text: String,
    is_in_address: bool,
}

impl TokenSecret {
    /// The secret as the client sent it.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// Whether the secret came in the address, which logs and histories keep, and not in a header.
    pub const fn is_in_address(&self) -> bool {
        self.is_in_address
    }
}

impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Takes the secret out of a request's headers and query, so that no later code can show it.
///
/// Takes `Authorization: Bearer SECRET`, `Token SECRET`, `Token user:SECRET` or `Basic base64(user:SECRET)`; otherwise
/// `?p=SECRET`. An empty secret counts as absent.
pub(super) fn take(
    headers: &mut BTreeMap<String, String>,
    query: &mut String,
) -> Option<TokenSecret> {
    let header = headers.remove("authorization").and_then(|header| secret_of_header(&header));
    let name = |part: &str| part.split('=').next().unwrap_or_default().to_owned();
    let parameter = query
        .split('&')
        .find(|part| name(part) == "p")
        .and_then(|part| form_urlencoded::parse(part.as_bytes()).next())
        .map(|(_, value)| value.into_owned());

    let carries = |part: &str| PARAMETERS.contains(&name(part).as_str());
    *query = query.split('&').filter(|part| !carries(part)).collect::<Vec<_>>().join("&");

    let secret = |text: Option<String>, is_in_address| {
        text.filter(|text| !text.is_empty()).map(|text| TokenSecret { text, is_in_address })
    };
    secret(header, false).or_else(|| secret(parameter, true))
}

/// The secret in the value of the header `Authorization`.
fn secret_of_header(header: &str) -> Option<String> {
    let (scheme, rest) = header.trim().split_once(' ')?;
    let rest = rest.trim();
    match scheme.to_ascii_lowercase().as_str() {
        "bearer" => Some(rest.to_owned()),
        "token" => Some(behind_user(rest)),
        "basic" => {
            let pair = String::from_utf8(STANDARD.decode(rest).ok()?).ok()?;
            pair.contains(':').then(|| behind_user(&pair))
        }
        _ => None,
    }
}

/// The text after the last colon. No secret of this system has a colon.
fn behind_user(text: &str) -> String {
    text.rsplit(':').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(header: &str, query: &str) -> (Option<String>, String) {
        let mut headers = BTreeMap::from([("authorization".to_owned(), header.to_owned())]);
        let mut query = query.to_owned();
        let secret = take(&mut headers, &mut query);
        let secret = secret.map(|secret| secret.expose().to_owned());
        assert!(headers.is_empty(), "the header is gone");
        (secret, query)
    }

    #[test]
    fn every_way_to_carry_a_secret_is_understood_and_none_is_left() {
        let basic = format!("Basic {}", STANDARD.encode("user:s3cret:x"));
        for (header, query, secret, rest) in [
            ("Bearer s3cret", "", Some("s3cret"), ""),
            ("bearer  s3cret ", "a=1", Some("s3cret"), "a=1"),
            ("Token s3cret", "", Some("s3cret"), ""),
            (&*basic, "", Some("x"), ""),
            ("Token user:s3cret", "", Some("s3cret"), ""),
            ("Token ", "p=query", Some("query"), ""),
            ("Basic dXNlcjo=", "p=query", Some("query"), ""),
            ("", "db=x&u=me&p=s%2B3&from=now", Some("s+3"), "db=x&from=now"),
            ("Bearer header", "p=query", Some("header"), ""),
            ("Basic ???", "", None, ""),
            ("Digest x", "", None, ""),
            ("Bearer", "p=", None, ""),
        ] {
            assert_eq!(
                taken(header, query),
                (secret.map(str::to_owned), rest.to_owned()),
                "{header} {query}"
            );
        }
        assert_eq!(
            format!("{:?}", TokenSecret { text: "s3cret".to_owned(), is_in_address: true }),
            "Secret"
        );
    }

    #[test]
    fn a_secret_is_in_the_address_only_where_the_header_has_none() {
        for (header, expected) in [("", true), ("Token ", true), ("Bearer header", false)] {
            let mut headers = BTreeMap::from([("authorization".to_owned(), header.to_owned())]);
            let secret = take(&mut headers, &mut "p=query".to_owned()).expect("a secret");
            assert_eq!(secret.is_in_address(), expected, "{header}");
        }
    }
}
