//! The command's output on the terminal. A reader that has gone away is no error; a full disk is one, at the end.

use std::fmt::Display;
use std::io::{ErrorKind, Write as _};
use std::sync::OnceLock;

/// Why a line could not be printed, the first time.
static LOST: OnceLock<String> = OnceLock::new();

/// Prints a line to standard output. `println!` would end a server whose output nobody reads any more.
pub(crate) fn print(line: impl Display) {
    match writeln!(std::io::stdout().lock(), "{line}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            LOST.get_or_init(|| error.to_string());
        }
        _ => {}
    }
}

/// Returns why a line could not be printed, though somebody may wait for it.
pub(crate) fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}

/// Prints an error to standard error.
pub(crate) fn print_error(error: impl Display) {
    drop(writeln!(std::io::stderr().lock(), "roomtide: {error}"));
}

/// Writes a number and its noun: `1 reading`, `2 readings`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        let texts = [0, 1, 2].map(|count| counted(count, "reading"));
        assert_eq!(texts, ["0 readings", "1 reading", "2 readings"]);
    }
}
