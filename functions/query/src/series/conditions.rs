//! `conditions`: when devices' metrics had the values asked for. Folds nothing.
//!
//! `request` reads what is asked, `plain` finds the matching quarters of an hour of a device among all of
//! them, `exact` refines episodes by readings, and `answer` shows them.

mod answer;
mod exact;
mod plain;
mod plan;
mod request;
#[cfg(test)]
mod tests;

use api::{Problem, ProblemKind, Response};
use domain::{Device, DeviceId, Episode, Timestamp, episodes};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use runtime::clock::Clock;
use runtime::http::Call;
use runtime::registry::CachedRegistry;
use table::{
    Invocation, LookUpRegistry, PageRegistry, QueryReadings, ReadRegistry, ReadRollupState,
    ReadRollups,
};

use super::failure::Failure;
use super::gather::{Ask, Level, MAX_ROLLUPS};
use super::grid::Grid;
use super::horizon::KnownState;
use super::members::DEVICE_CONCURRENCY;
use super::{About, Subject, cached, known};
use answer::Answer;
use plan::Explanation;
use request::ConditionsRequest;

/// The largest number of quarters of an hour of all devices that one request is about.
const MAX_QUARTERS: usize = 10 * MAX_ROLLUPS;

/// `GET .../conditions`
pub(crate) async fn conditions(
    about: About,
    (registry, known_state): (&CachedRegistry<impl Clock>, &KnownState),
    store: &(
         impl ReadRegistry
         + PageRegistry
         + LookUpRegistry
         + QueryReadings
         + ReadRollups
         + ReadRollupState
     ),
    now: Timestamp,
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    let request = ConditionsRequest::of(call.request, &call.params, now)?;
    let subject = Subject::of(about, registry, store, call).await?;
    let horizon = known_state.horizon(store, now, call.invocation).await;
    let horizon = horizon.map_err(|error| call.failed(&error))?;
    let grid = Grid::quarters(request.range);
    let devices = subject.devices(store, &grid, &horizon, call).await?;
    known(&request.names(), &devices)?;
    let has_all = |device: &&Device| {
        request.conditions.iter().all(|it| device.metrics.contains_key(&it.metric))
    };
    let devices: Vec<&Device> = devices.into_iter().filter(has_all).collect();
    ensure_answerable(devices.len(), &grid)?;
    let ask = |device| Ask {
        device,
        rooms: subject.rooms.as_ref(),
        grid: &grid,
        horizon: &horizon,
        coarsest: Level::Quarters,
        now,
    };
    let asks: Vec<Ask<'_>> = devices.iter().map(|device| ask(*device)).collect();
    let found = find(store, &asks, &request, call.invocation).await;
    let found = found.map_err(|failure| failure.problem(call))?;
    let explain = request.is_explained.then(|| Explanation::of(&asks, call.invocation));
    let answer = Answer {
        request: &request,
        devices: devices.iter().map(|device| &device.id).collect(),
        episodes: &found,
    };
    Ok(cached(call, &grid, now, answer.respond(explain)?))
}

/// The episodes of all devices, by their begin.
async fn find<'a>(
    store: &(impl ReadRollups + QueryReadings),
    asks: &[Ask<'a>],
    request: &ConditionsRequest,
    invocation: &Invocation,
) -> Result<Vec<(&'a DeviceId, Episode)>, Failure> {
    let asked = asks.iter().map(|ask| {
        Box::pin(async move {
            let matching = plain::matching(store, ask, request, invocation).await?;
            let matching: Vec<_> = matching.into_iter().collect();
            let mut found = episodes(&matching);
            if request.is_exact {
                found = exact::refined(store, ask, request, found, invocation).await?;
            }
            Ok::<_, Failure>(found.into_iter().map(|it| (&ask.device.id, it)).collect::<Vec<_>>())
        })
    });
    let asked: Vec<_> = asked.collect();
    let found: Vec<Vec<_>> = stream::iter(asked).buffered(DEVICE_CONCURRENCY).try_collect().await?;
    let mut found: Vec<_> = found.into_iter().flatten().collect();
    found.sort_by_key(|(device, episode)| (episode.range.from(), *device));
    Ok(found)
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
