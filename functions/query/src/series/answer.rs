//! The rows of a series as the API shows them. Reads nothing.

use std::collections::{BTreeMap, BTreeSet};

use api::{Problem, Response};
use domain::{DeviceId, Exact, MetricName, RoomId, TimeRange, Timestamp, Unit};
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use series::{Aggregate, Combine, DeviceValues, Level, MovedMeter, NotCombined, value_of};

use super::asked::AskedDevices;
use super::columns::MetricColumns;
use super::groups::{DeviceGroup, GroupMeters, GroupOf, RoomsOfRows};
use super::plan::{RowPlan, Span, hull, levels};
use super::request::{Grouping, SeriesRequest};
use super::write::{Line, respond};
use crate::answer::row::Cell;

/// The values of one metric, by function.
type FunctionValues = Vec<(Aggregate, Option<Exact>)>;

/// One row.
struct SeriesRow<'a> {
    range: TimeRange,
    is_partial: bool,
    of: RowOf<'a>,
    /// In hundredths.
    coverage: Option<i64>,
    values: Vec<(&'a MetricName, FunctionValues)>,
    header: &'a SeriesHeader,
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
    devices: Option<&'a [&'a DeviceId]>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: &'a [NotCombined<'a>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    moved_meters: &'a [MovedMeter<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    rooms: Option<Vec<RoomAbout<'a>>>,
}

/// What is said of a room's rows.
#[derive(Serialize)]
struct RoomAbout<'a> {
    room_id: &'a RoomId,
    combine: BTreeMap<&'a MetricName, &'static str>,
    devices: Vec<&'a DeviceId>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: &'a [NotCombined<'a>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    moved_meters: &'a [MovedMeter<'a>],
}

/// What a row is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowOf<'a> {
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
struct RowGroup<'a> {
    of: RowOf<'a>,
    columns: MetricColumns,
    devices: Vec<DeviceValues<'a>>,
    /// By column, the places of the devices that it has.
    counted: Vec<Vec<usize>>,
    left_out: Vec<NotCombined<'a>>,
    moved_meters: Vec<MovedMeter<'a>>,
}

impl<'a> RowGroup<'a> {
    /// One device.
    fn one(of: RowOf<'a>, columns: MetricColumns, device: DeviceValues<'a>) -> Self {
        let counted = vec![vec![0]; columns.0.len()];
        let (left_out, moved_meters) = (Vec::new(), Vec::new());
        Self { of, columns, devices: vec![device], counted, left_out, moved_meters }
    }

    /// Several devices, without those that sums leave out for meters, and without what is not of a room in means.
    fn combined(
        of: RowOf<'a>,
        columns: MetricColumns,
        devices: Vec<DeviceValues<'a>>,
        meters: GroupMeters<'a>,
    ) -> Self {
        let left_out = meters.left_out.iter().cloned();
        let mut left_out: Vec<_> = left_out.map(NotCombined::Behind).collect();
        let mut counted = Vec::new();
        for (name, column) in &columns.0 {
            let mut of_column = Vec::new();
            for (place, values) in devices.iter().enumerate() {
                let id = values.device.id();
                let own = values.device.metrics().get_key_value(name);
                let Some((name, _)) = own.filter(|_| values.metrics.contains_key(name)) else {
                    continue;
                };
                let mut behind = meters.left_out.iter();
                if let Some(entry) = NotCombined::of(values.device, name) {
                    left_out.push(entry);
                } else if column.combine != Combine::Sum
                    || !behind.any(|entry| entry.is_of_metric(id, name))
                {
                    of_column.push(place);
                }
            }
            counted.push(of_column);
        }
        Self { of, columns, devices, counted, left_out, moved_meters: meters.moved }
    }

