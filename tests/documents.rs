//! The documents: their links lead somewhere, the files that they name exist, and their tables are those of the
//! code. Reads no meaning.

mod blocks;
mod channels;
mod costs;
mod endpoints;
mod examples;
mod limits;
mod openapi;
mod parameters;
mod readme;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::architecture::{project_files, root};

/// The documents that a reader meets first, and the most lines that each may have.
const SHORT: [(&str, usize); 3] =
    [("README.md", 120), ("ARCHITECTURE.md", 150), ("CONTRIBUTING.md", 120)];

/// The most lines of a page. What is made from the code as a whole is as long as the code says.
const MOST_LINES: usize = 200;
const MADE_FROM_CODE: [&str; 1] = ["docs/reference/cli.md"];

/// All documents: path within the project to text.
fn documents() -> Vec<(String, String)> {
    let is_document = |path: &String| {
        let extension = Path::new(path).extension();
        extension.is_some_and(|it| it == "md") && (path.starts_with("docs/") || !path.contains('/'))
    };
    let mut paths: Vec<_> = project_files().filter(is_document).collect();
    paths.sort();
    let read = |path: &String| fs::read_to_string(root().join(path)).expect("UTF-8");
    paths.into_iter().map(|path| (read(&path), path)).map(|(text, path)| (path, text)).collect()
}

#[test]
fn links_lead_to_files_and_headings() {
    let files: BTreeSet<String> = project_files().collect();
    let documents = documents();
    let mut broken = Vec::new();
    for (path, text) in &documents {
        for link in links(text) {
            let (target, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = if target.is_empty() { path.clone() } else { resolved(path, target) };
            let is_folder = || files.iter().any(|it| it.starts_with(&format!("{target}/")));
            if !files.contains(&target) && !is_folder() {
                broken.push(format!("{path}: {link} leads to no file"));
            } else if !heading.is_empty() {
                let text = documents.iter().find(|(path, _)| *path == target).map(|it| &it.1);
                if !text.is_some_and(|text| headings(text).contains(heading)) {
                    broken.push(format!("{path}: {link} leads to no heading"));
                }
            }
        }
    }
    assert!(documents.len() > 30, "{}", documents.len());
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn each_page_is_in_the_index() {
    let documents = documents();
    let (_, index) = documents.iter().find(|(path, _)| path == "docs/README.md").expect("an index");
    let linked: BTreeSet<_> =
        links(index).iter().map(|it| resolved("docs/README.md", it)).collect();
    let pages = documents.iter().map(|(path, _)| path);
    let missing: Vec<_> = pages
        .filter(|path| path.starts_with("docs/") && *path != "docs/README.md")
        .filter(|path| !linked.contains(*path))
        .collect();
    assert!(missing.is_empty(), "docs/README.md does not link {missing:#?}");
}

#[test]
fn the_first_documents_are_short() {
    let documents = documents();
    for (document, most) in SHORT {
        let text = documents.iter().find(|(path, _)| path == document).map(|it| &it.1);
        let lines = text.unwrap_or_else(|| panic!("no {document}")).lines().count();
        assert!(lines <= most, "{document} has {lines} lines; {most} are read");
    }
}

#[test]
fn a_page_is_a_task_and_not_a_book() {
    for (path, text) in documents() {
        let lines = text.lines().count();
        let is_page = path.starts_with("docs/") && !MADE_FROM_CODE.contains(&path.as_str());
        assert!(!is_page || lines <= MOST_LINES, "{path} has {lines} lines: part it by tasks");
    }
}

/// What for and one example, then all settings, then costs and limits: a reader knows where to look on any page.
#[test]
fn pages_of_the_guide_have_one_order() {
    let folders = ["docs/guide/", "docs/connect/"];
    let documents = documents();
    let pages =
        documents.iter().filter(|(path, _)| folders.iter().any(|folder| path.starts_with(folder)));
    for (path, text) in pages {
        let start = text.split("\n## ").next().unwrap_or_default();
        assert!(start.contains("\n```"), "{path} has no example before its first heading");

        let sections = text.lines().filter(|line| line.starts_with("## "));
        let sections: Vec<&str> = sections.collect();
        let end = ["## What it costs", "## What it cannot do"];
        assert!(sections.ends_with(&end), "{path} ends with {sections:?}, not with {end:?}");
    }
}

#[test]
fn documents_name_files_that_exist() {
    let paths: BTreeSet<String> = project_files().collect();
    let mut missing = Vec::new();
    let mut named = 0;
    for (document, text) in documents() {
        // A changelog names what there was.
        for name in named_files(&text).into_iter().filter(|_| document != "CHANGELOG.md") {
            named += 1;
            if !exists(&paths, &name) {
                missing.push(format!("{document}: {name}"));
            }
        }
    }
    assert!(named > 100, "{named}");
    assert!(missing.is_empty(), "named, but not there: {missing:#?}");
}

/// The targets of links within the project.
fn links(document: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_code = false;
    for line in document.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code {
            continue;
        }
        // Text in backticks is no link.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        found.extend(targets.filter(|it| !it.contains("://")).map(str::to_owned));
    }
    found
}

/// The path within the project that a link of the document at `from` leads to.
fn resolved(from: &str, link: &str) -> String {
    let mut path = PathBuf::from(from);
    path.pop();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path.to_string_lossy().replace('\\', "/")
}

/// The anchors of a document's headings: lower case, without punctuation, blanks as dashes.
fn headings(document: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let lines = document.lines().filter(|line| {
        is_code ^= line.starts_with("```");
        !is_code && line.starts_with('#')
    });
    let anchor = |line: &str| -> String {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    lines.map(anchor).collect()
}

/// The files and folders that a document names in backticks: Rust files by their last parts, others by their
/// whole path.
fn named_files(document: &str) -> BTreeSet<String> {
    let is_name = |text: &&str| {
        let is_path = ["functions/", "shared/", "local/", "cli/", "tests/", "events/", "benches/"]
            .iter()
            .any(|folder| text.starts_with(folder));
        let is_plain = !text.contains([' ', '{', '*', '<']);
        let extension = Path::new(text).extension();
        is_plain && (is_path || extension.is_some_and(|it| it == "rs" || it == "py"))
    };
    let mut is_code = false;
    let prose = document.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        is_code ^= fence;
        !is_code && !fence
    });
    let quoted = prose.flat_map(|line| line.split('`').skip(1).step_by(2));
    quoted.filter(is_name).map(|name| name.trim_end_matches('/').to_owned()).collect()
}

