//! Compresses the files of the web page and adds a version to their names: a hash over all of them. Strips comments,
//! indentation and most line ends from the page's own scripts; changes nothing else.

use std::fs;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use zopfli::{Format, Options};

/// Folders with the page's files, relative to this package. No file name occurs twice: one folder serves all files.
const FOLDERS: [&str; 6] = [
    "../../web",
    "../../web/data",
    "../../web/parts",
    "../../web/views",
    "../../web/words",
    VENDOR,
];
/// The folder of third-party files.
const VENDOR: &str = "../../web/vendor";

/// Content types by file extension. Files with any other extension are for developers and are left out.
const TYPES: [(&str, &str); 6] = [
    ("html", "text/html; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("webmanifest", "application/manifest+json"),
];

/// A file of the page, whose name has no version yet: name, content type and bytes.
type PageFile = (String, &'static str, Vec<u8>);

/// The files of the page, each with its name and its type.
fn files_of_page() -> Vec<PageFile> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        println!("cargo::rerun-if-changed={folder}");
        let entries = fs::read_dir(folder).expect("the folder web is beside the functions");
        for path in entries.map(|entry| entry.expect("it can be read").path()) {
            let extension = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
            let known = TYPES.iter().find(|(known, _)| *known == extension);
            let Some((_, content_type)) = known else { continue };

            let mut bytes = fs::read(&path).expect("a file of the page can be read");
            // Third-party scripts keep their comments, which contain their licences.
            if extension == "js" && folder != VENDOR {
                let text = String::from_utf8(bytes).expect("a script is text");
                bytes = without_comments(&text).into_bytes();
            }
            files.push((name_of(&path), *content_type, bytes));
        }
    }
    files
}

fn main() {
    let mut files = files_of_page();
    files.sort();
    let is_twice = files.windows(2).any(|two| two[0].0 == two[1].0);
    assert!(!is_twice, "two files of the page have one name, and they are served from one folder");
    let digest = files.iter().fold(Sha256::new(), |digest, (name, _, bytes)| {
        digest.chain_update(name).chain_update([0]).chain_update(bytes).chain_update([0])
    });
    let digest = digest.finalize();
    // One version for all files, because the modules name each other.
    let version = digest[..6].iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    // The result is 4 % smaller than that of the usual compressors. More iterations take seconds and gain 0.1 %.
    let options = Options {
        iteration_count: const { NonZeroU64::new(5).expect("it is five") },
        ..Options::default()
    };
    let mut table = "static FILES: &[PageFile] = &[\n".to_owned();

    for (name, content_type, bytes) in files {
        let text = || String::from_utf8(bytes.clone()).expect("it is text");
        let (name, bytes) = match content_type.split(';').next() {
            Some("text/html") => {
                let text = text().replace("\"assets/", &format!("\"assets/{version}."));
                (name, text.into_bytes())
            }
            Some("text/javascript") => {
                (format!("{version}.{name}"), with_version(&text(), &version).into_bytes())
            }
            Some("application/manifest+json") => {
                let text = text().replace("\"src\": \"", &format!("\"src\": \"{version}."));
                (format!("{version}.{name}"), text.into_bytes())
            }
            _ => (format!("{version}.{name}"), bytes),
        };
        let path = output().join(&name);
        let mut gzip = Vec::new();
        zopfli::compress(options, Format::Gzip, &*bytes, &mut gzip)
            .expect("writing to memory does not fail");
        fs::write(&path, gzip).expect("cargo made the folder");
        let entry = format!(
            "    PageFile {{ name: {name:?}, content_type: {content_type:?}, \
             gzip: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}\")) }},\n"
        );
        table.push_str(&entry);
    }

    table.push_str("];\n");
    fs::write(output().join("web.rs"), table).expect("cargo made the folder");
}

/// Adds the version to the names of imported modules, and drops their folders: all files are served from one folder.
fn with_version(script: &str, version: &str) -> String {
    let mut text = script.to_owned();
    for before in ["from \"", "import(\""] {
        let mut pieces = text.split(before);
        let mut named = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            named.push_str(before);
            let (path, rest) = piece.split_once('"').expect("a text ends");
            match path.rsplit_once('/') {
                Some((_, name)) if path.starts_with('.') => {
                    named.push_str(&format!("./{version}.{name}"));
                }
                _ => named.push_str(path),
            }
            named.push('"');
            named.push_str(rest);
        }
        text = named;
    }

    text
}

/// A script without comments, empty lines, indentation and needless line ends. Template literals stay as they are. The
/// page's scripts keep three rules: no line of a literal begins like a comment, no comment follows code, and a comment
/// within a line is a type.
fn without_comments(script: &str) -> String {
    let (mut kept, mut is_inside, mut is_text) = (String::new(), false, false);
    for line in script.lines() {
        let mut text = if is_text { line } else { line.trim() };
        let is_comment = is_inside
            || text.starts_with("//")
            || text.starts_with("/**") && (text.ends_with("*/") || !text.contains("*/"));
        is_inside = if is_inside {
            !text.ends_with("*/")
        } else {
            is_comment && text.starts_with("/**") && !text.ends_with("*/")
        };
        if is_comment || text.is_empty() && !is_text {
            continue;
        }
        is_text ^= text.matches('`').count() % 2 == 1;
        while let Some((before, rest)) = text.split_once("/** @") {
            let (_, after) = rest.split_once("*/").expect("a type in a line ends there");
            kept.push_str(before);
            text = after.trim_start();
        }
        kept.push_str(text);
        // After `,`, `{` or `;` no line end is needed.
        if is_text || !kept.ends_with([',', '{', ';']) {
            kept.push('\n');
        }
    }

    kept
}

fn name_of(path: &Path) -> String {
    path.file_name().and_then(|name| name.to_str()).expect("a plain name").to_owned()
}

/// The folder that cargo made for the output of this build script.
#[expect(clippy::disallowed_methods, reason = "cargo tells a build script by the environment")]
fn output() -> PathBuf {
    std::env::var_os("OUT_DIR").expect("cargo sets it").into()
}
