//! Chooses between reading all rollups of a range and using the index, by their costs, and gives the reason. Finds
//! nothing.
//!
//! The index is tried first if its estimated cost is at most a fifth of the cost of all rollups. A search in the index
//! stops when it has cost a fifth. So even with a wrong estimate, both plans together cost at most 1.2 times all
//! rollups.

use chrono::TimeDelta;
use domain::{MetricName, QuarterHour, TimeRange};
use serde::Serialize;
use table::sizes::{INDEXED, ItemSizes, units_of};
use table::{Invocation, StoredSchema};

use super::indexed::{Boxed, PAGE_UNITS};
use super::matching::months;
use super::search::EpisodeSearch;
use crate::gather::DeviceQuestion;

/// The shortest range for which the index may be used.
const MIN_RANGE: TimeDelta = TimeDelta::days(7);
/// The share of the cost of all rollups that the index may cost.
const MAX_SHARE: f64 = 0.2;
/// The largest share of all addresses that the box of the conditions may fill.
const MAX_VOLUME: f64 = 0.5;
/// The largest number of cells that are split to cover a box.
const MAX_SPLITS: usize = 4_000;
/// The number of address ranges in which a month is read. If the estimated cost is over 200 read units, the greater
/// number is used.
const RANGES: usize = 4;
const MORE_RANGES: usize = 8;
const MORE_FROM: f64 = 200.0;
/// The approximate number of index entries that are read to find one inside the box.
const OVERHEAD: f64 = 1.4;
/// The approximate size of an index entry in bytes: first of the keys and rooms, then of each metric of the schema.
const ENTRY_BYTES: i64 = 130;
const ENTRY_METRIC_BYTES: i64 = 25;

/// The plan that the episodes come from, and what each plan would cost and did cost.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ConditionsExplanation"))]
pub struct Explanation {
    /// The plan that the episodes come from.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = [PLAIN, INDEX])))]
    plan: &'static str,
    plans: Vec<ConditionsPlan>,
    consumed_read_units: f64,
}

