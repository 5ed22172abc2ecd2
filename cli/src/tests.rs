//! The command line as a whole, and that docs/reference/cli.md has it. Runs no command.

#[path = "../../tests/documents/blocks.rs"]
mod blocks;
#[path = "../../tests/generated.rs"]
mod generated;

pub(crate) mod fake_server;
pub(crate) mod others_refused;

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::{Arg, CommandFactory as _, Parser as _};

use super::{Cli, Command, completions, serve};

/// Reads the words of a subcommand. The first is its name.
pub(crate) fn parsed<A: clap::Args>(
    words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<A, clap::Error> {
    let command = A::augment_args(clap::Command::new("roomtide"));
    A::from_arg_matches(&command.try_get_matches_from(words)?)
}

#[test]
fn a_directory_that_nobody_names_is_not_named_by_a_default() {
    for words in ["import f", "export f", "token list", "status", "reindex", "rollups verify"] {
        let matches =
            Cli::command().get_matches_from(["roomtide"].into_iter().chain(words.split(' ')));
        let (_, command) = matches.subcommand().unwrap();
        assert!(!command.contains_id("data_dir"), "{words}");
    }
}

#[test]
fn the_command_line_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn serving_needs_no_word() {
    let cli = Cli::try_parse_from(["roomtide", "--port", "9000", "--memory"]).unwrap();
    assert!(cli.command.is_none() && cli.serve.port == 9_000 && cli.serve.memory);
    let cli = Cli::try_parse_from(["roomtide", "serve", "--empty"]).unwrap();
    assert!(matches!(cli.command, Some(Command::Serve(serve::Args { empty: true, .. }))));
    assert!(Cli::try_parse_from(["roomtide", "--memory", "--data-dir", "d"]).is_err());
    assert!(Cli::try_parse_from(["roomtide", "--time-zone", "Europe/Berlin"]).is_ok());
    let error = Cli::try_parse_from(["roomtide", "--time-zone", "Berlin"]).unwrap_err();
    assert!(error.to_string().contains("IANA database"), "{error}");
    assert!(Cli::try_parse_from(["roomtide", "replay"]).is_err());
}

#[test]
fn the_completions_of_each_shell_have_the_commands() {
    for shell in clap::ValueEnum::value_variants() {
        let text = completions::text(*shell, &mut Cli::command());
        assert!(text.contains("failures") && text.contains("rollups"), "{shell}");
    }
}

#[test]
fn documents_call_commands_that_there_are() {
    let mut calls = 0;
    for block in blocks::documented_blocks() {
        for words in called(&block) {
            calls += 1;
            let parsed = Cli::try_parse_from(&words);
            assert!(parsed.is_ok(), "{}: {words:?}: {}", block.place(), parsed.unwrap_err());
        }
    }
    assert!(calls > 60, "{calls}");

    let [wrong] = &blocks::blocks_of("a.md", "```sh\nroomtide import f --dry-runs\n```")[..] else {
        panic!("a block")
    };
    assert!(Cli::try_parse_from(&called(wrong)[0]).is_err());
}

/// The command lines of Roomtide in a block of a document: those of a shell, and that of a client's settings.
fn called(block: &blocks::Block) -> Vec<Vec<String>> {
    let mut called = Vec::new();
    let commands = if block.language == "sh" { blocks::commands(&block.text) } else { Vec::new() };
    for words in commands {
        match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["roomtide", ..] => called.push(words),
            ["cargo", "run"] => called.push(vec!["roomtide".to_owned()]),
            ["cargo", "run", "--", ..] => called.push(words[2..].to_vec()),
            _ => {}
        }
    }

    if block.page == "docs/connect/mcp.md" && block.language == "json" {
        let settings: serde_json::Value = serde_json::from_str(&block.text).unwrap();
        let words = settings["mcpServers"]["roomtide"]["args"].as_array().unwrap();
        let words = words.iter().map(|word| word.as_str().unwrap().to_owned());
        called.push(["roomtide".to_owned()].into_iter().chain(words).collect());
    }
    called
}

#[test]
fn documents_have_the_commands_of_the_code() {
    let mut command = Cli::command();
    command.build();
    let mut text = String::new();
    describe(&command, "roomtide", &mut text);
    generated::assert_documented("docs/reference/cli.md", "commands", &text);
}

/// Describes a command, then its subcommands.
fn describe(command: &clap::Command, name: &str, text: &mut String) {
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    write!(text, "## {name}\n\n{about}\n\n").expect("writing to memory does not fail");
    let is_nested = name.split(' ').count() > 2;
    let arguments = command.get_arguments().filter(|argument| is_told(argument, is_nested));
    let arguments: Vec<_> = arguments.collect();
    if !arguments.is_empty() {
        text.push_str("| option | default | meaning |\n| --- | --- | --- |\n");
        for argument in arguments {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            let help = help.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
            let (shown, default) = (shown(argument), default(argument));
            writeln!(text, "| `{shown}` | {default} | {help} |")
                .expect("writing to memory does not fail");
        }
        text.push('\n');
    }
    if let Some(after) = command.get_after_help() {
        write!(text, "{}\n\n", after.to_string().trim()).expect("writing to memory does not fail");
    }
    for command in command.get_subcommands().filter(|it| !is_repeated(it)) {
        describe(command, &format!("{name} {}", command.get_name()), text);
    }
}

/// Whether a command is described elsewhere: `serve` is the command without a word.
fn is_repeated(command: &clap::Command) -> bool {
    matches!(command.get_name(), "help" | "serve")
}

/// Whether an option tells something: `--help` and `--version` do not, nor what is for tests. Options for all commands of
/// a command are told with it.
fn is_told(argument: &Arg, is_nested: bool) -> bool {
    let is_repeated = is_nested && argument.is_global_set();
    !is_repeated
        && !argument.is_hide_set()
        && !matches!(argument.get_id().as_str(), "help" | "version")
}

/// `--port PORT`, `--memory` or `FILE`.
fn shown(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let values: Vec<_> = names.iter().map(ToString::to_string).collect();
    let values = values.join(" ").replace('|', "\\|");
    let takes_value = argument.get_action().takes_values();
    match argument.get_long() {
        Some(long) if takes_value => format!("--{long} {values}"),
        Some(long) => format!("--{long}"),
        None => values,
    }
}

/// The value without the option, or whether it is required.
fn default(argument: &Arg) -> String {
    if argument.is_required_set() {
        return "required".to_owned();
    }
    let values = argument.get_default_values().iter();
    let values: Vec<_> = values.map(|it| format!("`{}`", it.to_string_lossy())).collect();
    if argument.get_action().takes_values() { values.join(" ") } else { String::new() }
}
