//! A walk through the quarters of an hour of a range: the readings of those whose extremes say that they may change the
//! fold of a rule are read, the others are passed over. Folds nothing itself.

use std::collections::{BTreeMap, BTreeSet};

use alerts::{Limits, NoData, Observation, Past, Rule, Watch};
use chrono::TimeDelta;
use domain::{
    DeviceId, MetricName, MetricRollup, MetricRule, Order, QuarterHour, TimeRange, Timestamp,
};
use series::Failure;
use table::{Invocation, QueryReadings, RangeQuery, ReadRollups, ReadingKey, StoredRollup};

use crate::breach::{is_beyond, may_be_clear};
use crate::observed::{observation, without_zeros};

/// The most readings of one preview.
const MAX_READINGS: usize = 100_000;
/// The readings of a page.
const PAGE: usize = 5_000;
/// The most quarters that are read at once because the fold is not at rest.
const MAX_STRETCH: usize = 96;

/// Feeds a device's range to `past`. Returns the times that extremes answer for, because their readings have expired.
/// `rolled_up` is the time whose rollups have what the rule is about; all other readings are read.
pub(crate) async fn walk(
    store: &(impl QueryReadings + ReadRollups),
    (rule, past): (&Rule, &mut Past<'_>),
    (device, metric_rule): (&DeviceId, Option<&MetricRule>),
    (range, rolled_up, silent_after): (TimeRange, Option<TimeRange>, TimeDelta),
    now: Timestamp,
    invocation: &Invocation,
) -> Result<Vec<TimeRange>, Failure> {
    let quarters = Quarters::read(store, (device, range, rolled_up), now, invocation).await?;
    let looks = quarters.looks(rule, silent_after);
    // A device that sends once in a quarter is clear in the next one, and from there the time counts.
    let length = QuarterHour::LENGTH.num_milliseconds();
    let time = rule.clear_hold.max(rule.hold).num_milliseconds();
    let after = usize::try_from(time / length).unwrap_or(MAX_STRETCH).min(MAX_STRETCH) + 2;
    let metric = match &rule.watch {
        Watch::Metric { metric, .. } => Some(metric),
        _ => None,
    };
    let (mut by_extremes, mut left) = (Vec::new(), MAX_READINGS);
    let (mut next, mut stretch, mut is_at_rest) = (0, after, false);
    while let Some(look) = looks.get(next) {
        if !past.may_change(look.may_breach, look.may_clear) {
            past.pass_over();
            (next, stretch, is_at_rest) = (next + 1, after, true);
            continue;
        }
        // The reading before tells since when the device may be silent.
        let first = next - usize::from(is_at_rest && next > 0);
        let end = end_of(&looks, next, (stretch, after));
        for part in quarters.parts(first..end) {
            let readings = if part.has_readings {
                let asked = (device, metric);
                let found = readings(store, asked, part.range, &mut left, invocation).await?;
                without_zeros(found, metric_rule)
            } else {
                by_extremes.push(part.range);
                quarters.extremes(rule, part.range)
            };
            past.take(&readings, part.range.last());
        }
        (next, stretch, is_at_rest) = (end, (stretch * 2).min(MAX_STRETCH), false);
    }
    Ok(by_extremes)
}

/// The end of the quarters that are read at once: `stretch` of them, and as many as `after` behind each breach.
fn end_of(looks: &[Look], from: usize, (stretch, after): (usize, usize)) -> usize {
    let (mut end, mut until) = (from, from + stretch);
    while end < until.min(looks.len()) {
        if looks[end].may_breach {
            until = until.max(end + 1 + after);
        }
        end += 1;
    }
    end
}

/// What a quarter says of a rule.
#[derive(Clone, Copy)]
struct Look {
    /// Something in it may begin an episode.
    may_breach: bool,
    /// Something in it may end one.
    may_clear: bool,
}

impl Look {
    const NOTHING: Self = Self { may_breach: false, may_clear: false };
    const ANYTHING: Self = Self { may_breach: true, may_clear: true };
}

/// Quarters in a row whose readings are all there, or have all expired.
struct Part {
    range: TimeRange,
    has_readings: bool,
}

/// The rollups of a range by quarters.
struct Quarters {
    range: TimeRange,
    /// The time for which every quarter with readings has its rollup, with what the rule is about.
    rolled_up: Option<TimeRange>,
    by_start: BTreeMap<Timestamp, StoredRollup>,
    now: Timestamp,
}

impl Quarters {
    async fn read(
        store: &impl ReadRollups,
        (device, range, rolled_up): (&DeviceId, TimeRange, Option<TimeRange>),
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Self, Failure> {
        let from = QuarterHour::of(range.from()).start();
        let range = TimeRange::new(from, range.to()).unwrap_or(range);
        let found = store.quarters(device, range, false, invocation).await?;
        let by_start = found.into_iter().map(|it| (it.range.from(), it)).collect();
        Ok(Self { range, rolled_up, by_start, now })
    }

    fn starts(&self) -> impl Iterator<Item = QuarterHour> {
        let to = self.range.to();
        let first = QuarterHour::of(self.range.from());
        std::iter::successors(Some(first), |it| Some(it.next()))
            .take_while(move |it| it.start() < to)
    }

    /// The parts of quarters that are counted from the range's first.
    fn parts(&self, quarters: std::ops::Range<usize>) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for quarter in self.starts().skip(quarters.start).take(quarters.len()) {
            let (from, to) = (quarter.start(), quarter.end().min(self.range.to()));
            let has_readings = self.has_readings(quarter);
            let last = parts.last_mut().filter(|last| last.has_readings == has_readings);
            match last {
                Some(last) => {
                    last.range = TimeRange::new(last.range.from(), to).unwrap_or(last.range);
                }
                None => parts.extend(
                    TimeRange::new(from, to).ok().map(|range| Part { range, has_readings }),
                ),
            }
        }
        parts
    }

    fn has_readings(&self, quarter: QuarterHour) -> bool {
        let stored = self.by_start.get(&quarter.start());
        stored.and_then(|it| it.raw_until).is_none_or(|until| until > self.now)
    }

    /// What each quarter says of the rule.
    fn looks(&self, rule: &Rule, silent_after: TimeDelta) -> Vec<Look> {
        let no_data = rule.no_data();
        let silence =
            Look { may_breach: no_data == NoData::Fire, may_clear: no_data == NoData::Clear };
        // The last reading of the quarters before.
        let mut last: Option<Timestamp> = None;
        let mut look = |quarter: QuarterHour| {
            let is_known = self.rolled_up.is_some_and(|it| it.contains(quarter.start()));
            let Some(stored) = self.by_start.get(&quarter.start()).filter(|_| is_known) else {
                return if is_known { silence } else { Look::ANYTHING };
            };
            let edges = edges(stored);
            let since = std::mem::replace(&mut last, edges.map(|(_, last)| last));
            // Within a quarter only its readings tell.
            let may_be_silent = silent_after < QuarterHour::LENGTH
                || since
                    .zip(edges)
                    .is_none_or(|(since, (first, _))| first.since(since) >= silent_after);
            let of_silence = if may_be_silent { silence } else { Look::NOTHING };
            let of_values = match &rule.watch {
                Watch::Metric { metric, limits } => {
                    let metric = stored.rollup.metrics.get(metric);
                    metric.map_or(Look::NOTHING, |it| of(limits, it))
                }
                _ => Look { may_breach: false, may_clear: true },
            };
            Look {
                may_breach: of_silence.may_breach || of_values.may_breach,
                may_clear: of_silence.may_clear || of_values.may_clear,
            }
        };
        self.starts().map(&mut look).collect()
    }

    /// What quarters say in the place of readings that have expired: the extreme that is farthest beyond a limit, and
    /// the last value.
    fn extremes(&self, rule: &Rule, range: TimeRange) -> Vec<Observation> {
        let mut found = Vec::new();
        for (_, stored) in self.by_start.range(range.from()..range.to()) {
            let Watch::Metric { metric, limits } = &rule.watch else {
                let edges = edges(stored).map(|(first, last)| BTreeSet::from([first, last]));
                let edges = edges.into_iter().flatten();
                found.extend(edges.map(|at| Observation { at, value: None }));
                continue;
            };
            let Some(metric) = stored.rollup.metrics.get(metric) else { continue };
            let is_above = limits.above().is_some_and(|edge| metric.max > edge.limit);
            let worst =
                if is_above || limits.below().is_none() { &metric.max } else { &metric.min };
            found.push(Observation { at: metric.first.at, value: Some(worst.clone()) });
            if metric.last.at > metric.first.at {
                let value = Some(metric.last.value.clone());
                found.push(Observation { at: metric.last.at, value });
            }
        }
        found
    }
}

fn of(limits: &Limits, metric: &MetricRollup) -> Look {
    Look { may_breach: is_beyond(limits, metric), may_clear: may_be_clear(limits, metric) }
}

/// The first and the last value of a quarter.
fn edges(stored: &StoredRollup) -> Option<(Timestamp, Timestamp)> {
    let metrics = || stored.rollup.metrics.values();
    Some((metrics().map(|it| it.first.at).min()?, metrics().map(|it| it.last.at).max()?))
}

/// The readings of a part, as the rule sees them.
async fn readings(
    store: &impl QueryReadings,
    (device, metric): (&DeviceId, Option<&MetricName>),
    range: TimeRange,
    left: &mut usize,
    invocation: &Invocation,
) -> Result<Vec<Observation>, Failure> {
    let (order, limit, consistent) = (Order::Ascending, PAGE, false);
    let mut query = RangeQuery { range, order, after: None, limit, consistent };
    let mut found = Vec::new();
    loop {
        let page = store.device_readings(device, &query, invocation).await?;
        found.extend(page.readings.iter().map(|reading| observation(reading, metric)));
        *left = left.checked_sub(page.readings.len()).ok_or_else(|| {
            Failure::OutOfReach(format!(
                "{device} has more than {MAX_READINGS} readings in the quarters of an hour that may begin or end an episode. \
                 Narrow from and to, or set a limit that is reached less often."
            ))
        })?;
        let Some(last) = page.readings.last().filter(|_| page.has_more) else { return Ok(found) };
        query.after = Some(ReadingKey::of(last));
    }
}
