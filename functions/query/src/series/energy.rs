//! The energy of devices as the API shows it. Sums nothing itself.

use std::collections::{BTreeMap, BTreeSet};

use api::{Problem, Response};
use domain::{DeviceId, Exact, Flag, Meter, MetricName, Role, TimeRange, Timestamp};
use serde::Serialize;
use series::{Amount, DeviceValues, Event, Events, Grid, LeftOut, RowEnergy, sum};

use super::about::{Span, reason};
use super::request::SeriesRequest;
use super::rest::{Rest, RestRow};
use super::write::{Line, respond};
use crate::answer::row::Cell;

const fn source(meter: &Meter<'_>) -> &'static str {
    if meter.is_counter { "counter" } else { "power" }
}

/// One row as it is shown.
#[derive(Debug, Serialize)]
struct EnergyRow<'a> {
    timestamp: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_id: Option<&'a DeviceId>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
    kwh: Option<Exact>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kwh_sold: Option<Exact>,
    flags: Vec<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    estimated: bool,
    #[serde(skip)]
    is_apart: bool,
}

impl Line for EnergyRow<'_> {
    fn cells(&self) -> Vec<Cell> {
        let flag = |is_set| Cell::text(if is_set { "true" } else { "" });
        let number = |it: &Option<Exact>| it.as_ref().map_or_else(Cell::empty, Cell::number);
        let mut cells = vec![Cell::text(self.timestamp.to_string())];
        if self.is_apart {
            cells.push(Cell::text(self.device_id.map_or("", DeviceId::as_str)));
        }
        cells.extend([flag(self.partial), number(&self.kwh), number(&self.kwh_sold)]);
        cells.extend([Cell::text(self.flags.join(" ")), flag(self.estimated)]);
        cells
    }
}

/// What of a device is counted.
#[derive(Debug, Serialize)]
struct Counted<'a> {
    device_id: &'a DeviceId,
    /// The first of the metrics.
    metric: Option<&'a MetricName>,
    /// Those that add up to what is used.
    metrics: &'a [&'a MetricName],
    #[serde(skip_serializing_if = "Option::is_none")]
    metric_sold: Option<&'a MetricName>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    metrics_sold: &'a [&'a MetricName],
    /// What it is instead of consumption.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    source: &'static str,
    /// The metrics of energy and power that count nothing, each with the reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    not_counted: BTreeMap<&'a MetricName, String>,
    total_kwh: Option<Exact>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_kwh_sold: Option<Exact>,
}

/// A device that is added to a sum although no name, unit or role says that it belongs there.
#[derive(Debug, Serialize)]
struct Unsure<'a> {
    device_id: &'a DeviceId,
    metrics: &'a [&'a MetricName],
}

#[derive(Serialize)]
struct About<'a> {
    #[serde(flatten)]
    span: Span,
    total_kwh: Option<Exact>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_kwh_sold: Option<Exact>,
    /// Where the devices are shown.
    #[serde(flatten)]
    apart: Option<Apart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metric: Option<&'a MetricName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'static str>,
    devices: Vec<Counted<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: &'a [LeftOut<'a>],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unsure: Vec<Unsure<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<&'a [Event]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events_has_more: Option<bool>,
}

/// The sum of the devices that nothing is behind.
#[derive(Serialize)]
struct Apart {
    counted_kwh: Option<Exact>,
    /// If there is a meter with something behind it.
    #[serde(flatten)]
    left: Option<Left>,
}

/// What is left of the total.
#[derive(Serialize)]
struct Left {
    rest_kwh: Option<Exact>,
    rest: Vec<RestRow>,
}

/// The energy of some devices.
pub(crate) struct Energy<'a> {
    pub(crate) request: &'a SeriesRequest,
    pub(crate) grid: &'a Grid,
    /// The devices that are shown, each with its meter.
    pub(crate) devices: &'a [(DeviceValues<'a>, Meter<'a>)],
    /// Those that count in the sum.
    pub(crate) counting: Vec<&'a (DeviceValues<'a>, Meter<'a>)>,
    /// The meters that a device of the sum is behind.
    pub(crate) above: BTreeSet<&'a DeviceId>,
    /// What no sum holds: devices that are a part of another that it holds, and what is no consumption.
    pub(crate) left_out: &'a [LeftOut<'a>],
    /// Whether several devices may be one row.
    pub(crate) is_shared: bool,
    pub(crate) now: Timestamp,
}

