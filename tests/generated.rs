//! The parts of the documents that are made from the code: compares them, or writes them on request. Makes none.
//!
//! `ROOMTIDE_WRITE_DOCS=1 cargo test --workspace documents` writes all of them.

use std::fs;
use std::path::Path;

/// Asserts that the part `name` of a document, a path within the project, is `text`.
///
/// The part stands between two comments, `<!-- generated: NAME ... -->` and `<!-- end: NAME -->`.
pub(crate) fn assert_documented(document: &str, name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(document);
    let old = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{document}: {error}"));
    let start = format!("<!-- generated: {name}");
    let (start, end) = (old.find(&start), old.find(&format!("<!-- end: {name} -->")));
    let (Some(start), Some(end)) = (start, end) else {
        panic!("{document} has no part {name}");
    };
    let body = start + old[start..].find("-->\n").expect("a comment ends") + "-->\n".len();
    let new = format!("{}\n{}\n\n{}", &old[..body], text.trim(), &old[end..]);
    if new == old {
        return;
    }
    assert!(
        is_written(),
        "{document} differs from the code in its part {name}. \
         `ROOMTIDE_WRITE_DOCS=1 cargo test --workspace documents` writes it; look at the difference, commit it"
    );
    fs::write(&path, new).unwrap_or_else(|error| panic!("{document}: {error}"));
}

/// Whether what is made from the code is written, not only compared.
#[expect(clippy::disallowed_methods, reason = "who runs the tests says whether they write")]
pub(crate) fn is_written() -> bool {
    std::env::var("ROOMTIDE_WRITE_DOCS").is_ok_and(|value| value == "1")
}
