//! Finds the episodes that a rule would have had in the past, on one device or room. Stores nothing and sends no
//! message.

use alerts::{AlertSubject, DemandLimit, Past, Rule, SilenceLimit, Watch};
use chrono::TimeDelta;
use domain::{
    CalendarUnit, Device, DeviceId, Exact, MetricName, MetricRule, RoomId, TimeRange, Timestamp,
};
use series::{CounterStep, Grid, Horizon, Level, SeriesError};

use crate::Result;
use crate::demand;
use crate::judging::JudgingSession;
use crate::ports::Store;
use crate::preview_walk::PreviewWalk;
use crate::room_mean::{ROOM_SILENCE, RoomMean};

/// The longest range of a preview.
pub const MAX_PREVIEW: TimeDelta = TimeDelta::days(31);
/// A fold begins at least this long before its range.
const MIN_LEAD: TimeDelta = TimeDelta::days(1);

/// The alerts that a rule would have made.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// The episodes, periods or steps, depending on the rule, in order of time.
    pub episodes: Vec<Previewed>,
    /// Whether a counter has more steps than are searched.
    pub has_more: bool,
    /// The ranges whose readings have expired, and are replaced by the extremes of each quarter of an hour.
    pub by_extremes: Vec<TimeRange>,
}

/// An episode that would have fired, a period whose figure is beyond the limit, or a step of a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Previewed {
    /// The first breach, the start of the period, or the time of the step.
    pub since: Timestamp,
    /// When the alert would have fired.
    pub fired: Timestamp,
    /// When the episode or period ended. `None` for a step, for an episode that lasts to the end of the range, and for
    /// a period that has not ended.
    pub ended: Option<Timestamp>,
    /// The energy in kWh, the mean power in kW or the size of the step. `None` for an episode.
    pub value: Option<Exact>,
}

/// A rule on one subject, and the range in which to try it.
#[derive(Debug, Clone, Copy)]
pub struct PreviewQuestion<'a> {
    /// The rule; it need not be saved.
    pub rule: &'a Rule,
    /// The device or room.
    pub subject: &'a AlertSubject,
    /// At most [`MAX_PREVIEW`].
    pub range: TimeRange,
    /// How far the rollups reach.
    pub horizon: &'a Horizon,
}

