//! The windows of `GROUP BY time`: multiples of an interval from 1970 on, or on a zone's clock. Holds no values.

use domain::Zone;

use crate::duration::SECOND;

/// The number of windows of one series.
pub(crate) const MAX_WINDOWS: i64 = 11_000;

/// The windows of `time(length, offset)`; all times are nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) length: i64,
    pub(crate) offset: i64,
    pub(crate) zone: Option<Zone>,
}

impl Interval {
    /// The nanoseconds by which the zone's clock is ahead; at the first or last time of all beyond these.
    fn ahead(&self, at: i128) -> i128 {
        let second = within(at).div_euclid(SECOND);
        i128::from(self.zone.map_or(0, |zone| zone.offset(second))) * i128::from(SECOND)
    }

    /// The start of the window that contains `at`.
    ///
    /// Where the clock changes within the window, the offset of its start counts, unless the change is as
    /// long as the window.
    pub(crate) fn start(&self, at: i64) -> i64 {
        within(self.start_of(at.into()))
    }

    /// The same of any time: a window may begin or end where no time in 64 bits is.
    fn start_of(&self, at: i128) -> i128 {
        let (length, offset) = (i128::from(self.length), i128::from(self.offset));
        let at = at - offset;
        let ahead = self.ahead(at);
        let start = at - (at + ahead).rem_euclid(length);
        let change = ahead - self.ahead(start);
        let change = if change.abs() < length { change } else { 0 };
        start + change + offset
    }

    /// A range and the length of a window before it, in the order of time or against it.
    pub(crate) const fn widened(&self, (from, to): (i64, i64), is_descending: bool) -> (i64, i64) {
        if is_descending {
            (from, to.saturating_add(self.length))
        } else {
            (from.saturating_sub(self.length), to)
        }
    }

    /// The start of the window behind the one that begins at `start`.
    pub(crate) fn next(&self, start: i64) -> i64 {
        let (start, length) = (i128::from(start), i128::from(self.length));
        let next = self.start_of(start + length);
        within(if next > start { next } else { self.start_of(start + 2 * length) })
    }

    /// The starts of the windows from the one that contains `from` to the one that contains `last`; the number
    /// that there would be where that is more than [`MAX_WINDOWS`].
    pub(crate) fn starts(&self, from: i64, last: i64) -> Result<Vec<i64>, i64> {
        let number = last.saturating_sub(from) / self.length + 1;
        if number > MAX_WINDOWS {
            return Err(number);
        }
        let behind = |start: &i64| Some(self.next(*start)).filter(|next| next > start);
        let starts = std::iter::successors(Some(self.start(from)), behind);
        Ok(starts.take_while(|start| *start <= last).collect())
    }
}

/// A time in 64 bits, the first or the last of these where it is beyond them.
fn within(at: i128) -> i64 {
    i64::try_from(at).unwrap_or(if at < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: i64 = 3_600 * SECOND;
    const DAY: i64 = 24 * HOUR;

    fn interval(length: i64, offset: i64, zone: &str) -> Interval {
        let zone = (!zone.is_empty()).then(|| zone.parse().expect("a zone"));
        Interval { length, offset, zone }
    }

    #[test]
    fn windows_are_multiples_of_the_interval_and_may_be_moved() {
        assert_eq!(interval(HOUR, 0, "").starts(HOUR / 2, 2 * HOUR), Ok(vec![0, HOUR, 2 * HOUR]));
        assert_eq!(interval(HOUR, -HOUR / 4, "").start(0), -HOUR / 4);
        assert_eq!(interval(HOUR, HOUR / 4, "").start(0), -3 * HOUR / 4);
        // 1970-01-01 was a Thursday.
        assert_eq!(interval(7 * DAY, 0, "").start(3 * DAY), 0);
        assert_eq!(interval(1, 0, "").starts(0, SECOND), Err(SECOND + 1));
    }

    #[test]
    fn days_of_a_zone_follow_its_clock() {
        let days = interval(DAY, 0, "Europe/Berlin");
        // 2026-03-28 to 03-30: the 29th has 23 hours.
        let noon = 1_774_695_600 * SECOND;
        let starts = days.starts(noon, noon + 2 * DAY).expect("three");
        let lengths: Vec<i64> = starts.windows(2).map(|it| (it[1] - it[0]) / HOUR).collect();
        assert_eq!(lengths, [24, 23]);
        // 2026-10-24 to 10-26: the 25th has 25.
        let noon = 1_792_836_000 * SECOND;
        let starts = days.starts(noon, noon + 2 * DAY).expect("three");
        let lengths: Vec<i64> = starts.windows(2).map(|it| (it[1] - it[0]) / HOUR).collect();
        assert_eq!(lengths, [24, 25]);
    }

    #[test]
    fn windows_go_on_in_every_zone() {
        for zone in ["Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "America/New_York"] {
            for length in [HOUR / 4, HOUR, 2 * HOUR, 5 * HOUR, DAY, 7 * DAY] {
                let windows = interval(length, 0, zone);
                let from = 1_767_225_600 * SECOND;
                let starts = windows.starts(from, from + 300 * DAY);
                let starts = starts.unwrap_or_default();
                assert!(starts.windows(2).all(|it| it[0] < it[1]), "{zone} {length}");
            }
        }
    }

    proptest! {
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
            let (start, next) = (windows.start(at), windows.next(windows.start(at)));
            prop_assert!(start <= at && (at < next || next == i64::MAX), "{start} {at} {next}");
            let (from, to) = windows.widened((at, at), is_descending);
            prop_assert!(from <= at && at <= to);
            let last = at.saturating_add(length.saturating_mul(3));
            let starts = windows.starts(at, last).expect("four or five");
            prop_assert!(starts.len() <= 6 && starts.windows(2).all(|it| it[0] < it[1]));
        }
    }
}
