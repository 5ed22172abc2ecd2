//! `conditions`: when devices' metrics had the values asked for. Folds nothing.
//!
//! `request` reads what is asked. `plan` chooses how the matching quarters of an hour are found: `plain` among
//! all of them, `indexed` by the index. `exact` refines episodes by readings, and `answer` shows them.

mod answer;
mod exact;
mod indexed;
mod plain;
mod plan;
mod request;
#[cfg(test)]
mod tests;

use api::{Problem, ProblemKind, Response};
use chrono::TimeDelta;
use domain::{
    Device, DeviceId, Episode, MetricName, Order, Quarter, TimeRange, Timestamp, episodes,
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use runtime::clock::Clock;
use runtime::http::Call;
use runtime::registry::CachedRegistry;
use table::Invocation;

use super::failure::Failure;
use super::gather::{Ask, Level, MAX_READ, MAX_ROLLUPS};
use super::grid::{Grid, uncovered};
use super::horizon::KnownState;
use super::lacking::Lacking;
use super::members::DEVICE_CONCURRENCY;
use super::not_combined::NotCombined;
use super::{About, Subject, cached, known};
use crate::ports::Store;
use answer::Answer;
use indexed::Indexed;
use plain::Matching;
use plan::{Explanation, IndexPlan};
use request::ConditionsRequest;

/// The largest number of quarters of an hour of all devices that one request is about.
const MAX_QUARTERS: usize = 10 * MAX_ROLLUPS;

/// `GET .../conditions`
pub(crate) async fn conditions(
    about: About,
    (registry, known_state): (&CachedRegistry<impl Clock>, &KnownState),
    store: &impl Store,
    now: Timestamp,
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    let request = ConditionsRequest::of(call.request, &call.params, now)?;
    let mut subject = Subject::of(about, registry, store, call).await?;
    let horizon = known_state.horizon(store, now, call.invocation).await;
    let horizon = horizon.map_err(|error| call.failed(&error))?;
    let lacking = Lacking::read(store, &horizon, now, call.invocation).await;
    let lacking = lacking.map_err(|error| call.failed(&error))?;
    let grid = Grid::quarters(request.range);
    let have_all = |_: &Subject, devices: &[&Device]| known(&request.names(), devices).is_ok();
    let (known_here, asked) = ((registry, known_state), (request.range, now));
    subject.find_devices(known_here, store, &horizon, asked, have_all, call).await?;
    let devices = subject.devices(call)?;
    known(&request.names(), &devices)?;
    let has_all = |device: &&Device| {
        request.conditions.iter().all(|it| device.metrics().contains_key(&it.metric))
    };
    let devices = devices.into_iter().filter(has_all).collect();
    let names = request.names();
    let (devices, left_out) =
        if subject.is_shared() { of_rooms(devices, &names) } else { (devices, Vec::new()) };
    ensure_answerable(devices.len(), &grid)?;
    let ask = |device| Ask {
        device,
        rooms: subject.rooms.as_ref(),
        is_by_room: false,
        max_read: MAX_READ,
        grid: &grid,
        horizon: &horizon,
        coarsest: Level::Quarters,
        now,
    };
    let asks: Vec<Ask<'_>> = devices.iter().map(|device| ask(*device)).collect();
    let found = Box::pin(find(store, &asks, &request, call.invocation)).await;
    let (found, plan) = found.map_err(|failure| failure.problem(call))?;
    let explain = request.is_explained.then(|| Explanation::of(&asks, plan, call.invocation));
    let answer = Answer {
        request: &request,
        devices: devices.iter().map(|device| device.id()).collect(),
        episodes: &found,
        left_out,
        lag: lacking.of(grid.range(), subject.device.as_ref().map(Device::id)),
        knowledge: subject.knowledge,
    };
    let is_lacking = answer.lag.is_some();
    Ok(cached(call, &grid, is_lacking, now, answer.respond(explain)?))
}

/// The devices whose metrics are those of their rooms, and what is left out: beside the others a freezer would
/// say that the room is cold.
fn of_rooms<'a>(
    devices: Vec<&'a Device>,
    names: &'a [MetricName],
) -> (Vec<&'a Device>, Vec<NotCombined<'a>>) {
    let mut left_out = Vec::new();
    let mut is_of_room = |device: &&'a Device| {
        let before = left_out.len();
        left_out.extend(names.iter().filter_map(|name| NotCombined::of(device, name)));
        left_out.len() == before
    };
    let devices = devices.into_iter().filter(|device| is_of_room(device)).collect();
    (devices, left_out)
}

