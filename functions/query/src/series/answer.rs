//! The rows of a series as the API shows them. Reads nothing.

use std::collections::BTreeMap;

use api::{Problem, Response};
use domain::{DeviceId, Exact, MetricName, MetricRule, RoomId, TimeRange, Timestamp, Unit};
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use series::{Combine, DeviceValues, Function, Grid, LeftOut, NotCombined, Place, value_of};

use super::about::{Span, sources};
use super::request::SeriesRequest;
use super::write::{Line, respond};
use crate::answer::row::Cell;

/// The metrics of a series, with what each row has of them.
#[derive(Debug)]
pub(crate) struct Columns(BTreeMap<MetricName, Column>);

#[derive(Debug)]
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
    of: RowOf<'a>,
    /// In hundredths.
    coverage: Option<i64>,
    values: Vec<(&'a MetricName, FunctionValues)>,
    is_by_room: bool,
    /// The columns of the table of all rows.
    header: &'a Columns,
}

#[derive(Serialize)]
struct About<'a> {
    #[serde(flatten)]
    span: Span,
    source: &'a str,
    units: BTreeMap<&'a MetricName, Option<&'a Unit>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    combine: Option<BTreeMap<&'a MetricName, &'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    devices: Option<&'a [&'a DeviceId]>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: &'a [NotCombined<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    rooms: Option<Vec<RoomAbout<'a>>>,
}

/// What is said of a room's rows.
#[derive(Serialize)]
struct RoomAbout<'a> {
    room_id: &'a RoomId,
    combine: BTreeMap<&'a MetricName, &'static str>,
    devices: &'a [&'a DeviceId],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: &'a [NotCombined<'a>],
}

