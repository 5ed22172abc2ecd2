//! The energy of a device by rows of time: what `/energy` answers of it. Judges nothing.

use std::collections::BTreeMap;

use domain::{Device, Meter, MetricInfo, MetricKind, MetricName, MetricRule, Timestamp};
use series::{Ask, EnergyDevice, Failure, Grid, Horizon, Level, device_values};
use table::Invocation;

use crate::ports::Store;

/// The energy of a device that is asked about by itself; `None` if it measures none.
pub(crate) async fn energy<'a>(
    store: &impl Store,
    (device, meter): (&'a Device, Option<Meter<'a>>),
    (grid, horizon): (&'a Grid, &'a Horizon),
    coarsest: Level,
    now: Timestamp,
    invocation: &Invocation,
) -> Result<Option<EnergyDevice<'a>>, Failure> {
    let Some(meter) = meter else { return Ok(None) };
    let names: Vec<MetricName> = meter.names().cloned().collect();
    let ask = Ask::of(device, (grid, horizon), coarsest, now);
    let spans = |rule: &MetricRule| *rule != MetricRule::Gauge;
    let values = device_values(store, &ask, &names, spans, invocation).await?;
    Ok(Some(EnergyDevice { values, meter }))
}

/// The meter of a device: its counters, else its powers.
pub(crate) fn meter(device: &Device) -> Option<Meter<'_>> {
    Meter::of(device.metrics())?.alone(device.metrics())
}

/// The metrics of a device that are no counters: the meter of them is made from powers.
pub(crate) fn gauges(device: &Device) -> BTreeMap<MetricName, MetricInfo> {
    let gauges = device.metrics().iter().filter(|(_, info)| info.kind == MetricKind::Gauge);
    gauges.map(|(name, info)| (name.clone(), info.clone())).collect()
}
