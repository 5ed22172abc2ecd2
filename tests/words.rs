//! Words that make a reader stop, in documents, comments and messages. Judges no sentence.

use std::fs;

use crate::architecture::{is_product, project_files, root, rust_files};
use crate::source::Source;

/// A phrase that is not written, and what to write instead.
const PHRASES: [(&str, &str); 6] = [
    ("none of", "say what there is not: \"returns `None` if ...\", \"no ...\""),
    ("is none", "say what there is not: \"there is no ...\""),
    ("of which", "two sentences, or \"whose\""),
    ("likewise", "say it again"),
    ("that one", "the noun"),
    ("as good as", "say how good"),
];
/// Behind `none of` these make it a pronoun, which is plain: none of the readings.
const PRONOUNS: [&str; 6] = ["them", "these", "those", "the", "its", "their"];

#[test]
fn words_are_plain() {
    let mut broken = Vec::new();
    for (path, text) in rust_files() {
        // This file names the phrases.
        if path == "tests/words.rs" {
            continue;
        }
        let mut texts = comments(&text);
        if is_product(&path) {
            let literals = Source::shipped(&text).literals();
            texts.extend(literals.into_iter().map(|literal| literal.text));
        }
        broken.extend(texts.iter().flat_map(|text| found(text)).map(|it| format!("{path}: {it}")));
    }
    let documents =
        project_files().filter(|path| [".md", ".yaml"].iter().any(|end| path.ends_with(end)));
    for path in documents {
        let text = fs::read_to_string(root().join(&path)).expect("UTF-8");
        broken.extend(found(&without_code(&text)).into_iter().map(|it| format!("{path}: {it}")));
    }
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

/// The comments of a Rust file, the lines of each joined.
fn comments(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        let comment = line.trim_start().strip_prefix("//");
        if let Some(comment) = comment {
            let comment = comment.trim_start_matches(['/', '!']).trim();
            match found.last_mut().filter(|_| goes_on) {
                Some(last) => *last = format!("{last} {comment}"),
                None => found.push(comment.to_owned()),
            }
        }
        goes_on = comment.is_some();
    }
    found
}

/// A document without its blocks of code, its lines joined.
fn without_code(document: &str) -> String {
    let mut is_code = false;
    let lines = document.lines().filter(|line| {
        is_code ^= line.trim_start().starts_with("```");
        !is_code
    });
    lines.collect::<Vec<_>>().join(" ")
}

/// The phrases that stand in a text, each with the words around it and what to write instead.
fn found(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let plain: Vec<String> = words
        .iter()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
        .collect();
    let mut broken = Vec::new();
    for (phrase, instead) in PHRASES {
        let phrase_words: Vec<&str> = phrase.split(' ').collect();
        for (at, window) in plain.windows(phrase_words.len()).enumerate() {
            if *window != *phrase_words {
                continue;
            }
            let end = at + phrase_words.len();
            let (last, rest) = words[at..end].split_last().expect("a phrase has words");
            // "Which. One" is no phrase, and `None` is code.
            let is_joined =
                rest.iter().all(|word| word.ends_with(|c: char| c.is_alphanumeric() || c == '`'));
            let is_plain = match phrase {
                "none of" => PRONOUNS.contains(&plain.get(end).map_or("", String::as_str)),
                "is none" => last.starts_with('`'),
                // "The readings that one request deletes" is plain.
                "that one" => last.ends_with(char::is_alphanumeric) && end < words.len(),
                _ => false,
            };
            if is_joined && !is_plain {
                let around = &words[at.saturating_sub(4)..words.len().min(end + 4)];
                broken.push(format!("\"... {} ...\"; {instead}", around.join(" ")));
            }
        }
    }
    broken
}

#[test]
fn a_phrase_that_makes_a_reader_stop_is_found() {
    for text in
        ["Rooms by id, likewise.", "`None` where there is none.", "a set, of which", "as good\nas"]
    {
        assert_eq!(found(text).len(), 1, "{text}");
    }
    assert_eq!(found("none of a topic").len(), 1);
    assert_eq!(found("`None` of a table.").len(), 1);
    assert_eq!(found("the meter behind that one.").len(), 1);
    for text in [
        "None of them, none of the readings. Others, which. None; of",
        "if it is `None`",
        "the readings that one request deletes",
    ] {
        assert_eq!(found(text), Vec::<String>::new(), "{text}");
    }
    let text = "//! A\n//! b.\n\nfn f() {} // no\n    /// C\n    x();\n// d";
    assert_eq!(comments(text), ["A b.", "C", "d"]);
    assert_eq!(without_code("a\n```\nb\n```\nc"), "a c".replace("a c", "a ``` c"));
}
