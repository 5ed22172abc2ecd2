//! The timestamps that a reading may have. Reads no clock.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use domain::{MetricName, Timestamp};

use crate::formats::draft::{Fault, Refusal};
use crate::settings::Settings;

/// How far a reading's timestamp may be after its arrival: clocks drift, but not by days.
pub(crate) const MAX_AHEAD: TimeDelta = TimeDelta::days(1);
/// How far the timestamp of a reading with only prices may be after its arrival: prices are published up to two days
/// before they apply.
const MAX_PRICES_AHEAD: TimeDelta = TimeDelta::days(3);

/// When readings arrived, and which timestamps they may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// When the gateway or the broker took the readings.
    pub(crate) arrived: Timestamp,
    /// The earliest timestamp that is accepted: an earlier one comes from a clock that was never set.
    earliest: Timestamp,
    /// After how many days readings are deleted.
    retention_days: Option<u32>,
}

impl Times {
    pub(crate) fn new(arrived: Timestamp, settings: &Settings) -> Self {
        let Settings { earliest_timestamp: earliest, retention_days, .. } = *settings;
        Self { arrived, earliest, retention_days }
    }

    /// Refuses a timestamp that a reading with these metrics may not have.
    pub(crate) fn check<V>(
        &self,
        at: Timestamp,
        metrics: &BTreeMap<MetricName, V>,
    ) -> Result<(), Refusal> {
        let max_ahead =
            if MetricName::are_prices(metrics.keys()) { MAX_PRICES_AHEAD } else { MAX_AHEAD };
        self.ensure_allowed(at, max_ahead).map_err(|fault| Refusal::of("timestamp", fault))
    }

    /// Refuses a timestamp that is more than `max_ahead` after the arrival, before the earliest, or beyond the
    /// retention.
    pub(crate) fn ensure_allowed(&self, at: Timestamp, max_ahead: TimeDelta) -> Result<(), Fault> {
        let Self { arrived, earliest, retention_days } = *self;
        check_lead(at, arrived, max_ahead)?;
        if at < earliest {
            return Err(Fault::ClockNotSet { at, earliest });
        }

        let is_kept = |days: u32| at >= arrived.saturating_add(-TimeDelta::days(days.into()));
        match retention_days {
            Some(days) if !is_kept(days) => Err(Fault::TooOld { at, days }),
            _ => Ok(()),
        }
    }
}

/// Refuses a timestamp that is more than `max_ahead` after the arrival.
pub(crate) fn check_lead(
    at: Timestamp,
    arrived: Timestamp,
    max_ahead: TimeDelta,
) -> Result<(), Fault> {
    if at > arrived.saturating_add(max_ahead) {
        return Err(Fault::Ahead { at, arrived, days: max_ahead.num_days() });
    }
    Ok(())
}
