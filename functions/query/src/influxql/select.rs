//! Runs a `SELECT`: first the subqueries, then the devices one by one, then the answer. Knows no function of the
//! language.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;

use domain::{Device, DeviceId, RoomId, Timestamp};
use influxql::{
    DeviceData, DeviceSelection, Epoch, Extreme, RoomTexts, Rows, Select, SelectPlan,
    StatementResult, WantedDevice,
};
use runtime::registry::RegistrySnapshot;
use table::Session;

use super::failure::Failure;
use super::read::{MAX_UNITS, Reads, read};
use crate::ports::Store;
use crate::registry::presence::{self, RoomsLack};
use series::{Densities, Grid, Horizon, Level, ReadAllowance, UnfoldedChanges, readings};

/// Data that every `SELECT` of a query uses.
pub(super) struct QueryContext<'a, S> {
    pub(super) session: Session<'a, S>,
    pub(super) snapshot: &'a RegistrySnapshot,
    pub(super) rooms: &'a RoomTexts<'a>,
    pub(super) horizon: &'a Horizon,
    pub(super) densities: &'a Densities,
    pub(super) epoch: Epoch,
}

/// Runs a `SELECT`.
pub(super) async fn select(
    context: &QueryContext<'_, impl Store>,
    select: &Select,
) -> Result<StatementResult, Failure> {
    let devices: Vec<&Device> = context.snapshot.devices.values().collect();
    let Some(plan) = SelectPlan::of(select, &devices, context.rooms, context.session.now)? else {
        return Ok(Vec::new().into());
    };
    let allowance = ReadAllowance::of(MAX_UNITS, context.densities);
    let mut run = SelectRun { context, allowance, warning: None };
    let rows = run.rows(&plan).await?;
    Ok(StatementResult::with_warning(plan.series(rows, context.epoch), run.warning))
}

/// Whether a registered device fits a `SELECT`.
pub(super) fn names_a_device(
    select: &Select,
    snapshot: &RegistrySnapshot,
    now: Timestamp,
) -> Result<bool, Failure> {
    let devices: Vec<&Device> = snapshot.devices.values().collect();
    let rooms = RoomTexts::of(snapshot.rooms.values());
    Ok(SelectPlan::of(select, &devices, &rooms, now)?.is_some())
}

/// A `SELECT` while it runs.
struct SelectRun<'r, S> {
    context: &'r QueryContext<'r, S>,
    /// The read units that all subqueries share.
    allowance: ReadAllowance<'r>,
    warning: Option<String>,
}

impl<S: Store> SelectRun<'_, S> {
    /// The rows of a statement. Its subqueries run first.
    fn rows<'f>(
        &'f mut self,
        plan: &'f SelectPlan<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<Rows>, Failure>> + Send + 'f>> {
        Box::pin(async move {
            match plan {
                SelectPlan::Devices(selection) => self.of_devices(selection).await,
                SelectPlan::Statements(statements) => {
                    let mut found = Vec::new();
                    for inner in &statements.inner {
                        found.extend(self.rows(inner).await?);
                    }
                    Ok(statements.rows(&found)?)
                }
            }
        })
    }

    async fn of_devices(&mut self, selection: &DeviceSelection<'_>) -> Result<Vec<Rows>, Failure> {
        let QueryContext { session, horizon, .. } = *self.context;
        let DeviceSelection { way, range, is_by_room, .. } = *selection;
        let grid = Grid::between(range, selection.cuts.clone());
        let reads = Reads { session, way, range, grid, horizon, is_by_room };

        let mut wanted = selection.wanted();
        // By room, rollups matter even if the values come from readings: they say which devices were there.
        let mut lacking = None;
        if reads.has_rollups() || is_by_room {
            lacking = Some(UnfoldedChanges::read(session, horizon).await?);
        }

        if is_by_room {
            wanted = without_absent(wanted, selection, self.context).await?;
        }

        let found = Box::pin(read(&reads, &wanted, &mut self.allowance)).await?;
        let lag = lacking.and_then(|unfolded| unfolded.lag_of(range, None)).map(|lag| lag.text());
        let rooms_lack = || {
            let lack = presence::lack_of_notes(horizon, range, session.now);
            lack.filter(|_| is_by_room).map(RoomsLack::text)
        };
        self.warning = lag.or_else(rooms_lack).or(self.warning.take());

        let ids = wanted.iter().map(|device| device.device.id().clone());
        let found: BTreeMap<DeviceId, DeviceData> = ids.zip(found).collect();
        let mut answer = selection.answer();
        for mut group in selection.groups(&found) {
            let extremes = selection.extremes(&group);
            group.instant = earliest_instant(&reads, &extremes).await?;
            answer.add(group)?;
        }

        Ok(answer.finish()?)
    }
}

/// The earliest time at which a value was smallest or largest; `None` without values. A rollup does not have this time,
/// so its readings are read.
async fn earliest_instant(
    reads: &Reads<'_, impl Store>,
    extremes: &[Extreme<'_>],
) -> Result<Option<Timestamp>, Failure> {
    let mut earliest: Option<Timestamp> = None;
    for Extreme { range, device, metric, value } in extremes {
        if earliest.is_some_and(|earliest| earliest < range.from()) {
            break;
        }

        let question = reads.question(device, Level::Readings);
        let readings = readings(reads.session, &question, *range).await?;
        let found = readings.iter().find(|reading| reading.metrics().get(*metric) == Some(*value));
        // The readings of a rollup may have expired. Then the rollup's start is the best known timestamp.
        let at = found.map_or(range.from(), |reading| reading.at);
        earliest = Some(earliest.map_or(at, |earliest| earliest.min(at)));
    }

    Ok(earliest)
}

/// For at most this many rooms, the devices that were seen in them are looked up. For more rooms, all devices are read.
const MAX_ROOMS: usize = 50;

/// Keeps the devices that may have been in a room for which the condition can hold.
async fn without_absent<'a>(
    wanted: Vec<WantedDevice<'a>>,
    selection: &DeviceSelection<'a>,
    context: &QueryContext<'_, impl Store>,
) -> Result<Vec<WantedDevice<'a>>, Failure> {
    let Some(rooms) = selection.rooms_by_device(context.rooms, MAX_ROOMS) else {
        return Ok(wanted);
    };

    let all: BTreeSet<&RoomId> = rooms.values().flatten().collect();
    let seen = presence::seen_in_each(context.session, all, selection.range).await?;

    let may_have_been_there = |wanted: &WantedDevice<'_>| {
        let device = wanted.device;
        let Some(rooms) = rooms.get(device.id()) else { return true };
        let is_now = device.place().room().is_some_and(|room| rooms.contains(room));
        let is_seen = |room: &RoomId| presence::may_have_seen(seen.get(room), device.id());
        is_now || rooms.iter().any(is_seen)
    };
    Ok(wanted.into_iter().filter(may_have_been_there).collect())
}