impl<'a> Energy<'a> {
    /// The answer.
    pub(crate) fn respond(
        &self,
        span: Span,
        events: Option<&'a Events>,
    ) -> Result<Response, Problem> {
        let total = self.total(&self.counting);
        let only = self.devices.first().map(|(_, meter)| meter).filter(|_| !self.is_shared);
        let shown = |it: Option<Amount>| it.map(|it| it.shown());
        let counted = self.devices.iter().map(|pair| {
            let (it, meter) = pair;
            let total = self.total(&[pair]);
            Counted {
                device_id: it.device.id(),
                metric: meter.names().next(),
                metrics: &meter.used,
                metric_sold: meter.sold.first().copied(),
                metrics_sold: &meter.sold,
                role: meter.other_role,
                source: source(meter),
                not_counted: meter
                    .left_out
                    .iter()
                    .map(|(name, why)| (*name, reason(*why)))
                    .collect(),
                total_kwh: shown(total.bought),
                total_kwh_sold: shown(total.sold),
            }
        });
        let (places, rows) = (0..self.grid.rows().len(), self.grid.rows());
        let rest = self
            .is_apart()
            .then(|| Rest::of(self.devices, &self.counting, &self.above, (self.left_out, rows)));
        let apart = rest.map(|rest| Apart {
            counted_kwh: rest.counted(places.clone()),
            left: rest.is_meant().then(|| Left { rest_kwh: rest.left(&places), rest: rest.rows() }),
        });
        let about = About {
            span,
            total_kwh: shown(total.bought),
            total_kwh_sold: shown(total.sold),
            apart,
            metric: only.and_then(|meter| meter.names().next()),
            source: only.map(source),
            devices: counted.collect(),
            left_out: self.left_out,
            unsure: self.unsure(&self.counting),
            events: events.map(|it| &it.events[..]),
            events_has_more: events.map(|it| it.has_more),
        };
        respond(self.request.format, || self.header(), self.rows(), &about)
    }

    /// Those of a sum's devices about which only a person can tell whether they belong there: senders of one value
    /// whose names do not tell it. One meter alone is the meter.
    fn unsure(&self, counting: &[&'a (DeviceValues<'a>, Meter<'a>)]) -> Vec<Unsure<'a>> {
        if !self.is_shared || counting.len() < 2 {
            return Vec::new();
        }
        let is_meter_of_others =
            |id: &DeviceId| self.left_out.iter().any(|it| it.behind() == Some(id));
        let unsure = counting.iter().filter(|(it, meter)| {
            let is_told = it.device.behind().is_some() || is_meter_of_others(it.device.id());
            let fields = &it.device.source().fields;
            let is_of_one_value =
                |name: &&MetricName| fields.get(*name).is_some_and(|it| it.field == "value");
            meter.is_unsure && !is_told && meter.used.iter().all(is_of_one_value)
        });
        unsure
            .map(|(it, meter)| Unsure { device_id: it.device.id(), metrics: &meter.used })
            .collect()
    }

    fn total(&self, devices: &[&(DeviceValues<'a>, Meter<'a>)]) -> RowEnergy {
        let places = 0..self.grid.rows().len();
        places.fold(RowEnergy::default(), |mut total, place| {
            total.add(&sum(devices.iter().copied(), place));
            total
        })
    }

    fn is_apart(&self) -> bool {
        self.is_shared && self.request.is_apart
    }

    fn header(&self) -> Vec<String> {
        let apart = if self.is_apart() { &["device_id"][..] } else { &[] };
        let names = ["partial", "kwh", "kwh_sold", "flags", "estimated"];
        let names = ["timestamp"].iter().chain(apart).chain(&names);
        names.map(|name| (*name).to_owned()).collect()
    }

    fn rows(&self) -> impl Iterator<Item = EnergyRow<'_>> {
        let places = self.grid.rows().iter().enumerate();
        places.flat_map(|(place, range)| self.rows_at(place, *range))
    }

    /// The row of some time, or one of each device.
    fn rows_at(&self, place: usize, range: TimeRange) -> Vec<EnergyRow<'_>> {
        if !self.is_apart() {
            return vec![self.row(range, None, &sum(self.counting.iter().copied(), place))];
        }
        let row = |(it, meter): &'a (DeviceValues<'a>, Meter<'a>)| {
            self.row(range, Some(it.device.id()), &RowEnergy::of(it, meter, place))
        };
        self.devices.iter().map(row).collect()
    }

    fn row<'r>(
        &self,
        range: TimeRange,
        device_id: Option<&'r DeviceId>,
        energy: &RowEnergy,
    ) -> EnergyRow<'r> {
        EnergyRow {
            timestamp: range.from(),
            device_id,
            partial: range.to() > self.now,
            kwh: energy.bought.as_ref().map(Amount::shown),
            kwh_sold: energy.sold.as_ref().map(Amount::shown),
            flags: energy.flags.iter().map(Flag::as_str).collect(),
            estimated: energy.is_estimated,
            is_apart: device_id.is_some(),
        }
    }
}
