//! The figures of a counter: its steps of the last day that a rule tells. Tells nothing.

use std::collections::BTreeSet;

use alerts::{CounterEvent, Figure};
use chrono::TimeDelta;
use domain::{Device, Exact, Flag, MetricName, TimeRange, Timestamp};
use series::{Ask, Event, Failure, Grid, Horizon, Level, events};
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
    Ok(found.into_iter().map(figure).collect())
}

/// The steps of a range that a rule tells, in order.
pub(crate) async fn steps(
    store: &impl Store,
    device: &Device,
    (metric, told): (&MetricName, &BTreeSet<CounterEvent>),
    (range, horizon): (TimeRange, &Horizon),
    now: Timestamp,
    invocation: &Invocation,
) -> Result<Vec<Event>, Failure> {
    let grid = Grid::total(range);
    let ask = Ask::of(device, (&grid, horizon), Level::Days, now);
    let found = events(store, &ask, std::slice::from_ref(metric), invocation).await?.events;
    let is_one = |event: &Event| event.events.iter().any(|flag| is_told(flag, told));
    Ok(found.into_iter().filter(is_one).collect())
}

fn figure(step: Event) -> Figure {
    let value = step.size.unwrap_or_else(Exact::zero);
    Figure { at: step.timestamp, value, is_beyond: true }
}

/// Whether a rule tells steps of a flag.
pub(crate) fn is_told(flag: &str, told: &BTreeSet<CounterEvent>) -> bool {
    told.iter().any(|event| flag_of(*event).as_str() == flag)
}

const fn flag_of(event: CounterEvent) -> Flag {
    match event {
        CounterEvent::Reset => Flag::Reset,
        CounterEvent::Suspect => Flag::Suspect,
        CounterEvent::Ambiguous => Flag::Ambiguous,
    }
}
