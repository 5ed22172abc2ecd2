//! The energy of devices as the API shows it. Sums nothing itself.

use std::collections::BTreeMap;

use api::{Problem, Response};
use domain::{
    Amount, DeviceId, Exact, Flag, Meter, MetricName, NotCounted, Role, TimeRange, Timestamp,
};
use serde::Serialize;
use series::{CounterStep, CounterSteps, EnergyDevice, LeftOut, MovedMeter, RowEnergy, sum};

use super::rest::{EnergyRest, RestRow};
use super::write::respond;
use crate::series::question::plan::{RowPlan, Span};
use crate::series::question::request::{Grouping, SeriesRequest};
use crate::series::summing::EnergySum;

fn shown(amount: Option<Amount>) -> Option<Exact> {
    amount.map(|amount| amount.shown())
}

/// Why a metric of a device does not count.
fn reason(why: NotCounted<'_>) -> String {
    match why {
        NotCounted::Role(Role::None) => "it counts as nothing".to_owned(),
        NotCounted::Role(role) => format!("it is {}", role.as_str()),
        NotCounted::PartOf(whole) => format!("it is in {whole}"),
        NotCounted::CounterInstead => "the device has counters".to_owned(),
    }
}

const fn source(meter: &Meter<'_>) -> &'static str {
    if meter.is_counter { "counter" } else { "power" }
}

/// One row of energy.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub(crate) struct EnergyRow<'a> {
    timestamp: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_id: Option<&'a DeviceId>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
    kwh: Option<Exact>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kwh_sold: Option<Exact>,
    flags: Vec<Flag>,
    /// Whether the row contains a share of what a counter rose between two readings more than 15 minutes apart.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    estimated: bool,
}

/// A device, and which of its metrics count.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "EnergyDevice"))]
struct CountedDevice<'a> {
    device_id: &'a DeviceId,
    /// The first metric that counts.
    metric: Option<&'a MetricName>,
    /// The metrics that add up to the used energy.
    metrics: &'a [&'a MetricName],
    #[serde(skip_serializing_if = "Option::is_none")]
    metric_sold: Option<&'a MetricName>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    metrics_sold: &'a [&'a MetricName],
    /// The role of the device, if it is not consumption.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["counter", "power"])))]
    source: &'static str,
    /// The other metrics of energy and power, each with the reason why it does not count.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    not_counted: BTreeMap<&'a MetricName, String>,
    total_kwh: Option<Exact>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_kwh_sold: Option<Exact>,
}

/// A device of the sum whose metrics each came as a field called `value`, so that their names do not tell the role. The
/// device counts as consumption until a person sets the role.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Unsure<'a> {
    device_id: &'a DeviceId,
    metrics: &'a [&'a MetricName],
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct EnergySummary<'a> {
    #[serde(flatten)]
    span: Span,
    total_kwh: Option<Exact>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_kwh_sold: Option<Exact>,
    /// The members that are there only with `devices=1`.
    #[serde(flatten)]
    apart: Option<Apart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metric: Option<&'a MetricName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["counter", "power"])))]
    source: Option<&'static str>,
    devices: Vec<CountedDevice<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: &'a [LeftOut<'a>],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    moved_meters: Vec<&'a MovedMeter<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unsure: Vec<Unsure<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<&'a [CounterStep]>,
    /// Whether there are more events than these. If so, narrow from and to.
    #[serde(skip_serializing_if = "Option::is_none")]
    events_has_more: Option<bool>,
}

/// The sum of the devices that have no device behind them.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Apart {
    /// With `devices=1`: the sum of the consuming devices that have no device behind them.
    #[cfg_attr(feature = "schema", schemars(extend("nullable" = true)))]
    counted_kwh: Option<Exact>,
    /// These members are there only if a device is behind a meter.
    #[serde(flatten)]
    left: Option<Left>,
}

/// The rest: energy that meters measured and the devices behind them did not.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Left {
    /// With `devices=1`, if a device is behind a meter: `total_kwh` without `counted_kwh`. The meter measured this
    /// energy, and no device behind it did. Null if a meter measured nothing or was elsewhere.
    #[cfg_attr(feature = "schema", schemars(extend("nullable" = true)))]
    rest_kwh: Option<Exact>,
    /// The same as `rest_kwh`, for each row.
    rest: Vec<RestRow>,
}

/// The answer to a request for energy.
pub(crate) struct EnergyAnswer<'s, 'a> {
    pub(crate) request: &'s SeriesRequest,
    pub(crate) plan: &'s RowPlan,
    pub(in crate::series) sum: &'s EnergySum<'a>,
    /// Whether several devices may be in the answer.
    pub(crate) is_shared: bool,
}

