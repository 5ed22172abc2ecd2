//! The parts of the documents that are made from the code: compares them, or writes them on request. Makes none.
//!
//! `ROOMTIDE_WRITE_DOCS=1 cargo test --workspace documents` writes all of them.

use std::fs;
use std::path::{Path, PathBuf};

/// Asserts that the part `name` of a document, a path within the project, is `text`.
///
/// The part stands between two comments, `<!-- generated: NAME ... -->` and `<!-- end: NAME -->`.
pub(crate) fn assert_documented(document: &str, name: &str, text: &str) {
    let old = fs::read_to_string(path_of(document));
    let old = old.unwrap_or_else(|error| panic!("{document}: {error}"));
    let start = format!("<!-- generated: {name}");
    let (start, end) = (old.find(&start), old.find(&format!("<!-- end: {name} -->")));
    let (Some(start), Some(end)) = (start, end) else {
        panic!("{document} has no part {name}");
    };
    let body = start + old[start..].find("-->\n").expect("a comment ends") + "-->\n".len();
    let new = format!("{}\n{}\n\n{}", &old[..body], text.trim(), &old[end..]);
    assert_is(document, &new);
}

/// Asserts that a file of the project has the text that is made from the code.
pub(crate) fn assert_is(file: &str, new: &str) {
    let path = path_of(file);
    let old = fs::read_to_string(&path).unwrap_or_default();
    if new == old {
        return;
    }
    let same = new.lines().zip(old.lines()).take_while(|(new, old)| new == old).count();
    assert!(
        is_written(),
        "{file} differs from the code from line {} on. The same test with ROOMTIDE_WRITE_DOCS=1 writes it; look at the difference, \
         commit it",
        same + 1
    );
    fs::write(&path, new).unwrap_or_else(|error| panic!("{file}: {error}"));
}

fn path_of(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file)
}

/// Whether what is made from the code is written, not only compared.
#[expect(clippy::disallowed_methods, reason = "who runs the tests says whether they write")]
fn is_written() -> bool {
    std::env::var("ROOMTIDE_WRITE_DOCS").is_ok_and(|value| value == "1")
}
