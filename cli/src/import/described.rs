//! The registry's entry of a device, with the members that an import needs. Changes nothing.

use std::collections::BTreeMap;

use domain::{MetricInfo, MetricKind, MetricName, Role};
use serde::Deserialize;

use super::several_meters::Meters;
use crate::client::Client;

/// A device's entry.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Described {
    /// The name that a person, or the sample home, gave the device.
    pub(super) name: Option<String>,
    #[serde(default)]
    metrics: BTreeMap<String, MetricFacts>,
    /// The meter that also measures this device.
    behind: Option<String>,
}

#[derive(Debug, Deserialize)]
struct MetricFacts {
    kind: String,
    unit: Option<String>,
    role: Option<String>,
}

impl Described {
    /// Asks a server for the entry; `None` if the registry does not have the device, or it is being deleted.
    pub(super) fn ask(client: &Client, device: &str) -> anyhow::Result<Option<Self>> {
        client.find(&format!("/devices/{device}"))
    }

    /// Adds the device to `meters`, if it is a meter.
    pub(super) fn add_to(&self, meters: &mut Meters, id: &str) {
        let info = |(name, it): (&String, &MetricFacts)| {
            let name: MetricName = name.parse().ok()?;
            let mut info = MetricInfo::from(&name);
            info.kind = if it.is_counter() { MetricKind::Counter } else { MetricKind::Gauge };
            info.unit = it.unit.as_ref().and_then(|unit| unit.parse().ok());
            info.role = it.role.as_deref().and_then(Role::parse);
            Some((name, info))
        };
        let metrics = self.metrics.iter().filter_map(info).collect();
        meters.add(id, &metrics, self.behind.is_some());
    }

    /// Returns the names of the metrics that are counters.
    pub(super) fn counters(&self) -> impl Iterator<Item = MetricName> {
        let counters = self.metrics.iter().filter(|(_, it)| it.is_counter());
        counters.filter_map(|(name, _)| name.parse().ok())
    }
}

impl MetricFacts {
    fn is_counter(&self) -> bool {
        self.kind == "counter"
    }
}