impl<S: Store> JudgingSession<'_, S> {
    /// The alerts that a rule would have made in a range.
    ///
    /// A demand is judged by the mean power of whole periods, not by the projections that were made during each period.
    pub async fn preview(&self, question: PreviewQuestion<'_>) -> Result<Preview> {
        let range = question.range;
        let Ok(range) = TimeRange::new(range.from(), range.to().min(self.table.now)) else {
            return Ok(Preview::default());
        };
        let question = PreviewQuestion { range, ..question };
        if let Watch::Metric { .. } | Watch::Silence { .. } = question.rule.watch {
            return self.preview_episodes(question).await;
        }

        let AlertSubject::Device(device) = question.subject else { return Ok(Preview::default()) };
        match self.device(device).await? {
            Some(device) => self.preview_figures(question, &device).await,
            None => Ok(Preview::default()),
        }
    }

    /// The episodes that overlap a range. The fold begins before the range. The fold is repeated from earlier times, at
    /// most [`MAX_PREVIEW`] before, until its state in the range no longer depends on the begin.
    async fn preview_episodes(&self, question: PreviewQuestion<'_>) -> Result<Preview> {
        let PreviewQuestion { rule, range, .. } = question;
        let mut lead = MIN_LEAD.max((rule.breach_time + rule.clear_time) * 2).min(MAX_PREVIEW);
        let mut known: Option<Preview> = None;
        loop {
            let from = range.from().saturating_add(-lead);
            let whole = TimeRange::new(from, range.to()).unwrap_or(range);
            let is_last = lead >= MAX_PREVIEW;
            let longer = PreviewQuestion { range: whole, ..question };
            let found = self.folded(longer, is_last).await;
            let (mut preview, settled) = match (found, known) {
                // A longer fold would read too many readings, so the result of the shorter one is used.
                (Err(SeriesError::OutOfReach(_)), Some(known)) => return Ok(known),
                (found, _) => found?,
            };

            let from = range.from();
            preview.episodes.retain(|episode| episode.ended.is_none_or(|ended| ended > from));
            preview.by_extremes.retain(|expired| expired.to() > from);
            if is_last || settled.is_some_and(|settled| settled <= from) {
                return Ok(preview);
            }
            known = Some(preview);
            lead = (lead * 6).min(MAX_PREVIEW);
        }
    }

    /// The episodes of a fold over a range, and the time from which its state no longer depends on what was before the
    /// range. With `begins_normal` the fold begins without a breach.
    async fn folded(
        &self,
        question: PreviewQuestion<'_>,
        begins_normal: bool,
    ) -> Result<(Preview, Option<Timestamp>)> {
        match (&question.rule.watch, question.subject) {
            (Watch::Metric { metric, .. }, AlertSubject::Room(room)) => {
                self.folded_means(question, room, metric, begins_normal).await
            }
            (_, AlertSubject::Device(id)) => {
                self.folded_readings(question, id, begins_normal).await
            }
            (_, AlertSubject::Room(_)) => Ok((Preview::default(), Some(question.range.from()))),
        }
    }

    async fn folded_means(
        &self,
        question: PreviewQuestion<'_>,
        room: &RoomId,
        metric: &MetricName,
        begins_normal: bool,
    ) -> Result<(Preview, Option<Timestamp>)> {
        let PreviewQuestion { rule, range, horizon, .. } = question;
        let devices = self.devices().await?;
        let mean = RoomMean::of(room, metric, &devices, horizon);
        let means = self.means_between(&mean, range.from(), range.to()).await?;
        let overdue = means.overdue(self.table.now);

        let silence = SilenceLimit::new(ROOM_SILENCE, overdue.as_slice());
        let mut past = Past::begin(rule, silence, range.from(), begins_normal);
        past.take(&means.values, range.to());
        Ok(preview_of(past, Vec::new()))
    }

    async fn folded_readings(
        &self,
        question: PreviewQuestion<'_>,
        id: &DeviceId,
        begins_normal: bool,
    ) -> Result<(Preview, Option<Timestamp>)> {
        let PreviewQuestion { rule, range, horizon, .. } = question;
        let silent_after = self.silent_after(&rule.watch, id).await?;
        let note = self.table.running_note().await?;
        let pauses = note.map(|note| note.pauses).unwrap_or_default();
        let device = self.device(id).await?;
        let metric = rule.watch.metric();
        let info = metric.and_then(|metric| device.as_ref()?.metrics().get(metric));

        let is_rolled_up =
            device.is_none() || info.is_some() || matches!(rule.watch, Watch::Silence { .. });
        // There are no readings before the device's first one.
        let is_whole = device.as_ref().is_none_or(|device| device.first_seen() >= range.from());
        let silence = SilenceLimit::new(silent_after, &pauses);
        let mut past = Past::begin(rule, silence, range.from(), begins_normal || is_whole);
        let walk = PreviewWalk {
            rule,
            device: id,
            metric_rule: info.map(MetricRule::of),
            range,
            rolled_up: horizon.rolled_up(id).filter(|_| is_rolled_up),
            silent_after,
        };
        let by_extremes = self.walk(&walk, &mut past).await?;
        Ok(preview_of(past, by_extremes))
    }

    /// The alerts that a rule on a budget, demand or counter would have made in a range.
    async fn preview_figures(
        &self,
        question: PreviewQuestion<'_>,
        device: &Device,
    ) -> Result<Preview> {
        match &question.rule.watch {
            Watch::Budget { per, .. } => self.preview_periods(question, *per, device).await,
            Watch::Demand { period, .. } => self.preview_periods(question, *period, device).await,
            Watch::Counter { metric, events } => {
                let PreviewQuestion { range, horizon, .. } = question;
                let found = self.steps(metric, events, device, range, horizon).await?;
                let until = |step: &CounterStep| step.timestamp < range.to();
                let steps = found.events.into_iter().filter(until).map(|step| {
                    let at = step.timestamp;
                    Previewed { since: at, fired: at, ended: None, value: step.size }
                });
                let episodes = steps.collect();
                Ok(Preview { episodes, has_more: found.has_more, by_extremes: Vec::new() })
            }
            Watch::Metric { .. } | Watch::Silence { .. } => Ok(Preview::default()),
        }
    }

    /// The periods of a budget or a demand whose figure is beyond the limit.
    async fn preview_periods(
        &self,
        question: PreviewQuestion<'_>,
        unit: CalendarUnit,
        device: &Device,
    ) -> Result<Preview> {
        let PreviewQuestion { rule, range, horizon, .. } = question;
        let (mut preview, now) = (Preview::default(), self.table.now);
        let is_of_peak = matches!(rule.watch, Watch::Demand { limit: DemandLimit::Peak, .. });
        // The highest period of a month needs the month from its start.
        let month_of = |at: Timestamp| CalendarUnit::Month.bucket_of(at, horizon.zone());
        let from = if is_of_peak { month_of(range.from()).from() } else { range.from() };
        let whole = TimeRange::new(from, range.to()).unwrap_or(range);
        let Some(grid) = Grid::of(unit, whole, horizon.zone()) else { return Ok(preview) };
        let level = Level::of(Some(unit));
        let rows = self.energy(device, &grid, horizon, level).await?;
        let Some(rows) = rows else { return Ok(preview) };

        let (mut highest, mut month): (Option<Exact>, _) = (None, month_of(from));
        for (index, period) in grid.rows().iter().enumerate() {
            if !month.contains(period.from()) {
                (highest, month) = (None, month_of(period.from()));
            }
            let Some(used) = rows.bought(index) else { continue };
            let (value, limit) = match &rule.watch {
                Watch::Demand { limit, .. } => {
                    let Some(power) = demand::power(&used, *period) else { continue };
                    let limit = demand::limit_of(limit, highest.as_ref());
                    highest = highest.max(Some(power.clone()));
                    (power, limit)
                }
                Watch::Budget { kwh, .. } => (used, Some(Exact::from(kwh))),
                _ => continue,
            };

            if period.to() > range.from() && limit.is_some_and(|limit| value > limit) {
                let (since, fired) = (period.from(), period.to().min(now));
                let ended = (period.to() <= now).then_some(period.to());
                preview.episodes.push(Previewed { since, fired, ended, value: Some(value) });
            }
        }
        Ok(preview)
    }
}

/// The episodes of a fold, and the time from which its state no longer depends on what was before the range.
fn preview_of(past: Past<'_>, by_extremes: Vec<TimeRange>) -> (Preview, Option<Timestamp>) {
    let settled = past.settled();
    let shown = |alerts::FiredEpisode { since, fired, ended }| Previewed {
        since,
        fired,
        ended,
        value: None,
    };
    let episodes = past.episodes().into_iter().map(shown).collect();
    (Preview { episodes, by_extremes, has_more: false }, settled)
}
