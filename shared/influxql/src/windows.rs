//! The windows of `GROUP BY time`: multiples of an interval from 1970 on, or on a zone's clock. Holds no values.

use std::collections::{BTreeMap, BTreeSet};

use domain::Zone;

use crate::duration::SECOND;

/// A range of times, both ends inclusive, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InstantRange {
    pub(crate) from: i64,
    pub(crate) last: i64,
}

/// The windows of `time(length, offset)`; all times are nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeWindows {
    pub(crate) length: i64,
    pub(crate) offset: i64,
    pub(crate) zone: Option<Zone>,
}

impl TimeWindows {
    /// The nanoseconds by which the zone's clock is ahead of UTC. Beyond 64 bits, the nearest 64-bit time counts.
    fn ahead(&self, at: i128) -> i128 {
        let second = within(at).div_euclid(SECOND);
        i128::from(self.zone.map_or(0, |zone| zone.offset(second))) * i128::from(SECOND)
    }

    /// Moves an edge of a window if the clock changes within the window. `ahead` is the clock's offset in the rest of
    /// the window. A change that is as long as the window moves no edge.
    fn settled(&self, edge: i128, ahead: i128) -> i128 {
        let change = ahead - self.ahead(edge);
        if change.abs() < i128::from(self.length) { edge + change } else { edge }
    }

    /// The window that contains `at`: its start and exclusive end.
    ///
    /// As in InfluxDB, windows that do not divide the day may touch or overlap at a clock change.
    pub(crate) fn window(&self, at: i64) -> (i64, i64) {
        let (length, offset) = (i128::from(self.length), i128::from(self.offset));
        let at = i128::from(at) - offset;
        let ahead = self.ahead(at);
        let start = at - (at + ahead).rem_euclid(length);
        let end = start + length;
        let moved = self.settled(end, ahead);
        // An end is not moved to before the change: the window would miss the time that the clock skips.
        let end = if self.ahead(moved) == self.ahead(end) { moved } else { end };
        (within(self.settled(start, ahead) + offset), within(end + offset))
    }

    /// For each time, the start of its window. If windows overlap, the first of them in the answer is taken.
    pub(crate) fn starts_of(
        &self,
        times: &BTreeSet<i64>,
        is_descending: bool,
    ) -> BTreeMap<i64, i64> {
        let mut times: Vec<i64> = times.iter().copied().collect();
        if is_descending {
            times.reverse();
        }

        let mut window = None;
        let mut start_of = |at| {
            let is_in =
                |window: &(i64, i64)| if is_descending { window.0 <= at } else { at < window.1 };
            let found = window.filter(is_in).unwrap_or_else(|| self.window(at));
            window = Some(found);
            (at, found.0)
        };
        times.into_iter().map(&mut start_of).collect()
    }

    /// The starts of an answer's windows, and both edges of each window that contains such a start. Where a clock goes
    /// back, an edge may differ from all starts.
    pub(crate) fn edges(&self, starts: &[i64]) -> impl Iterator<Item = i64> {
        starts.iter().flat_map(|at| {
            let (start, end) = self.window(*at);
            [*at, start, end]
        })
    }

    /// The start of the window that contains `at`.
    pub(crate) fn start(&self, at: i64) -> i64 {
        self.window(at).0
    }

    /// Whether windows follow the zone's calendar: their length divides a day, or is a multiple of a day.
    pub(crate) const fn is_regular(&self) -> bool {
        const DAY: i64 = 86_400 * SECOND;
        self.zone.is_none() || DAY % self.length == 0 || self.length % DAY == 0
    }

    /// Widens a range by this number of earlier windows. In descending order, these windows are after the range.
    pub(crate) const fn widened(
        &self,
        range: InstantRange,
        windows: i64,
        is_descending: bool,
    ) -> InstantRange {
        let length = self.length.saturating_mul(windows);
        if is_descending {
            InstantRange { last: range.last.saturating_add(length), ..range }
        } else {
            InstantRange { from: range.from.saturating_sub(length), ..range }
        }
    }

    /// The starts of the windows that contain a time of the range, in the order of the answer. The error is the number
    /// of windows, if there are more than `most`.
    pub(crate) fn starts(
        &self,
        range: InstantRange,
        is_descending: bool,
        most: i64,
    ) -> Result<Vec<i64>, i64> {
        let InstantRange { from, last } = range;
        let number = (last.saturating_sub(from) / self.length).saturating_add(1);
        if number > most {
            return Err(number);
        }

        let (first, end) = (i128::from(self.start(from)), i128::from(self.start(last)));
        let (mut at, step) = if is_descending {
            (end, -i128::from(self.length))
        } else {
            (first, i128::from(self.length))
        };

        let mut starts = Vec::new();
        let mut ahead = self.ahead(at);
        while (first..=end).contains(&at) {
            starts.push(within(at));
            at += step;
            // The offset just before the window counts, so that a change at its start is included in this step.
            let now = self.ahead(at - 1);
            at += if (ahead - now).abs() < i128::from(self.length) { ahead - now } else { 0 };
            ahead = now;
        }

        Ok(starts)
    }
}

