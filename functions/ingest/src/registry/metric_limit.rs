//! Limits how many metrics merging writes give a device. Reads and writes no table.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use api::FieldError;
use chrono::TimeDelta;
use domain::{DeviceId, MAX_KNOWN_METRICS, MetricName, Timestamp};

use crate::readings::Readings;
use crate::registry::known::Known;

/// The number of devices whose metrics are remembered. Beyond it, all are forgotten.
const MAX_DEVICES: usize = 1_000;

/// The time for which they are remembered. The registry knows them by then, or never will: they were not stored,
/// or the device was deleted meanwhile.
const REMEMBERED: TimeDelta = TimeDelta::minutes(3);

/// The metrics that this process has let merging writes add to devices, and that the registry lacks: it learns
/// them later, from the stream.
#[derive(Debug, Default)]
pub(crate) struct MetricLimit {
    added: Mutex<HashMap<DeviceId, Added>>,
}

/// The metrics of a device, and when the last of them was added.
#[derive(Debug)]
struct Added {
    names: BTreeSet<MetricName>,
    at: Timestamp,
}

impl MetricLimit {
    /// Refuses a merging reading that would take its device beyond [`MAX_KNOWN_METRICS`] metrics: those in the
    /// registry and those that merging writes of this process have added.
    ///
    /// Without this limit a stored reading could grow with every merge, and a merge costs as many write units
    /// as the whole reading.
    pub(crate) fn refuse_more(
        &self,
        timed: &mut Readings,
        known: &Known,
        now: Timestamp,
        rejected: &mut Vec<FieldError>,
    ) {
        let mut all_added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        timed.refuse(rejected, |reading| {
            let registered = known.device(&reading.device).map(domain::Device::metrics);
            let is_registered =
                |name: &MetricName| registered.is_some_and(|it| it.contains_key(name));
            let added = all_added.remove(&reading.device);
            let added = added.filter(|it| now.since(it.at) < REMEMBERED);
            let mut added = added.unwrap_or_else(|| Added { names: BTreeSet::new(), at: now });
            added.names.retain(|name| !is_registered(name));
            let is_new = |name: &&MetricName| !is_registered(name) && !added.names.contains(*name);
            let new: Vec<_> = reading.metrics().keys().filter(is_new).cloned().collect();
            let taken = registered.map_or(0, BTreeMap::len) + added.names.len();
            let one_too_many = new.get(MAX_KNOWN_METRICS.saturating_sub(taken)).cloned();
            if one_too_many.is_none() && !new.is_empty() {
                added.names.extend(new);
                added.at = now;
            }
            if !added.names.is_empty() {
                all_added.insert(reading.device.clone(), added);
            }
            one_too_many.map(|metric| {
                let message = format!(
                    "is not among the metrics that are known of the device, and there may be \
                     {MAX_KNOWN_METRICS}; a merging write can add no more"
                );
                (metric.to_string(), message)
            })
        });
        if all_added.len() > MAX_DEVICES {
            all_added.clear();
        }
    }
}