/// Whether a file has this path or ends in it, or a folder has it.
fn exists(paths: &BTreeSet<String>, name: &str) -> bool {
    let (tail, folder) = (format!("/{name}"), format!("{name}/"));
    paths.iter().any(|path| path == name || path.ends_with(&tail) || path.starts_with(&folder))
}

#[test]
fn a_document_that_names_a_missing_file_is_seen() {
    let names = named_files(
        "`keys.rs`, `shared/table/`, `TS#<a>`, `cargo run -- x.rs`, `a.md`, keys.rs\n```\n`not.rs`\n```\n`b.py`",
    );
    assert_eq!(names, ["b.py", "keys.rs", "shared/table"].map(str::to_owned).into());
    let paths = BTreeSet::from(["shared/table/src/keys.rs".to_owned()]);
    for name in ["keys.rs", "shared/table", "table/src/keys.rs", "shared/table/src/keys.rs"] {
        assert!(exists(&paths, name), "{name}");
    }
    for name in ["eys.rs", "shared/tab", "table"] {
        assert!(!exists(&paths, name), "{name}");
    }
}

#[test]
fn links_and_headings_are_found() {
    let text = "# A *b*: `c`\n[x](../y.md#z) [w](https://w.org) `[no](n.md)`\n```sh\n# no\n[no](n.md)\n```\n## D e-f";
    assert_eq!(links(text), ["../y.md#z"]);
    assert_eq!(headings(text), ["a-b-c", "d-e-f"].map(str::to_owned).into());
    assert_eq!(resolved("docs/guide/a.md", "../y.md"), "docs/y.md");
    assert_eq!(resolved("README.md", "docs/y.md"), "docs/y.md");
}
