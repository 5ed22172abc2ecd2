//! Conditions on the newest readings of a device: values of metrics, and silence. Finds no device.

use domain::{Device, MetricName, SearchCondition, Timestamp};
use table::StoreResult;

use crate::answer::latest_values::LatestValues;
use crate::ports::Store;
use crate::readings::newest::NewestReader;

/// The maximum number of devices whose newest values one request reads.
pub(super) const MAX_DEVICES: usize = 1_000;

/// Conditions on newest values.
#[derive(Debug)]
pub(super) struct NewestValues<'a> {
    pub(super) metrics: Vec<(MetricName, &'a SearchCondition)>,
    pub(super) silent_since: Option<Timestamp>,
}

impl NewestValues<'_> {
    /// Whether there are no conditions on newest values.
    pub(super) fn is_empty(&self) -> bool {
        self.metrics.is_empty() && self.silent_since.is_none()
    }

    /// Whether the device may have sent every metric of the conditions, as far as the registry knows.
    pub(super) fn may_hold_for(&self, device: &Device) -> bool {
        let has = |name: &MetricName| device.metrics().contains_key(name);
        device.knows_enough_metrics() || self.metrics.iter().all(|(name, _)| has(name))
    }

    /// Tells for each of the devices whether the conditions hold.
    pub(super) async fn hold_for(
        &self,
        devices: impl IntoIterator<Item = &Device>,
        reader: &NewestReader<'_, impl Store>,
    ) -> StoreResult<Vec<bool>> {
        let wanted = || self.metrics.iter().map(|(name, _)| name).collect();
        let requests = devices.into_iter().map(|device| (device, wanted())).collect();
        let latest = reader.newest_of(requests).await?;
        Ok(latest.iter().map(|latest| self.hold(latest.as_ref())).collect())
    }

    fn hold(&self, latest: Option<&LatestValues>) -> bool {
        let is_silent = |since| latest.is_none_or(|latest| latest.timestamp < since);
        let holds = |(name, condition): &(MetricName, &SearchCondition)| {
            let value = latest.and_then(|latest| latest.value(name));
            value.is_some_and(|value| condition.holds_for_metric(value))
        };
        self.silent_since.is_none_or(is_silent) && self.metrics.iter().all(holds)
    }
}
