//! A request: method, path, query, headers, body. Routes nothing.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read as _;

use super::credentials::TokenSecret;
use super::{Problem, ProblemKind, media};
use domain::{Timestamp, excerpt};
use flate2::bufread::GzDecoder;

/// The maximum size of a body as it is sent: 1 MiB.
pub const MAX_BODY: usize = 1 << 20;
/// The maximum size of a body after decompression: 8 MiB.
pub const MAX_INFLATED: usize = 8 << 20;
/// The largest number of members of a gzip body. Each needs a window of 32 KB, even if it is short.
const MAX_MEMBERS: usize = 1_000;

const DAMAGED: &str = "The gzip body was damaged by the gateway, which takes application/json and text/* for text: \
                       send it without gzip, or as application/x-ndjson.";

/// The largest number of readings in one request.
pub const MAX_READINGS: usize = 10_000;

/// A request of API Gateway, of a function URL or of the local gateway.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// `GET`, `POST`, ...
    pub method: String,
    /// The path, beginning with a slash. An HTTP API of API Gateway has decoded it (`rawPath`), and the local gateway
    /// leaves it percent-encoded. Ids have no percent sign, so decoding twice changes nothing.
    pub path: String,
    /// The query as sent, without its question mark.
    pub raw_query: String,
    /// Headers by lower-case name.
    pub headers: BTreeMap<String, String>,
    /// The body as sent.
    pub body: Vec<u8>,
    /// The token's secret, if the request has one.
    pub secret: Option<TokenSecret>,
    /// The id that the answer echoes.
    pub id: String,
    /// When the gateway received the request; `None` if the event does not say.
    pub arrived: Option<Timestamp>,
    /// The gateway's own id of the request: unique, and not chosen by a client.
    pub arrival: Option<String>,
}

impl Request {
    /// A header's value.
    pub fn header(&self, lower_case_name: &str) -> Option<&str> {
        self.headers.get(lower_case_name).map(String::as_str)
    }

    /// The query's parameters, decoded, in order.
    pub fn query(&self) -> Vec<(String, String)> {
        form_urlencoded::parse(self.raw_query.as_bytes()).into_owned().collect()
    }

    /// The body of a request in JSON or NDJSON, decompressed.
    ///
    /// Refuses a `Content-Type` or `Content-Encoding` that cannot belong to such a body.
    pub fn json_body(&self) -> Result<Cow<'_, [u8]>, Problem> {
        let content_type = self.header("content-type").unwrap_or_default();
        if !media::may_be_json(content_type) {
            let detail = format!(
                "A body of the type {:?} is not taken; send application/json or application/x-ndjson.",
                excerpt(content_type)
            );
            return Err(Problem::new(ProblemKind::UnsupportedType, detail));
        }

        let coding = self.header("content-encoding").unwrap_or_default();
        match coding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => {}
            "gzip" | "x-gzip" if is_gzip(&self.body) || is_damaged_gzip(&self.body) => {}
            "gzip" | "x-gzip" => {
                let detail = "The body is not gzip, though Content-Encoding says so.";
                return Err(Problem::new(ProblemKind::BadRequest, detail));
            }
            _ => {
                let detail = format!(
                    "A body in the coding {:?} is not taken; send it as it is, or as gzip.",
                    excerpt(coding)
                );
                return Err(Problem::new(ProblemKind::UnsupportedCoding, detail));
            }
        }

        inflate(&self.body)
    }
}

impl Request {
    /// The body of a request in line protocol, inflated. Its media type is not checked.
    ///
    /// A gateway that decompresses leaves `Content-Encoding` in place, so a plain body is taken as well. A gateway that
    /// takes bytes for text damages the body, which is refused.
    pub fn line_protocol_body(&self) -> Result<Cow<'_, [u8]>, Problem> {
        let coding =
            self.header("content-encoding").unwrap_or_default().trim().to_ascii_lowercase();
        if !matches!(coding.as_str(), "" | "identity" | "gzip" | "x-gzip") {
            let detail = format!(
                "content coding {:?} is not supported; use gzip or identity",
                excerpt(&coding)
            );
            return Err(Problem::new(ProblemKind::UnsupportedCoding, detail));
        }

