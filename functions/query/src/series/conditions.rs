//! `conditions`: the episodes in which devices' metrics had the requested values. Finds no episode itself.
//!
//! `request` parses the parameters, and `answer` shows the episodes.

pub(crate) mod answer;
mod request;

use api::{Problem, ProblemKind, Response};
use domain::{Device, MetricName};
use series::conditions::{Explanation, find};
use series::{DeviceQuestion, Grid, Level, MAX_ROLLUPS, OutOfMeans, UnfoldedChanges};

use super::question::devices::{DeviceSearch, QuestionDevices};
use super::question::plan::cached;
use super::question::request::{QueryScope, metric_names};
use crate::failure::problem;
use crate::ports::Store;
use crate::shared_state::Call;
use answer::ConditionsAnswer;
use request::ConditionsRequest;

/// The maximum number of quarters of an hour in one request, over all devices.
const MAX_QUARTERS: usize = 10 * MAX_ROLLUPS;

/// `GET .../conditions`
pub(crate) async fn conditions(
    scope: QueryScope,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let now = call.session.now;
    let request = ConditionsRequest::of(call.request, &call.params, now)?;
    let horizon = call.shared.rollup_state.horizon(call.session).await?;
    let lacking = UnfoldedChanges::read(call.session, &horizon).await?;

    let names = request.search.names();
    let range = request.search.range;
    let have_all =
        |_: &QuestionDevices, devices: &[&Device]| metric_names(Some(&names), devices).is_ok();
    let search = DeviceSearch { scope, horizon: &horizon, range, is_by_room: false };
    let found = QuestionDevices::find(search, have_all, call).await?;
    let devices = found.devices()?;
    metric_names(Some(&names), &devices)?;

    let has_all = |device: &&Device| names.iter().all(|name| device.metrics().contains_key(name));
    let devices = devices.into_iter().filter(has_all).collect();
    let (devices, left_out) =
        if found.is_shared() { of_rooms(devices, &names) } else { (devices, Vec::new()) };
    let grid = Grid::quarters(range);
    ensure_answerable(devices.len(), &grid)?;

    let rooms = found.rooms.as_ref();
    let question = |device| DeviceQuestion::of(device, &grid, &horizon, Level::QuarterHours, now);
    let questions: Vec<_> =
        devices.iter().map(|device| DeviceQuestion { rooms, ..question(*device) }).collect();
    let (episodes, plan) =
        Box::pin(find(call.session, &questions, &request.search)).await.map_err(problem)?;

    let before = found.of_rooms.units + UnfoldedChanges::READ_UNITS;
    let explanation = || Explanation::of(&questions, plan, before, call.session.invocation);
    let explain = request.is_explained.then(explanation);
    let answer = ConditionsAnswer {
        request: &request,
        devices: devices.iter().map(|device| device.id()).collect(),
        episodes: &episodes,
        left_out,
        lag: lacking.lag_of(grid.range(), found.device.as_ref().map(Device::id)),
        rooms_lack: found.of_rooms.lack,
    };
    let is_lacking = answer.lag.is_some() || answer.rooms_lack.is_some();
    Ok(cached(call, grid.range(), is_lacking, answer.respond(explain)?))
}

/// Keeps the devices whose metrics describe their rooms, and returns the metrics that are left out. A freezer would say
/// that the room is cold.
fn of_rooms<'a>(
    devices: Vec<&'a Device>,
    names: &'a [MetricName],
) -> (Vec<&'a Device>, Vec<OutOfMeans<'a>>) {
    let mut left_out = Vec::new();
    let mut is_of_room = |device: &&'a Device| {
        let before = left_out.len();
        left_out.extend(names.iter().filter_map(|name| OutOfMeans::of(device, name)));
        left_out.len() == before
    };
    let devices = devices.into_iter().filter(|device| is_of_room(device)).collect();
    (devices, left_out)
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
