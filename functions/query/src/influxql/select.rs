//! Runs a `SELECT`: reads what it is about, device by device, and makes its answer. Knows no function of the language.

use std::collections::{BTreeMap, BTreeSet};

use domain::{DeviceId, RoomId, Timestamp};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use influxql::{Found, Outcome, Select, Selection, Wanted};
use runtime::registry::Snapshot;
use table::Invocation;

use super::density::Densities;
use super::extreme;
use super::failure::Failure;
use super::read::{Plan, read};
use crate::ports::Store;
use crate::registry::presence::{self, Knowledge};
use series::{DEVICE_CONCURRENCY, Grid, Horizon, KnownState, Lacking, may_have_been_in};

/// What every `SELECT` of a query works on.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) snapshot: &'a Snapshot,
    /// The retention policy of the request, for measurements that name none.
    pub(super) policy: Option<&'a str>,
    pub(super) horizon: &'a Horizon,
    pub(super) known_state: &'a KnownState,
    pub(super) densities: &'a Densities,
    pub(super) now: Timestamp,
}

/// Runs a `SELECT`.
pub(super) async fn select(
    store: &impl Store,
    context: &Context<'_>,
    select: &Select,
    invocation: &Invocation,
) -> Result<Outcome, Failure> {
    let Context { snapshot, policy, horizon, densities, now, .. } = *context;
    let Some(selection) = Selection::of(select, snapshot.devices.values(), policy, now)? else {
        return Ok(Vec::new().into());
    };
    let Selection { way, range, is_by_room, .. } = selection;
    let grid = Grid::between(range, selection.cuts.clone());
    let plan = Plan { way, range, grid, horizon, densities, is_by_room, now };
    let mut wanted = selection.wanted();
    let mut lag = None;
    // Which devices were in a room rollups tell, also where the values are those of readings.
    if plan.has_rollups() || is_by_room {
        let lacking = Lacking::read(store, horizon, now, invocation).await?;
        lag = lacking.of(range, None);
    }
    if is_by_room {
        wanted = without_absent(wanted, &selection, store, context, invocation).await?;
    }
    let found = Box::pin(read(store, &plan, &wanted, invocation)).await?;
    let ids = wanted.iter().map(|it| it.device.id().clone());
    let found: BTreeMap<DeviceId, Found> = ids.zip(found).collect();
    let mut answer = selection.answer();
    for mut group in selection.groups(&found) {
        let extremes = selection.extremes(&group);
        group.instant = extreme::instant(store, &plan, &extremes, invocation).await?;
        answer.add(group)?;
    }
    Ok(answer.finish(lag.map(|it| it.text()))?)
}

/// The most rooms for which the devices that were there are looked up. Beyond it all devices are read.
const MAX_ROOMS: usize = 50;

/// The devices that may have been in one of the rooms for which the condition may hold.
async fn without_absent<'a>(
    wanted: Vec<Wanted<'a>>,
    selection: &Selection<'a>,
    store: &impl Store,
    context: &Context<'_>,
    invocation: &Invocation,
) -> Result<Vec<Wanted<'a>>, Failure> {
    let Context { snapshot, horizon, known_state, now, .. } = *context;
    let range = selection.range;
    let rooms: Vec<_> =
        wanted.iter().map(|it| selection.rooms_of(it.device, snapshot.rooms.keys())).collect();
    let all: BTreeSet<&RoomId> = rooms.iter().flatten().flatten().collect();
    if all.len() > MAX_ROOMS {
        return Ok(wanted);
    }
    let known = (known_state, horizon);
    let knowledge = presence::knowledge(store, known, snapshot, range, now, invocation).await?;
    let seen = match knowledge {
        Knowledge::Noted => presence::seen(store, all, range, invocation).await?,
        Knowledge::AllAsked | Knowledge::NotedInPart | Knowledge::NotedAlone => BTreeMap::new(),
    };
    let asked = wanted.into_iter().zip(&rooms).map(|(it, rooms)| {
        let seen = &seen;
        Box::pin(async move {
            let Some(rooms) = rooms else { return Ok(Some(it)) };
            let is_now = it.device.place().room().is_some_and(|room| rooms.contains(room));
            let is_seen =
                |room: &RoomId| seen.get(room).is_some_and(|ids| ids.contains(it.device.id()));
            let is_there = match knowledge {
                Knowledge::Noted => is_now || rooms.iter().any(is_seen),
                // Of a device that is asked in vain nothing is lost but units.
                Knowledge::NotedInPart | Knowledge::NotedAlone => true,
                Knowledge::AllAsked => {
                    may_have_been_in(store, it.device, rooms, range, horizon, invocation).await?
                }
            };
            Ok::<_, Failure>(is_there.then_some(it))
        })
    });
    let asked: Vec<_> = asked.collect();
    let kept: Vec<_> = stream::iter(asked).buffered(DEVICE_CONCURRENCY).try_collect().await?;
    Ok(kept.into_iter().flatten().collect())
}
