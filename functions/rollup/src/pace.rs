//! The pace of work that nobody waits for: a fifth of what the table may consume. Counts no units itself.

use std::time::Duration;

use runtime::clock::Stopwatch;
use table::Invocation;

use crate::Settings;

/// Such work gets one part in this many of the table's ceilings.
const PARTS: u32 = 5;

/// The time after which the next invocation by the schedule is due soon, and goes on.
const TURN: Duration = Duration::from_secs(50);

/// The least time for repeating throttled requests of a group. A group that was begun is finished, also after its turn.
const LEAST_LEFT: Duration = Duration::from_secs(4);

/// The pace of one invocation.
#[derive(Debug)]
pub(crate) struct Pace {
    started: Stopwatch,
    read_units_per_second: f64,
    write_units_per_second: f64,
    units_of_turn: u64,
}

impl Pace {
    /// Begins.
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            started: Stopwatch::start(),
            read_units_per_second: f64::from(settings.max_read_units) / f64::from(PARTS),
            write_units_per_second: f64::from(settings.max_write_units) / f64::from(PARTS),
            units_of_turn: u64::from(settings.max_write_units) * TURN.as_secs() / u64::from(PARTS),
        }
    }

    /// Whether what is left should be left to the next invocation: two at once would do the same work.
    pub(crate) fn is_turn_over(&self) -> bool {
        self.started.elapsed() >= TURN
    }

    /// The time that is left of the turn for devices that the table throttles.
    pub(crate) fn left(&self) -> Duration {
        TURN.saturating_sub(self.started.elapsed()).max(LEAST_LEFT)
    }

    /// The write units that such work may consume in a turn.
    pub(crate) const fn write_units_of_turn(&self) -> u64 {
        self.units_of_turn
    }

    /// Waits until as much time has passed as the consumed units are worth, or until none is left.
    pub(crate) async fn keep(&self, invocation: &Invocation) {
        let seconds = (invocation.read_units() / self.read_units_per_second)
            .max(invocation.write_units() / self.write_units_per_second);
        // With a ceiling of zero nothing can be paced: do not wait.
        let due = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO);
        let ahead = due.saturating_sub(self.started.elapsed()).min(invocation.remaining());
        if !ahead.is_zero() {
            tokio::time::sleep(ahead).await;
        }
    }
}