        if is_damaged_gzip(&self.body) {
            let detail = "gzip body damaged by the gateway: set content_encoding = \"identity\"";
            return Err(Problem::new(ProblemKind::BadRequest, detail));
        }

        inflate(&self.body)
    }
}

/// Whether a body begins like gzip that was decoded as text: the second byte of gzip is not UTF-8.
fn is_damaged_gzip(body: &[u8]) -> bool {
    body.starts_with(b"\x1f\xef\xbf\xbd")
}

fn is_gzip(body: &[u8]) -> bool {
    body.starts_with(&[0x1f, 0x8b])
}

/// The body, decompressed if its first bytes are gzip's. The headers do not matter.
///
/// Refuses a body of more than [`MAX_BODY`] bytes, and a body that a gateway damaged by decoding it as text.
///
/// Inflating stops at [`MAX_INFLATED`], so that a small body cannot fill the memory.
pub fn inflate(body: &[u8]) -> Result<Cow<'_, [u8]>, Problem> {
    if body.len() > MAX_BODY {
        let detail = format!(
            "The body is {} bytes long; at most {MAX_BODY} are taken. Send fewer readings at a time, or gzip.",
            body.len()
        );
        return Err(Problem::new(ProblemKind::TooLarge, detail));
    }

    if is_damaged_gzip(body) {
        return Err(Problem::new(ProblemKind::BadRequest, DAMAGED));
    }
    if !is_gzip(body) {
        return Ok(body.into());
    }

    let mut inflated = Vec::new();
    let mut rest = body;
    for _ in 0..MAX_MEMBERS {
        let limit = u64::try_from(MAX_INFLATED - inflated.len()).expect("8 MiB at most") + 1;
        GzDecoder::new(&mut rest).take(limit).read_to_end(&mut inflated).map_err(|_| {
            Problem::new(ProblemKind::BadRequest, "The gzip body is damaged or cut short.")
        })?;
        if inflated.len() > MAX_INFLATED {
            let detail = format!("The gzip body inflates to more than {MAX_INFLATED} bytes.");
            return Err(Problem::new(ProblemKind::TooLarge, detail));
        }
        if rest.is_empty() {
            return Ok(inflated.into());
        }
    }

    let detail =
        format!("The gzip body has more than {MAX_MEMBERS} members; compress its readings in one.");
    Err(Problem::new(ProblemKind::TooLarge, detail))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(text).expect("memory");
        gzip.finish().expect("memory")
    }

    fn read(headers: &[(&str, &str)], body: &[u8]) -> Result<Vec<u8>, (u16, String)> {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let request =
            Request { headers: headers.collect(), body: body.into(), ..Request::default() };
        let body = request.json_body().map(Cow::into_owned);
        body.map_err(|problem| (problem.kind.status(), problem.detail))
    }

    #[test]
    fn members_are_joined_and_no_body_has_so_many_that_they_take_long() {
        let joined =
            |count: usize, text: &[u8]| inflate(&gzip(text).repeat(count)).map(Cow::into_owned);
        let inflated =
            |count: usize, text: &[u8]| joined(count, text).map_err(|it| it.kind.status());
        assert_eq!(inflated(3, b"ab").as_deref(), Ok(&b"ababab"[..]));
        // As of bgzip, which makes a member of each 64 KB.
        let block = vec![b' '; 65_536];
        assert_eq!(inflated(128, &block).map(|it| it.len()), Ok(MAX_INFLATED));
        assert_eq!(inflated(129, &block), Err(413));
        assert_eq!(inflated(MAX_MEMBERS, b"").as_deref(), Ok(&b""[..]));
        // However many there are, no more are begun.
        for count in [MAX_MEMBERS + 1, 50_000] {
            let refused = joined(count, b"").expect_err("too many");
            assert_eq!(refused.kind.status(), 413);
            assert!(refused.detail.contains("1000 members"), "{}", refused.detail);
        }
        let mut cut = gzip(b"ab").repeat(2);
        cut.pop();
        assert_eq!(inflate(&cut).map_err(|it| it.kind.status()).map(Cow::into_owned), Err(400));
    }

    #[test]
    fn a_coding_is_undone_or_named_as_not_understood() {
        let packed = gzip(b"{}");
        for coding in ["gzip", "x-gzip", " GZIP ", "identity", ""] {
            let answer = read(&[("content-encoding", coding)], &packed);
            assert_eq!(answer.as_deref(), Ok(&b"{}"[..]), "{coding}");
        }
        assert_eq!(read(&[], &packed).as_deref(), Ok(&b"{}"[..]), "gzip without the header");
        for coding in ["br", "deflate", "zstd", "gzip, gzip", "identity, gzip", "aws-chunked"] {
            let (status, detail) =
                read(&[("content-encoding", coding)], &packed).expect_err(coding);
            assert_eq!(status, 415, "{coding}");
            assert!(detail.contains(coding), "{detail}");
        }
        let (status, detail) = read(&[("content-encoding", "gzip")], b"{}").expect_err("plain");
        assert_eq!(status, 400);
        assert!(detail.contains("not gzip"), "{detail}");
        let (status, detail) = read(&[], &packed[..12]).expect_err("cut short");
        assert_eq!(status, 400);
        assert!(detail.contains("cut short"), "{detail}");
    }

    #[test]
    fn line_protocol_is_taken_whatever_its_type_and_damaged_gzip_is_named() {
        let read = |headers: &[(&str, &str)], body: &[u8]| {
            let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            let request =
                Request { headers: headers.collect(), body: body.into(), ..Request::default() };
            let body = request.line_protocol_body().map(Cow::into_owned);
            body.map_err(|problem| (problem.kind.status(), problem.detail))
        };
        let line = b"a v=1".to_vec();
        for coding in ["gzip", "x-gzip", "identity", "", "GZIP "] {
            let headers = [("content-encoding", coding), ("content-type", "multipart/form-data")];
            assert_eq!(read(&headers, &gzip(&line)), Ok(line.clone()), "{coding}");
            assert_eq!(read(&headers, &line), Ok(line.clone()), "{coding}: inflated on the way");
        }
        let damaged = String::from_utf8_lossy(&gzip(&line)).into_owned();
        let (status, detail) =
            read(&[("content-encoding", "gzip")], damaged.as_bytes()).expect_err("damaged");
        assert_eq!(status, 400);
        assert!(detail.contains("set content_encoding = \"identity\""), "{detail}");
        assert_eq!(read(&[("content-encoding", "br")], &line).expect_err("br").0, 415);
    }

    #[test]
    fn a_body_whose_gzip_a_gateway_damaged_is_refused_with_the_remedy_whatever_its_type() {
        let damaged = String::from_utf8_lossy(&gzip(b"{\"t\": 1}")).into_owned();
        for headers in [
            &[("content-encoding", "gzip"), ("content-type", "application/json")][..],
            &[("content-encoding", "x-gzip"), ("content-type", "application/x-ndjson")],
            &[("content-type", "text/plain")],
            &[],
        ] {
            let (status, detail) = read(headers, damaged.as_bytes()).expect_err("damaged");
            assert_eq!(status, 400);
            assert!(detail.contains("damaged by the gateway"), "{detail}");
            assert!(
                detail.contains("send it without gzip, or as application/x-ndjson"),
                "{detail}"
            );
        }
    }

    #[test]
    fn a_type_that_cannot_be_json_is_refused_by_name() {
        assert!(read(&[("content-type", "application/x-www-form-urlencoded")], b"{}").is_ok());
        let (status, detail) = read(&[("content-type", "multipart/form-data; boundary=x")], b"{}")
            .expect_err("a form");
        assert_eq!(status, 415);
        assert!(detail.contains("multipart/form-data"), "{detail}");
    }

    #[test]
    fn a_body_is_bounded_as_sent_and_as_inflated() {
        assert!(read(&[], &vec![b' '; MAX_BODY]).is_ok());
        assert_eq!(read(&[], &vec![b' '; MAX_BODY + 1]).expect_err("one too many").0, 413);
        assert!(read(&[], &gzip(&vec![b' '; MAX_INFLATED])).is_ok());
        assert_eq!(read(&[], &gzip(&vec![b' '; MAX_INFLATED + 1])).expect_err("a bomb").0, 413);
    }
}
