//! The error of a command that was stopped by Ctrl-C, and its exit code. Catches no signal.

use std::fmt;
use std::process::ExitCode;

/// The exit code of a command that Ctrl-C stopped: 128 and the signal's number, as shells count.
pub(crate) const EXIT_CODE: u8 = 130;

/// A person stopped the command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// The exit code of a command that failed.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    let interrupted = error.chain().find_map(|cause| cause.downcast_ref::<Interrupted>());
    if interrupted.is_some() { ExitCode::from(EXIT_CODE) } else { ExitCode::FAILURE }
}