    fn ids(&self) -> Vec<&'a DeviceId> {
        self.devices.iter().map(|device| device.device.id()).collect()
    }

    fn about_room(&self) -> Option<RoomAbout<'_>> {
        let RowOf::Room(room_id) = self.of else { return None };
        Some(RoomAbout {
            room_id,
            combine: self.columns.combine(),
            devices: self.ids(),
            left_out: &self.left_out,
            moved_meters: &self.moved_meters,
        })
    }

    /// The row at a place, with the columns of the table of all rows.
    fn row<'r>(
        &'r self,
        place: usize,
        range: TimeRange,
        now: Timestamp,
        header: &'r SeriesHeader,
    ) -> SeriesRow<'r> {
        let columns = self.columns.0.iter().zip(&self.counted);
        let values = columns.map(|((name, column), counted)| {
            let functions = column.functions.iter().map(|function| {
                let values = counted.iter().filter_map(|device| {
                    let metric = self.devices[*device].metrics.get(name)?;
                    let row = metric.rows.get(place).filter(|_| function.is_of(&metric.rule))?;
                    value_of(*function, row)
                });
                (*function, column.combine.value(*function, &values.collect::<Vec<_>>()))
            });
            (name, functions.collect())
        });
        let covering: BTreeSet<usize> = self.counted.iter().flatten().copied().collect();
        let covering = covering.into_iter().map(|device| &self.devices[device]);
        SeriesRow {
            range,
            is_partial: range.to() > now,
            of: self.of,
            coverage: coverage(covering, place, range, now),
            values: values.collect(),
            header,
        }
    }
}

/// The columns of the table of all rows.
struct SeriesHeader {
    metrics: MetricColumns,
    has_room: bool,
    has_device: bool,
}

/// The answer to a question for a series, while its groups are read.
pub(super) struct SeriesAnswer<'a> {
    request: &'a SeriesRequest,
    plan: &'a RowPlan,
    header: SeriesHeader,
    is_by_room: bool,
    groups: Vec<RowGroup<'a>>,
    /// The devices of one group whose rows are not of a room.
    devices: Option<Vec<&'a DeviceId>>,
    levels: BTreeSet<Level>,
    /// The time about which rollups were asked.
    reach: TimeRange,
    /// The devices with readings that are in no row.
    without_room: BTreeSet<&'a DeviceId>,
}

impl<'a> SeriesAnswer<'a> {
    /// An answer without rows; `columns` are those of all devices.
    pub(super) fn new(
        request: &'a SeriesRequest,
        plan: &'a RowPlan,
        columns: MetricColumns,
        is_shared: bool,
    ) -> Self {
        let is_by_room = request.grouping == Grouping::ByRoom;
        let has_room = is_by_room && is_shared;
        let has_device = request.grouping != Grouping::Together && is_shared;
        Self {
            request,
            plan,
            header: SeriesHeader { metrics: columns, has_room, has_device },
            is_by_room,
            groups: Vec::new(),
            devices: None,
            levels: BTreeSet::new(),
            reach: plan.grid.range(),
            without_room: BTreeSet::new(),
        }
    }

    /// Notes what was read for a group, whether a row shows it or not.
    pub(super) fn note_read(&mut self, values: &[DeviceValues<'a>]) {
        self.levels.extend(levels(values.iter()));
        self.reach = values.iter().map(|device| device.reach).fold(self.reach, hull);
    }

    /// Notes the devices with readings in none of the rooms of the rows, and drops those that are in a room.
    pub(super) fn note_without_room(
        &mut self,
        group: &DeviceGroup<'_>,
        rooms: &RoomsOfRows<'_>,
        values: &mut Vec<DeviceValues<'a>>,
    ) {
        for device in values.iter() {
            let id = device.device.id();
            if group.of == GroupOf::NoRoom && rooms.is_alone(device) {
                self.without_room.remove(id);
            } else if rooms.has_others(device) {
                self.without_room.insert(id);
            }
        }
        if group.of == GroupOf::NoRoom {
            values.retain(|device| rooms.is_alone(device));
        }
    }

    /// Adds the rows of a group.
    pub(super) fn add(
        &mut self,
        group: &'a DeviceGroup<'a>,
        columns: MetricColumns,
        values: Vec<DeviceValues<'a>>,
        meters: GroupMeters<'a>,
    ) {
        if !self.is_by_room {
            self.header.metrics = columns.clone();
            let ids = values.iter().map(|device| device.device.id());
            self.devices = (group.of != GroupOf::Device).then(|| ids.collect());
        }

        let of = match group.of {
            GroupOf::All => RowOf::All,
            GroupOf::Room(room) => RowOf::Room(room),
            GroupOf::Device | GroupOf::Apart | GroupOf::NoRoom => {
                for device in values {
                    let of = match group.of {
                        GroupOf::Device => RowOf::Device,
                        _ => RowOf::OneOf(device.device.id()),
                    };
                    self.groups.push(RowGroup::one(of, columns.clone(), device));
                }
                return;
            }
        };
        if of == RowOf::All || !values.is_empty() {
            self.groups.push(RowGroup::combined(of, columns, values, meters));
        }
    }

    /// The answer, and whether its rows may not be what they are soon.
    pub(super) fn respond(self, asked: &AskedDevices) -> Result<(Response, bool), Problem> {
        let mut span = asked.span(self.plan, self.reach);
        span.without_room = self.without_room.iter().map(|id| (*id).clone()).collect();
        let is_lacking = span.is_lacking();

        let combined = self.groups.first().filter(|group| group.of == RowOf::All);
        let rooms: Vec<RoomAbout<'_>> =
            self.groups.iter().filter_map(RowGroup::about_room).collect();
        let sources: Vec<&str> = self.levels.iter().map(|level| level.as_str()).collect();
        let metrics = &self.header.metrics.0;
        let about = About {
            span,
            source: sources.join("+"),
            units: metrics.iter().map(|(name, column)| (name, column.unit.as_ref())).collect(),
            combine: combined.map(|group| group.columns.combine()),
            devices: self.devices.as_deref(),
            left_out: combined.map_or(&[], |group| &group.left_out),
            moved_meters: combined.map_or(&[], |group| &group.moved_meters),
            rooms: self.is_by_room.then_some(rooms),
        };
        let response = respond(self.request.format, || self.header.cells(), self.rows(), &about)?;
        Ok((response, is_lacking))
    }

    /// Of several rows of a unit, those that have a value.
    fn rows(&self) -> impl Iterator<Item = SeriesRow<'_>> {
        let places = self.plan.grid.rows().iter().enumerate();
        let rows = places.flat_map(move |(place, range)| {
            let groups = self.groups.iter();
            groups.map(move |group| group.row(place, *range, self.plan.now, &self.header))
        });
        rows.filter(move |row| !self.header.has_device || row.has_values())
    }
}

