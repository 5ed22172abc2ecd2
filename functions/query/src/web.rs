//! The web page and its files, compressed at build time. They contain no data, so they need no token.

use api::response::Response;
use api::{Coding, FrameAncestors, Problem, ProblemKind, Request, caching, inflate};
use domain::excerpt;

use crate::Settings;

include!(concat!(env!("OUT_DIR"), "/web.rs"));

/// A file of the page.
struct PageFile {
    name: &'static str,
    content_type: &'static str,
    gzip: &'static [u8],
}

/// The largest file that is sent uncompressed, if a client accepts no compression. Larger files are sent compressed
/// only: uncompressed they would cost five times as much, and every browser accepts compression.
const MAX_PLAIN: usize = 5 << 10;

/// The web page, with the origin of `ingest` and the server's command filled in, and the page's policy.
#[derive(Debug)]
pub(crate) struct WebPage {
    html: String,
    policy: String,
}

impl WebPage {
    /// Makes the page. If no other origin stores readings, the page's own origin does.
    pub(crate) fn new(settings: &Settings) -> Self {
        let ingest = settings.ingest_url.as_deref().unwrap_or_default();
        let file = FILES.iter().find(|file| file.name == "index.html");
        let html = inflate(file.expect("the page is there").gzip).expect("the build compressed it");
        let html = String::from_utf8(html.into_owned()).expect("the page is text");

        let (command, data) = (settings.command.as_deref(), settings.data_option.as_deref());
        let mut named = html;
        for (name, old, new) in [
            ("ingest", "", ingest),
            ("command", "roomtide", command.unwrap_or("roomtide")),
            ("data", "", data.unwrap_or_default()),
        ] {
            named = named.replace(&meta(name, old), &meta(name, &escaped(new)));
        }

        Self { html: named, policy: policy(ingest, &settings.frame_ancestors) }
    }

    /// `GET /`
    pub(crate) fn answer(&self, request: &Request) -> Response {
        let response = Response::new(200, "text/html; charset=utf-8", self.html.as_str());
        let response = response.with("x-content-type-options", "nosniff");
        let response = caching::with_revalidation(request, response);
        response.with("content-security-policy", &self.policy)
    }
}

/// The attributes of the page's element that names something of this server.
fn meta(name: &str, content: &str) -> String {
    format!("name=\"{name}\" content=\"{content}\"")
}

/// A text for an attribute in quotes.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}

/// Content-Security-Policy: connect to this server and to ingest; be framed only by origins that the owner named.
fn policy(ingest: &str, frames: &FrameAncestors) -> String {
    let connect =
        if ingest.is_empty() { String::new() } else { format!(" connect-src 'self' {ingest};") };
    format!(
        "default-src 'self';{connect} base-uri 'none'; form-action 'none'; frame-ancestors {frames}"
    )
}

