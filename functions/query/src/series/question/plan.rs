//! The plan of an answer's rows: range, zone, unit, the time up to which there are rollups, and what the rows may lack.

use std::collections::BTreeSet;

use api::caching::{with_revalidation, with_short_life};
use api::{Problem, Response};
use domain::{CalendarUnit, Device, TimeRange, Timestamp, Zone};
use serde::Serialize;
use series::{DeviceQuestion, DeviceRows, Grid, Horizon, Level, RollupLag, UnfoldedChanges};

use super::request::{Grouping, QueryScope, SeriesRequest};
use crate::ports::Store;
use crate::registry::presence::RoomsLack;
use crate::shared_state::Call;

/// The rows that a request asks for, and the time up to which there are rollups.
#[derive(Debug)]
pub(crate) struct RowPlan {
    pub(crate) horizon: Horizon,
    pub(crate) grid: Grid,
    unit: Option<CalendarUnit>,
    zone: Zone,
    pub(crate) now: Timestamp,
    /// Changes that the rollups do not have yet. `None` if the answer uses no rollups, neither for its rows nor to find
    /// the devices of rooms.
    unfolded: Option<UnfoldedChanges>,
}

impl RowPlan {
    pub(crate) async fn of(
        request: &SeriesRequest,
        scope: QueryScope,
        call: &mut Call<'_, impl Store>,
    ) -> Result<Self, Problem> {
        let horizon = call.shared.rollup_state.horizon(call.session).await?;
        let zone = request.zone(horizon.zone());
        let (grid, unit) = (request.grid(zone)?, request.unit);

        // For rooms, rollups are used even if rows are made from readings, because rollups say which devices were there.
        let is_of_rooms = scope.is_of_rooms() || request.grouping == Grouping::ByRoom;
        let mut unfolded = None;
        if Level::of(unit) > Level::Readings || is_of_rooms {
            unfolded = Some(UnfoldedChanges::read(call.session, &horizon).await?);
        }

        Ok(Self { horizon, grid, unit, zone, now: call.session.now, unfolded })
    }

    /// The question about one device, wherever it was.
    pub(crate) fn question<'a>(&'a self, device: &'a Device) -> DeviceQuestion<'a> {
        DeviceQuestion::of(device, &self.grid, &self.horizon, Level::of(self.unit), self.now)
    }

    /// The lag of the rollups in a range. Call this after the rollups are read, because reading notes those of older
    /// settings. Without a `device`, the lag of every device counts: for a room, rollups say which devices were there.
    pub(crate) fn lag(&self, range: TimeRange, device: Option<&Device>) -> Option<RollupLag> {
        self.unfolded.as_ref()?.lag_of(range, device.map(Device::id))
    }

    /// Says in a problem about a room or home how far the rollups lag, because rollups say which devices were there.
    pub(crate) fn with_lag(&self, mut problem: Problem, scope: QueryScope) -> Problem {
        let lag = scope.is_of_rooms().then(|| self.lag(self.grid.range(), None)).flatten();
        if let Some(lag) = lag {
            problem.detail = format!("{}; {}", problem.detail, lag.text());
        }
        problem
    }

    /// The members of an answer about the rows: range, unit, and what the rows may lack. `reach` is the range, widened
    /// by the time in which rollups were searched for neighbours.
    pub(crate) fn span(
        &self,
        reach: TimeRange,
        device: Option<&Device>,
        rooms_lack: Option<RoomsLack>,
    ) -> Span {
        Span { rows: self.row_span(reach, device), rooms_lack }
    }

    /// Like [`span`](Self::span), for an answer that is not about rooms.
    pub(crate) fn row_span(&self, reach: TimeRange, device: Option<&Device>) -> RowSpan {
        let range = self.grid.range();
        RowSpan {
            from: range.from(),
            to: range.to(),
            every: self.unit.map(CalendarUnit::as_str),
            tz: self.zone.name(),
            rollups_lack: self.lag(reach, device),
        }
    }

    /// Adds cache headers to an answer. A range that is over changes only by late readings. An answer that lacks
    /// readings is revalidated each time.
    pub(crate) fn cached(
        &self,
        call: &Call<'_, impl Store>,
        is_lacking: bool,
        response: Response,
    ) -> Response {
        cached(call, self.grid.range(), is_lacking, response)
    }
}

/// Adds cache headers to an answer about a range. While the range is not over, the answer is not cached.
pub(crate) fn cached(
    call: &Call<'_, impl Store>,
    range: TimeRange,
    is_lacking: bool,
    response: Response,
) -> Response {
    if range.to() > call.session.now {
        response
    } else if is_lacking {
        with_revalidation(call.request, response)
    } else {
        with_short_life(call.request, response)
    }
}

/// The range and the unit of the rows, and how far rollups lag.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RowSpan {
    from: Timestamp,
    to: Timestamp,
    every: Option<&'static str>,
    tz: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rollups_lack: Option<RollupLag>,
}

/// The range and the unit of the rows, and what they may lack.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Span {
    #[serde(flatten)]
    rows: RowSpan,
    /// Why devices that belong to the answer may be missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    rooms_lack: Option<RoomsLack>,
}

impl Span {
    /// Whether readings or devices may be missing that may soon be there.
    pub(crate) const fn is_lacking(&self) -> bool {
        self.rows.rollups_lack.is_some() || self.rooms_lack.is_some()
    }
}

/// The smallest range that contains two ranges.
pub(crate) fn hull(one: TimeRange, other: TimeRange) -> TimeRange {
    let hull = TimeRange::new(one.from().min(other.from()), one.to().max(other.to()));
    hull.expect("it holds both")
}

/// The kinds of items that the rows of devices are made from.
pub(crate) fn levels<'a>(values: impl Iterator<Item = &'a DeviceRows<'a>>) -> BTreeSet<Level> {
    values.flat_map(|device| device.gathered.levels.iter().copied()).collect()
}
