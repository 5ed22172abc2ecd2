//! The only place that reads the time of day. [`Deadline`] tells how much time is left.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use domain::Timestamp;
pub use table::Deadline;

/// A source of the time of day.
pub trait Clock: Clone + Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// The machine's clock, limited to the years 1970 to 9999. So a clock that is set wrong causes no panic: readings and
/// requests are refused because of their time.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    fn now(&self) -> Timestamp {
        shown(SystemTime::now())
    }
}

/// A clock of any type. A struct with this clock needs no parameter for the type.
#[derive(Clone)]
pub struct SharedClock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl SharedClock {
    /// Shares a clock.
    pub fn of(clock: impl Clock) -> Self {
        Self(Arc::new(move || clock.now()))
    }
}

impl fmt::Debug for SharedClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedClock")
    }
}

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        (self.0)()
    }
}

fn shown(time: SystemTime) -> Timestamp {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let millis = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(millis).unwrap_or(Timestamp::MAX)
}

/// The deadline of a Lambda invocation whose end is given in milliseconds since 1970. Half a second is kept for writing
/// the answer.
pub fn end_of_invocation(ends_at_millis: u64, clock: &impl Clock) -> Deadline {
    let now = u64::try_from(clock.now().as_millis()).unwrap_or(0);
    let left = ends_at_millis.saturating_sub(now).saturating_sub(500);
    Deadline::after(Duration::from_millis(left))
}

/// Measures the time since its start.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(tokio::time::Instant);

impl Stopwatch {
    /// Starts measuring.
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    pub fn start() -> Self {
        Self(tokio::time::Instant::now())
    }

    /// The time since the start.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// A clock that stands still until a test moves it.
#[cfg(any(test, feature = "fake"))]
#[derive(Debug, Clone)]
pub struct TestClock(Arc<std::sync::atomic::AtomicI64>);

#[cfg(any(test, feature = "fake"))]
impl TestClock {
    /// A clock that shows `timestamp`.
    pub fn at(timestamp: Timestamp) -> Self {
        Self(Arc::new(timestamp.as_millis().into()))
    }

    /// Sets the clock, forward or back.
    pub fn set(&self, timestamp: Timestamp) {
        self.0.store(timestamp.as_millis(), std::sync::atomic::Ordering::SeqCst);
    }

    /// Moves the clock forward.
    pub fn advance(&self, duration: Duration) {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        self.0.fetch_add(millis, std::sync::atomic::Ordering::SeqCst);
    }
}

#[cfg(any(test, feature = "fake"))]
impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let millis = self.0.load(std::sync::atomic::Ordering::SeqCst);
        Timestamp::from_millis(millis).expect("a test's clock stays within the years 1970 to 9999")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_outside_of_the_years_1970_to_9999_shows_the_nearest_time() {
        let of = |seconds: i64| {
            let distance = Duration::from_secs(seconds.unsigned_abs());
            let epoch = SystemTime::UNIX_EPOCH;
            shown(if seconds < 0 { epoch - distance } else { epoch + distance })
        };
        assert_eq!(of(-315_619_200), Timestamp::MIN);
        assert_eq!(of(1_768_147_200).to_string(), "2026-01-11T16:00:00.000Z");
        assert_eq!(of(400_000_000_000), Timestamp::MAX);
    }
}
