//! `roomtide completions`: prints a completion script for a shell to standard output. Installs nothing.

use clap::Command;
use clap_complete::Shell;

use crate::output::print;

/// The part of the help after the options.
const AFTER_HELP: &str = "\
For bash, zsh and fish:

    roomtide completions bash > ~/.local/share/bash-completion/completions/roomtide
    roomtide completions zsh > \"${fpath[1]}/_roomtide\"
    roomtide completions fish > ~/.config/fish/completions/roomtide.fish";

/// The command line of `roomtide completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the completions of the whole command line.
pub(crate) fn run(args: &Args, command: &mut Command) {
    print(text(args.shell, command).trim_end());
}

/// The completion script for a shell.
pub(crate) fn text(shell: Shell, command: &mut Command) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, command, "roomtide", &mut text);
    String::from_utf8_lossy(&text).into_owned()
}
