//! The columns of a series: the functions and the unit of each metric. Reads nothing.

use std::collections::BTreeMap;

use api::Problem;
use domain::{Aggregate, Device, MetricInfo, MetricName, MetricRule, Unit};
use series::Combine;

use crate::series::question::request::SeriesRequest;

/// The metrics of a series, each with its column.
#[derive(Debug, Clone)]
pub(crate) struct MetricColumns(pub(crate) BTreeMap<MetricName, MetricColumn>);

#[derive(Debug, Clone)]
pub(crate) struct MetricColumn {
    pub(crate) functions: Vec<Aggregate>,
    pub(crate) combine: Combine,
    pub(crate) unit: Option<Unit>,
}

impl MetricColumns {
    /// Chooses the functions, the way of combining and the unit of each metric that some devices have.
    pub(crate) fn choose(
        request: &SeriesRequest,
        names: &[MetricName],
        devices: &[&Device],
        is_combined: bool,
    ) -> Result<Self, Problem> {
        let mut columns = BTreeMap::new();
        for name in names {
            let infos = shown_infos(name, devices, is_combined);
            let Some(column) = MetricColumn::choose(request, name, &infos, is_combined)? else {
                continue;
            };
            columns.insert(name.clone(), column);
        }
        Ok(Self(columns))
    }

    pub(crate) fn names(&self) -> Vec<MetricName> {
        self.0.keys().cloned().collect()
    }

    /// By metric, the way in which the values of several devices are combined.
    pub(crate) fn combine(&self) -> BTreeMap<&MetricName, Combine> {
        self.0.iter().map(|(name, column)| (name, column.combine)).collect()
    }

    /// The metrics that are sums of devices.
    pub(crate) fn sums(&self) -> impl Iterator<Item = &MetricName> {
        let sums = self.0.iter().filter(|(_, column)| column.combine == Combine::Sum);
        sums.map(|(name, _)| name)
    }
}

/// The settings of a metric on each device that has the metric. Rows of several devices skip a device whose metric does
/// not describe its room (`not_of_room`), unless there are only such devices.
fn shown_infos<'d>(
    name: &MetricName,
    devices: &[&'d Device],
    is_combined: bool,
) -> Vec<&'d MetricInfo> {
    let having = devices.iter().filter(|device| device.metrics().contains_key(name));
    let having: Vec<&Device> = having.copied().collect();
    let is_of_room = |device: &&Device| device.not_of_room(name).is_none();

    let are_of_room = is_combined && having.iter().any(is_of_room);
    let shown = having.into_iter().filter(|device| !are_of_room || is_of_room(device));
    shown.map(|device| &device.metrics()[name]).collect()
}

impl MetricColumn {
    /// The column of a metric; `None` if no device has the metric or no function fits it.
    fn choose(
        request: &SeriesRequest,
        name: &MetricName,
        infos: &[&MetricInfo],
        is_combined: bool,
    ) -> Result<Option<Self>, Problem> {
        let Some(first) = infos.first() else { return Ok(None) };
        // If the metric is a counter or a power on at least one device, the column is a sum.
        let mut rules = infos.iter().map(|info| MetricRule::of(info));
        let rule = rules.find(|rule| *rule != MetricRule::Gauge).unwrap_or(MetricRule::Gauge);

        let functions = request.functions_of(&rule).iter().copied();
        let (functions, refused): (Vec<Aggregate>, Vec<Aggregate>) =
            functions.partition(|function| function.is_of(&rule));
        if let Some(function) = refused.first().filter(|_| request.metrics.is_some()) {
            return Err(Problem::field("fn", wrong_kind(*function, name)));
        }

        let combine = Combine::of(&rule);
        let other = infos.iter().find(|info| info.unit != first.unit);
        if let Some(other) = other.filter(|_| combine == Combine::Sum && is_combined) {
            let message = format!(
                "{name} has different units here, {} and {}, which cannot be added; ask with \
                 devices=1",
                unit_text(first),
                unit_text(other)
            );
            return Err(Problem::field("metric", message));
        }

        let unit = first.unit.clone().filter(|_| other.is_none());
        Ok((!functions.is_empty()).then_some(Self { functions, combine, unit }))
    }
}

fn unit_text(info: &MetricInfo) -> String {
    info.unit.as_ref().map_or_else(|| "none".to_owned(), Unit::to_string)
}

fn wrong_kind(function: Aggregate, name: &MetricName) -> String {
    let needed = match function {
        Aggregate::Increase => "a counter",
        Aggregate::TimeMean => "a gauge in W, kW or MW",
        Aggregate::Mean
        | Aggregate::Min
        | Aggregate::Max
        | Aggregate::Sum
        | Aggregate::Count
        | Aggregate::First
        | Aggregate::Last => unreachable!("it is of each kind"),
    };
    format!("{} needs {needed}, and {name} is not one", function.as_str())
}
