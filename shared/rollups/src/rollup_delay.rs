//! The delay with which rollups follow changes of past readings. Reads no clock.

use std::time::Duration;

use chrono::TimeDelta;
use domain::{QuarterHour, TimeRange, Timestamp};
use table::{DeviceGroups, LateChanges, LateMark};

use crate::sealing::{SKEW, is_over};

/// The time for which an instance marks its coming changes with one mark.
pub const MARKED_AHEAD: TimeDelta = TimeDelta::seconds(10);
/// The longest time from a reading of the clock to the end of the writes that follow it.
const STORING: TimeDelta = TimeDelta::seconds(30);
/// The least time that the rollup function has for folding gathered changes.
const MIN_SLACK: TimeDelta = TimeDelta::seconds(5);

/// Whether rollups have to follow a change of a reading: the reading's quarter may be sealed before the change is
/// stored.
pub fn is_late(at: Timestamp, now: Timestamp) -> bool {
    is_over(QuarterHour::of(at).end(), now.saturating_add(STORING))
}

/// The delay with which rollups follow changes that are gathered for some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RollupDelay {
    window: TimeDelta,
    /// The time that the rollup function has for folding gathered changes.
    slack: TimeDelta,
}

impl Default for RollupDelay {
    /// The delay of a deployed system with default parameters.
    fn default() -> Self {
        Self::gathering_for(Duration::from_secs(60))
    }
}

impl RollupDelay {
    /// The delay if changes are gathered for `window`, at most a day.
    pub fn gathering_for(window: Duration) -> Self {
        let window = TimeDelta::from_std(window).unwrap_or(TimeDelta::MAX).min(TimeDelta::days(1));
        Self { window, slack: (window / 2).max(MIN_SLACK) }
    }

    /// The delay if changes are not gathered and the function needs at most `slack`, for a test that waits.
    pub fn at_once(slack: Duration) -> Self {
        Self { slack: TimeDelta::from_std(slack).unwrap_or(MIN_SLACK), window: TimeDelta::zero() }
    }

    /// The time for which changes are gathered.
    pub fn window(&self) -> Duration {
        self.window.to_std().unwrap_or_default()
    }

    /// The time for which answers say that rollups may lack a change. After this time a rollup has the change, or the
    /// function has noted its backlog.
    pub fn named_for(&self) -> TimeDelta {
        self.window + self.slack
    }

    /// Whether the function has a backlog if the change of the time `written` is not folded yet. The backlog is noted
    /// so early that it is known while answers still name the change.
    pub fn has_backlog(&self, written: Timestamp, now: Timestamp) -> bool {
        now.since(written) > self.window + self.slack / 4
    }

    /// The time between two notes of a backlog that continues.
    pub fn note_interval(&self) -> TimeDelta {
        self.slack
    }

    /// The instant since which changes may be missing in the rollups of a range and of groups of devices. `None`: no
    /// missing change is known.
    pub fn lacking_since(
        &self,
        late: &LateChanges,
        range: TimeRange,
        groups: DeviceGroups,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let is_marked = |mark: &LateMark| self.counts(mark, now) && mark.concerns(range, groups);
        // A mark does not say when a change is made. Changes before this instant are folded or in the backlog.
        let earliest = now.saturating_add(-self.named_for());
        let marked = late.marks.iter().any(is_marked).then_some(earliest);
        marked.into_iter().chain(self.backlog_since(late, now)).min()
    }

    /// The instant up to which all changes are folded, of all devices and ranges.
    pub fn folded_until(&self, late: &LateChanges, now: Timestamp) -> Timestamp {
        let is_marked = late.marks.iter().any(|mark| self.counts(mark, now));
        let earliest = if is_marked { now.saturating_add(-self.named_for()) } else { now };
        earliest.min(self.backlog_since(late, now).unwrap_or(earliest))
    }

    /// Whether changes that a mark announces may still be unfolded without a note of a backlog. A mark that ends too
    /// late was made by a wrong clock.
    fn counts(&self, mark: &LateMark, now: Timestamp) -> bool {
        let is_of_right_clock = mark.until <= now.saturating_add(MARKED_AHEAD + SKEW);
        is_of_right_clock && mark.until.saturating_add(self.named_for()) > now
    }

