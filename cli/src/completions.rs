//! `roomtide completions`: the completions of a shell, on standard output. Installs nothing.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::Cli;
use crate::output::print;

/// Part of the help.
const AFTER_HELP: &str = "\
For bash: roomtide completions bash > ~/.local/share/bash-completion/completions/roomtide
For zsh:  roomtide completions zsh > \"${fpath[1]}/_roomtide\"
For fish: roomtide completions fish > ~/.config/fish/completions/roomtide.fish";

/// The command line of `roomtide completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the completions.
pub(crate) fn run(args: &Args) {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "roomtide", &mut text);
    print(String::from_utf8_lossy(&text).trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_is_told_every_command() {
        for shell in clap::ValueEnum::value_variants() {
            let mut text = Vec::new();
            clap_complete::generate::<Shell, _>(*shell, &mut Cli::command(), "roomtide", &mut text);
            let text = String::from_utf8(text).unwrap();
            assert!(text.contains("failures") && text.contains("rollups"), "{shell}");
        }
    }
}
