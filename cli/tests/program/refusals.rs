//! What the program says of a command line that it cannot follow, before any server or table is asked.

use std::process::Command;

use crate::server::PROGRAM;

/// Runs the program without AWS credentials; its exit code, and what it said.
fn run(words: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(PROGRAM);
    command.args(words);
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn missing_credentials_come_with_the_line_that_provides_them() {
    let (code, said) = run(&["token", "list", "--table", "t", "--region", "eu-west-1"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("eval \"$(aws configure export-credentials --format env)\""), "{said}");
    // Version 1 of the AWS CLI lacks that command.
    assert!(said.contains("version 1") && said.contains("AWS_SECRET_ACCESS_KEY"), "{said}");
    assert!(said.contains("AWS_ACCESS_KEY_ID"), "{said}");
}

#[test]
fn the_first_tokens_as_lines_are_of_no_table() {
    let json = ["token", "first", "--json"];
    let (code, said) = run(&json);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    for (option, value) in [("--data-dir", "d"), ("--table", "t")] {
        for words in [
            ["token", "first", "--json", option, value],
            ["token", option, value, "first", "--json"],
        ] {
            let (code, said) = run(&words);
            assert!(matches!(code, Some(1 | 2)), "{words:?}: {said}");
            assert!(said.contains("--json") && said.contains(option), "{words:?}: {said}");
        }
    }
}

#[test]
fn the_earliest_timestamp_is_not_offered_a_relative_time() {
    let (code, said) = run(&["--memory", "--earliest-timestamp", "yesterday"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("is not a timestamp") && !said.contains("-24h"), "{said}");
}

#[test]
fn a_deletion_without_a_terminal_says_what_it_needs() {
    let (code, said) = run(&["delete", "device", "d", "--url", "http://127.0.0.1:1"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("nothing is deleted") && said.contains("--yes"), "{said}");
}

#[test]
fn the_help_says_what_a_host_is_and_what_excludes_what() {
    let output = Command::new(PROGRAM).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(help.contains("IP address") && help.contains("not with --auth"), "{help}");
    for words in [&["--host", "localhost"][..], &["--memory", "--auth"]] {
        assert_eq!(run(words).0, Some(2), "{words:?}");
    }
}
