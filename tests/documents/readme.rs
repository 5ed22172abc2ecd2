//! README.md: its length, its first commands, its pictures. tests/home/readme.py runs its requests.

use std::collections::BTreeSet;
use std::fs;

use crate::architecture::root;

const MOST_WORDS: usize = 1_100;

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).expect("UTF-8")
}

#[test]
fn it_is_short() {
    let words = readme().split_whitespace().count();
    assert!(words <= MOST_WORDS, "README.md has {words} words; {MOST_WORDS} are read");
}

#[test]
fn its_first_commands_run_the_program_and_the_tests() {
    let text = readme();
    let (_, block) = text.split_once("```sh\n").expect("a block of commands");
    let commands = block.lines().map(|line| line.split('#').next().unwrap_or(line).trim_end());
    assert_eq!(commands.take(2).collect::<Vec<_>>(), ["cargo run", "cargo test --workspace"]);
}

#[test]
fn its_picture_has_each_function_of_the_template() {
    let text = readme();
    let picture = text.lines().skip_while(|line| !line.starts_with(" devices --"));
    let picture: String = picture.take_while(|line| *line != "```").collect();
    let template = fs::read_to_string(root().join("template.yaml")).expect("a template");
    let functions = template.lines().filter_map(|line| line.split("CodeUri: functions/").nth(1));
    let functions: BTreeSet<&str> = functions.collect();
    assert!(functions.len() >= 6, "{functions:?}");
    for function in functions {
        assert!(picture.contains(function), "the picture lacks {function}");
    }
}

/// Whether it is the page as it is, tests/web/picture.mjs tells.
#[test]
fn its_pictures_are_of_the_page() {
    let text = readme();
    for name in ["docs/page.png", "docs/phone.png"] {
        assert!(text.contains(name), "README.md does not show {name}");
        let picture = fs::read(root().join(name)).expect("a picture");
        assert!(picture.starts_with(b"\x89PNG"), "{name}");
        assert!(picture.windows(8).any(|part| part == b"tEXtweb\0"), "{name} tells no page");
    }
}
