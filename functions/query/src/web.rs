//! The web page and its files, compressed when the program was built. They hold no data and need no token.

use api::response::Response;
use api::{Coding, Problem, ProblemKind, Request, caching, inflate};
use domain::excerpt;

include!(concat!(env!("OUT_DIR"), "/web.rs"));

/// A file of the page.
struct File {
    name: &'static str,
    content_type: &'static str,
    gzip: &'static [u8],
}

/// The page asks nobody but this server, and no other page shows it.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// `GET /`
pub(crate) fn page(request: &Request) -> Result<Response, Problem> {
    let response = answer(request, "index.html")?;
    Ok(caching::with_cache_headers(request, response).with("content-security-policy", POLICY))
}

/// `GET /assets/{id}`. A name is of one content for ever.
pub(crate) fn asset(request: &Request, name: &str) -> Result<Response, Problem> {
    let response = answer(request, name)?;
    Ok(response.with("cache-control", "public, max-age=31536000, immutable"))
}

fn answer(request: &Request, name: &str) -> Result<Response, Problem> {
    let file = FILES.iter().find(|file| file.name == name).ok_or_else(|| {
        let detail = format!("The page has no file {:?}; load it again.", excerpt(name));
        Problem::new(ProblemKind::NotFound, detail)
    })?;
    let accepted = request.header("accept-encoding").unwrap_or_default();
    let response = if Coding::preferred(accepted) == Coding::Identity {
        Response::new(200, file.content_type, inflate(file.gzip)?)
    } else {
        Response::new(200, file.content_type, file.gzip).with("content-encoding", "gzip")
    };
    Ok(response.with("x-content-type-options", "nosniff"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most that the page and its files may weigh, compressed.
    const MAX_BYTES: usize = 60 << 10;

    fn request(headers: &[(&str, &str)]) -> Request {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Request { headers: headers.collect(), ..Request::default() }
    }

    fn text(file: &File) -> String {
        String::from_utf8(inflate(file.gzip).unwrap().into_owned()).unwrap()
    }

    #[test]
    fn the_page_is_small() {
        let bytes: usize = FILES.iter().map(|file| file.gzip.len()).sum();
        assert!(bytes <= MAX_BYTES, "{bytes}");
    }

    #[test]
    fn whatever_a_file_names_is_there_and_nothing_else_is() {
        let mut named: Vec<String> = vec!["index.html".to_owned()];
        for file in FILES.iter().filter(|file| !file.content_type.starts_with("text/css")) {
            let text = text(file);
            for before in ["\"assets/", "from \"./"] {
                let rest = text.split(before).skip(1);
                named.extend(rest.filter_map(|it| it.split('"').next()).map(str::to_owned));
            }
        }
        named.sort();
        named.dedup();
        let mut served: Vec<_> = FILES.iter().map(|file| file.name).collect();
        served.sort_unstable();
        assert_eq!(named, served);
    }

    #[test]
    fn no_script_and_no_style_is_in_the_page_itself() {
        let page = text(FILES.iter().find(|file| file.name == "index.html").unwrap());
        assert!(!page.contains("<style") && !page.contains(" style=") && !page.contains(" on"));
        assert!(page.split("<script").skip(1).all(|it| it.starts_with(" src=\"assets/")), "{page}");
        assert!(!page.contains("://"), "no address of another host");
    }

    #[test]
    fn a_browser_that_has_the_page_gets_its_headers_alone() {
        let first = page(&request(&[("accept-encoding", "gzip")])).unwrap();
        let header = |name| {
            let found = first.headers.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        assert_eq!(header("content-encoding"), "gzip");
        assert_eq!(header("cache-control"), "private, no-cache");
        assert_eq!(header("content-security-policy"), POLICY);
        let tag = header("etag");
        let again = [("accept-encoding", "gzip"), ("if-none-match", tag.as_str())];
        assert_eq!(page(&request(&again)).unwrap().status, 304);
    }

    #[test]
    fn a_client_without_gzip_gets_plain_text_and_a_file_of_before_is_not_found() {
        let plain = page(&request(&[])).unwrap();
        assert!(plain.body.starts_with(b"<!doctype html>"));
        assert!(!plain.headers.iter().any(|(name, _)| *name == "content-encoding"));
        let problem = asset(&request(&[]), "0.main.js").expect_err("another build's");
        assert_eq!(problem.kind.status(), 404);
        assert!(problem.detail.contains("0.main.js"), "{}", problem.detail);
    }
}
