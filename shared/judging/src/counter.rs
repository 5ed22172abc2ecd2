//! The figures of a counter: resets and odd steps of the last day, if a rule watches them. Sends no message.

use std::collections::BTreeSet;

use alerts::{CounterEvent, Figure, MAX_AHEAD};
use chrono::TimeDelta;
use domain::{Device, Exact, Flag, Flags, MetricName, QuarterHour, TimeRange, Timestamp};
use series::{
    CounterStep, CounterSteps, DeviceQuestion, Grid, Horizon, Level, device_rows, events,
};

use crate::Result;
use crate::judging::JudgingSession;
use crate::ports::Store;

/// The greatest age of a step about which a message is sent.
const MAX_AGE: TimeDelta = TimeDelta::days(1);

impl<S: Store> JudgingSession<'_, S> {
    /// The steps of a device's counter within the last day.
    pub(crate) async fn counter_figures(
        &self,
        metric: &MetricName,
        told: &BTreeSet<CounterEvent>,
        device: &Device,
        horizon: &Horizon,
    ) -> Result<Vec<Figure>> {
        let now = self.table.now;
        let Ok(day) = TimeRange::new(now.saturating_add(-MAX_AGE), now) else {
            return Ok(Vec::new());
        };
        let found = self.steps(metric, told, device, day, horizon).await?.events;
        if found.is_empty() {
            return Ok(Vec::new());
        }

        // A step with a time ahead of the clock is judged when that time has come, and a step from a quarter without a
        // rollup on when the quarter has one: until then the quarter's readings are missing between the two readings of
        // the step.
        let latest = now.saturating_add(MAX_AHEAD);
        let unfolded = self.first_unfolded(metric, device, day, horizon).await?;
        let is_known = |step: &CounterStep| {
            step.timestamp <= latest && unfolded.is_none_or(|start| step.timestamp < start)
        };
        // A step without readings is of a quarter whose rollup is outdated, because a reading was corrected or deleted.
        let has_readings = |step: &CounterStep| step.until.is_none();
        let steps = found.into_iter().filter(|step| is_known(step) && has_readings(step));
        Ok(steps.map(|step| figure(step, unfolded.is_none())).collect())
    }

    /// The start of the first quarter of a range that has readings but no rollup, although rollups are complete up to a
    /// later time: the quarter waits in the queue.
    async fn first_unfolded(
        &self,
        metric: &MetricName,
        device: &Device,
        range: TimeRange,
        horizon: &Horizon,
    ) -> Result<Option<Timestamp>> {
        if horizon.waiting_quarters().is_none() {
            return Ok(None);
        }

        let from = QuarterHour::of(range.from()).start();
        let sealed = horizon.rolled_up(device.id()).map_or(from, TimeRange::to);
        let Ok(range) = TimeRange::new(from, sealed) else { return Ok(None) };
        let (grid, now) = (Grid::quarters(range), self.table.now);
        let question = DeviceQuestion::of(device, &grid, horizon, Level::QuarterHours, now);
        let names = std::slice::from_ref(metric);
        let values = device_rows(self.table, &question, names, |_| false).await?;
        let folded_until = values.folded_until(self.table, range).await?;
        Ok(Some(folded_until).filter(|until| *until < range.to()))
    }

    /// The steps in a range that a rule watches, by time. The last step may end after the range.
    pub(crate) async fn steps(
        &self,
        metric: &MetricName,
        told: &BTreeSet<CounterEvent>,
        device: &Device,
        range: TimeRange,
        horizon: &Horizon,
    ) -> Result<CounterSteps> {
        let grid = Grid::total(range);
        let question = DeviceQuestion::of(device, &grid, horizon, Level::Days, self.table.now);
        let metrics = std::slice::from_ref(metric);
        events(self.table, &question, metrics, flags_of(told)).await
    }
}

/// The figure of a step. `are_all_known` says that no other step of the last day is left out.
fn figure(step: CounterStep, are_all_known: bool) -> Figure {
    let before = step.from.map(|value| value.timestamp).filter(|_| are_all_known);
    let value = step.size.unwrap_or_else(Exact::zero);
    Figure { before, ..Figure::new(step.timestamp, value, true) }
}

/// The flags of the steps that a rule watches.
pub(crate) fn flags_of(told: &BTreeSet<CounterEvent>) -> Flags {
    told.iter().fold(Flags::default(), |all, event| all.union(flag_of(*event).into()))
}

const fn flag_of(event: CounterEvent) -> Flag {
    match event {
        CounterEvent::Reset => Flag::Reset,
        CounterEvent::Suspect => Flag::Suspect,
        CounterEvent::Ambiguous => Flag::Ambiguous,
    }
}