/// Converts to 64 bits. A time outside becomes `i64::MIN` or `i64::MAX`.
fn within(at: i128) -> i64 {
    i64::try_from(at).unwrap_or(if at < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use domain::given;
    use proptest::prelude::*;

    use super::*;

    const HOUR: i64 = 3_600 * SECOND;
    const DAY: i64 = 24 * HOUR;

    const fn range(from: i64, last: i64) -> InstantRange {
        InstantRange { from, last }
    }

    fn interval(length: i64, offset: i64, zone: &str) -> TimeWindows {
        let zone = (!zone.is_empty()).then(|| zone.parse().expect("a zone"));
        TimeWindows { length, offset, zone }
    }

    #[test]
    fn windows_are_multiples_of_the_interval_and_may_be_moved() {
        assert_eq!(
            interval(HOUR, 0, "").starts(range(HOUR / 2, 2 * HOUR), false, 3),
            Ok(vec![0, HOUR, 2 * HOUR])
        );
        assert_eq!(interval(HOUR, -HOUR / 4, "").start(0), -HOUR / 4);
        assert_eq!(interval(HOUR, HOUR / 4, "").start(0), -3 * HOUR / 4);
        // 1970-01-01 was a Thursday.
        assert_eq!(interval(7 * DAY, 0, "").start(3 * DAY), 0);
        assert_eq!(interval(1, 0, "").starts(range(0, SECOND), false, 11_000), Err(SECOND + 1));
    }

    #[test]
    fn days_of_a_zone_follow_its_clock() {
        let days = interval(DAY, 0, "Europe/Berlin");
        // 2026-03-28 to 03-30: the 29th has 23 hours.
        let noon = 1_774_695_600 * SECOND;
        let starts = days.starts(range(noon, noon + 2 * DAY), false, 9).expect("three");
        let lengths: Vec<i64> = starts.windows(2).map(|it| (it[1] - it[0]) / HOUR).collect();
        assert_eq!(lengths, [24, 23]);
        // 2026-10-24 to 10-26: the 25th has 25.
        let noon = 1_792_836_000 * SECOND;
        let starts = days.starts(range(noon, noon + 2 * DAY), false, 9).expect("three");
        let lengths: Vec<i64> = starts.windows(2).map(|it| (it[1] - it[0]) / HOUR).collect();
        assert_eq!(lengths, [24, 25]);
    }

    /// As influxd 1.6.7 answered: 2026-03-29T01:00Z is 3 o'clock in Brussels.
    #[test]
    fn windows_that_do_not_divide_the_day_move_where_the_clock_changes() {
        let windows = interval(3 * HOUR / 2, HOUR / 2, "Europe/Brussels");
        assert_eq!(windows.start(1_774_747_060 * SECOND), 1_774_746_000 * SECOND);
        assert_eq!(windows.start(1_774_747_900 * SECOND), 1_774_747_800 * SECOND);
    }

    /// As influxd 1.6.7 answered in windows that hold, end at, or begin at a change of the clock.
    #[test]
    fn windows_at_a_change_of_the_clock_are_those_of_influxd() {
        let ninety = 3 * HOUR / 2;
        for (zone, length, offset, at, window) in [
            (
                "Europe/Brussels",
                2 * HOUR,
                0,
                "2026-03-29T00:30",
                ["2026-03-28T23:00", "2026-03-29T01:00"],
            ),
            (
                "Europe/Brussels",
                2 * HOUR,
                0,
                "2026-03-29T01:00",
                ["2026-03-29T01:00", "2026-03-29T02:00"],
            ),
            (
                "Europe/Brussels",
                2 * HOUR,
                HOUR / 4,
                "2026-03-29T01:10",
                ["2026-03-28T23:15", "2026-03-29T01:15"],
            ),
            (
                "Europe/Brussels",
                DAY,
                0,
                "2026-03-29T00:30",
                ["2026-03-28T23:00", "2026-03-29T22:00"],
            ),
            (
                "Atlantic/Azores",
                DAY,
                0,
                "2026-03-29T00:30",
                ["2026-03-28T01:00", "2026-03-29T01:00"],
            ),
            ("Africa/Cairo", DAY, 0, "2026-10-29T21:30", ["2026-10-28T21:00", "2026-10-29T22:00"]),
            (
                "Australia/Lord_Howe",
                HOUR,
                0,
                "2026-04-04T15:10",
                ["2026-04-04T14:00", "2026-04-04T15:30"],
            ),
            (
                "Pacific/Chatham",
                ninety,
                0,
                "2026-09-26T13:00",
                ["2026-09-26T12:45", "2026-09-26T14:15"],
            ),
            (
                "Pacific/Chatham",
                ninety,
                0,
                "2026-09-26T14:20",
                ["2026-09-26T14:15", "2026-09-26T14:45"],
            ),
        ] {
            let nanos = |text: &str| {
                let at = given::at(&format!("{text}:00Z"));
                at.as_millis() * crate::duration::MILLISECOND
            };
            let found = interval(length, offset, zone).window(nanos(at));
            assert_eq!(found, (nanos(window[0]), nanos(window[1])), "{zone} {length} {at}");
        }
    }

    /// A row of 588 for a day of 300 was the day of 25 hours and the one behind it.
    #[test]
    fn a_clock_that_goes_back_at_midnight_has_the_next_day_among_the_edges() {
        let days = interval(DAY, 0, "Africa/Cairo");
        let noon = 1_793_275_200 * SECOND; // 2026-10-29
        let starts = days.starts(range(noon, noon + DAY), false, 9).expect("two");
        let next = days.start(noon + DAY);
        assert!(!starts.contains(&next) && days.edges(&starts).any(|it| it == next), "{starts:?}");
    }

    #[test]
    fn windows_go_on_in_every_zone() {
        for zone in ["Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "America/New_York"] {
            for length in [HOUR / 4, HOUR, 2 * HOUR, 5 * HOUR, DAY, 7 * DAY] {
                let windows = interval(length, 0, zone);
                let from = 1_767_225_600 * SECOND;
                let starts = windows.starts(range(from, from + 300 * DAY), false, 30_000);
                let starts = starts.expect("fewer");
                assert!(starts.windows(2).all(|it| it[0] < it[1]), "{zone} {length}");
            }
        }
    }

    proptest! {
        /// Around a change of each clock, times of all windows that divide a day or are made of days.
        #[test]
        fn regular_windows_contain_their_times_where_the_clock_changes(
            zone in prop::sample::select(vec![
                ("Europe/Brussels", [1_774_746_000, 1_792_890_000]),
                ("Atlantic/Azores", [1_774_746_000, 1_792_890_000]),
                ("Australia/Lord_Howe", [1_775_314_800, 1_791_041_400]),
                ("Pacific/Chatham", [1_775_311_200, 1_790_431_200]),
                ("Africa/Cairo", [1_776_981_600, 1_793_307_600]),
                ("America/Santiago", [1_775_358_000, 1_788_667_200]),
            ]),
            change in 0_usize..2,
            near in -50 * HOUR..50 * HOUR,
            length in prop::sample::select(vec![HOUR / 4, HOUR / 2, HOUR, 2 * HOUR, 3 * HOUR, 8 * HOUR, DAY, 2 * DAY, 7 * DAY]),
            share in -99_i64..=99,
        ) {
            let offset = length / 100 * share;
            let windows = interval(length, offset, zone.0);
            let change = zone.1[change] * SECOND;
            let at = change + near;
            let holds = |(start, end): (i64, i64)| start <= at && at < end;
            let window = windows.window(at);
            // A clock that skips the start of a window leaves the time until that start to the window before.
            let is_before_a_skipped_start = holds(windows.window(change + offset - 1));
            prop_assert!(holds(window) || is_before_a_skipped_start, "{zone:?} {length} {share}: {window:?} {at}");
            prop_assert!(windows.start(window.0) == window.0 || is_before_a_skipped_start);
        }

        /// Lengths up to the longest that a query may have, offsets below them, times of all 64 bits.
        #[test]
        fn windows_of_any_length_contain_their_times_and_end(
            at in any::<i64>(),
            length in prop_oneof![1..=36_500 * DAY, Just(36_500 * DAY), Just(DAY)],
            share in -99_i64..=99,
            zone in prop::sample::select(vec!["", "Europe/Berlin", "Pacific/Apia"]),
            is_descending: bool,
        ) {
            let windows = interval(length, length / 100 * share, zone);
            let (start, end) = windows.window(at);
            prop_assert!(start <= end);
            // Where the clock changes within a window that does not divide a day, it may end before its times.
            let is_inside = start <= at && (at < end || end == i64::MAX);
            prop_assert!(is_inside || !windows.is_regular(), "{start} {at} {end}");
            let wide = windows.widened(range(at, at), 2, is_descending);
            prop_assert!(wide.from <= at && at <= wide.last);
            let last = at.saturating_add(length.saturating_mul(3));
            let mut starts = windows.starts(range(at, last), is_descending, 9).expect("four or five");
            if is_descending {
                starts.reverse();
            }
            prop_assert!(starts.len() <= 6 && starts.windows(2).all(|it| it[0] < it[1]));
        }
    }
}
