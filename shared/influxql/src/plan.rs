//! The plan of a `SELECT`: a selection of data of devices, or a statement on the rows of subqueries. Reads nothing.

use std::collections::BTreeSet;
use std::iter;

use domain::{Device, Timestamp};

use crate::answer::{Epoch, OutSeries};
use crate::ast::{Name, Select, Sources};
use crate::compile::{CheckedSelect, OuterQuery, compile};
use crate::condition::Range;
use crate::error::QueryError;
use crate::function::FunctionCall;
use crate::group::PointGrouping;
use crate::room_tag::RoomTexts;
use crate::rows::{OutRow, Rows};
use crate::selection::{Answer, DeviceSelection, OutGroup};
use crate::series::{SelectNames, TaggedSeries, series_of_all};
use crate::table::{Frame, Span};
use crate::windows::TimeWindows;

/// The plan of a checked `SELECT`.
#[derive(Debug)]
pub enum SelectPlan<'a> {
    /// A statement on devices.
    Devices(DeviceSelection<'a>),
    /// A statement on the rows of subqueries.
    Statements(Statements<'a>),
}

/// A statement on the rows of subqueries. Each row becomes a point, and each column a field.
#[derive(Debug)]
pub struct Statements<'a> {
    /// The subqueries in the `FROM`.
    pub inner: Vec<SelectPlan<'a>>,
    query: CheckedSelect,
    is_subquery: bool,
}

impl<'a> SelectPlan<'a> {
    /// Checks a `SELECT` against all devices. Returns `None` if the answer is empty, whatever readings there are.
    ///
    /// Refuses an answer that would be too large, judging by the registry.
    pub fn of(
        select: &Select,
        devices: &[&'a Device],
        rooms: &'a RoomTexts<'a>,
        now: Timestamp,
    ) -> Result<Option<Self>, QueryError> {
        Planning { devices, rooms, now }.plan(select, None)
    }

    const fn query(&self) -> &CheckedSelect {
        match self {
            Self::Devices(selection) => &selection.query,
            Self::Statements(statements) => &statements.query,
        }
    }

    /// Makes the series of the answer from the statement's rows.
    pub fn series(&self, rows: Vec<Rows>, epoch: Epoch) -> Vec<OutSeries> {
        let CheckedSelect { time, zone, is_descending, .. } = self.query();
        let values =
            |row: OutRow| iter::once(Some(epoch.value(row.at, *zone))).chain(row.cells).collect();
        let series = rows.into_iter().map(|rows| OutSeries {
            name: Some(rows.measurement),
            tags: rows.tags,
            columns: iter::once(time.clone()).chain(rows.columns).collect(),
            values: rows.list.into_iter().map(values).collect(),
        });

        if *is_descending { series.rev().collect() } else { series.collect() }
    }
}

struct Planning<'d, 'a> {
    devices: &'d [&'a Device],
    rooms: &'a RoomTexts<'a>,
    now: Timestamp,
}

impl<'a> Planning<'_, 'a> {
    fn plan(
        &self,
        select: &Select,
        outer: Option<&OuterQuery>,
    ) -> Result<Option<SelectPlan<'a>>, QueryError> {
        let is_subquery = outer.is_some();
        match &select.sources {
            Sources::Measurements(names) => {
                let series = self.series_of(names);
                let query = compile(select, &SelectNames::of(&series), outer, self.now)?;
                let selection = DeviceSelection::of(query, series, is_subquery, self.now)?;
                Ok(selection.map(SelectPlan::Devices))
            }

            Sources::Subqueries(selects) => {
                let schema = self.schema_of(selects)?;
                let query = compile(select, &schema, outer, self.now)?;
                if !query.fields.iter().any(|field| schema.fields.contains(field)) {
                    return Ok(None);
                }

                let within = OuterQuery::of(&query);
                let inner = selects.iter().map(|select| self.plan(select, Some(&within)));
                let inner: Result<Vec<_>, _> = inner.collect();
                let inner = inner?.into_iter().flatten().collect();
                Ok(Some(SelectPlan::Statements(Statements { inner, query, is_subquery })))
            }
        }
    }

    /// The series of some measurements.
    fn series_of(&self, names: &[Name]) -> Vec<TaggedSeries<'a>> {
        series_of_all(self.devices.iter().copied(), names, self.rooms)
    }

    /// The names in a `FROM` of subqueries: their columns are fields, and their dimensions are tags.
    fn schema_of(&self, selects: &[Select]) -> Result<SelectNames, QueryError> {
        let mut schema = SelectNames::default();
        for select in selects {
            let own = match &select.sources {
                Sources::Measurements(names) => SelectNames::of(&self.series_of(names)),
                Sources::Subqueries(selects) => self.schema_of(selects)?,
            };

            // Any windows and any order will do here, because the names do not depend on them.
            let outer = OuterQuery {
                range: Range::default(),
                dimensions: Vec::new(),
                interval: Some(TimeWindows { length: 1, offset: 0, zone: None }),
                is_descending: select.is_descending.unwrap_or_default(),
            };
            let query = compile(select, &own, Some(&outer), self.now)?;
            schema.fields.extend(query.columns.into_iter().map(|column| column.name));
            schema.tags.extend(query.dimensions);
        }
        Ok(schema)
    }
}

impl Statements<'_> {
    /// Makes the rows of the statement from the rows of its subqueries.
    pub fn rows(&self, found: &[Rows]) -> Result<Vec<Rows>, QueryError> {
        let query = &self.query;
        let times = found.iter().flat_map(|rows| rows.list.iter().map(|row| row.at));
        let Some(earliest) = times.min() else { return Ok(Vec::new()) };
        let span = Span { earliest, is_subquery: self.is_subquery };
        let Some(frame) = Frame::of(query, span, true)? else { return Ok(Vec::new()) };

        let CheckedSelect { fields, dimensions, series: page, .. } = query;
        let condition = query.condition.as_ref();
        let grouping = PointGrouping { fields, dimensions, condition, is_by_room: false };

        // The rows of a subquery are in order of time, except values of whole ranges, which come series by series.
        let is_of_range = |call: &FunctionCall| !matches!(call, FunctionCall::OfPoints(..));
        let has_rows_in_order = |plan: &SelectPlan<'_>| {
            plan.query().interval.is_some() || !plan.query().calls.iter().any(is_of_range)
        };
        let is_in_time = self.inner.iter().all(has_rows_in_order);

        let mut answer = Answer::new(query, &frame);
        let measurements: BTreeSet<&str> =
            found.iter().map(|rows| rows.measurement.as_str()).collect();
        for measurement in measurements {
            let tables: Vec<&Rows> =
                found.iter().filter(|rows| rows.measurement == measurement).collect();
            for (tags, points) in page.of_groups(grouping.of_rows(&tables, is_in_time)) {
                answer.add(OutGroup { instant: None, measurement, tags, points })?;
            }
        }

        answer.finish()
    }
}
