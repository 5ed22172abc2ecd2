//! What is said to a person at a terminal. A terminal that has gone away is no error.

use std::fmt::Display;
use std::io::Write as _;

/// Says a line. `println!` would end a server whose output nobody reads any more.
pub(crate) fn say(line: impl Display) {
    drop(writeln!(std::io::stdout().lock(), "{line}"));
}

/// Says what went wrong; seen without `--log` too.
pub(crate) fn complain(line: impl Display) {
    drop(writeln!(std::io::stderr().lock(), "roomtide: {line}"));
}
