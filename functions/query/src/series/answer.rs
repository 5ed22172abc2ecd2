//! The rows of a series as the API shows them. Reads nothing.

use std::collections::BTreeMap;

use api::{Problem, Response};
use domain::{DeviceId, Exact, MetricName, MetricRule, TimeRange, Timestamp, Unit};
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};

use super::about::{Explanation, Span, sources};
use super::combine::{Combine, value_of};
use super::device::DeviceValues;
use super::function::Function;
use super::grid::Grid;
use super::members::LeftOut;
use super::request::SeriesRequest;
use super::write::{Line, respond};
use crate::sheet::Cell;

/// The metrics of a series, with what each row has of them.
pub(crate) struct Columns(BTreeMap<MetricName, Column>);

struct Column {
    functions: Vec<Function>,
    combine: Combine,
    unit: Option<Unit>,
}

/// The functions of one metric, each with its value if it has one.
type FunctionValues = Vec<(Function, Option<Exact>)>;

/// One row.
#[derive(Debug)]
pub(crate) struct SeriesRow<'a> {
    range: TimeRange,
    is_partial: bool,
    device: Option<&'a DeviceId>,
    /// In hundredths.
    coverage: Option<i64>,
    values: Vec<(&'a MetricName, FunctionValues)>,
    is_apart: bool,
}

#[derive(Serialize)]
struct About<'a> {
    #[serde(flatten)]
    span: Span,
    source: String,
    units: BTreeMap<&'a MetricName, Option<&'a Unit>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    combine: Option<BTreeMap<&'a MetricName, &'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    devices: Option<Vec<&'a DeviceId>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: &'a [LeftOut<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<Explanation>,
}

impl Columns {
    /// The columns that a request asks for of some devices.
    pub(crate) fn of(
        request: &SeriesRequest,
        names: &[MetricName],
        devices: &[&domain::Device],
    ) -> Result<Self, Problem> {
        let mut columns = BTreeMap::new();
        for name in names {
            let infos: Vec<_> = devices.iter().filter_map(|it| it.metrics.get(name)).collect();
            let Some(first) = infos.first() else { continue };
            // One device that counts makes the metric a sum.
            let rules = infos.iter().map(|info| MetricRule::of(info));
            let rule = rules.clone().find(|rule| *rule != MetricRule::Gauge);
            let rule = rule.unwrap_or(MetricRule::Gauge);
            let asked = request.functions.as_deref().unwrap_or_else(|| Function::usual(&rule));
            let functions: Vec<_> =
                asked.iter().copied().filter(|function| function.is_of(&rule)).collect();
            let refused = asked.iter().find(|function| !function.is_of(&rule));
            if let Some(function) = refused.filter(|_| request.metrics.is_some()) {
                return Err(Problem::field("fn", wrong_kind(*function, name)));
            }
            let combine = Combine::of(&rule);
            let other = infos.iter().find(|info| info.unit != first.unit);
            if let Some(other) = other.filter(|_| combine == Combine::Sum && !request.is_apart) {
                let unit = |it: &Option<Unit>| it.as_ref().map_or("none".into(), Unit::to_string);
                let message = format!(
                    "{name} has different units here, {} and {}, which do not add up; ask with \
                     devices=1",
                    unit(&first.unit),
                    unit(&other.unit)
                );
                return Err(Problem::field("metric", message));
            }
            let unit = first.unit.clone().filter(|_| other.is_none());
            if !functions.is_empty() {
                columns.insert(name.clone(), Column { functions, combine, unit });
            }
        }
        Ok(Self(columns))
    }

    /// The metrics.
    pub(crate) fn names(&self) -> Vec<MetricName> {
        self.0.keys().cloned().collect()
    }

    /// Whether the neighbours of a metric's rows are needed.
    pub(crate) fn spans(&self, rule: &MetricRule) -> bool {
        let is_asked = |function| self.0.values().any(|it| it.functions.contains(&function));
        match rule {
            MetricRule::Gauge => false,
            MetricRule::Counter(_) => is_asked(Function::Increase),
            MetricRule::Power(_) => is_asked(Function::TimeMean),
        }
    }

    /// Whether any metric is a sum of devices.
    pub(crate) fn has_sums(&self) -> bool {
        self.0.values().any(|column| column.combine == Combine::Sum)
    }
}

fn wrong_kind(function: Function, name: &MetricName) -> String {
    let of = if function == Function::Increase { "counters" } else { "gauges in W, kW or MW" };
    format!("{} is of {of}, and {name} is none", function.as_str())
}

/// What a series is about.
pub(crate) struct Series<'a> {
    pub(crate) request: &'a SeriesRequest,
    pub(crate) grid: &'a Grid,
    pub(crate) columns: &'a Columns,
    pub(crate) devices: &'a [DeviceValues<'a>],
    /// Left out of sums.
    pub(crate) left_out: &'a [LeftOut<'a>],
    /// Whether several devices may be one row.
    pub(crate) is_shared: bool,
    pub(crate) now: Timestamp,
}

impl<'a> Series<'a> {
    /// The answer.
    pub(crate) fn respond(
        &self,
        span: Span,
        explain: Option<Explanation>,
    ) -> Result<Response, Problem> {
        let columns = &self.columns.0;
        let is_combined = self.is_shared && !self.request.is_apart;
        let about = About {
            span,
            source: sources(self.devices).join("+"),
            units: columns.iter().map(|(name, it)| (name, it.unit.as_ref())).collect(),
            combine: is_combined
                .then(|| columns.iter().map(|(name, it)| (name, it.combine.as_str())).collect()),
            devices: self.is_shared.then(|| self.devices.iter().map(|it| &it.device.id).collect()),
            left_out: if is_combined { self.left_out } else { &[] },
            explain,
        };
        respond(self.request.format, || self.header(), &self.rows(), &about)
    }

