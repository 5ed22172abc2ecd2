//! The rows of a series as the API shows them. Reads nothing.

use std::collections::{BTreeMap, BTreeSet};

use api::{Problem, Response};
use domain::{Aggregate, DeviceId, Exact, MetricName, RoomId, TimeRange, Timestamp, Unit};
use serde::Serialize;
use series::{
    Combine, DeviceRows, Level, MetricRows, MovedMeter, NotCombined, OutOfMeans, value_of,
};

use super::columns::{MetricColumn, MetricColumns};
use super::write::respond;
use crate::answer::row::Entries;
use crate::series::question::devices::QuestionDevices;
use crate::series::question::groups::{DeviceGroup, GroupOf, RoomsOfRows, SumExclusions};
use crate::series::question::plan::{RowPlan, Span, hull, levels};
use crate::series::question::request::{Grouping, SeriesRequest};

/// The values of one metric by function. Absent values are left out.
type FunctionValues = Entries<&'static str, Exact>;

/// One row of a series.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub(crate) struct SeriesRow<'a> {
    timestamp: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_id: Option<&'a DeviceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    room_id: Option<&'a RoomId>,
    /// Whether the time of the row is not over yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
    /// The share of the expected readings that arrived. The usual interval of the device says how many are expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<Exact>,
    /// The metrics that have a value.
    #[serde(flatten)]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "BTreeMap<MetricName, BTreeMap<String, Exact>>")
    )]
    values: Entries<&'a MetricName, FunctionValues>,
    /// The value, if the rows have one metric and one function.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Exact>,
}

/// The members beside the rows of a series.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SeriesSummary<'a> {
    #[serde(flatten)]
    span: Span,
    /// Only with `rooms`: the devices with readings without a room, or of a room that the registry no longer has. No
    /// row has these readings.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    without_room: &'a BTreeSet<&'a DeviceId>,
    /// The kinds of items that were read, joined by `+`: `readings`, `m15`, `day`.
    source: String,
    units: BTreeMap<&'a MetricName, Option<&'a Unit>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    combine: Option<BTreeMap<&'a MetricName, Combine>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    devices: Option<&'a [&'a DeviceId]>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: &'a [NotCombined<'a>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    moved_meters: &'a [MovedMeter<'a>],
    /// Only with `rooms`: the devices of each room, and how they are combined.
    #[serde(skip_serializing_if = "Option::is_none")]
    rooms: Option<Vec<RoomSummary<'a>>>,
}

/// The members about the rows of one room.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
struct RoomSummary<'a> {
    room_id: &'a RoomId,
    combine: BTreeMap<&'a MetricName, Combine>,
    devices: Vec<&'a DeviceId>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: &'a [NotCombined<'a>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    moved_meters: &'a [MovedMeter<'a>],
}

/// The devices that form a row together.
struct RowGroup<'a> {
    of: GroupOf<'a>,
    /// The device, if the answer may have several devices with a row each.
    device_id: Option<&'a DeviceId>,
    columns: MetricColumns,
    devices: Vec<DeviceRows<'a>>,
    /// For each column, the indices of the devices that count.
    counted: Vec<Vec<usize>>,
    left_out: Vec<NotCombined<'a>>,
    moved_meters: Vec<MovedMeter<'a>>,
}

impl<'a> RowGroup<'a> {
    /// The rows of one device, which counts in each column.
    fn one(of: GroupOf<'a>, columns: MetricColumns, device: DeviceRows<'a>) -> Self {
        let device_id = (of != GroupOf::Device).then(|| device.device.id());
        let counted = vec![vec![0]; columns.0.len()];
        let (left_out, moved_meters) = (Vec::new(), Vec::new());
        Self { of, device_id, columns, devices: vec![device], counted, left_out, moved_meters }
    }

    /// The rows of a group of devices. Sums leave out the devices in `exclusions`, which a meter measures too. Means
    /// leave out a device's metric that does not describe the room.
    fn combined(
        of: GroupOf<'a>,
        columns: MetricColumns,
        devices: Vec<DeviceRows<'a>>,
        exclusions: SumExclusions<'a>,
    ) -> Self {
        let left_out = exclusions.left_out.iter().cloned();
        let mut left_out: Vec<_> = left_out.map(NotCombined::Behind).collect();

        let mut counted = Vec::new();
        for (name, column) in &columns.0 {
            let mut of_column = Vec::new();
            for (index, values) in devices.iter().enumerate() {
                let id = values.device.id();
                // The name as the device has it, because the entries of `left_out` borrow from the device.
                let own = values.device.metrics().get_key_value(name);
                let Some((name, _)) = own.filter(|_| values.metrics.contains_key(name)) else {
                    continue;
                };

                let mut behind = exclusions.left_out.iter();
                if let Some(entry) = OutOfMeans::of(values.device, name) {
                    left_out.push(NotCombined::NotOfRoom(entry));
                } else if column.combine != Combine::Sum
                    || !behind.any(|entry| entry.is_of_metric(id, name))
                {
                    of_column.push(index);
                }
            }
            counted.push(of_column);
        }

        let (device_id, moved_meters) = (None, exclusions.moved);
        Self { of, device_id, columns, devices, counted, left_out, moved_meters }
    }

    fn ids(&self) -> Vec<&'a DeviceId> {
        self.devices.iter().map(|device| device.device.id()).collect()
    }

    fn summary_of_room(&self) -> Option<RoomSummary<'_>> {
        let GroupOf::Room(room_id) = self.of else { return None };
        Some(RoomSummary {
            room_id,
            combine: self.columns.combine(),
            devices: self.ids(),
            left_out: &self.left_out,
            moved_meters: &self.moved_meters,
        })
    }

    fn row(&self, row_index: usize, range: TimeRange, now: Timestamp) -> SeriesRow<'_> {
        let mut values = Vec::new();
        for ((name, column), counted) in self.columns.0.iter().zip(&self.counted) {
            let devices = counted.iter().map(|index| &self.devices[*index]);
            let metrics: Vec<_> = devices.filter_map(|device| device.metrics.get(name)).collect();
            let found = column.values(&metrics, row_index);
            if !found.0.is_empty() {
                values.push((name, found));
            }
        }

        let covering: BTreeSet<usize> = self.counted.iter().flatten().copied().collect();
        let covering = covering.into_iter().map(|index| &self.devices[index]);
        SeriesRow {
            timestamp: range.from(),
            device_id: self.device_id,
            room_id: self.of.room(),
            partial: range.to() > now,
            coverage: coverage(covering, row_index, range, now),
            value: self.only_value(&values),
            values: Entries(values),
        }
    }

    /// The value of a row, if there is one metric and one function.
    fn only_value(&self, values: &[(&MetricName, FunctionValues)]) -> Option<Exact> {
        let mut columns = self.columns.0.values();
        let is_only = columns.len() == 1 && columns.all(|column| column.functions.len() == 1);
        let (_, Entries(found)) = values.first().filter(|_| is_only)?;
        Some(found.first()?.1.clone())
    }
}

