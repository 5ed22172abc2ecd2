//! The pace of bulk work on a table with limited capacity: a share of its units, so that devices have the rest. Counts
//! no units itself.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use runtime::clock::Stopwatch;

/// The maximum number of attempts of a request to a busy system, and the pause after the first. Each further pause is
/// twice as long.
pub(crate) const ATTEMPTS: u32 = 8;
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The share of a command that causes no further work.
pub(crate) const HALF: f64 = 0.5;

/// Limits the consumption of read units, or of write units. Without a limit nothing waits.
#[derive(Debug)]
pub(crate) struct Pace {
    watch: Stopwatch,
    share: f64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The rate in units per second.
    rate: Option<f64>,
    /// The share of the table's units, per second.
    bearable: Option<f64>,
    /// Whether a person chose the rate, which answers then do not change.
    is_chosen: bool,
    is_told: bool,
    /// The time when the units taken so far are used up, in seconds since the start.
    next: f64,
}

impl Pace {
    /// A pace of a share of the table's units; without a limit until the units are learned.
    pub(crate) fn of(share: f64) -> Self {
        Self { watch: Stopwatch::start(), share, state: Mutex::default() }
    }

    /// A pace of the units per second that a person chose, else of a share of the table's.
    pub(crate) fn chosen_or(units: Option<f64>, share: f64) -> Self {
        let pace = Self::of(share);
        if let Some(units) = units {
            let mut state = pace.state();
            (state.rate, state.is_chosen) = (Some(units), true);
        }
        pace
    }

    /// A pace of half of a table's units per second; without a limit if the table has none.
    pub(crate) fn half_of(units: Option<u32>) -> Self {
        let pace = Self::of(HALF);
        pace.learn(units);
        pace
    }

    /// Notes the table's units per second from an answer.
    pub(crate) fn learn(&self, units: Option<u32>) {
        let mut state = self.state();
        state.is_told = true;
        if let Some(units) = units.filter(|units| *units > 0) {
            state.bearable = Some(f64::from(units) * self.share);
            if !state.is_chosen {
                state.rate = state.bearable;
            }
        }
    }

    /// Whether an answer has named the table's units, or said that the table has no limit.
    pub(crate) fn is_told(&self) -> bool {
        self.state().is_told
    }

    /// The maximum units of a request that should complete within `seconds`, by the lower of the chosen rate and the
    /// table's share.
    pub(crate) fn units_within(&self, seconds: f64) -> Option<f64> {
        let state = self.state();
        let rates = [state.rate, state.bearable].into_iter().flatten();
        rates.reduce(f64::min).map(|rate| (rate * seconds).max(1.0))
    }

    /// Takes units. Returns how long to wait before using them.
    pub(crate) fn take(&self, units: f64) -> Duration {
        let now = self.watch.elapsed().as_secs_f64();
        let mut state = self.state();
        let Some(rate) = state.rate else { return Duration::ZERO };
        // Unused units of the past are left to the devices.
        let start = state.next.max(now);
        state.next = start + units / rate;
        Duration::try_from_secs_f64(start - now).unwrap_or_default()
    }

    /// Corrects the units taken by the units consumed.
    pub(crate) fn settle(&self, taken: f64, consumed: f64) {
        let mut state = self.state();
        if let Some(rate) = state.rate {
            state.next += (consumed - taken) / rate;
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Pace {
        /// The rate in units per second, if it is limited.
        fn rate(&self) -> Option<f64> {
            self.state().rate
        }
    }

    #[test]
    fn half_of_the_units_is_taken_however_many_take_it() {
        let pace = Pace::half_of(Some(20));
        let waits: Vec<_> = (0..3).map(|_| pace.take(30.0).as_millis().div_ceil(100)).collect();
        assert_eq!(waits, [0, 30, 60], "tenths of a second");
        pace.settle(30.0, 10.0);
        assert_eq!(pace.take(1.0).as_millis().div_ceil(100), 70);
    }

    #[test]
    fn a_chosen_pace_is_kept_and_no_request_is_larger_than_the_table_can_bear() {
        let pace = Pace::chosen_or(Some(100.0), 0.5);
        assert!(!pace.is_told() && pace.units_within(3.0) == Some(300.0));
        pace.learn(Some(11));
        assert_eq!((pace.rate(), pace.units_within(3.0)), (Some(100.0), Some(16.5)));
        let pace = Pace::chosen_or(Some(2.0), 0.5);
        pace.learn(Some(11));
        assert_eq!(pace.units_within(3.0), Some(6.0));
        assert_eq!(pace.units_within(0.1), Some(1.0), "a reading at least");
        let pace = Pace::chosen_or(None, 0.5);
        pace.learn(Some(11));
        assert_eq!((pace.rate(), Pace::of(0.5).units_within(3.0)), (Some(5.5), None));
    }

    #[test]
    fn a_table_without_a_bound_is_not_waited_for() {
        for units in [None, Some(0)] {
            let pace = Pace::half_of(units);
            assert!((pace.take(1e9).as_millis(), pace.take(1e9).as_millis()) == (0, 0));
            assert_eq!(pace.rate(), None);
        }
        let pace = Pace::half_of(None);
        pace.learn(Some(12));
        pace.learn(None);
        assert_eq!(pace.rate(), Some(6.0));
    }
}