/// A plan.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
struct ConditionsPlan {
    #[serde(rename = "plan")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = [PLAIN, INDEX])))]
    name: &'static str,
    estimated_read_units: Option<f64>,
    consumed_read_units: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ranges: Option<usize>,
    /// Why the plan was not tried, or was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// The estimated and the actual cost of the index.
#[derive(Debug, Default)]
pub struct IndexPlan {
    pub(crate) estimate: Option<f64>,
    pub(crate) ranges: Option<usize>,
    pub(crate) consumed: f64,
    /// Why the episodes do not come from the index.
    pub(crate) reason: Option<String>,
}

/// The names of the plans.
const PLAIN: &str = "plain";
const INDEX: &str = "z-order";

impl Explanation {
    /// The explanation of an answer. `before` is the approximate number of read units that it took to find the devices.
    pub fn of(
        questions: &[DeviceQuestion<'_>],
        index: IndexPlan,
        before: f64,
        invocation: &Invocation,
    ) -> Self {
        let consumed_read_units = invocation.read_units();
        let by_index = index.reason.is_none();
        let plans = vec![
            ConditionsPlan {
                name: PLAIN,
                estimated_read_units: Some(before + questions.iter().map(plain_units).sum::<f64>()),
                consumed_read_units: if by_index {
                    0.0
                } else {
                    consumed_read_units - index.consumed
                },
                ranges: None,
                reason: None,
            },
            ConditionsPlan {
                name: INDEX,
                estimated_read_units: index.estimate,
                consumed_read_units: index.consumed,
                ranges: index.ranges,
                reason: index.reason,
            },
        ];

        let plan = if by_index { INDEX } else { PLAIN };
        Self { plan, plans, consumed_read_units }
    }
}

/// Checks whether the index can answer such a search at all. `Err` says why not.
pub(crate) fn ensure_suitable(search: &EpisodeSearch, has_index: bool) -> Result<(), String> {
    let reason = if !has_index {
        "the table has no index by conditions"
    } else if search.conditions.len() < 2 {
        "a condition on one metric is no box"
    } else if search.range.length() < MIN_RANGE {
        "the range is shorter than 7 days"
    } else {
        return Ok(());
    };
    Err(reason.to_owned())
}

/// The box of the conditions, covered by ranges of addresses, and the read units that the index may cost. `Err` says
/// why all rollups are read instead.
pub(crate) fn choose<'a>(
    stored: Option<&'a StoredSchema>,
    search: &'a EpisodeSearch,
    questions: &[DeviceQuestion<'_>],
    plan: &mut IndexPlan,
) -> Result<(Boxed<'a>, f64), String> {
    let stored = stored.ok_or("there is no schema; PUT /conditions/schema sets one")?;
    if !stored.is_ready {
        return Err("the index is not complete: run `roomtide rollups rebuild`".to_owned());
    }

    let schema = &stored.schema;
    let mut boxed = Boxed::of(schema, search)
        .map_err(|name| format!("{name} is not in the schema of the index"))?;

    // The index has only quarters with values of all metrics in the schema. If a metric is not in the conditions, a
    // quarter without it may match as well.
    let is_asked =
        |name: &MetricName| search.conditions.iter().any(|condition| condition.metric == *name);
    if let Some(left) = schema.metrics().iter().find(|metric| !is_asked(&metric.name)) {
        let name = &left.name;
        return Err(format!("the index lacks periods without {name}, which is not asked about"));
    }

    let volume = volume(&boxed);
    if volume > MAX_VOLUME {
        return Err("the conditions hold over half of the schema's domain".to_owned());
    }

    let allowance = questions.iter().map(plain_units).sum::<f64>() * MAX_SHARE;
    let estimate = |ranges| {
        questions.iter().map(|question| index_units(question, &boxed, volume, ranges)).sum::<f64>()
    };
    let few = estimate(RANGES);
    let ranges = if few > MORE_FROM { MORE_RANGES } else { RANGES };
    let estimate = estimate(ranges);

    plan.estimate = Some(estimate);
    if estimate > allowance.max(0.0) || allowance < PAGE_UNITS {
        return Err("the index is estimated to cost over a fifth of all rollups".to_owned());
    }

    boxed.ranges = schema.curve().ranges(&boxed.region, MAX_SPLITS, ranges);
    plan.ranges = Some(boxed.ranges.len());
    Ok((boxed, allowance))
}

/// The share of all addresses that a box fills.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn volume(boxed: &Boxed<'_>) -> f64 {
    let region = &boxed.region;
    let sides = region.low.iter().zip(&region.high).enumerate();
    let part = |(n, (low, high)): (usize, (&u64, &u64))| {
        (high - low + 1) as f64 / (boxed.schema.curve().max_of(n) + 1) as f64
    };
    sides.map(part).product()
}

/// Estimates the read units of all quarters of an hour of a device.
pub(crate) fn plain_units(question: &DeviceQuestion<'_>) -> f64 {
    let rollup = ItemSizes::of(question.device, usize::MAX).rollup + INDEXED;
    let bytes = i64::try_from(rollup).unwrap_or(i64::MAX);
    let months = lived(question).into_iter().map(|month| read_units(quarters(month), bytes));
    // A query that finds nothing costs half a unit.
    months.sum::<f64>().max(0.5)
}

/// Estimates the read units of the index entries in a box, as if the entries were spread evenly over all addresses.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn index_units(
    question: &DeviceQuestion<'_>,
    boxed: &Boxed<'_>,
    volume: f64,
    ranges: usize,
) -> f64 {
    let metrics = i64::try_from(boxed.schema.metrics().len()).expect("few");
    let bytes = (ENTRY_BYTES + ENTRY_METRIC_BYTES * metrics) as f64;
    let months = lived(question).into_iter().map(|month| {
        let entries = quarters(month) as f64 * volume * OVERHEAD;
        // The size of what a range reads is rounded up to 4 KB: on average, this adds half of 4 KB.
        entries * bytes / 8_192.0 + ranges as f64 * 0.25
    });
    months.sum::<f64>().max(0.5)
}

/// The months of the range in which a device can have rollups: from its first reading until now.
fn lived(question: &DeviceQuestion<'_>) -> Vec<TimeRange> {
    let range = question.grid.range();
    let lived = TimeRange::new(
        range.from().max(question.device.first_seen()),
        range.to().min(question.now),
    );
    lived.map(months).unwrap_or_default()
}

fn quarters(range: TimeRange) -> i64 {
    range.length().num_minutes() / QuarterHour::LENGTH.num_minutes()
}

/// The read units of one query for this number of items: half a unit for each started 4 KB.
fn read_units(items: i64, bytes: i64) -> f64 {
    let halves = items.saturating_mul(bytes) / 4_096 + 1;
    units_of(usize::try_from(halves).unwrap_or(usize::MAX))
}