impl SeriesHeader {
    /// The first line of CSV.
    fn cells(&self) -> Vec<String> {
        let mut cells = vec!["timestamp".to_owned()];
        cells.extend(self.has_room.then(|| "room_id".to_owned()));
        cells.extend(self.has_device.then(|| "device_id".to_owned()));
        cells.extend(["partial".to_owned(), "coverage".to_owned()]);
        for (name, column) in &self.metrics.0 {
            cells.extend(
                column.functions.iter().map(|function| format!("{name}.{}", function.as_str())),
            );
        }
        cells
    }
}

/// The count against that of the device's usual interval, in hundredths: the mean of the devices'.
fn coverage<'a>(
    devices: impl Iterator<Item = &'a DeviceValues<'a>>,
    place: usize,
    range: TimeRange,
    now: Timestamp,
) -> Option<i64> {
    let time = TimeRange::new(range.from(), range.to().min(now)).ok()?;
    let time = time.to().since(time.from()).num_milliseconds();
    let of_device = |device: &DeviceValues<'_>| {
        let counts = device.metrics.values().filter_map(|metric| metric.rows.get(place));
        let counts = counts.filter_map(|row| row.rollup.as_ref()).map(|rollup| rollup.count);
        let count = i128::from(counts.max().unwrap_or(0));
        let covered = count * i128::from(device.interval?.num_milliseconds()) * 100;
        i64::try_from((covered / i128::from(time)).min(100)).ok()
    };
    let each: Vec<i64> = devices.filter_map(of_device).collect();
    let number = i64::try_from(each.len()).ok()?;
    each.iter().sum::<i64>().checked_div(number)
}

impl SeriesRow<'_> {
    fn has_values(&self) -> bool {
        self.values.iter().flat_map(|(_, functions)| functions).any(|(_, value)| value.is_some())
    }

    /// The coverage as a share of 1.
    fn share(&self) -> Option<Exact> {
        let hundredth = Exact::parse("0.01").expect("a number");
        self.coverage.map(|coverage| &hundredth * coverage)
    }
}

/// The functions of one metric that have a value.
struct Functions<'a>(&'a [(Aggregate, Option<Exact>)]);

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
        cells.extend(self.header.has_room.then(|| Cell::text(room)));
        cells.extend(self.header.has_device.then(|| Cell::text(device)));
        cells.push(Cell::text(if self.is_partial { "true" } else { "" }));
        let number = |value: Option<&Exact>| value.map_or_else(Cell::empty, Cell::number);
        cells.push(number(self.share().as_ref()));
        for (name, column) in &self.header.metrics.0 {
            let own = self.values.iter().find(|(own, _)| *own == name);
            cells.extend(column.functions.iter().map(|function| {
                let value = own.and_then(|(_, it)| it.iter().find(|(it, _)| it == function));
                number(value.and_then(|(_, value)| value.as_ref()))
            }));
        }
        cells
    }
}
