//! Caching headers of answers that a client may keep: `ETag`, `Cache-Control` and 304. Caches nothing itself.

use sha2::{Digest as _, Sha256};

use super::{Request, Response};

/// Lets a client keep an answer, which it has to revalidate each time. A client that has the answer already gets a 304.
pub fn with_revalidation(request: &Request, response: Response) -> Response {
    tagged(request, response).with("cache-control", "private, no-cache")
}

/// Lets a client use an answer for a minute without asking again, because the answer seldom changes.
pub fn with_short_life(request: &Request, response: Response) -> Response {
    tagged(request, response).with("cache-control", "private, max-age=60")
}

fn tagged(request: &Request, response: Response) -> Response {
    let digest = Sha256::digest(&response.body);
    let tag = digest[..8].iter().fold(String::new(), |tag, byte| format!("{tag}{byte:02x}"));
    let known = request.header("if-none-match").unwrap_or_default();
    let response = if is_known(known, &tag) {
        let headers = response.headers.into_iter().filter(|(name, _)| *name == "link").collect();
        Response { status: 304, headers, body: Vec::new() }
    } else {
        response
    };
    response.with("etag", format!("W/\"{tag}\""))
}

/// Whether `If-None-Match` names this tag, weakly compared: `W/"x"` and `"x"` are the same.
///
/// Source: RFC 9110, 13.1.2
fn is_known(if_none_match: &str, tag: &str) -> bool {
    if_none_match.split(',').map(str::trim).any(|known| {
        let known = known.strip_prefix("W/").unwrap_or(known);
        known == "*"
            || known.strip_prefix('"').and_then(|known| known.strip_suffix('"')) == Some(tag)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(if_none_match: &str) -> Response {
        let headers = [("if-none-match".to_owned(), if_none_match.to_owned())].into();
        let request = Request { headers, ..Request::default() };
        let page = Response::json(200, &["a"]).with("link", "</next>; rel=\"next\"");
        with_revalidation(&request, page)
    }

    #[test]
    fn a_client_that_has_the_answer_gets_its_headers_alone() {
        let full = answer("");
        assert_eq!((full.status, full.body.is_empty()), (200, false));
        let header = |name| full.headers.iter().find(|(known, _)| *known == name);
        let (_, tag) = header("etag").expect("a tag");
        for known in [tag, tag.trim_start_matches("W/"), "*", &format!("\"x\", {tag}")] {
            let again = answer(known);
            assert_eq!((again.status, again.body.is_empty()), (304, true), "{known}");
            let names: Vec<_> = again.headers.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, ["link", "etag", "cache-control"]);
        }
        assert_eq!(answer("\"x\"").status, 200);
    }
}
