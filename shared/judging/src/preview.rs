//! The episodes that a rule would have had on one subject, by the judge's own fold. Stores and tells nothing.

use alerts::{DemandLimit, Past, Rule, Subject, Watch};
use chrono::TimeDelta;
use domain::{CalendarUnit, Exact, MetricRule, TimeRange, Timestamp};
use series::{Event, Failure, Grid, Horizon, Level};
use table::Invocation;

use crate::energy::{energy, meter};
use crate::judging::Judging;
use crate::ports::Store;
use crate::preview_walk::walk;
use crate::room_mean::{self, ROOM_SILENCE};
use crate::{counter, demand};

/// The longest time of a preview.
pub const MAX_PREVIEW: TimeDelta = TimeDelta::days(31);
/// How long before a range a fold begins at least.
const MIN_LEAD: TimeDelta = TimeDelta::days(1);

/// What a rule would have told.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// The episodes, periods or steps, in order of time.
    pub episodes: Vec<Previewed>,
    /// Whether there are more steps of a counter than are looked for.
    pub has_more: bool,
    /// The times whose readings have expired: there the extremes of quarters of an hour answer.
    pub by_extremes: Vec<TimeRange>,
}

/// An episode that would have fired, a period whose figure is beyond the limit, or a step of a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Previewed {
    /// The first breach; the start of the period; the step.
    pub since: Timestamp,
    /// When it would have fired.
    pub fired: Timestamp,
    /// When it ended; `None` if it lasts to the end of the range, and for a step.
    pub ended: Option<Timestamp>,
    /// The energy in kWh, the mean power in kW or the size of the step.
    pub value: Option<Exact>,
}