impl Columns {
    /// The columns that a request asks for of some devices.
    pub(crate) fn of(
        request: &SeriesRequest,
        names: &[MetricName],
        devices: &[&domain::Device],
        is_combined: bool,
    ) -> Result<Self, Problem> {
        let mut columns = BTreeMap::new();
        for name in names {
            let having = || devices.iter().filter(|it| it.metrics().contains_key(name));
            // What is left out says nothing of the others, unless nothing else is there.
            let is_shown = |it: &&&domain::Device| !is_combined || it.not_of_room(name).is_none();
            let are_shown = having().any(|it| is_shown(&it));
            let shown = having().filter(|it| !are_shown || is_shown(it));
            let infos: Vec<_> = shown.map(|it| &it.metrics()[name]).collect();
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
            if let Some(other) = other.filter(|_| combine == Combine::Sum && is_combined) {
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

    /// How the values of several devices become one, by metric.
    fn combine(&self) -> BTreeMap<&MetricName, &'static str> {
        self.0.iter().map(|(name, it)| (name, it.combine.as_str())).collect()
    }

    /// The metrics that are sums of devices.
    pub(crate) fn sums(&self) -> impl Iterator<Item = &MetricName> {
        let sums = self.0.iter().filter(|(_, column)| column.combine == Combine::Sum);
        sums.map(|(name, _)| name)
    }
}

fn wrong_kind(function: Function, name: &MetricName) -> String {
    let of = if function == Function::Increase { "counters" } else { "gauges in W, kW or MW" };
    format!("{} needs {of}; {name} is something else", function.as_str())
}

/// What a row is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowOf<'a> {
    /// The device of the path.
    Device,
    /// One of several devices.
    OneOf(&'a DeviceId),
    /// Several devices together.
    All,
    /// The devices of a room together.
    Room(&'a RoomId),
}

/// The devices that make a row together.
pub(crate) struct Group<'a> {
    of: RowOf<'a>,
    columns: &'a Columns,
    /// By column, the devices that it has.
    counted: Vec<Vec<&'a DeviceValues<'a>>>,
    /// The devices that any column has.
    covering: Vec<&'a DeviceValues<'a>>,
    devices: Vec<&'a DeviceId>,
    left_out: Vec<NotCombined<'a>>,
}

impl<'a> Group<'a> {
    /// The rows of a place, by its own columns and without the devices that are behind others in it.
    pub(crate) fn of_place(
        place: &'a Place<'a>,
        (columns, behind): &'a (Columns, Vec<LeftOut<'a>>),
    ) -> Self {
        match (&place.room, &place.devices[..]) {
            (None, [device]) => Self::one(RowOf::OneOf(device.device.id()), columns, device),
            (None, devices) => Self::combined(RowOf::All, columns, devices, behind),
            (Some(room), devices) => Self::combined(RowOf::Room(room), columns, devices, behind),
        }
    }

    /// One device.
    pub(crate) fn one(of: RowOf<'a>, columns: &'a Columns, device: &'a DeviceValues<'a>) -> Self {
        let counted = columns.0.iter().map(|_| vec![device]).collect();
        let (covering, devices) = (vec![device], vec![device.device.id()]);
        Self { of, columns, counted, covering, devices, left_out: Vec::new() }
    }

    /// Several devices, without those that are `behind` others in sums, and without what is not of a room in
    /// means.
    pub(crate) fn combined(
        of: RowOf<'a>,
        columns: &'a Columns,
        devices: &'a [DeviceValues<'a>],
        behind: &[LeftOut<'a>],
    ) -> Self {
        let mut left_out: Vec<_> = behind.iter().cloned().map(NotCombined::Behind).collect();
        let counted: Vec<Vec<_>> = columns
            .0
            .iter()
            .map(|(name, column)| {
                let is_behind = |it: &DeviceValues<'_>| {
                    column.combine == Combine::Sum
                        && behind.iter().any(|of| of.is_of_metric(it.device.id(), name))
                };
                let having = devices.iter().filter(|it| it.metrics.contains_key(name));
                let (apart, together): (Vec<_>, Vec<_>) =
                    having.partition(|it| it.device.not_of_room(name).is_some());
                let apart = apart.into_iter();
                left_out.extend(apart.filter_map(|it| NotCombined::of(it.device, name)));
                together.into_iter().filter(|it| !is_behind(it)).collect()
            })
            .collect();
        let is_counted = |it: &&DeviceValues<'_>| {
            counted.iter().flatten().any(|counted| counted.device.id() == it.device.id())
        };
        let covering = devices.iter().filter(is_counted).collect();
        let devices = devices.iter().map(|it| it.device.id()).collect();
        Self { of, columns, counted, covering, devices, left_out }
    }

    fn about_room(&self) -> Option<RoomAbout<'_>> {
        let RowOf::Room(room_id) = self.of else { return None };
        Some(RoomAbout {
            room_id,
            combine: self.columns.combine(),
            devices: &self.devices,
            left_out: &self.left_out,
        })
    }

    fn row(&self, place: usize, range: TimeRange, series: &Series<'a>) -> SeriesRow<'a> {
        let values = self.columns.0.iter().zip(&self.counted).map(|((name, column), counted)| {
            let functions = column.functions.iter().map(|function| {
                let values = counted.iter().filter_map(|it| {
                    let metric = it.metrics.get(name).filter(|it| function.is_of(&it.rule))?;
                    value_of(*function, metric.rows.get(place)?)
                });
                (*function, column.combine.value(*function, &values.collect::<Vec<_>>()))
            });
            (name, functions.collect())
        });
        SeriesRow {
            range,
            is_partial: range.to() > series.now,
            of: self.of,
            coverage: coverage(&self.covering, place, range, series.now),
            values: values.collect(),
            is_by_room: series.request.is_by_room,
            header: series.columns,
        }
    }
}

/// What a series is about.
pub(crate) struct Series<'a> {
    pub(crate) request: &'a SeriesRequest,
    pub(crate) grid: &'a Grid,
    pub(crate) columns: &'a Columns,
    /// The kinds of items that the rows are made from.
    pub(crate) source: String,
    /// The devices, where a row is not of a room.
    pub(crate) devices: Vec<&'a DeviceId>,
    /// The rows of each unit: of all devices, or one for each device or room.
    pub(crate) groups: Vec<Group<'a>>,
    pub(crate) now: Timestamp,
}

impl<'a> Series<'a> {
    /// The rows of rooms, and of devices that are in none.
    pub(crate) fn of_places(
        (request, grid, now): (&'a SeriesRequest, &'a Grid, Timestamp),
        columns: &'a Columns,
        source: String,
        groups: Vec<Group<'a>>,
    ) -> Self {
        Self { request, grid, columns, source, devices: Vec::new(), groups, now }
    }