    fn header(&self) -> Vec<String> {
        let mut header = vec!["timestamp".to_owned()];
        header.extend(self.is_apart().then(|| "device_id".to_owned()));
        header.extend(["partial".to_owned(), "coverage".to_owned()]);
        for (name, column) in &self.columns.0 {
            header.extend(column.functions.iter().map(|it| format!("{name}.{}", it.as_str())));
        }
        header
    }

    fn is_apart(&self) -> bool {
        self.is_shared && self.request.is_apart
    }

    fn rows(&self) -> Vec<SeriesRow<'_>> {
        let places = self.grid.rows().iter().enumerate();
        if self.is_apart() {
            let each = |(place, range): (usize, &TimeRange)| {
                let range = *range;
                self.devices
                    .iter()
                    .map(move |it| self.row(place, range, std::slice::from_ref(it)))
                    .collect::<Vec<_>>()
            };
            return places.flat_map(each).collect();
        }
        places.map(|(place, range)| self.row(place, *range, self.devices)).collect()
    }

    fn row(
        &self,
        place: usize,
        range: TimeRange,
        devices: &'a [DeviceValues<'a>],
    ) -> SeriesRow<'_> {
        let values = self.columns.0.iter().map(|(name, column)| {
            let functions = column.functions.iter().map(|function| {
                let is_left_out = |id: &DeviceId| {
                    column.combine == Combine::Sum
                        && self.left_out.iter().any(|it| it.is_of_whole(id))
                };
                let counted =
                    devices.iter().filter(|it| self.is_apart() || !is_left_out(&it.device.id));
                let values = counted.filter_map(|it| {
                    let metric = it.metrics.get(name).filter(|it| function.is_of(&it.rule))?;
                    value_of(*function, metric.rows.get(place)?)
                });
                (*function, column.combine.value(*function, &values.collect::<Vec<_>>()))
            });
            (name, functions.collect())
        });
        SeriesRow {
            range,
            is_partial: range.to() > self.now,
            device: devices.first().map(|it| &it.device.id).filter(|_| self.is_apart()),
            coverage: coverage(devices, place, range, self.now),
            values: values.collect(),
            is_apart: self.is_apart(),
        }
    }
}

/// The count against that of the device's usual interval, in hundredths: the mean of the devices'.
fn coverage(
    devices: &[DeviceValues<'_>],
    place: usize,
    range: TimeRange,
    now: Timestamp,
) -> Option<i64> {
    let time = TimeRange::new(range.from(), range.to().min(now)).ok()?;
    let time = time.to().since(time.from()).num_milliseconds();
    let of_device = |it: &DeviceValues<'_>| {
        let counts = it.metrics.values().filter_map(|metric| metric.rows.get(place));
        let counts = counts.filter_map(|row| row.rollup.as_ref()).map(|rollup| rollup.count);
        let count = i128::from(counts.max().unwrap_or(0));
        let covered = count * i128::from(it.interval?.num_milliseconds()) * 100;
        i64::try_from((covered / i128::from(time)).min(100)).ok()
    };
    let each: Vec<i64> = devices.iter().filter_map(of_device).collect();
    let number = i64::try_from(each.len()).ok()?;
    each.iter().sum::<i64>().checked_div(number)
}

impl SeriesRow<'_> {
    /// The coverage as a share of 1.
    fn share(&self) -> Option<Exact> {
        let hundredth = Exact::parse("0.01").expect("a number");
        self.coverage.map(|coverage| &hundredth * coverage)
    }
}

/// The functions of one metric that have a value.
struct Functions<'a>(&'a [(Function, Option<Exact>)]);

impl Serialize for Functions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let known =
            self.0.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_ref()?)));
        serializer.collect_map(known)
    }
}

impl Serialize for SeriesRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("timestamp", &self.range.from())?;
        if let Some(device) = self.device {
            map.serialize_entry("device_id", device)?;
        }
        if self.is_partial {
            map.serialize_entry("partial", &true)?;
        }
        if let Some(share) = self.share() {
            map.serialize_entry("coverage", &share)?;
        }
        for (name, functions) in &self.values {
            if functions.iter().any(|(_, value)| value.is_some()) {
                map.serialize_entry(name, &Functions(functions))?;
            }
        }
        if let [(_, functions)] = &self.values[..]
            && let [(_, Some(value))] = &functions[..]
        {
            map.serialize_entry("value", value)?;
        }
        map.end()
    }
}

impl Line for SeriesRow<'_> {
    fn cells(&self) -> Vec<Cell> {
        let mut cells = vec![Cell::text(self.range.from().to_string())];
        if self.is_apart {
            cells.push(Cell::text(self.device.map_or("", DeviceId::as_str)));
        }
        cells.push(Cell::text(if self.is_partial { "true" } else { "" }));
        let number = |it: Option<&Exact>| it.map_or_else(Cell::empty, Cell::number);
        cells.push(number(self.share().as_ref()));
        let values = self.values.iter().flat_map(|(_, functions)| functions);
        cells.extend(values.map(|(_, value)| number(value.as_ref())));
        cells
    }
}
