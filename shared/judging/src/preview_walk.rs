//! Goes through a range by quarters of an hour. Reads the readings of a quarter only if its extremes may change the
//! state of a rule. Folds nothing itself.

use std::collections::{BTreeMap, BTreeSet};

use alerts::{NoData, Observation, Past, Rule, Watch};
use chrono::TimeDelta;
use domain::{DeviceId, MetricRollup, MetricRule, QuarterHour, TimeRange, Timestamp};
use table::StoredRollup;

use crate::Result;
use crate::judging::JudgingSession;
use crate::observed::{MAX_READINGS, ObservationQuery, without_zeros};
use crate::ports::Store;

/// The number of readings that are read at once.
const PAGE: usize = 5_000;
/// The largest number of quarters of an hour that are read at once.
const MAX_STRETCH: usize = 96;

/// A rule to try on the past of one device.
pub(crate) struct PreviewWalk<'a> {
    pub(crate) rule: &'a Rule,
    pub(crate) device: &'a DeviceId,
    pub(crate) metric_rule: Option<MetricRule>,
    pub(crate) range: TimeRange,
    /// The range in which rollups have what the rule watches. Outside this range, all readings are read.
    pub(crate) rolled_up: Option<TimeRange>,
    pub(crate) silent_after: TimeDelta,
}

/// A quarter of an hour, or its part in the range.
struct Quarter {
    range: TimeRange,
    stored: Option<StoredRollup>,
    /// Whether the quarter's readings have not expired yet.
    has_readings: bool,
    /// Whether the quarter may begin an episode.
    may_breach: bool,
    /// Whether the quarter may end an episode.
    may_clear: bool,
}

impl<S: Store> JudgingSession<'_, S> {
    /// Adds the readings of a range to the fold `past`. Returns the ranges whose readings have expired, and were
    /// replaced by extremes.
    pub(crate) async fn walk(
        &self,
        walk: &PreviewWalk<'_>,
        past: &mut Past<'_>,
    ) -> Result<Vec<TimeRange>> {
        let quarters = self.quarters(walk).await?;
        let (mut by_extremes, mut left) = (Vec::new(), MAX_READINGS);
        let first_stretch = walk.first_stretch();
        let (mut next, mut stretch, mut is_at_rest) = (0, first_stretch, false);

        while let Some(quarter) = quarters.get(next) {
            if !past.may_change(quarter.may_breach, quarter.may_clear) {
                past.pass_over();
                (next, stretch, is_at_rest) = (next + 1, first_stretch, true);
                continue;
            }

            // The last skipped quarter is read too: its last reading says since when the device may be silent.
            let first = next - usize::from(is_at_rest && next > 0);
            let end = quarters.len().min(next + stretch);

            let parts = quarters[first..end].chunk_by(|a, b| a.has_readings == b.has_readings);
            for part in parts {
                let (from, to) = (part[0].range.from(), part[part.len() - 1].range.to());
                let Ok(range) = TimeRange::new(from, to) else { continue };
                let readings = if part[0].has_readings {
                    let query = walk.query(range);
                    let readings = self.read_observations(&query, &mut left, || walk.too_many());
                    without_zeros(readings.await?, walk.metric_rule.as_ref())
                } else {
                    by_extremes.push(range);
                    part.iter().flat_map(|quarter| quarter.extremes(walk.rule)).collect()
                };
                past.take(&readings, range.last());
            }
            (next, stretch, is_at_rest) = (end, (stretch * 2).min(MAX_STRETCH), false);
        }
        Ok(by_extremes)
    }

    /// The quarters of a range, each with whether it may begin or end an episode.
    async fn quarters(&self, walk: &PreviewWalk<'_>) -> Result<Vec<Quarter>> {
        let (mut next, to) = (QuarterHour::of(walk.range.from()), walk.range.to());
        let whole = TimeRange::new(next.start(), to).unwrap_or(walk.range);
        let found = self.table.quarters(walk.device, whole, false).await?;
        let mut by_start: BTreeMap<Timestamp, StoredRollup> =
            found.into_iter().map(|stored| (stored.range.from(), stored)).collect();

        let mut quarters = Vec::new();
        // The time of the last reading before the quarter.
        let mut last = None;
        while let Ok(range) = TimeRange::new(next.start(), next.end().min(to)) {
            let stored = by_start.remove(&range.from());
            let has_readings =
                stored.as_ref().is_none_or(|stored| stored.still_has_readings(self.table.now));
            let mut quarter =
                Quarter { range, stored, has_readings, may_breach: false, may_clear: false };
            walk.note_effects(&mut quarter, &mut last);
            quarters.push(quarter);
            next = next.next();
        }

        Ok(quarters)
    }
}

