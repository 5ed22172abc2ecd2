//! Refuses settings that mean nothing for a device: what no fold would ever read. Edits nothing.

use std::collections::BTreeMap;

use api::Problem;
use domain::{
    Device, DeviceId, DevicePatch, Edit, EnergyUnit, MetricInfo, MetricKind, MetricPatch,
    MetricRule, Timestamp,
};
use runtime::registry::Devices;

/// Refuses a setting of a metric that its kind or its unit does not have, as they are after the patch.
pub(crate) fn check_metrics(
    device: &Device,
    patch: &DevicePatch,
    now: Timestamp,
) -> Result<(), Problem> {
    let mut edited = device.clone();
    patch.apply(&mut edited, now);
    for (name, settings) in &patch.metrics {
        let Some(info) = edited.metrics.get(name) else { continue };
        if let Some((setting, message)) = meaningless(settings, info) {
            return Err(Problem::field(&format!("metrics.{name}.{setting}"), message));
        }
    }
    Ok(())
}

fn meaningless(settings: &MetricPatch, info: &MetricInfo) -> Option<(&'static str, &'static str)> {
    let of_counters = [
        ("modulus", is_set(&settings.modulus)),
        ("max_w", is_set(&settings.max_w)),
        ("tolerance", is_set(&settings.tolerance)),
        ("exchanges", is_set(&settings.exchanges)),
        ("verdicts", is_set(&settings.verdicts)),
        ("net", settings.net == Edit::Set(true)),
        ("cycle", is_set(&settings.cycle)),
    ];
    if info.kind != MetricKind::Counter {
        let set = of_counters.into_iter().find(|(_, is_set)| *is_set);
        if let Some((name, _)) = set {
            return Some((name, "is a setting of counters, and this metric is a gauge"));
        }
    }
    if is_set(&settings.max_w) && EnergyUnit::of(info.unit.as_ref()).is_none() {
        return Some(("max_w", "needs a metric in Wh, kWh or MWh"));
    }
    let is_power = matches!(MetricRule::of(info), MetricRule::Power(_));
    let is_energy =
        info.kind == MetricKind::Counter && EnergyUnit::of(info.unit.as_ref()).is_some();
    if is_set(&settings.role) && !is_energy && !is_power {
        return Some(("role", "needs a counter in Wh, kWh or MWh, or a gauge in W, kW or MW"));
    }
    if is_set(&settings.hold) && !is_power {
        return Some(("hold", "is a setting of gauges in W, kW or MW"));
    }
    None
}

const fn is_set<T>(edit: &Edit<T>) -> bool {
    matches!(edit, Edit::Set(_))
}

/// Refuses to put a device behind itself, directly or by way of others.
pub(crate) fn check_behind(
    id: &DeviceId,
    meter: &DeviceId,
    (known, others): (&Devices, &BTreeMap<DeviceId, Device>),
) -> Result<(), Problem> {
    let mut next = Some(meter);
    // A chain has at most as many links as there are devices; one that is longer goes round.
    for _ in 0..=known.len() + others.len() {
        let Some(at) = next else { return Ok(()) };
        if at == id {
            let message = if meter == id {
                "is the device itself".to_owned()
            } else {
                format!("{meter} is itself behind {id}, directly or by way of others")
            };
            return Err(Problem::field("behind", message));
        }
        let device = known.get(at).or_else(|| others.get(at));
        next = device.and_then(|device| device.behind.as_ref());
    }
    Ok(())
}
