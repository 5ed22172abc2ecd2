//! Warnings on standard error, for the person who runs the system. Writes nothing to standard output.

use std::collections::HashMap;
use std::fmt::Display;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use runtime::clock::Stopwatch;

/// Writes a warning. Ignores a terminal that was closed.
pub(crate) fn warn(message: impl Display) {
    drop(writeln!(std::io::stderr().lock(), "roomtide: {message}"));
}

/// Limits repeated warnings, such as one for each write to a full disk. The first is written at once, then at most one
/// a minute, with the number of warnings left out.
#[derive(Debug)]
pub(crate) struct WarningLimiter {
    interval: Duration,
    written: Mutex<HashMap<String, Written>>,
}

#[derive(Debug)]
struct Written {
    at: Stopwatch,
    left_out: usize,
}

/// The largest number of messages that are remembered. With more, all are forgotten, so each is written again.
const MAX_MESSAGES: usize = 100;

impl WarningLimiter {
    /// A limiter that has written nothing yet.
    pub(crate) fn new() -> Self {
        Self { interval: Duration::from_secs(60), written: Mutex::default() }
    }

    /// Writes a warning, unless the same one was written within the interval.
    pub(crate) fn warn(&self, message: impl Display) {
        if let Some(line) = self.admit(message.to_string()) {
            warn(line);
        }
    }

    fn admit(&self, message: String) -> Option<String> {
        let mut all = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(written) = all.get_mut(&message) {
            written.left_out += 1;
            if written.at.elapsed() < self.interval {
                return None;
            }

            let line = format!("{message} ({} times more)", written.left_out);
            *written = Written { at: Stopwatch::start(), left_out: 0 };
            return Some(line);
        }

        if all.len() >= MAX_MESSAGES {
            all.clear();
        }
        all.insert(message.clone(), Written { at: Stopwatch::start(), left_out: 0 });
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_warning_is_counted_and_written_after_the_interval() {
        let mut limiter = WarningLimiter::new();
        let admit = |limiter: &WarningLimiter, message: &str| limiter.admit(message.to_owned());
        assert_eq!(admit(&limiter, "full").as_deref(), Some("full"));
        assert_eq!(admit(&limiter, "full"), None);
        assert_eq!(admit(&limiter, "read-only").as_deref(), Some("read-only"));
        limiter.interval = Duration::ZERO;
        assert_eq!(admit(&limiter, "full").as_deref(), Some("full (2 times more)"));
        assert_eq!(admit(&limiter, "full").as_deref(), Some("full (1 times more)"));
        for n in 0..2 * MAX_MESSAGES {
            assert!(admit(&limiter, &n.to_string()).is_some());
        }
        assert!(limiter.written.into_inner().unwrap().len() <= MAX_MESSAGES);
    }
}
