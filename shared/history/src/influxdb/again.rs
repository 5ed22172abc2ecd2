//! Repeats failed requests to an InfluxDB. Sends no request itself.

use std::fmt;
use std::thread;
use std::time::Duration;

/// The maximum number of attempts.
const ATTEMPTS: u32 = 4;
/// The pause between attempts.
const PAUSE: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_secs(3) };

/// An error that another attempt would not change, such as a wrong password.
#[derive(Debug)]
pub(super) struct Lasting(pub(super) String);

impl fmt::Display for Lasting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Lasting {}

/// Sends a request and reads the answer. Repeats both if they fail and another attempt may succeed.
pub(super) fn again<T>(mut ask: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<T> {
    for _ in 1..ATTEMPTS {
        match ask() {
            Err(error) if !error.is::<Lasting>() => thread::sleep(PAUSE),
            told => return told,
        }
    }
    ask()
}
