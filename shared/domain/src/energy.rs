//! Divides the steps of a counter, and the time of a power, among the rows that they span. Folds no reading.

use chrono::TimeDelta;

use super::counter::{CounterRule, Flags};
use super::exact::Exact;
use super::rollup::{MetricRollup, OfKind};
use super::sample::Sample;
use super::{TimeRange, Timestamp};

/// A part of a range. A part with values has their rollup.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The part of the range. Rows follow each other without a gap.
    pub range: TimeRange,
    /// The rollup of the values inside.
    pub rollup: Option<&'a MetricRollup>,
}

/// The nearest values outside of a range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// The last value before the range.
    pub before: Option<Sample>,
    /// The first value at or after the end of the range.
    pub after: Option<Sample>,
}

/// The amount that a counter counted in one row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowIncrease {
    /// The amount, in the metric's unit. `None` if the row has no part of any step.
    pub amount: Option<Exact>,
    /// The flags of the steps that touch the row.
    pub flags: Flags,
    /// The parts of the amount that are estimated.
    pub estimated: Vec<EstimatedPart>,
    /// The time of the row between two values.
    pub measured: TimeDelta,
}

/// A part of the step between two values that are more than 15 minutes apart. The part is estimated: the step's share
/// by time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EstimatedPart {
    /// The part, in the metric's unit.
    pub amount: Exact,
    /// The time between the two values.
    pub step: TimeRange,
}

/// The integral of a power over one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowArea {
    /// The sum of value times time, in the metric's unit times milliseconds.
    pub area: Exact,
    /// The time during which a value was valid.
    pub held: TimeDelta,
}

/// The longest time between two values for which energy counts as measured. Over a longer time the energy is an
/// estimate.
const MAX_MEASURED: TimeDelta = TimeDelta::minutes(15);

/// The amount that a counter counted in each row.
///
/// A step that spans several rows is divided by time. The part before an edge is the step times the share of the time
/// that has elapsed, rounded down to 9 decimals. A row gets the difference of the parts at its two edges. So the rows
/// of a range add up to the same total, to the last digit, wherever the edges are.
pub fn increases(
    rows: &[Row<'_>],
    neighbours: &Neighbours,
    rule: &CounterRule,
) -> Vec<RowIncrease> {
    let mut increases: Vec<RowIncrease> = rows.iter().map(|row| inside(row.rollup)).collect();

    for Pair { from, to, first, last } in pairs(rows, neighbours) {
        let Some(to) = to else { continue };
        let step = rule.step(from, to);
        let whole = to.at.since(from.at);
        for (row, increase) in rows[first..=last].iter().zip(&mut increases[first..=last]) {
            let Some((start, end)) = overlap(row.range, from.at, to.at) else { continue };
            let part = |edge: Timestamp| {
                step.amount.part(edge.since(from.at).num_milliseconds(), whole.num_milliseconds())
            };
            let share = &part(end) - &part(start);
            let is_part = (start, end) != (from.at, to.at);

            *increase.amount.get_or_insert_with(Exact::zero) += &share;
            increase.flags = increase.flags.union(step.flag.map(Flags::from).unwrap_or_default());
            increase.measured += end.since(start);
            if is_part && whole > MAX_MEASURED {
                let step = TimeRange::new(from.at, to.at).expect("some time");
                increase.estimated.push(EstimatedPart { amount: share, step });
            }
        }
    }
    increases
}

fn inside(rollup: Option<&MetricRollup>) -> RowIncrease {
    match rollup.map(|metric| (metric, &metric.of_kind)) {
        // With a single value there is no step.
        Some((metric, OfKind::Counter { increase, flags })) if metric.count > 1 => {
            let (amount, flags) = (Some(increase.clone()), *flags);
            let measured = metric.last.at.since(metric.first.at);
            RowIncrease { amount, flags, estimated: Vec::new(), measured }
        }
        _ => RowIncrease::default(),
    }
}

/// The integral of a power over each row; `None` where no value is valid. Each value is valid until the next value, and
/// the last value until `end_of_last`, but no value for longer than `hold`.
pub fn areas(
    rows: &[Row<'_>],
    neighbours: &Neighbours,
    hold: TimeDelta,
    end_of_last: Timestamp,
) -> Vec<Option<RowArea>> {
    let inside = |row: &Row<'_>| match row.rollup.map(|metric| &metric.of_kind) {
        // With a single value there is no time between values.
        Some(OfKind::Power { area, held }) if *held > TimeDelta::zero() => {
            Some(RowArea { area: area.clone(), held: *held })
        }
        _ => None,
    };
    let mut areas: Vec<Option<RowArea>> = rows.iter().map(inside).collect();

    // `inside` has the time between values of one row. Each pair adds the time up to a value of another row.
    for Pair { from, to, first, last } in pairs(rows, neighbours) {
        let until =
            from.at.saturating_add(hold).min(to.map_or(end_of_last, |to| to.at)).max(from.at);
        for (row, area) in rows[first..=last].iter().zip(&mut areas[first..=last]) {
            let Some((start, end)) = overlap(row.range, from.at, until) else { continue };
            let time = end.since(start);
            let area = area.get_or_insert_with(RowArea::default);
            area.area += &(&Exact::from(&from.value) * time.num_milliseconds());
            area.held += time;
        }
    }

    areas
}

impl Default for RowArea {
    fn default() -> Self {
        Self { area: Exact::zero(), held: TimeDelta::zero() }
    }
}

/// Two neighbouring values that are not in the same row, and the first and the last row that they touch.
struct Pair<'a> {
    from: &'a Sample,
    /// The later value; `None` after the very last value.
    to: Option<&'a Sample>,
    first: usize,
    last: usize,
}

/// The pairs of neighbouring values that lie in different rows, in order.
fn pairs<'a>(rows: &'a [Row<'a>], neighbours: &'a Neighbours) -> Vec<Pair<'a>> {
    let mut pairs = Vec::new();
    let mut from = neighbours.before.as_ref().map(|sample| (0, sample));
    for (position, row) in rows.iter().enumerate() {
        let Some(rollup) = row.rollup else { continue };
        if let Some((first, from)) = from {
            pairs.push(Pair { from, to: Some(&rollup.first), first, last: position });
        }
        from = Some((position, &rollup.last));
    }

    if let (Some((first, from)), Some(last)) = (from, rows.len().checked_sub(1)) {
        pairs.push(Pair { from, to: neighbours.after.as_ref(), first, last });
    }
    pairs
}

/// The part of `range` between two timestamps; `None` if there is no such part.
fn overlap(range: TimeRange, start: Timestamp, end: Timestamp) -> Option<(Timestamp, Timestamp)> {
    let (start, end) = (range.from().max(start), range.to().min(end));
    (start < end).then_some((start, end))
}
