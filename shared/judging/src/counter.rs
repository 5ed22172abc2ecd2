//! The figures of a counter: resets and odd steps of the last day, if a rule watches them. Sends no message.

use std::collections::BTreeSet;

use alerts::{CounterEvent, Figure, MAX_AHEAD};
use chrono::TimeDelta;
use domain::{Device, Exact, Flag, Flags, MetricName, TimeRange};
use series::{CounterStep, CounterSteps, DeviceQuestion, Grid, Horizon, Level, events};

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
        let found = self.steps(metric, told, device, day, horizon).await?;
        // A step with a time ahead of the clock is judged when that time has come.
        let latest = now.saturating_add(MAX_AHEAD);
        let steps = found.events.into_iter().filter(|step| step.timestamp <= latest);
        Ok(steps.map(figure).collect())
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

fn figure(step: CounterStep) -> Figure {
    let value = step.size.unwrap_or_else(Exact::zero);
    Figure { at: step.timestamp, value, is_beyond: true }
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
