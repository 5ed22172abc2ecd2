//! A request, decoded: method, path, query, headers, body. Routes nothing.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read as _;

use super::credentials::Secret;
use super::{Problem, ProblemKind};
use crate::domain::Instant;

/// The largest body that is taken, as sent: 1 MiB.
pub const MAX_BODY: usize = 1 << 20;
/// The largest body that a compressed one may become: 8 MiB.
pub const MAX_INFLATED: usize = 8 << 20;

/// A request, whichever way it came.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// `GET`, `POST`, ...
    pub method: String,
    /// The path as sent, still percent-encoded, beginning with a slash.
    pub path: String,
    /// The query as sent, without its question mark.
    pub raw_query: String,
    /// Headers by lower-case name.
    pub headers: BTreeMap<String, String>,
    /// The body as sent.
    pub body: Vec<u8>,
    /// The token that came with it.
    pub secret: Option<Secret>,
    /// The id that the answer echoes.
    pub id: String,
    /// When the gateway took the request; none where the event does not say.
    pub arrived: Option<Instant>,
    /// The gateway's own id of the request, which no other request has and no client chooses.
    pub arrival: Option<String>,
}

impl Request {
    /// A header's value.
    #[must_use]
    pub fn header(&self, lower_case_name: &str) -> Option<&str> {
        self.headers.get(lower_case_name).map(String::as_str)
    }

    /// The query's parameters, decoded, in order.
    #[must_use]
    pub fn query(&self) -> Vec<(String, String)> {
        form_urlencoded::parse(self.raw_query.as_bytes()).into_owned().collect()
    }

    /// Whether the client takes gzip.
    #[must_use]
    pub fn accepts_gzip(&self) -> bool {
        let accepted = self.header("accept-encoding").unwrap_or_default();
        accepted.split(',').any(|coding| {
            let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
            name.trim().eq_ignore_ascii_case("gzip") && weight.replace(' ', "") != "q=0"
        })
    }
}
/// A body, inflated where it is gzip by its first bytes, whatever the headers say.
///
/// Inflating stops at [`MAX_INFLATED`]: a bomb is refused before it takes memory.
pub fn inflate(body: &[u8]) -> Result<Cow<'_, [u8]>, Problem> {
    if body.len() > MAX_BODY {
        let detail = format!(
            "The body is {} bytes long; at most {MAX_BODY} are taken. Send fewer readings at a time, or gzip.",
            body.len()
        );
        return Err(Problem::new(ProblemKind::TooLarge, detail));
    }
    if !body.starts_with(&[0x1f, 0x8b]) {
        return Ok(body.into());
    }
    let mut inflated = Vec::new();
    let limit = u64::try_from(MAX_INFLATED).expect("8 MiB") + 1;
    flate2::read::MultiGzDecoder::new(body).take(limit).read_to_end(&mut inflated).map_err(
        |_| Problem::new(ProblemKind::BadRequest, "The gzip body is damaged or cut short."),
    )?;
    if inflated.len() > MAX_INFLATED {
        let detail = format!("The gzip body inflates to more than {MAX_INFLATED} bytes.");
        return Err(Problem::new(ProblemKind::TooLarge, detail));
    }
    Ok(inflated.into())
}
