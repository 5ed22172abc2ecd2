//! The rows of a series as ranges of time. Holds no values.

use std::collections::BTreeSet;

use domain::{CalendarUnit, QuarterHour, TimeRange, Timestamp, Zone};

/// The largest number of rows of one answer.
pub const MAX_ROWS: usize = 10_000;

/// Rows as ranges of time without gaps between them; there is at least one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid(Vec<TimeRange>);

impl Grid {
    /// A single row, for the total of exactly this range.
    pub fn total(range: TimeRange) -> Self {
        Self(vec![range])
    }

    /// The buckets of a unit that touch a range; `None` if there are more than [`MAX_ROWS`].
    pub fn of(unit: CalendarUnit, range: TimeRange, zone: Zone) -> Option<Self> {
        let rows: Vec<_> = unit.buckets(range, zone).take(MAX_ROWS + 1).collect();
        (rows.len() <= MAX_ROWS).then_some(Self(rows))
    }

    /// The rows that a range is cut into at these timestamps.
    pub fn between(range: TimeRange, cuts: BTreeSet<Timestamp>) -> Self {
        let edges: Vec<_> = [range.from()].into_iter().chain(cuts).chain([range.to()]).collect();
        let rows = edges.windows(2).map(|edges| TimeRange::new(edges[0], edges[1]));
        Self(rows.map(|row| row.expect("cuts are inside, in order")).collect())
    }

    /// The quarters of an hour that touch a range.
    pub fn quarters(range: TimeRange) -> Self {
        let step = QuarterHour::LENGTH.num_milliseconds();
        let first = QuarterHour::of(range.from()).start().as_millis();
        let starts =
            (0..).map(|n| first + n * step).take_while(|start| *start < range.to().as_millis());
        let quarter =
            |start| QuarterHour::of(Timestamp::from_millis(start).expect("before the end"));
        Self(starts.map(|start| quarter(start).range()).collect())
    }

    /// The rows.
    pub fn rows(&self) -> &[TimeRange] {
        &self.0
    }

    /// The range from the first row's start to the last row's end.
    pub fn range(&self) -> TimeRange {
        let (first, last) = (self.0[0], self.0[self.0.len() - 1]);
        TimeRange::new(first.from(), last.to()).expect("rows follow each other")
    }

    /// The index of the row that holds a timestamp. The timestamp must not be before the first row.
    pub fn row_index(&self, at: Timestamp) -> usize {
        self.0.partition_point(|row| row.to() <= at)
    }

    /// Whether a range lies in one row.
    pub fn has_in_one_row(&self, range: TimeRange) -> bool {
        let row = self.0.get(self.row_index(range.from()));
        row.is_some_and(|row| row.covers(range))
    }

    /// The part of a range in each row, with the row's index.
    pub fn cut(&self, range: TimeRange) -> impl Iterator<Item = (usize, TimeRange)> + '_ {
        let first = self.row_index(range.from());
        let parts = self.0.iter().enumerate().skip(first);
        parts.map_while(move |(index, row)| Some((index, row.intersection(range)?)))
    }
}

/// The parts of a range outside all ranges in `taken`, which are in order and do not overlap.
pub(crate) fn uncovered(
    range: TimeRange,
    taken: impl IntoIterator<Item = TimeRange>,
) -> Vec<TimeRange> {
    let mut gaps = Vec::new();
    let mut from = range.from();
    for taken in taken {
        gaps.extend(TimeRange::new(from, taken.from()).ok());
        from = from.max(taken.to());
    }
    gaps.extend(TimeRange::new(from, range.to()).ok());
    gaps
}

/// Sorts ranges and joins ranges that touch or overlap.
pub(crate) fn joined(mut ranges: Vec<TimeRange>) -> Vec<TimeRange> {
    ranges.sort_by_key(|range| range.from());
    let mut joined: Vec<TimeRange> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.from() <= last.to() => {
                let to = last.to().max(range.to());
                *last = TimeRange::new(last.from(), to).expect("it only grows");
            }
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;
    use domain::given::{self, at_millis};

    fn range(from: i64, to: i64) -> TimeRange {
        given::range(at_millis(from), at_millis(to))
    }

    #[test]
    fn a_range_is_cut_at_the_edges_of_rows() {
        let grid = Grid(vec![range(0, 10), range(10, 20), range(20, 30)]);
        let cut: Vec<_> = grid.cut(range(5, 25)).collect();
        assert_eq!(cut, [(0, range(5, 10)), (1, range(10, 20)), (2, range(20, 25))]);
        assert!(grid.has_in_one_row(range(10, 20)) && !grid.has_in_one_row(range(9, 11)));
        assert!(!grid.has_in_one_row(range(30, 31)));
        assert_eq!(grid.range(), range(0, 30));
    }

    #[test]
    fn quarters_cover_a_range_from_its_first_to_its_last_instant() {
        let minutes = |from: i64, to: i64| range(from * 60_000, to * 60_000);
        let of = |from, to| Grid::quarters(minutes(from, to)).0;
        assert_eq!(of(14, 31), [minutes(0, 15), minutes(15, 30), minutes(30, 45)]);
        assert_eq!(of(15, 30), [minutes(15, 30)]);
        // No quarter begins after the last instant that a timestamp can have.
        let last = given::range(
            Timestamp::MAX.saturating_add(TimeDelta::milliseconds(-1)),
            Timestamp::MAX,
        );
        assert_eq!(Grid::quarters(last).0.len(), 1);
    }

    #[test]
    fn the_parts_of_a_range_outside_others_are_uncovered() {
        assert_eq!(uncovered(range(0, 9), []), [range(0, 9)]);
        assert_eq!(uncovered(range(0, 9), [range(0, 3), range(5, 9)]), [range(3, 5)]);
    }

    #[test]
    fn ranges_that_touch_are_joined() {
        assert_eq!(joined(vec![range(5, 9), range(0, 5), range(10, 11)]).len(), 2);
    }

    #[test]
    fn more_rows_than_an_answer_holds_are_none() {
        let day = range(0, 86_400_000);
        assert_eq!(
            Grid::of(CalendarUnit::Hour, day, Zone::UTC).map(|it| it.rows().len()),
            Some(24)
        );
        let month = range(0, 31 * 86_400_000);
        assert_eq!(Grid::of(CalendarUnit::Minute, month, Zone::UTC), None);
    }
}