impl Judging {
    /// What a rule would have told in a range of at most [`MAX_PREVIEW`]; the rule need not be saved.
    ///
    /// A demand is judged by the mean power of its whole periods: what the period was heading to is not computed again.
    pub async fn preview(
        &self,
        store: &impl Store,
        (rule, subject): (&Rule, &Subject),
        (range, horizon): (TimeRange, &Horizon),
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Preview, Failure> {
        if range.to().since(range.from()) > MAX_PREVIEW {
            let days = MAX_PREVIEW.num_days();
            return Err(Failure::OutOfReach(format!(
                "A preview is of at most {days} days; narrow from and to."
            )));
        }
        let Ok(range) = TimeRange::new(range.from(), range.to().min(now)) else {
            return Ok(Preview::default());
        };
        match &rule.watch {
            Watch::Metric { .. } | Watch::Silence { .. } => {
                self.preview_folded(store, (rule, subject), (range, horizon), now, invocation).await
            }
            _ => self.preview_once(store, (rule, subject), (range, horizon), now, invocation).await,
        }
    }

    /// The episodes that reach into a range. The fold begins before it, earlier and earlier until it is where it would be
    /// whatever was before, up to [`MAX_PREVIEW`] before.
    async fn preview_folded(
        &self,
        store: &impl Store,
        asked: (&Rule, &Subject),
        (range, horizon): (TimeRange, &Horizon),
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Preview, Failure> {
        let (rule, _) = asked;
        let mut lead = MIN_LEAD.max((rule.hold + rule.clear_hold) * 2).min(MAX_PREVIEW);
        let mut known: Option<Preview> = None;
        loop {
            let from = range.from().saturating_add(-lead);
            let whole = TimeRange::new(from, range.to()).unwrap_or(range);
            let is_last = lead >= MAX_PREVIEW;
            let found = self.folded(store, asked, (whole, is_last, horizon), now, invocation).await;
            let (mut found, settled) = match (found, known) {
                // So many readings are in the breach that its start is out of reach.
                (Err(Failure::OutOfReach(_)), Some(known)) => return Ok(known),
                (found, _) => found?,
            };
            found.episodes.retain(|it| it.ended.is_none_or(|ended| ended > range.from()));
            found.by_extremes.retain(|it| it.to() > range.from());
            if is_last || settled.is_some_and(|settled| settled <= range.from()) {
                return Ok(found);
            }
            known = Some(found);
            lead = (lead * 6).min(MAX_PREVIEW);
        }
    }

    /// The episodes of a fold over a range, and since when it is where it would be whatever was before. It begins as normal
    /// if it has to.
    async fn folded(
        &self,
        store: &impl Store,
        (rule, subject): (&Rule, &Subject),
        (range, begins_normal, horizon): (TimeRange, bool, &Horizon),
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<(Preview, Option<Timestamp>), Failure> {
        let preview = |past: Past<'_>, by_extremes: Vec<TimeRange>| {
            let settled = past.settled();
            let episodes = past.episodes().into_iter().map(of_episode).collect();
            (Preview { episodes, by_extremes, has_more: false }, settled)
        };
        match (&rule.watch, subject) {
            (Watch::Metric { metric, .. }, Subject::Room(room)) => {
                let devices = self.devices(store, now, invocation).await?;
                let asked = (|sealed: Timestamp| up_to(range, sealed), horizon);
                let means =
                    room_mean::means(store, (room, metric), &devices, asked, now, invocation);
                let means = means.await?;
                let overdue = room_mean::overdue(room, metric, &devices, horizon, now);
                let silence = (ROOM_SILENCE, overdue.as_slice());
                let mut past = Past::begin(rule, silence, range.from(), begins_normal);
                past.take(&means, range.to());
                Ok(preview(past, Vec::new()))
            }
            (watch, Subject::Device(id)) => {
                let silent_after = match watch {
                    Watch::Silence { after: Some(after) } => *after,
                    _ => self.limits.of(store, id, now, invocation).await?,
                };
                let pauses = match store.running_mark(invocation).await? {
                    Some(mark) => mark.pauses,
                    None => Vec::new(),
                };
                let device = self.device(store, id, now, invocation).await?;
                let info = match (watch, &device) {
                    (Watch::Metric { metric, .. }, Some(device)) => device.metrics().get(metric),
                    _ => None,
                };
                let is_rolled_up =
                    device.is_none() || info.is_some() || matches!(watch, Watch::Silence { .. });
                let rolled_up = horizon.rolled_up(id).filter(|_| is_rolled_up);
                // Nothing is before its first reading.
                let is_whole = device.as_ref().is_none_or(|it| it.first_seen() >= range.from());
                let silence = (silent_after, &pauses[..]);
                let is_normal = begins_normal || is_whole;
                let mut past = Past::begin(rule, silence, range.from(), is_normal);
                let metric_rule = info.map(MetricRule::of);
                let device = (id, metric_rule.as_ref());
                let times = (range, rolled_up, silent_after);
                let read = walk(store, (rule, &mut past), device, times, now, invocation);
                let by_extremes = read.await?;
                Ok(preview(past, by_extremes))
            }
            (_, Subject::Room(_)) => Ok((Preview::default(), Some(range.from()))),
        }
    }

    async fn preview_once(
        &self,
        store: &impl Store,
        (rule, subject): (&Rule, &Subject),
        (range, horizon): (TimeRange, &Horizon),
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Preview, Failure> {
        let Subject::Device(device) = subject else { return Ok(Preview::default()) };
        let Some(device) = self.device(store, device, now, invocation).await? else {
            return Ok(Preview::default());
        };
        let mut preview = Preview::default();
        let unit = match &rule.watch {
            Watch::Budget { per, .. } => *per,
            Watch::Demand { period, .. } => *period,
            Watch::Counter { metric, events } => {
                let asked = (range, horizon);
                let steps =
                    counter::steps(store, &device, (metric, events), asked, now, invocation);
                let steps = steps.await?;
                preview.has_more = steps.has_more;
                let until = |step: &Event| step.timestamp < range.to();
                let steps = steps.events.into_iter().filter(until).map(|step| {
                    let at = step.timestamp;
                    Previewed { since: at, fired: at, ended: None, value: step.size }
                });
                preview.episodes = steps.collect();
                return Ok(preview);
            }
            Watch::Metric { .. } | Watch::Silence { .. } => return Ok(preview),
        };
        let is_of_peak = matches!(rule.watch, Watch::Demand { limit: DemandLimit::Peak, .. });
        // The highest of a month is known from its start on.
        let month_of = |at: Timestamp| CalendarUnit::Month.bucket_of(at, horizon.zone());
        let from = if is_of_peak { month_of(range.from()).from() } else { range.from() };
        let whole = TimeRange::new(from, range.to()).unwrap_or(range);
        let Some(grid) = Grid::of(unit, whole, horizon.zone()) else { return Ok(preview) };
        let (places, level) = ((&grid, horizon), Level::of(Some(unit)));
        let rows = energy(store, (&device, meter(&device)), places, level, now, invocation).await?;
        let Some(rows) = rows else { return Ok(preview) };
        let (mut highest, mut month): (Option<Exact>, _) = (None, month_of(from));
        for (place, period) in grid.rows().iter().enumerate() {
            if !month.contains(period.from()) {
                (highest, month) = (None, month_of(period.from()));
            }
            let Some(used) = rows.used(place) else { continue };
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

/// The part of a range before what is not sealed.
fn up_to(range: TimeRange, sealed: Timestamp) -> Option<TimeRange> {
    TimeRange::new(range.from(), range.to().min(sealed)).ok()
}

fn of_episode(episode: alerts::Episode) -> Previewed {
    let alerts::Episode { since, fired, ended } = episode;
    Previewed { since, fired, ended, value: None }
}
