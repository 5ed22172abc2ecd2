//! What a plan costs, and what is said of it. Reads nothing.

use domain::{Device, Quarter, TimeRange};
use serde::Serialize;
use table::Invocation;

use super::plain::months;
use crate::series::about::{METRIC_BYTES, ROLLUP_BYTES};
use crate::series::gather::Ask;

/// How the episodes came about and what they cost.
#[derive(Debug, Serialize)]
pub(crate) struct Explanation {
    /// The plan that the episodes come from.
    plan: &'static str,
    plans: Vec<Plan>,
    consumed_read_units: f64,
}

/// One plan.
#[derive(Debug, Serialize)]
pub(crate) struct Plan {
    plan: &'static str,
    estimated_read_units: f64,
}

/// The name of the plan that reads all rollups of 15 minutes.
const PLAIN: &str = "plain";

impl Explanation {
    /// That of an answer by the plain plan.
    pub(crate) fn of(asks: &[Ask<'_>], invocation: &Invocation) -> Self {
        let estimated_read_units = asks.iter().map(plain_units).sum();
        Self {
            plan: PLAIN,
            plans: vec![Plan { plan: PLAIN, estimated_read_units }],
            consumed_read_units: invocation.read_units(),
        }
    }
}

/// The read units of all quarters of an hour of a device, about: those between the first and the last that
/// it can have.
pub(crate) fn plain_units(ask: &Ask<'_>) -> f64 {
    let range = ask.grid.range();
    let lived = TimeRange::new(range.from().max(ask.device.first_seen), range.to().min(ask.now));
    let Ok(lived) = lived else { return 0.0 };
    let units = months(lived).into_iter().map(|month| {
        let quarters = month.to().since(month.from()).num_minutes() / Quarter::LENGTH.num_minutes();
        read_units(quarters, rollup_bytes(ask.device))
    });
    units.sum()
}

/// The size of a device's rollup, about.
fn rollup_bytes(device: &Device) -> i64 {
    let metrics = i64::try_from(device.metrics.len()).unwrap_or(i64::MAX);
    ROLLUP_BYTES.saturating_add(METRIC_BYTES.saturating_mul(metrics))
}

/// What one query of so many items consumes: half a unit for each 4 KB that it begins.
pub(crate) fn read_units(items: i64, bytes: i64) -> f64 {
    let halves = items.saturating_mul(bytes) / 4_096 + 1;
    f64::from(u32::try_from(halves).unwrap_or(u32::MAX)) / 2.0
}
