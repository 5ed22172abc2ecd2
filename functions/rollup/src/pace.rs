//! The pace of background work: a fifth of the units that the table may consume. Counts no units itself.

use std::time::Duration;

use runtime::clock::Stopwatch;
use table::Invocation;

use crate::Settings;

/// Background work gets the table's largest rates of units divided by this number.
const DIVISOR: u32 = 5;

/// How long an invocation may work. Soon after, the schedule invokes the function again, which continues.
const WORKING_TIME: Duration = Duration::from_secs(50);

/// The least time for retries of throttled requests: a group that was begun is finished even after `WORKING_TIME`.
const LEAST_PATIENCE: Duration = Duration::from_secs(4);

/// The pace of one invocation.
#[derive(Debug)]
pub(crate) struct BackgroundPace {
    started: Stopwatch,
    read_units_per_second: f64,
    write_units_per_second: f64,
    write_units: u64,
}

impl BackgroundPace {
    /// Begins the time in which an invocation may work.
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            started: Stopwatch::start(),
            read_units_per_second: f64::from(settings.max_read_units) / f64::from(DIVISOR),
            write_units_per_second: f64::from(settings.max_write_units) / f64::from(DIVISOR),
            write_units: u64::from(settings.max_write_units) * WORKING_TIME.as_secs()
                / u64::from(DIVISOR),
        }
    }

    /// Whether to leave the remaining work to the next invocation, which begins soon and would do the same work.
    pub(crate) fn is_time_over(&self) -> bool {
        self.started.elapsed() >= WORKING_TIME
    }

    /// The rest of the invocation's working time, also the time for retries of throttled requests.
    pub(crate) fn remaining(&self) -> Duration {
        WORKING_TIME.saturating_sub(self.started.elapsed()).max(LEAST_PATIENCE)
    }

    /// The write units that background work may consume in one invocation.
    pub(crate) const fn write_units_of_invocation(&self) -> u64 {
        self.write_units
    }

    /// Waits until the consumed units are within the pace, or until the invocation has no time left.
    pub(crate) async fn wait(&self, invocation: &Invocation) {
        let seconds = (invocation.read_units() / self.read_units_per_second)
            .max(invocation.write_units() / self.write_units_per_second);
        // If a rate is zero, there is no pace to keep, and no wait.
        let due = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO);
        let ahead = due.saturating_sub(self.started.elapsed()).min(invocation.remaining());
        if !ahead.is_zero() {
            tokio::time::sleep(ahead).await;
        }
    }
}
