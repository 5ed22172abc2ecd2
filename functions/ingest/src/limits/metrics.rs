//! Limits how many metrics merging writes give a device. Reads and writes no table.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use chrono::TimeDelta;
use domain::{Device, DeviceId, MAX_KNOWN_METRICS, MetricInfo, MetricName, Reading, Timestamp};

use crate::registry::found::FoundDevices;
use crate::store_request::{StoreRequest, refusal};

/// The number of devices whose metrics are remembered. Beyond it, all are forgotten.
const MAX_DEVICES: usize = 1_000;

/// How long new metrics are remembered. Later the registry has them, or they were not stored.
const REMEMBERED: TimeDelta = TimeDelta::minutes(3);

/// New metrics of the last minutes' merging writes. They count towards the limit until the registry has them.
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
    /// Refuses a merging reading if its device would have more than [`MAX_KNOWN_METRICS`] metrics. Metrics of the
    /// registry count, and metrics that this process has added lately.
    ///
    /// Without this limit a stored reading could grow with every merge, and a merge costs as many write units
    /// as the whole reading.
    pub(crate) fn refuse_beyond_limit(
        &self,
        request: &mut StoreRequest<'_>,
        found: &FoundDevices,
        now: Timestamp,
    ) {
        let mut all_added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        request.refuse_timed(|reading| {
            let known = found.device(&reading.device).map(Device::metrics);
            let remembered = all_added.remove(&reading.device);
            let remembered = remembered.filter(|added| now.since(added.at) < REMEMBERED);
            let mut added = remembered.unwrap_or_else(|| Added { names: BTreeSet::new(), at: now });

            let beyond = added.add(reading, known, now);
            if !added.names.is_empty() {
                all_added.insert(reading.device.clone(), added);
            }
            beyond.map(|metric| {
                let message = format!(
                    "is not among the metrics that are known of the device, and there may be \
                     {MAX_KNOWN_METRICS}; a merging write can add no more"
                );
                refusal(metric.to_string(), message)
            })
        });
        if all_added.len() > MAX_DEVICES {
            all_added.clear();
        }
    }
}

impl Added {
    /// Adds the metrics of a reading that the registry lacks. Returns the first one beyond the limit; then none is added.
    fn add(
        &mut self,
        reading: &Reading,
        known: Option<&BTreeMap<MetricName, MetricInfo>>,
        now: Timestamp,
    ) -> Option<MetricName> {
        let is_known = |name: &MetricName| known.is_some_and(|metrics| metrics.contains_key(name));
        self.names.retain(|name| !is_known(name));

        let is_new = |name: &&MetricName| !is_known(name) && !self.names.contains(*name);
        let new: Vec<MetricName> = reading.metrics().keys().filter(is_new).cloned().collect();
        let taken = known.map_or(0, BTreeMap::len) + self.names.len();
        let beyond = new.get(MAX_KNOWN_METRICS.saturating_sub(taken)).cloned();
        if beyond.is_none() && !new.is_empty() {
            self.names.extend(new);
            self.at = now;
        }
        beyond
    }
}
