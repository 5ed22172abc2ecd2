//! Limits how many metrics merging writes give a device. Reads and writes no table.

use std::collections::BTreeMap;

use domain::{Device, MAX_KNOWN_METRICS, MetricName, Timestamp};
use runtime::registry::FoundDevices;

use super::new_names::NewNames;
use crate::store_request::{StoreRequest, refusal};

/// New metrics of the last minutes' merging writes. They count towards the limit until the registry has them.
#[derive(Debug, Default)]
pub(crate) struct MetricLimit(NewNames<MetricName>);

impl MetricLimit {
    /// Refuses readings that would give a device more metrics than it may have.
    pub(crate) fn refuse_beyond_limit(
        &self,
        request: &mut StoreRequest<'_>,
        found: &FoundDevices,
        now: Timestamp,
    ) {
        request.refuse_timed(|reading| {
            let known = found.device(&reading.device).map(Device::metrics);
            let is_known = |name: &MetricName| known.is_some_and(|known| known.contains_key(name));
            let free = MAX_KNOWN_METRICS.saturating_sub(known.map_or(0, BTreeMap::len));
            let names = reading.metrics().keys();

            let beyond = self.0.introduce(&reading.device, names, is_known, free, now).err()?;
            let message = format!(
                "is not among the metrics that are known of the device, and there may be \
                 {MAX_KNOWN_METRICS}; a merging write can add no more"
            );
            Some(refusal(beyond.to_string(), message))
        });
    }
}
