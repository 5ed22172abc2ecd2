//! The time left to an invocation, by the monotonic clock, which nobody can set. Does not know the time of day.

use std::time::Duration;

use tokio::time::Instant;

/// The moment by which an invocation must have answered.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline at this duration from now.
    #[expect(clippy::disallowed_methods, reason = "this is the door to the monotonic clock")]
    pub fn after(duration: Duration) -> Self {
        Self(Instant::now() + duration)
    }

    /// The time that is left; zero once the deadline has passed.
    #[expect(clippy::disallowed_methods, reason = "this is the door to the monotonic clock")]
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}