    /// The time since which changes wait, if the function has noted a backlog lately.
    fn backlog_since(&self, late: &LateChanges, now: Timestamp) -> Option<Timestamp> {
        // A note that comes late, as on a busy machine, still comes before the earlier note becomes invalid.
        let valid = self.note_interval() * 3;
        let is_new = |at: Timestamp| now.since(at) < valid && at.since(now) < SKEW;
        late.backlog.filter(|backlog| is_new(backlog.at)).map(|backlog| backlog.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::newest_sealable_end;
    use domain::given::{self, at_second, device};
    use table::Backlog;

    fn range(from: i64, to: i64) -> TimeRange {
        given::range(at_second(from), at_second(to))
    }

    fn rollup_delay(seconds: u64) -> RollupDelay {
        RollupDelay::gathering_for(Duration::from_secs(seconds))
    }

    fn late(from: i64, to: i64, until: i64) -> LateChanges {
        let groups = DeviceGroups::of(&device("a"));
        let marks = vec![LateMark { range: range(from, to), groups, until: at_second(until) }];
        LateChanges { version: 1, marks, backlog: None }
    }

    /// Whatever the clocks show, within the most by which two differ: what is not marked when it is stored is
    /// in a quarter that nobody has sealed by then.
    #[test]
    fn what_is_not_marked_is_stored_before_its_quarter_is_sealed() {
        let mut rng = fastrand::Rng::with_seed(3);
        for _ in 0..100_000 {
            let now = at_second(rng.i64(0..10_000));
            let reading = at_second(rng.i64(-3_000..10_000));
            let stored = now.saturating_add(TimeDelta::seconds(rng.i64(0..30)));
            let sealing = stored.saturating_add(TimeDelta::seconds(rng.i64(-60..=60)));
            let is_sealed = QuarterHour::of(reading).end() <= newest_sealable_end(sealing);
            assert!(is_late(reading, now) || !is_sealed, "{reading} {now} {stored} {sealing}");
        }
    }

    #[test]
    fn an_answer_lacks_a_late_change_until_it_is_surely_folded() {
        let all = DeviceGroups::ALL;
        let late = late(-100, 0, 10);
        // The last second: the mark ends in second 10, and counts for the window and the slack after it, which is half
        // of the window, but at least 5 seconds.
        for (window, last) in [(0, 14), (1, 15), (60, 99), (300, 459)] {
            let since = |second| {
                rollup_delay(window).lacking_since(&late, range(-200, -50), all, at_second(second))
            };
            let named_for = last + 1 - 10;
            assert_eq!(since(0), Some(at_second(-named_for)), "{window}");
            assert_eq!(since(last), Some(at_second(last - named_for)), "{window}");
            assert_eq!(since(last + 1), None, "{window}");
            // A change that is written last of all is noted as late before the mark ends.
            let has_backlog =
                |second| rollup_delay(window).has_backlog(at_second(10), at_second(second));
            assert!(has_backlog(last) && !has_backlog(10 + i64::try_from(window).expect("small")));
        }
    }

    #[test]
    fn a_mark_is_about_its_time_and_its_devices() {
        let late = late(-100, 0, 10);
        let since = |span, id: &str| {
            let groups = DeviceGroups::of(&device(id));
            rollup_delay(60).lacking_since(&late, span, groups, at_second(90))
        };
        assert_eq!(since(range(-200, -100), "a"), None, "before");
        assert_eq!(since(range(-200, -99), "a"), Some(at_second(0)));
        assert_eq!(since(range(-1, 20), "a"), Some(at_second(0)));
        assert_eq!(since(range(0, 20), "a"), None, "behind");
        assert_eq!(since(range(-50, 20), "b"), None, "of another device");
    }

    #[test]
    fn the_mark_and_the_note_of_a_wrong_clock_are_not_believed() {
        let (all, hours) = (DeviceGroups::ALL, 9 * 3_600);
        let mut late = late(-100, 0, hours + 10);
        late.backlog = Some(Backlog { since: at_second(hours), at: at_second(hours + 100) });
        let since =
            |second| rollup_delay(60).lacking_since(&late, range(-200, 0), all, at_second(second));
        assert_eq!(since(5), None);
        assert_eq!(since(hours), Some(at_second(hours - 90)));
    }

    #[test]
    fn what_is_folded_is_told_by_marks_and_notes() {
        let rollup_delay = rollup_delay(60);
        let mut known = late(-100, 0, 10);
        assert_eq!(
            rollup_delay.folded_until(&LateChanges::default(), at_second(50)),
            at_second(50)
        );
        assert_eq!(rollup_delay.folded_until(&known, at_second(50)), at_second(-40));
        assert_eq!(rollup_delay.folded_until(&known, at_second(100)), at_second(100));
        known.backlog = Some(Backlog { since: at_second(3), at: at_second(95) });
        assert_eq!(rollup_delay.folded_until(&known, at_second(99)), at_second(3));
        assert_eq!(rollup_delay.folded_until(&known, at_second(184)), at_second(3));
        assert_eq!(rollup_delay.folded_until(&known, at_second(185)), at_second(185));
    }
}
