//! The figures of a counter: its steps of the last day that a rule tells. Tells nothing.

use std::collections::BTreeSet;

use alerts::{CounterEvent, Figure, MAX_AHEAD};
use chrono::TimeDelta;
use domain::{Device, Exact, Flag, Flags, MetricName, TimeRange, Timestamp};
use series::{Ask, Event, Events, Failure, Grid, Horizon, Level, events};
use table::Invocation;

use crate::ports::Store;

/// The age of a step that is told at most.
const MAX_AGE: TimeDelta = TimeDelta::days(1);

/// The figures of a device.
pub(crate) async fn figures(
    store: &impl Store,
    device: &Device,
    (metric, told): (&MetricName, &BTreeSet<CounterEvent>),
    horizon: &Horizon,
    now: Timestamp,
    invocation: &Invocation,
) -> Result<Vec<Figure>, Failure> {
    let Ok(day) = TimeRange::new(now.saturating_add(-MAX_AGE), now) else { return Ok(Vec::new()) };
    let range = (day, horizon);
    let found = steps(store, device, (metric, told), range, now, invocation).await?;
    // What lies ahead of the clock is told when its time has come.
    let horizon = now.saturating_add(MAX_AHEAD);
    Ok(found.events.into_iter().filter(|it| it.timestamp <= horizon).map(figure).collect())
}

/// The steps of a range that a rule tells, in order; the last one may end behind it.
pub(crate) async fn steps(
    store: &impl Store,
    device: &Device,
    (metric, told): (&MetricName, &BTreeSet<CounterEvent>),
    (range, horizon): (TimeRange, &Horizon),
    now: Timestamp,
    invocation: &Invocation,
) -> Result<Events, Failure> {
    let grid = Grid::total(range);
    let ask = Ask::of(device, (&grid, horizon), Level::Days, now);
    let asked = (std::slice::from_ref(metric), flags_of(told));
    events(store, &ask, asked, invocation).await
}

fn figure(step: Event) -> Figure {
    let value = step.size.unwrap_or_else(Exact::zero);
    Figure { at: step.timestamp, value, is_beyond: true }
}

/// The flags of the steps that a rule tells.
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
