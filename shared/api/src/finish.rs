//! Completes every answer: `Vary`, id and cost of the request, content coding. Writes no body.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use table::Invocation;

use super::response::{MAX_CARRIED, carried_bytes};
use super::{Coding, Request, Response};

/// Bodies of fewer bytes are not worth compressing.
const WORTH_COMPRESSING: usize = 1_024;

/// The size of a body as base64.
const fn base64_bytes(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

impl Response {
    /// Adds what every answer has: the id and the cost of the request, and `Vary`. Compresses the body where the client
    /// prefers that. Removes the body of an answer to `HEAD`.
    #[must_use]
    pub fn finish(self, request: &Request, invocation: &Invocation) -> Self {
        let response = self
            // One address has answers in several formats and compressions, and for several tokens.
            .with("vary", "accept, accept-encoding, authorization")
            .with("x-request-id", &request.id)
            .with("x-consumed-read-units", invocation.read_units())
            .with("x-consumed-write-units", invocation.write_units());

        let accepted = request.header("accept-encoding").unwrap_or_default();
        let response = response.encoded(Coding::preferred(accepted));
        if request.method == "HEAD" {
            let length = response.body.len();
            return Self { body: Vec::new(), ..response }.with("content-length", length);
        }
        response
    }

    /// Compresses a body of at least [`WORTH_COMPRESSING`] bytes if Lambda then carries less in spite of Base64. If the
    /// client takes only gzip, compresses any body that Lambda can then carry.
    fn encoded(self, coding: Coding) -> Self {
        let worthwhile = match coding {
            Coding::Identity => false,
            Coding::Gzip => self.body.len() >= WORTH_COMPRESSING,
            Coding::GzipOnly => !self.body.is_empty(),
        };
        let is_encoded = self.headers.iter().any(|(name, _)| *name == "content-encoding");
        if is_encoded || !worthwhile {
            return self;
        }

        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&self.body).expect("writing to memory does not fail");
        let body = gzip.finish().expect("writing to memory does not fail");
        let most = match coding {
            Coding::GzipOnly => MAX_CARRIED,
            _ => carried_bytes(&self.body),
        };
        if base64_bytes(body.len()) > most {
            return self;
        }

        Self { body, ..self }.with("content-encoding", "gzip")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::gateway;
    use table::Deadline;

    fn finished(method: &str, accept_encoding: &str, body: &[u8]) -> Response {
        let headers = [("accept-encoding".to_owned(), accept_encoding.to_owned())].into();
        let request = Request { method: method.to_owned(), headers, ..Request::default() };
        let invocation = Invocation::until(Deadline::after(Duration::from_secs(1)));
        Response::new(200, "text/plain", body).finish(&request, &invocation)
    }

    /// Text that no compression makes smaller: each character of 95 is as likely as any other.
    fn random_text(bytes: usize) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(1);
        std::iter::repeat_with(|| random.u8(b' '..=b'~')).take(bytes).collect()
    }

    #[test]
    fn what_is_counted_is_what_the_event_carries() {
        for text in ["plain", "\"quotes\" and \\", "a\nb\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}", "°C 部屋"]
        {
            let event = serde_json::to_string(&gateway::response(Response::new(200, "", text)));
            let bare = serde_json::to_string(&gateway::response(Response::new(200, "", "")));
            let grown = event.expect("JSON").len() - bare.expect("JSON").len();
            assert_eq!(carried_bytes(text.as_bytes()), grown, "{text:?}");
        }
    }

    #[test]
    fn gzip_never_makes_the_event_larger() {
        let header = |response: &Response| {
            response.headers.iter().any(|(name, _)| *name == "content-encoding")
        };
        assert!(header(&finished("GET", "gzip", &[b'x'; 5_000])));
        assert!(!header(&finished("GET", "gzip", &[b'x'; 500])), "not worthwhile");
        assert!(!header(&finished("GET", "gzip", &random_text(5_000))), "base64 would be larger");
        assert!(
            header(&finished("GET", "gzip, identity;q=0", &[b'x'; 500])),
            "nothing else is taken"
        );
        assert!(!header(&finished("GET", "gzip;q=0.0", &[b'x'; 5_000])));
    }

    #[test]
    fn what_is_compressed_already_is_left_alone() {
        let headers = [("accept-encoding".to_owned(), "gzip".to_owned())].into();
        let request = Request { headers, ..Request::default() };
        let invocation = Invocation::until(Deadline::after(Duration::from_secs(1)));
        let body = [b'x'; 5_000];
        let answer = Response::new(200, "text/css", body).with("content-encoding", "gzip");
        assert_eq!(answer.finish(&request, &invocation).body, body);
    }

    #[test]
    fn headers_alone_are_those_of_the_whole_answer() {
        let whole = finished("GET", "gzip", &[b'x'; 5_000]);
        let mut head = finished("HEAD", "gzip", &[b'x'; 5_000]);
        let length = head.headers.pop().expect("a length");
        assert_eq!(length, ("content-length", whole.body.len().to_string()));
        assert_eq!((head.status, head.headers), (whole.status, whole.headers));
        assert!(head.body.is_empty());
    }
}
