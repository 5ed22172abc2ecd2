//! docs/develop/files.md: each source file with the first paragraph that it says of itself.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::architecture::{project_files, root};
use crate::generated::assert_documented;

/// The folders of the map, in the order of the page.
const FOLDERS: [&str; 8] =
    ["functions", "shared", "local", "cli", "tests", "web", "benches", "fuzz"];

#[test]
fn the_map_of_files_is_what_the_files_say() {
    let mut folders: BTreeMap<(usize, String), Vec<(String, String)>> = BTreeMap::new();
    for path in project_files() {
        let Some(place) = FOLDERS.iter().position(|it| path.starts_with(&format!("{it}/"))) else {
            continue;
        };
        let extension = Path::new(&path).extension().unwrap_or_default().to_string_lossy();
        if !matches!(&*extension, "rs" | "py" | "mjs" | "js") || path.contains("/vendor/") {
            continue;
        }
        let text = fs::read_to_string(root().join(&path)).expect("UTF-8");
        let (folder, name) = package_and_rest(&path);
        let described = (name.to_owned(), description(&text));
        folders.entry((place, folder.to_owned())).or_default().push(described);
    }
    assert!(folders.len() > 15, "{:?}", folders.keys());
    let mut text = String::new();
    for ((_, folder), mut files) in folders {
        files.sort();
        write!(text, "## {folder}\n\n| file | what it says of itself |\n| --- | --- |\n")
            .expect("writing to memory does not fail");
        for (name, description) in files {
            writeln!(text, "| `{name}` | {description} |")
                .expect("writing to memory does not fail");
        }
        text.push('\n');
    }
    assert_documented("docs/develop/files.md", "files", &text);
}

/// The folder of a file's package and the path below it, without `src/`.
fn package_and_rest(path: &str) -> (&str, &str) {
    let deep = path.starts_with("functions/") || path.starts_with("shared/");
    let parts = if deep { 2 } else { 1 };
    let cut = path.match_indices('/').nth(parts - 1).map_or(path.len(), |(at, _)| at);
    let rest = path[cut..].trim_start_matches('/');
    (&path[..cut], rest.strip_prefix("src/").unwrap_or(rest))
}

/// The first paragraph of a file's own description, on one line.
fn description(text: &str) -> String {
    let marks = ["//!", "//", "#", "\"\"\""];
    let mut lines = text.lines().skip_while(|line| line.starts_with("#!")).peekable();
    let first = lines.peek().copied().unwrap_or_default();
    let Some(mark) = marks.iter().find(|mark| first.starts_with(**mark)) else {
        return String::new();
    };
    let is_docstring = *mark == "\"\"\"";
    let mut said = Vec::new();
    for (n, line) in lines.enumerate() {
        let line = if is_docstring && n > 0 { Some(line) } else { line.strip_prefix(mark) };
        let Some(line) = line else { break };
        let (line, is_last) = match line.strip_suffix("\"\"\"").filter(|_| is_docstring) {
            Some(line) => (line.trim(), true),
            None => (line.trim(), false),
        };
        if !line.is_empty() {
            said.push(line);
        }
        if line.is_empty() || is_last {
            break;
        }
    }
    // A link of Rust's documentation leads to no page.
    said.join(" ").replace('|', "\\|").replace("](", "] (")
}

#[test]
fn a_description_ends_with_its_paragraph() {
    assert_eq!(description("//! One\n//! two.\n//!\n//! Three.\nuse x;"), "One two.");
    assert_eq!(
        description("#!/usr/bin/env python3\n\"\"\"One\ntwo.\n\nThree.\"\"\"\n"),
        "One two."
    );
    assert_eq!(description("\"\"\"One.\"\"\"\nimport x\n"), "One.");
    assert_eq!(description("// One.\n\nimport x;"), "One.");
    assert_eq!(package_and_rest("shared/table/src/item/room.rs"), ("shared/table", "item/room.rs"));
    assert_eq!(package_and_rest("tests/deploy/check.py"), ("tests", "deploy/check.py"));
}