/// The episodes of all devices, by their begin, and what the index has to do with them.
async fn find<'a>(
    store: &impl Store,
    asks: &[Ask<'a>],
    request: &ConditionsRequest,
    invocation: &Invocation,
) -> Result<(Vec<(&'a DeviceId, Episode)>, IndexPlan), Failure> {
    asks.iter().try_for_each(Ask::check)?;
    let mut plan = IndexPlan::default();
    let matching = match by_index(store, asks, request, &mut plan, invocation).await? {
        Ok(matching) => matching,
        Err(reason) => {
            plan.reason = Some(reason);
            let whole = |ask: &Ask<'_>| vec![ask.grid.range()];
            by_rollups(store, asks, whole, request, invocation).await?
        }
    };
    let mut found = Vec::new();
    for (ask, matching) in asks.iter().zip(matching) {
        let matching: Vec<_> = matching.into_iter().collect();
        let mut of_device = episodes(&matching);
        if request.is_exact {
            of_device = exact::refined(store, ask, request, of_device, invocation).await?;
        }
        found.extend(of_device.into_iter().map(|it| (ask.device.id(), it)));
    }
    found.sort_by_key(|(device, episode)| (episode.range.from(), *device));
    Ok((found, plan))
}

/// What matches, by the rollups of parts of what is asked of each device.
async fn by_rollups(
    store: &impl Store,
    asks: &[Ask<'_>],
    parts: impl Fn(&Ask<'_>) -> Vec<TimeRange>,
    request: &ConditionsRequest,
    invocation: &Invocation,
) -> Result<Vec<Matching>, Failure> {
    let asked = asks.iter().map(|ask| {
        let parts = parts(ask);
        Box::pin(async move {
            let mut matching = Matching::new();
            for part in parts {
                matching.extend(plain::matching(store, ask, part, request, invocation).await?);
            }
            Ok::<_, Failure>(matching)
        })
    });
    let asked: Vec<_> = asked.collect();
    stream::iter(asked).buffered(DEVICE_CONCURRENCY).try_collect().await
}

/// What matches, by the index, and by rollups where it may not be complete; else why it is not used.
async fn by_index(
    store: &impl Store,
    asks: &[Ask<'_>],
    request: &ConditionsRequest,
    plan: &mut IndexPlan,
    invocation: &Invocation,
) -> Result<Result<Vec<Matching>, String>, Failure> {
    if let Some(reason) = plan::unsuitable(request, store.has_conditions_index()) {
        return Ok(Err(reason.to_owned()));
    }
    let before = invocation.read_units();
    // As it is this moment: by an older schema the index finds nothing of what is folded by a newer one.
    let stored = store.conditions_schema(invocation).await?;
    let (boxed, budget) = match plan::choose(stored.as_ref(), request, asks, plan) {
        Ok(chosen) => chosen,
        Err(reason) => return Ok(Err(reason)),
    };
    let mut indexed = Vec::new();
    for ask in asks {
        let Some(range) = indexed_range(ask) else {
            return Ok(Err(format!("the rollups of {} are too new", ask.device.id())));
        };
        if !has_oldest(store, ask, range, invocation).await? {
            return Ok(Err(format!("rollups of {} have expired", ask.device.id())));
        }
        indexed.push(Indexed { ask, range });
    }
    // What has been read to get here is a part of the index's cost.
    let budget = budget - (invocation.read_units() - before);
    let matching = indexed::matching(store, &indexed, &boxed, budget, invocation).await?;
    plan.consumed = invocation.read_units() - before;
    let Some(mut matching) = matching else {
        return Ok(Err("the index has cost a fifth of all rollups".to_owned()));
    };
    let rest = |ask: &Ask<'_>| uncovered(ask.grid.range(), indexed_range(ask));
    let others = by_rollups(store, asks, rest, request, invocation).await?;
    for (matching, others) in matching.iter_mut().zip(others) {
        matching.extend(others);
    }
    plan.consumed = invocation.read_units() - before;
    Ok(Ok(matching))
}

/// The time before the newest rollup in which the index may not have all of them yet.
const MAX_DELAY: TimeDelta = TimeDelta::hours(1);

/// The part of what is asked of a device that the index has.
fn indexed_range(ask: &Ask<'_>) -> Option<TimeRange> {
    let rolled_up = ask.rolled_up()?;
    let sealed = ask.horizon.rolled_up(ask.device.id())?.to();
    TimeRange::new(rolled_up.from(), rolled_up.to().min(sealed.saturating_add(-MAX_DELAY))).ok()
}

/// Whether the device's rollups of 15 minutes reach back as far as those of days say. Where they have
/// expired the index says nothing, and the rollups say from when on there are some.
async fn has_oldest(
    store: &impl Store,
    ask: &Ask<'_>,
    range: TimeRange,
    invocation: &Invocation,
) -> Result<bool, Failure> {
    let zone = ask.horizon.zone();
    let dates = (zone.date(range.from()), zone.date(range.last()));
    let order = Order::Ascending;
    let days = store.days(ask.device.id(), dates, order, 1, invocation).await?;
    let first = days.iter().flat_map(|day| day.rollup.metrics.values()).map(|it| it.first.at).min();
    let Some(first) = first.filter(|first| range.contains(*first)) else { return Ok(true) };
    let quarter = Quarter::of(first).range();
    let found = store.quarters(ask.device.id(), quarter, false, invocation).await?;
    Ok(found.iter().any(|it| !it.is_expired(ask.now)))
}

fn ensure_answerable(devices: usize, grid: &Grid) -> Result<(), Problem> {
    if devices * grid.rows().len() <= MAX_QUARTERS {
        return Ok(());
    }
    let detail = format!(
        "This is about {} quarters of an hour of {devices} devices, and one request answers for at \
         most {MAX_QUARTERS} of all devices together. Narrow from and to, or ask device by device.",
        grid.rows().len()
    );
    Err(Problem::new(ProblemKind::Unanswerable, detail))
}
