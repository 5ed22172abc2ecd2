//! The command's output on the terminal. A closed pipe is not an error; a full disk is one, at the end.

use std::cell::RefCell;
use std::fmt::Display;
use std::io::{ErrorKind, Write as _};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The reason why a line could not be printed, for the first such line.
static LOST: OnceLock<String> = OnceLock::new();

thread_local! {
    /// The receiver of this thread's lines, instead of the terminal.
    static SAID: RefCell<Option<OutputText>> = const { RefCell::new(None) };
}

/// The lines of a command that runs within this process.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutputText(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
struct Lines {
    output: String,
    errors: String,
}

impl OutputText {
    /// All lines so far; lines of standard error come last.
    pub(crate) fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        [lines.output.as_str(), &lines.errors].concat()
    }

    fn add(&self, line: &dyn Display, is_error: bool) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = if is_error { &mut lines.errors } else { &mut lines.output };
        text.push_str(&format!("{line}\n"));
    }
}

/// Redirects the lines of this thread.
pub(crate) fn say_to(said: &OutputText) {
    SAID.set(Some(said.clone()));
}

/// Redirects a line, if the lines of this thread are redirected. Returns whether they are.
fn is_said(line: &dyn Display, is_error: bool) -> bool {
    SAID.with_borrow(|said| said.as_ref().map(|said| said.add(line, is_error)).is_some())
}

/// Prints a line, or several, to standard output.
pub(crate) fn print(line: impl Display) {
    print_as_is(escaped(&line));
}

/// Prints a line with its control characters. The line must not quote a file or a server. `println!` would panic after
/// the reader of the output has closed it.
pub(crate) fn print_as_is(line: impl Display) {
    if is_said(&line, false) {
        return;
    }
    match writeln!(std::io::stdout().lock(), "{line}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            LOST.get_or_init(|| error.to_string());
        }
        _ => {}
    }
}

/// Returns the reason why a line could not be printed.
pub(crate) fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}

/// Prints an error to standard error.
pub(crate) fn print_error(error: impl Display) {
    let error = escaped(&error);
    if is_said(&format_args!("roomtide: {error}"), true) {
        return;
    }
    drop(writeln!(std::io::stderr().lock(), "roomtide: {error}"));
}

/// A text with escaped control characters, except line breaks and tabs: names and lines of a file could otherwise
/// control the terminal. In JSON and TOML the escape means the same character.
pub(crate) fn escaped(text: &dyn Display) -> String {
    let mut escaped = String::new();
    for char in text.to_string().chars() {
        if char.is_control() && !matches!(char, '\n' | '\t') || is_direction_mark(char) {
            escaped.push_str(&format!("\\u{:04x}", u32::from(char)));
        } else {
            escaped.push(char);
        }
    }
    escaped
}

/// Whether a character changes the direction of the text that follows, and so can make an address look like another one.
fn is_direction_mark(char: char) -> bool {
    matches!(char, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Writes a number and its noun: `1 reading`, `2 readings`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_that_is_quoted() {
        let said = OutputText::default();
        say_to(&said);
        print("a\u{1b}[2J\tb\nc\r\u{9b}31m Küche");
        print_error("d\u{1b}]0;e\u{7}");
        print_as_is("\u{1b}[0m");

        let expected =
            "a\\u001b[2J\tb\nc\\u000d\\u009b31m Küche\n\u{1b}[0m\nroomtide: d\\u001b]0;e\\u0007\n";
        assert_eq!(said.text(), expected);
        SAID.set(None);
    }

    #[test]
    fn one_is_no_plural() {
        let texts = [0, 1, 2].map(|count| counted(count, "reading"));
        assert_eq!(texts, ["0 readings", "1 reading", "2 readings"]);
    }
}