/// `GET /assets/{id}`. The content of a file name never changes.
pub(crate) fn asset(request: &Request, name: &str) -> Result<Response, Problem> {
    let file = FILES.iter().find(|file| file.name == name).ok_or_else(|| {
        let detail = format!("The page has no file {:?}; load it again.", excerpt(name));
        Problem::new(ProblemKind::NotFound, detail)
    })?;

    let accepted = request.header("accept-encoding").unwrap_or_default();
    let response = if Coding::preferred(accepted) == Coding::Identity {
        let plain = inflate(file.gzip)?;
        if plain.len() > MAX_PLAIN {
            let detail = "The file is sent compressed only; ask with Accept-Encoding: gzip, as by curl --compressed.";
            return Err(Problem::new(ProblemKind::NotAcceptable, detail));
        }
        Response::new(200, file.content_type, plain)
    } else {
        Response::new(200, file.content_type, file.gzip).with("content-encoding", "gzip")
    };

    let response = response.with("x-content-type-options", "nosniff");
    // Lets the service worker control the page, which is above the folder of the files.
    let is_worker = file.name.ends_with(".worker.js");
    let response = if is_worker { response.with("service-worker-allowed", "/") } else { response };
    Ok(response.with("cache-control", "public, max-age=31536000, immutable"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The most that the page may weigh with one language and the files that come with it, compressed.
    const MAX_FIRST: usize = 93 << 10;
    /// The most of the files that come when somebody chooses what they show.
    const MAX_LATER: usize = 38 << 10;

    fn request(headers: &[(&str, &str)]) -> Request {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Request { headers: headers.collect(), ..Request::default() }
    }

    /// The text of a file; a picture has none.
    fn text(file: &PageFile) -> Option<String> {
        String::from_utf8(inflate(file.gzip).unwrap().into_owned()).ok()
    }

    #[test]
    fn the_page_is_small_in_each_language() {
        let languages = ["en", "de", "fr", "ja"].map(|it| format!(".{it}.js"));
        for language in &languages {
            let is_other = |name: &str| {
                languages.iter().any(|it| it != language && name.ends_with(it.as_str()))
            };
            let page = text(FILES.iter().find(|file| file.name == "index.html").unwrap()).unwrap();
            let is_later =
                |name: &str| page.contains(&format!("\"later\" content=\"assets/{name}\""));
            let files = FILES.iter().filter(|file| !is_other(file.name));
            let (later, first): (Vec<_>, Vec<_>) = files.partition(|file| is_later(file.name));

            let bytes =
                |files: Vec<&PageFile>| files.iter().map(|file| file.gzip.len()).sum::<usize>();
            let (first, later) = (bytes(first), bytes(later));
            assert!(first <= MAX_FIRST, "{language}: {first}");
            assert!(later > 0 && later <= MAX_LATER, "{language}: {later}");
        }
    }

    /// What the page loads with itself is not named as coming later, nor the other way round.
    #[test]
    fn a_file_comes_with_the_page_or_later() {
        let page = text(FILES.iter().find(|file| file.name == "index.html").unwrap()).unwrap();
        let named = |before: &str| -> BTreeSet<String> {
            let rest = page.split(before).skip(1);
            rest.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
        };
        let (with, later) =
            (named("\"modulepreload\" href=\"assets/"), named("\"later\" content=\"assets/"));
        assert!(!later.is_empty() && with.is_disjoint(&later), "{with:?} {later:?}");

        let scripts =
            FILES.iter().filter(|file| with.contains(file.name) || file.name.ends_with(".main.js"));
        for file in scripts {
            let script = text(file).unwrap();
            let imported =
                script.split("from \"./").skip(1).filter_map(|rest| rest.split('"').next());
            for name in imported {
                assert!(!later.contains(name), "{} imports {name} at once", file.name);
            }
        }
    }

    #[test]
    fn whatever_a_file_names_is_there_and_nothing_else_is() {
        let mut named: Vec<String> = vec!["index.html".to_owned()];
        for file in FILES.iter().filter(|file| !file.content_type.starts_with("text/css")) {
            let Some(text) = text(file) else { continue };
            for before in ["\"assets/", "from \"./", "import(\"./", "\"src\": \""] {
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
        let page = text(FILES.iter().find(|file| file.name == "index.html").unwrap()).unwrap();
        assert!(!page.contains("<style") && !page.contains(" style=") && !page.contains(" on"));
        assert!(page.split("<script").skip(1).all(|it| it.starts_with(" src=\"assets/")), "{page}");
        assert!(!page.contains("://"), "no address of another host");
        for (name, content) in [("ingest", ""), ("command", "roomtide"), ("data", "")] {
            assert!(page.contains(&meta(name, content)), "a place for {name}");
        }
    }

    fn page(ingest_url: Option<&str>) -> WebPage {
        let ingest_url = ingest_url.map(str::to_owned);
        WebPage::new(&Settings { ingest_url, ..Settings::default() })
    }

    #[test]
    fn the_page_is_in_a_frame_only_where_its_owner_allows_it() {
        let frames = "https://home.example.org:8123 http://homeassistant.local:8123";
        let settings = Settings { frame_ancestors: frames.parse().unwrap(), ..Settings::default() };
        let answer = WebPage::new(&settings).answer(&request(&[]));
        let policy = header(&answer, "content-security-policy");
        assert!(policy.ends_with(&format!("; frame-ancestors {frames}")), "{policy}");
        let answer = page(None).answer(&request(&[]));
        assert!(header(&answer, "content-security-policy").ends_with("frame-ancestors 'none'"));
    }

    fn header(response: &Response, name: &str) -> String {
        let found = response.headers.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    }

    #[test]
    fn the_page_names_the_command_as_it_was_called_and_its_data() {
        let html = |command: Option<&str>| {
            let (command, data_option) =
                (command.map(str::to_owned), Some("--data-dir 'x'".into()));
            WebPage::new(&Settings { command, data_option, ..Settings::default() }).html
        };
        assert_eq!(html(None), html(Some("roomtide")));
        let page = html(Some("'/a b/\"<&'"));
        assert!(page.contains(r#"name="command" content="'/a b/&quot;&lt;&amp;'">"#), "{page}");
        assert!(page.contains(r#"name="data" content="--data-dir 'x'">"#), "{page}");
    }

    #[test]
    fn a_browser_that_has_the_page_gets_its_headers_alone() {
        let page = page(None);
        let first = page.answer(&request(&[]));
        assert!(first.body.starts_with(b"<!doctype html>"));
        assert_eq!(header(&first, "cache-control"), "private, no-cache");
        let tag = header(&first, "etag");
        assert_eq!(page.answer(&request(&[("if-none-match", tag.as_str())])).status, 304);
    }

    #[test]
    fn the_page_may_ask_its_own_server_and_the_one_that_stores_readings() {
        let own = page(None).answer(&request(&[]));
        let policy = header(&own, "content-security-policy");
        assert_eq!(
            policy,
            "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        let ingest = "https://id.lambda-url.eu-west-1.on.aws";
        let two = page(Some(ingest)).answer(&request(&[]));
        let policy = header(&two, "content-security-policy");
        assert_eq!(policy.matches("http").count(), 1, "one further host");
        assert!(policy.contains(&format!("; connect-src 'self' {ingest}; ")), "{policy}");
        let html = String::from_utf8(two.body.clone()).unwrap();
        assert!(html.contains(&format!("<meta name=\"ingest\" content=\"{ingest}\">")), "{html}");
        assert_ne!(header(&own, "etag"), header(&two, "etag"));
    }

    #[test]
    fn a_large_file_is_sent_compressed_or_not_at_all() {
        for file in FILES.iter().filter(|file| file.name != "index.html") {
            let length = inflate(file.gzip).unwrap().len();
            let gzip = asset(&request(&[("accept-encoding", "gzip, deflate, br")]), file.name);
            let gzip = gzip.unwrap();
            assert_eq!(header(&gzip, "content-encoding"), "gzip", "{}", file.name);
            assert_eq!(gzip.body, file.gzip);
            match asset(&request(&[]), file.name) {
                Ok(plain) => {
                    assert!(length <= MAX_PLAIN, "{} has {length} bytes", file.name);
                    assert_eq!(plain.body.len(), length);
                }
                Err(problem) => {
                    assert!(length > MAX_PLAIN, "{} has {length} bytes", file.name);
                    assert_eq!(problem.kind.status(), 406);
                    assert!(problem.detail.contains("Accept-Encoding: gzip"), "{}", problem.detail);
                }
            }
        }
        // What everybody gets plain is small.
        assert!(page(None).html.len() <= MAX_PLAIN);
    }

    #[test]
    fn a_file_of_before_is_not_found() {
        let problem = asset(&request(&[]), "0.main.js").expect_err("another build's");
        assert_eq!(problem.kind.status(), 404);
        assert!(problem.detail.contains("0.main.js"), "{}", problem.detail);
    }
}
