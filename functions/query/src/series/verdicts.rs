//! Refuses verdicts that would change nothing: looks at the step that each new one is about. Judges no step.
//!
//! A verdict that is stored is not looked at again: the readings may change after it was given, and then it changes
//! nothing as long as the step is another.

use api::Problem;
use chrono::TimeDelta;
use domain::{
    CounterRule, Device, DevicePatch, Edit, MetricName, MetricRule, Order, Sample, TimeRange,
    Timestamp, Verdict,
};
use runtime::http::Call;
use table::{Invocation, RangeQuery};

use super::failure::Failure;
use super::gather::{Ask, Level, MAX_READ};
use super::grid::Grid;
use super::horizon::{Horizon, KnownState};
use super::neighbours::neighbours;
use crate::ports::Store;

/// Refuses the new verdicts of an edit that change nothing, as the device and its readings are now.
pub(crate) async fn check_verdicts(
    known_state: &KnownState,
    store: &impl Store,
    device: &Device,
    patch: &DevicePatch,
    now: Timestamp,
    call: &mut Call<'_>,
) -> Result<(), Problem> {
    let mut edited = device.clone();
    patch.apply(&mut edited, now);
    let new = patch.metrics.iter().flat_map(|(name, settings)| {
        let stored = device.metrics().get(name).map(|info| &info.verdicts);
        let given = match &settings.verdicts {
            Edit::Set(given) => Some(given),
            Edit::Keep | Edit::Clear => None,
        };
        let is_new = move |(at, verdict): &(&Timestamp, &Verdict)| {
            stored.and_then(|stored| stored.get(at)) != Some(*verdict)
        };
        given.into_iter().flatten().filter(is_new).map(move |(at, verdict)| (name, *at, *verdict))
    });
    let new: Vec<_> = new.collect();
    if new.is_empty() {
        return Ok(());
    }
    let horizon = known_state.horizon(store, now, call.invocation).await;
    let horizon = horizon.map_err(|error| call.failed(&error))?;
    for (name, at, verdict) in new {
        let Some(MetricRule::Counter(rule)) = edited.metrics().get(name).map(MetricRule::of) else {
            continue;
        };
        let step = Step { device: &edited, name, at, now, horizon: &horizon };
        let why = step.unfit(store, &rule, verdict, call.invocation).await;
        if let Some(why) = why.map_err(|failure| failure.problem(call))? {
            let message = format!("{at}: {why}");
            return Err(Problem::field(&format!("metrics.{name}.verdicts"), message));
        }
    }
    Ok(())
}

/// The step that a reading ends.
struct Step<'a> {
    device: &'a Device,
    name: &'a MetricName,
    at: Timestamp,
    now: Timestamp,
    horizon: &'a Horizon,
}

impl Step<'_> {
    /// Why a verdict on the step changes nothing; `None` if it changes something.
    async fn unfit(
        &self,
        store: &impl Store,
        rule: &CounterRule,
        verdict: Verdict,
        invocation: &Invocation,
    ) -> Result<Option<String>, Failure> {
        let Self { name, at, .. } = *self;
        let Ok(range) = TimeRange::new(at, at.saturating_add(TimeDelta::milliseconds(1))) else {
            return Ok(Some("is no time that a reading can have".to_owned()));
        };
        let Some(to) = self.value(store, range, rule, invocation).await? else {
            return Ok(Some(format!("there is no reading of {name} above zero at that time")));
        };
        let Some(from) = self.before(store, range, rule, invocation).await? else {
            return Ok(Some(format!("{} is the first value; no step ends there", to.value)));
        };
        let fitting = rule.verdicts(&from, &to);
        if fitting.contains(&verdict) {
            return Ok(None);
        }
        let step = format!("the step from {} at {} to {}", from.value, from.at, to.value);
        if fitting.is_empty() {
            return Ok(Some(format!(
                "{step} is no fall and not suspect, so no verdict changes anything"
            )));
        }
        let fitting: Vec<&str> = fitting.into_iter().map(Verdict::as_str).collect();
        let (verdict, fitting) = (verdict.as_str(), fitting.join(", "));
        Ok(Some(format!("{verdict} changes nothing of {step}; these do: {fitting}")))
    }

    async fn value(
        &self,
        store: &impl Store,
        range: TimeRange,
        rule: &CounterRule,
        invocation: &Invocation,
    ) -> Result<Option<Sample>, Failure> {
        let order = Order::Ascending;
        let query = RangeQuery { range, order, after: None, limit: 1, consistent: true };
        let page = store.device_readings(self.device.id(), &query, invocation).await?;
        let rule = MetricRule::Counter(rule.clone());
        Ok(page.readings.iter().find_map(|reading| rule.sample(reading, self.name)))
    }

    /// The value before the step's last one, however far.
    async fn before(
        &self,
        store: &impl Store,
        range: TimeRange,
        rule: &CounterRule,
        invocation: &Invocation,
    ) -> Result<Option<Sample>, Failure> {
        let grid = Grid::total(range);
        let ask = Ask {
            device: self.device,
            rooms: None,
            is_by_room: false,
            max_read: MAX_READ,
            grid: &grid,
            horizon: self.horizon,
            coarsest: Level::Readings,
            now: self.now,
        };
        let rules = [(self.name.clone(), MetricRule::Counter(rule.clone()))].into();
        let mut found = neighbours(store, &ask, &rules, None, invocation).await?;
        Ok(found.values.remove(self.name).and_then(|it| it.before))
    }
}
