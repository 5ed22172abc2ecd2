//! What is said to a person at a terminal. A terminal that has gone away is no error.

use std::collections::HashMap;
use std::fmt::Display;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use runtime::clock::Stopwatch;

/// Says a line. `println!` would end a server whose output nobody reads any more.
pub(crate) fn say(line: impl Display) {
    drop(writeln!(std::io::stdout().lock(), "{line}"));
}

/// Says what went wrong; seen without `--log` too.
pub(crate) fn complain(line: impl Display) {
    drop(writeln!(std::io::stderr().lock(), "roomtide: {line}"));
}

/// A number and its noun: `1 reading`, `2 readings`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// What goes wrong again and again, such as each write on a disk that is full: said at once, then once
/// a minute with how often it happened.
#[derive(Debug)]
pub(crate) struct Complaints {
    pause: Duration,
    said: Mutex<HashMap<String, Said>>,
}

#[derive(Debug)]
struct Said {
    at: Stopwatch,
    unsaid: usize,
}

/// How many kinds are told apart; a message that is never the same twice only empties this.
const MAX_KINDS: usize = 100;

impl Complaints {
    /// Complaints of which nothing is said yet.
    pub(crate) fn new() -> Self {
        Self { pause: Duration::from_secs(60), said: Mutex::default() }
    }

    /// Says what went wrong, unless the same was said a short while ago.
    pub(crate) fn complain(&self, what: impl Display) {
        if let Some(line) = self.next(what.to_string()) {
            complain(line);
        }
    }

    fn next(&self, what: String) -> Option<String> {
        let mut all = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(said) = all.get_mut(&what) {
            said.unsaid += 1;
            if said.at.elapsed() < self.pause {
                return None;
            }
            let line = format!("{what} ({} times more)", said.unsaid);
            *said = Said { at: Stopwatch::start(), unsaid: 0 };
            return Some(line);
        }
        if all.len() >= MAX_KINDS {
            all.clear();
        }
        all.insert(what.clone(), Said { at: Stopwatch::start(), unsaid: 0 });
        Some(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        let texts = [0, 1, 2].map(|count| counted(count, "reading"));
        assert_eq!(texts, ["0 readings", "1 reading", "2 readings"]);
    }

    #[test]
    fn what_happens_again_is_counted_and_said_after_the_pause() {
        let mut complaints = Complaints::new();
        let next = |complaints: &Complaints, what: &str| complaints.next(what.to_owned());
        assert_eq!(next(&complaints, "full").as_deref(), Some("full"));
        assert_eq!(next(&complaints, "full"), None);
        assert_eq!(next(&complaints, "read-only").as_deref(), Some("read-only"));
        complaints.pause = Duration::ZERO;
        assert_eq!(next(&complaints, "full").as_deref(), Some("full (2 times more)"));
        assert_eq!(next(&complaints, "full").as_deref(), Some("full (1 times more)"));
        for n in 0..2 * MAX_KINDS {
            assert!(next(&complaints, &n.to_string()).is_some());
        }
        assert!(complaints.said.into_inner().unwrap().len() <= MAX_KINDS);
    }
}