    /// The rows of a device, or of several, apart or together.
    pub(crate) fn of(
        (request, grid, now): (&'a SeriesRequest, &'a Grid, Timestamp),
        columns: &'a Columns,
        devices: &'a [DeviceValues<'a>],
        behind: &[LeftOut<'a>],
        is_shared: bool,
    ) -> Self {
        let groups = match (is_shared, request.is_apart) {
            (true, false) => vec![Group::combined(RowOf::All, columns, devices, behind)],
            (true, true) => {
                let one = |it: &'a DeviceValues<'a>| {
                    Group::one(RowOf::OneOf(it.device.id()), columns, it)
                };
                devices.iter().map(one).collect()
            }
            (false, _) => devices.iter().map(|it| Group::one(RowOf::Device, columns, it)).collect(),
        };
        let source = sources(devices.iter()).join("+");
        let devices = devices.iter().map(|it| it.device.id()).collect();
        Self { request, grid, columns, source, devices, groups, now }
    }

    /// The answer.
    pub(crate) fn respond(&self, span: Span) -> Result<Response, Problem> {
        let columns = &self.columns.0;
        let combined = self.groups.first().filter(|group| group.of == RowOf::All);
        let is_shared = self.groups.iter().all(|group| group.of != RowOf::Device);
        let rooms: Vec<RoomAbout<'_>> = self.groups.iter().filter_map(Group::about_room).collect();
        let is_by_room = self.request.is_by_room;
        let about = About {
            span,
            source: &self.source,
            units: columns.iter().map(|(name, it)| (name, it.unit.as_ref())).collect(),
            combine: combined.map(|group| group.columns.combine()),
            devices: Some(&self.devices[..]).filter(|_| is_shared && !is_by_room),
            left_out: combined.map_or(&[], |group| &group.left_out),
            rooms: is_by_room.then_some(rooms),
        };
        respond(self.request.format, || self.header(), self.rows(), &about)
    }

    fn header(&self) -> Vec<String> {
        let mut header = vec!["timestamp".to_owned()];
        header.extend(self.request.is_by_room.then(|| "room_id".to_owned()));
        header.extend(self.is_apart().then(|| "device_id".to_owned()));
        header.extend(["partial".to_owned(), "coverage".to_owned()]);
        for (name, column) in &self.columns.0 {
            header.extend(column.functions.iter().map(|it| format!("{name}.{}", it.as_str())));
        }
        header
    }

    fn is_apart(&self) -> bool {
        let is_asked = self.request.is_apart || self.request.is_by_room;
        is_asked && self.groups.iter().all(|group| group.of != RowOf::Device)
    }

    /// Of several rows of a unit, those that have a value.
    fn rows(&self) -> impl Iterator<Item = SeriesRow<'a>> {
        let is_apart = self.is_apart();
        let places = self.grid.rows().iter().enumerate();
        let rows = places.flat_map(move |(place, range)| {
            self.groups.iter().map(move |group| group.row(place, *range, self))
        });
        rows.filter(move |row| !is_apart || row.has_values())
    }
}

/// The count against that of the device's usual interval, in hundredths: the mean of the devices'.
fn coverage(
    devices: &[&DeviceValues<'_>],
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
    let each: Vec<i64> = devices.iter().copied().filter_map(of_device).collect();
    let number = i64::try_from(each.len()).ok()?;
    each.iter().sum::<i64>().checked_div(number)
}

impl SeriesRow<'_> {
    fn has_values(&self) -> bool {
        self.values.iter().flat_map(|(_, functions)| functions).any(|(_, it)| it.is_some())
    }

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
        match self.of {
            RowOf::OneOf(device) => map.serialize_entry("device_id", device)?,
            RowOf::Room(room) => map.serialize_entry("room_id", room)?,
            RowOf::Device | RowOf::All => {}
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
        let (room, device) = match self.of {
            RowOf::Room(room) => (room.as_str(), ""),
            RowOf::OneOf(device) => ("", device.as_str()),
            RowOf::Device | RowOf::All => ("", ""),
        };
        cells.extend(self.is_by_room.then(|| Cell::text(room)));
        let is_apart = self.is_by_room || matches!(self.of, RowOf::OneOf(_));
        cells.extend(is_apart.then(|| Cell::text(device)));
        cells.push(Cell::text(if self.is_partial { "true" } else { "" }));
        let number = |it: Option<&Exact>| it.map_or_else(Cell::empty, Cell::number);
        cells.push(number(self.share().as_ref()));
        for (name, column) in &self.header.0 {
            let own = self.values.iter().find(|(own, _)| *own == name);
            cells.extend(column.functions.iter().map(|function| {
                let value = own.and_then(|(_, it)| it.iter().find(|(it, _)| it == function));
                number(value.and_then(|(_, value)| value.as_ref()))
            }));
        }
        cells
    }
}