impl<'a> PreviewWalk<'a> {
    /// The number of quarters that are read first: those of the longer of the rule's `for` and `clear_for`, and two
    /// more for a device that sends once a quarter.
    fn first_stretch(&self) -> usize {
        let length = QuarterHour::LENGTH.num_milliseconds();
        let time = self.rule.clear_time.max(self.rule.breach_time).num_milliseconds();
        usize::try_from(time / length).unwrap_or(MAX_STRETCH).min(MAX_STRETCH) + 2
    }

    fn query(&self, range: TimeRange) -> ObservationQuery<'a> {
        let metric = self.rule.watch.metric();
        let (device, until) = (self.device, Timestamp::MAX);
        ObservationQuery { device, metric, range, until, page: PAGE, consistent: false }
    }

    fn too_many(&self) -> String {
        format!(
            "{} has more than {MAX_READINGS} readings in the quarters of an hour that may begin or end an episode. \
             Narrow from and to, or set a limit that is reached less often.",
            self.device
        )
    }

    /// Notes whether a quarter may begin or end an episode. `last` is the time of the last reading in the quarters
    /// before.
    fn note_effects(&self, quarter: &mut Quarter, last: &mut Option<Timestamp>) {
        let no_data = self.rule.no_data();
        let is_known = self.rolled_up.is_some_and(|range| range.contains(quarter.range.from()));
        let Some(stored) = quarter.stored.as_ref().filter(|_| is_known) else {
            quarter.may_breach = !is_known || no_data == NoData::Fire;
            quarter.may_clear = !is_known || no_data == NoData::Clear;
            return;
        };

        let span = stored.rollup.span();
        let since = std::mem::replace(last, span.map(|(_, last)| last));
        let gap = since.zip(span).map(|(since, (first, _))| first.since(since));

        // A rollup does not show silence within its quarter.
        let may_be_silent = self.silent_after < QuarterHour::LENGTH
            || gap.is_none_or(|gap| gap >= self.silent_after);

        let (may_breach, may_clear) = match &self.rule.watch {
            Watch::Metric { metric, limits } => match stored.rollup.metrics.get(metric) {
                Some(MetricRollup { min, max, .. }) => {
                    (limits.are_passed(min, max), limits.may_be_clear(min, max))
                }
                None => (false, false),
            },
            _ => (false, true),
        };

        quarter.may_breach = may_breach || may_be_silent && no_data == NoData::Fire;
        quarter.may_clear = may_clear || may_be_silent && no_data == NoData::Clear;
    }
}

impl Quarter {
    /// Observations that replace expired readings: the value farthest beyond a limit, and the last value. For a rule
    /// about silence, the times of the first and the last reading.
    fn extremes(&self, rule: &Rule) -> Vec<Observation> {
        let Some(stored) = &self.stored else { return Vec::new() };
        let Watch::Metric { metric, limits } = &rule.watch else {
            let ends = stored.rollup.span().map(|(first, last)| BTreeSet::from([first, last]));
            let ends = ends.into_iter().flatten();
            return ends.map(|at| Observation { at, value: None }).collect();
        };
        let Some(metric) = stored.rollup.metrics.get(metric) else { return Vec::new() };

        let is_above = limits.above().is_some_and(|threshold| metric.max > threshold.limit);
        let worst = if is_above || limits.below().is_none() { &metric.max } else { &metric.min };
        let (first, last) = (&metric.first, &metric.last);
        let mut found = vec![Observation { at: first.at, value: Some(worst.clone()) }];
        if last.at > first.at {
            found.push(Observation { at: last.at, value: Some(last.value.clone()) });
        }
        found
    }
}