impl<'s, 'a> EnergyAnswer<'s, 'a> {
    /// Makes the response.
    pub(crate) fn respond(
        &self,
        span: Span,
        events: Option<&CounterSteps>,
    ) -> Result<Response, Problem> {
        let counting = self.sum.counting();
        let total = self.total(&counting);
        let only = self.sum.devices.first().map(|device| &device.meter);
        let only = only.filter(|_| !self.is_shared);
        let moved: Vec<&MovedMeter<'_>> = self.sum.moved.values().collect();

        let about = EnergySummary {
            span,
            total_kwh: shown(total.bought),
            total_kwh_sold: shown(total.sold),
            apart: self.is_apart().then(|| self.apart()),
            metric: only.and_then(|meter| meter.names().next()),
            source: only.map(source),
            devices: self.sum.devices.iter().map(|device| self.counted(device)).collect(),
            left_out: &self.sum.left_out,
            moved_meters: moved,
            unsure: self.unsure(&counting),
            events: events.map(|found| &found.events[..]),
            events_has_more: events.map(|found| found.has_more),
        };

        respond(self.request.format, || self.header(), self.rows(&counting), &about)
    }

    fn counted(&self, device: &'s EnergyDevice<'a>) -> CountedDevice<'s> {
        let total = self.total(&[device]);
        let EnergyDevice { values, meter } = device;
        CountedDevice {
            device_id: values.device.id(),
            metric: meter.names().next(),
            metrics: &meter.used,
            metric_sold: meter.sold.first().copied(),
            metrics_sold: &meter.sold,
            role: meter.other_role,
            source: source(meter),
            not_counted: meter.left_out.iter().map(|(name, why)| (*name, reason(*why))).collect(),
            total_kwh: shown(total.bought),
            total_kwh_sold: shown(total.sold),
        }
    }

    fn apart(&self) -> Apart {
        let rows = self.plan.grid.rows();
        let rest = EnergyRest::of(self.sum, rows);
        let left = || Left { rest_kwh: rest.rest_of(&(0..rows.len())), rest: rest.rows() };
        Apart { counted_kwh: rest.counted(0..rows.len()), left: rest.has_meters().then(left) }
    }

    /// The devices of the sum whose role only a person can decide, because the name of their value does not tell it.
    /// Empty if the question is about one device, or if only one device counts.
    fn unsure(&self, counting: &[&'s EnergyDevice<'a>]) -> Vec<Unsure<'s>> {
        if !self.is_shared || counting.len() < 2 {
            return Vec::new();
        }

        let is_unsure = |device: &&&'s EnergyDevice<'a>| {
            let EnergyDevice { values, meter } = device;
            let device = values.device;
            let is_placed = device.behind().is_some() || self.sum.is_meter_of_others(device.id());
            let fields = &device.source().fields;
            let is_of_one_value =
                |name: &&MetricName| fields.get(*name).is_some_and(|field| field.field == "value");
            meter.is_unsure && !is_placed && meter.used.iter().all(is_of_one_value)
        };

        let unsure = counting.iter().filter(is_unsure);
        let shown = |device: &&'s EnergyDevice<'a>| Unsure {
            device_id: device.values.device.id(),
            metrics: &device.meter.used,
        };
        unsure.map(shown).collect()
    }

    fn total(&self, devices: &[&EnergyDevice<'a>]) -> RowEnergy {
        sum(devices, 0..self.plan.grid.rows().len())
    }

    fn is_apart(&self) -> bool {
        self.is_shared && self.request.grouping == Grouping::Apart
    }

    fn header(&self) -> Vec<String> {
        let apart = if self.is_apart() { &["device_id"][..] } else { &[] };
        let names = ["partial", "kwh", "kwh_sold", "flags", "estimated"];
        let names = ["timestamp"].iter().chain(apart).chain(&names);
        names.map(|name| (*name).to_owned()).collect()
    }

    fn rows<'r>(
        &'r self,
        counting: &'r [&'s EnergyDevice<'a>],
    ) -> impl Iterator<Item = EnergyRow<'s>> + 'r {
        let rows = self.plan.grid.rows().iter().enumerate();
        rows.flat_map(move |(row, range)| self.rows_at(row, *range, counting))
    }

    /// The rows of one time: the sum, or one row for each device.
    fn rows_at(
        &self,
        row: usize,
        range: TimeRange,
        counting: &[&'s EnergyDevice<'a>],
    ) -> Vec<EnergyRow<'s>> {
        if !self.is_apart() {
            let energy = sum(counting, row..row + 1);
            return vec![self.row(range, None, &energy)];
        }

        let row_of = |device: &'s EnergyDevice<'a>| {
            self.row(range, Some(device.values.device.id()), &device.row(row))
        };
        self.sum.devices.iter().map(row_of).collect()
    }

    fn row(
        &self,
        range: TimeRange,
        device_id: Option<&'s DeviceId>,
        energy: &RowEnergy,
    ) -> EnergyRow<'s> {
        EnergyRow {
            timestamp: range.from(),
            device_id,
            partial: range.to() > self.plan.now,
            kwh: energy.bought.as_ref().map(Amount::shown),
            kwh_sold: energy.sold.as_ref().map(Amount::shown),
            flags: energy.flags.iter().collect(),
            estimated: energy.is_estimated,
        }
    }
}
