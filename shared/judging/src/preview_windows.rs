//! The parts of a range in which a rule could have had episodes, found by the extremes of quarters of an hour, and the
//! episodes in them. Where no quarter reaches a limit, no reading is read.

use std::collections::BTreeMap;

use alerts::{Episode, Limits, NoData, Observation, Rule, Sight, Watch, preview};
use chrono::TimeDelta;
use domain::{DeviceId, MetricName, MetricRollup, Order, QuarterHour, TimeRange, Timestamp};
use series::Failure;
use table::{Invocation, QueryReadings, RangeQuery, ReadRollups, ReadingKey, StoredRollup};

use crate::breach::{is_beyond, is_clear};
use crate::observed::observation;

/// The most readings of one preview.
const MAX_READINGS: usize = 100_000;
/// The readings of a page.
const PAGE: usize = 5_000;

/// Quarters in a row, and what is known of each.
struct Window {
    range: TimeRange,
    /// Whether its readings are there.
    has_readings: bool,
}

/// The episodes of a device, and the times where extremes answer because the readings have expired. `rolled_up` is the time
/// whose rollups have what the rule is about; all other readings are read. Says too whether it is normal for certain at some
/// instant up to `settled_by`: whatever was before the range, the episodes from then on are those of all readings.
pub(crate) async fn of_device(
    store: &(impl QueryReadings + ReadRollups),
    rule: &Rule,
    (device, range, rolled_up): (&DeviceId, TimeRange, Option<TimeRange>),
    (silent_after, pauses, settled_by): (TimeDelta, &[TimeRange], Timestamp),
    now: Timestamp,
    invocation: &Invocation,
) -> Result<(Vec<Episode>, Vec<TimeRange>, bool), Failure> {
    let quarters = Quarters::read(store, (device, range, rolled_up), now, invocation).await?;
    let (mut episodes, mut by_extremes, mut left) = (Vec::new(), Vec::new(), MAX_READINGS);
    for window in quarters.windows(rule, silent_after) {
        let readings = if window.has_readings {
            readings(store, (device, rule), window.range, &mut left, invocation).await?
        } else {
            by_extremes.push(window.range);
            quarters.extremes(rule, window.range)
        };
        let sight = Sight { readings: &readings, silent_after, pauses };
        let found = preview(rule, &sight, window.range.last());
        episodes.extend(found.into_iter().filter(|it| range.contains(it.fired)));
    }
    Ok((episodes, by_extremes, quarters.is_settled(rule, silent_after, settled_by)))
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

    /// The windows, in order; two that touch are one.
    fn windows(&self, rule: &Rule, silent_after: TimeDelta) -> Vec<Window> {
        let length = QuarterHour::LENGTH.num_milliseconds();
        let count = |time: TimeDelta| time.num_milliseconds().div_euclid(length) + 1;
        let all = self.looks(rule, silent_after);
        // A device that sends once in a quarter is clear in the next one, and from there the time counts.
        let after = 1 + count(rule.clear_hold.max(rule.hold));
        let mut is_inside = vec![false; all.len()];
        let mut left = 0;
        for (place, look) in all.iter().enumerate() {
            match look {
                LookAt::Breach => left = after + 1,
                // Nothing ends an episode before its values are clear.
                LookAt::Open if left > 0 => left = after + 1,
                LookAt::Open | LookAt::Clear => {}
            }
            is_inside[place] = left > 0;
            left -= i64::from(left > 0);
        }
        // The value that held when the first breach came.
        for place in 1..all.len() {
            is_inside[place - 1] |= is_inside[place];
        }
        self.joined(&is_inside)
    }

    /// Whether values are clear for so long up to an instant that every episode of before has ended.
    fn is_settled(&self, rule: &Rule, silent_after: TimeDelta, by: Timestamp) -> bool {
        let mut clearing = Clearing::of(rule, QuarterHour::LENGTH);
        let looks = self.starts().zip(self.looks(rule, silent_after));
        let mut looks = looks.take_while(|(quarter, _)| quarter.end() <= by);
        looks.any(|(quarter, look)| clearing.see(quarter.start(), matches!(look, LookAt::Clear)))
    }

    fn starts(&self) -> impl Iterator<Item = QuarterHour> {
        let to = self.range.to();
        let first = QuarterHour::of(self.range.from());
        std::iter::successors(Some(first), |it| Some(it.next()))
            .take_while(move |it| it.start() < to)
    }

    fn joined(&self, is_inside: &[bool]) -> Vec<Window> {
        let mut windows: Vec<Window> = Vec::new();
        for (quarter, is_inside) in self.starts().zip(is_inside) {
            if !is_inside {
                continue;
            }
            let has_readings = self.has_readings(quarter);
            let range = quarter.range();
            match windows.last_mut() {
                Some(last)
                    if last.range.to() == range.from() && last.has_readings == has_readings =>
                {
                    last.range = TimeRange::new(last.range.from(), range.to()).unwrap_or(range);
                }
                _ => windows.push(Window { range, has_readings }),
            }
        }
        if let Some(last) = windows.last_mut() {
            let to = last.range.to().min(self.range.to());
            last.range = TimeRange::new(last.range.from(), to).unwrap_or(last.range);
        }
        windows
    }

    fn has_readings(&self, quarter: QuarterHour) -> bool {
        let stored = self.by_start.get(&quarter.start());
        stored.and_then(|it| it.raw_until).is_none_or(|until| until > self.now)
    }

    /// What each quarter says of the rule.
    fn looks(&self, rule: &Rule, silent_after: TimeDelta) -> Vec<LookAt> {
        let usual = self.usual_count();
        let is_short = silent_after <= QuarterHour::LENGTH * 2;
        let fires_of_silence =
            matches!(rule.watch, Watch::Silence { .. }) || rule.no_data == NoData::Fire;
        let look = |quarter: QuarterHour| {
            let is_known = self.rolled_up.is_some_and(|it| it.contains(quarter.start()));
            if !is_known {
                return LookAt::Breach;
            }
            let Some(stored) = self.by_start.get(&quarter.start()) else {
                return if fires_of_silence { LookAt::Breach } else { LookAt::Open };
            };
            let has_gap = is_short && count(stored) * 2 <= usual;
            match &rule.watch {
                _ if fires_of_silence && has_gap => LookAt::Breach,
                Watch::Metric { metric, limits } => {
                    stored.rollup.metrics.get(metric).map_or(LookAt::Open, |it| of(limits, it))
                }
                _ => LookAt::Clear,
            }
        };
        self.starts().map(look).collect()
    }

    /// The number of readings that most quarters have.
    fn usual_count(&self) -> u64 {
        let mut counts: Vec<u64> = self.by_start.values().map(count).collect();
        counts.sort_unstable();
        counts.get(counts.len() / 2).copied().unwrap_or(0)
    }

    /// What quarters say in the place of readings that have expired: the extreme that is farthest beyond a limit, and
    /// the last value.
    fn extremes(&self, rule: &Rule, range: TimeRange) -> Vec<Observation> {
        let mut found = Vec::new();
        for (_, stored) in self.by_start.range(range.from()..range.to()) {
            let Watch::Metric { metric, limits } = &rule.watch else {
                found.extend(edges(stored).map(|at| Observation { at, value: None }));
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

/// For how long all values have been clear.
pub(crate) struct Clearing {
    needed: TimeDelta,
    since: Option<Timestamp>,
}

impl Clearing {
    /// For a rule, by times of such a length that begin or end anywhere in it.
    pub(crate) fn of(rule: &Rule, length: TimeDelta) -> Self {
        let is_at_once = rule.clear_hold <= TimeDelta::zero();
        let needed = if is_at_once { TimeDelta::zero() } else { rule.clear_hold + length };
        Self { needed, since: None }
    }

    /// Takes the next time; returns whether values have been clear for long enough.
    pub(crate) fn see(&mut self, at: Timestamp, is_clear: bool) -> bool {
        if !is_clear {
            self.since = None;
            return false;
        }
        at.since(*self.since.get_or_insert(at)) >= self.needed
    }
}

/// What a quarter says of a rule.
enum LookAt {
    /// Something in it may begin an episode.
    Breach,
    /// It begins none, and ends none for certain.
    Open,
    /// All its values are clear.
    Clear,
}

fn of(limits: &Limits, metric: &MetricRollup) -> LookAt {
    match is_beyond(limits, metric) {
        true => LookAt::Breach,
        false if is_clear(limits, &metric.min, &metric.max) => LookAt::Clear,
        false => LookAt::Open,
    }
}

/// The number of readings of a quarter.
fn count(stored: &StoredRollup) -> u64 {
    stored.rollup.metrics.values().map(|it| it.count).max().unwrap_or(0)
}

/// The first and the last value of a quarter.
fn edges(stored: &StoredRollup) -> impl Iterator<Item = Timestamp> {
    let metrics = || stored.rollup.metrics.values();
    let first = metrics().map(|it| it.first.at).min();
    let last = metrics().map(|it| it.last.at).max().filter(|last| Some(*last) != first);
    first.into_iter().chain(last)
}

/// The readings of a window, as the rule sees them.
async fn readings(
    store: &impl QueryReadings,
    (device, rule): (&DeviceId, &Rule),
    range: TimeRange,
    left: &mut usize,
    invocation: &Invocation,
) -> Result<Vec<Observation>, Failure> {
    let metric: Option<&MetricName> = match &rule.watch {
        Watch::Metric { metric, .. } => Some(metric),
        _ => None,
    };
    let (order, limit, consistent) = (Order::Ascending, PAGE, false);
    let mut query = RangeQuery { range, order, after: None, limit, consistent };
    let mut found = Vec::new();
    loop {
        let page = store.device_readings(device, &query, invocation).await?;
        found.extend(page.readings.iter().map(|reading| observation(reading, metric)));
        *left = left.checked_sub(page.readings.len()).ok_or_else(|| {
            Failure::OutOfReach(format!(
                "{device} has more than {MAX_READINGS} readings in the quarters of an hour that reach the limit. \
                 Narrow from and to, or set a limit that is reached less often."
            ))
        })?;
        let Some(last) = page.readings.last().filter(|_| page.has_more) else { return Ok(found) };
        query.after = Some(ReadingKey::of(last));
    }
}