/// The columns of all rows in CSV.
struct SeriesHeader {
    metrics: MetricColumns,
    /// Whether a column names the room.
    has_room: bool,
    /// Whether a column names the device. By room there is such a column too, because each device in no room has rows
    /// of its own.
    has_device: bool,
}

/// The answer to a request for a series, while its groups are read.
pub(crate) struct SeriesAnswer<'a> {
    request: &'a SeriesRequest,
    plan: &'a RowPlan,
    header: SeriesHeader,
    is_by_room: bool,
    groups: Vec<RowGroup<'a>>,
    /// The devices of the answer, unless its rows are by room or the request is about one device.
    devices: Option<Vec<&'a DeviceId>>,
    levels: BTreeSet<Level>,
    /// The range, widened to all time in which rollups were searched.
    reach: TimeRange,
    /// The devices with readings that are in no row.
    without_room: BTreeSet<&'a DeviceId>,
}

impl<'a> SeriesAnswer<'a> {
    /// An answer without rows. `columns` are the columns of all devices.
    pub(crate) fn new(
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

    /// Notes the kinds of items and the time that were read for a group, even if no row shows their values.
    pub(crate) fn note_read(&mut self, values: &[DeviceRows<'a>]) {
        self.levels.extend(levels(values.iter()));
        self.reach = values.iter().map(|device| device.reach).fold(self.reach, hull);
    }

    /// Notes the devices that have readings outside the rooms of the answer, unless they get rows of their own.
    pub(crate) fn note_outside_rooms(
        &mut self,
        group: &DeviceGroup<'_>,
        rooms: &RoomsOfRows<'_>,
        values: &[DeviceRows<'a>],
    ) {
        // The group `NoRoom` comes last. Its devices get rows of their own, so their notes are removed again here.
        for device in values {
            let id = device.device.id();
            if group.of == GroupOf::NoRoom && rooms.has_rows(group, device) {
                self.without_room.remove(id);
            } else if rooms.has_readings_elsewhere(device) {
                self.without_room.insert(id);
            }
        }
    }

    /// Adds the rows of a group.
    pub(crate) fn add(
        &mut self,
        group: &'a DeviceGroup<'a>,
        columns: MetricColumns,
        values: Vec<DeviceRows<'a>>,
        exclusions: SumExclusions<'a>,
    ) {
        if !self.is_by_room {
            self.header.metrics = columns.clone();
            let ids = values.iter().map(|device| device.device.id());
            self.devices = (group.of != GroupOf::Device).then(|| ids.collect());
        }

        if !group.of.is_combined() {
            let rows = values.into_iter();
            self.groups.extend(rows.map(|device| RowGroup::one(group.of, columns.clone(), device)));
        } else if group.of == GroupOf::Together || !values.is_empty() {
            self.groups.push(RowGroup::combined(group.of, columns, values, exclusions));
        }
    }

    /// The answer, and whether it lacks readings or devices that may soon be there.
    pub(crate) fn respond(self, found: &QuestionDevices) -> Result<(Response, bool), Problem> {
        let span = found.span(self.plan, self.reach);
        let is_lacking = span.is_lacking();

        let combined = self.groups.first().filter(|group| group.of == GroupOf::Together);
        let rooms: Vec<RoomSummary<'_>> =
            self.groups.iter().filter_map(RowGroup::summary_of_room).collect();
        let sources: Vec<&str> = self.levels.iter().map(|level| level.as_str()).collect();
        let metrics = &self.header.metrics.0;

        let about = SeriesSummary {
            span,
            without_room: &self.without_room,
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

    /// The rows in order of time. If rows name devices or rooms, a row without a value is left out.
    fn rows(&self) -> impl Iterator<Item = SeriesRow<'_>> {
        let ranges = self.plan.grid.rows().iter().enumerate();
        let rows = ranges.flat_map(move |(row_index, range)| {
            let groups = self.groups.iter();
            groups.map(move |group| group.row(row_index, *range, self.plan.now))
        });
        rows.filter(move |row| !self.header.has_device || !row.values.0.is_empty())
    }
}

impl MetricColumn {
    /// The values of a row by function, each combined from the devices' metrics.
    fn values(&self, metrics: &[&MetricRows], row_index: usize) -> FunctionValues {
        let of_function = |function: &Aggregate| {
            let metrics = metrics.iter().filter(|metric| function.is_of(&metric.rule));
            let rows = metrics.filter_map(|metric| metric.rows.get(row_index));
            let of_devices: Vec<_> = rows.filter_map(|row| value_of(*function, row)).collect();
            Some((function.as_str(), self.combine.value(*function, &of_devices)?))
        };
        Entries(self.functions.iter().filter_map(of_function).collect())
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

/// The share of the expected readings that arrived, as the mean of the devices, cut to hundredths.
fn coverage<'a>(
    devices: impl Iterator<Item = &'a DeviceRows<'a>>,
    row_index: usize,
    range: TimeRange,
    now: Timestamp,
) -> Option<Exact> {
    let time = TimeRange::new(range.from(), range.to().min(now)).ok()?;
    let time = time.length().num_milliseconds();

    let of_device = |device: &DeviceRows<'_>| {
        let counts = device.metrics.values().filter_map(|metric| metric.rows.get(row_index));
        let counts = counts.filter_map(|row| row.rollup.as_ref()).map(|rollup| rollup.count);
        let count = i128::from(counts.max().unwrap_or(0));
        let covered = count * i128::from(device.interval?.num_milliseconds()) * 100;
        i64::try_from((covered / i128::from(time)).min(100)).ok()
    };

    let each: Vec<i64> = devices.filter_map(of_device).collect();
    let number = i64::try_from(each.len()).ok()?;
    let hundredth = Exact::parse("0.01").expect("a number");
    each.iter().sum::<i64>().checked_div(number).map(|hundredths| &hundredth * hundredths)
}
