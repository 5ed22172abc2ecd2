//! `series`, `energy`, `events` and `conditions`: what devices, rooms and homes measured, and when.
//!
//! `question` has the parameters, rows and devices of a request. `answer` shows the result. Between the two, `summing`
//! reads the devices of a sum of energy. Computes nothing.

pub(crate) mod answer;
pub(crate) mod conditions;
pub(crate) mod cost;
mod energy;
pub(crate) mod events;
mod question;
mod summing;
mod verdicts;

use ::series::ReadAllowance;
use api::{Problem, Response};
use domain::{Device, DeviceId, MetricRule};

use crate::failure::problem;
use crate::ports::Store;
use crate::shared_state::Call;
use answer::columns::MetricColumns;
use answer::rows::SeriesAnswer;
pub(crate) use conditions::conditions;
pub(crate) use cost::{cost, device_cost};
pub(crate) use energy::energy;
pub(crate) use events::device_events;
use question::devices::{DeviceSearch, QuestionDevices};
use question::groups::{GroupOf, RoomsOfRows};
use question::plan::RowPlan;
pub(crate) use question::request::QueryScope;
use question::request::{Grouping, SeriesRequest, metric_names};
pub(crate) use verdicts::check_verdicts;

/// `GET .../series`: metrics of a device, a room, a home or all, in rows of the calendar.
pub(crate) async fn series(
    scope: QueryScope,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let request = SeriesRequest::parse(call)?;
    let plan = RowPlan::of(&request, scope, call).await?;

    let is_answerable = |_: &QuestionDevices, devices: &[&Device]| request.has_all_metrics(devices);
    let search = DeviceSearch {
        is_by_room: request.grouping == Grouping::ByRoom,
        ..DeviceSearch::of(scope, &plan)
    };
    let found = QuestionDevices::find(search, is_answerable, call).await?;
    let devices = found.devices()?;
    let requested = metric_names(request.metrics.as_deref(), &devices)
        .map_err(|unknown| plan.with_lag(unknown, scope))?;

    let groups = found.groups(request.grouping, &devices);
    // Values that share a row need one unit. Rooms have rows of their own, so their units may differ.
    let is_one_row_for_all = groups.first().is_some_and(|group| group.of == GroupOf::Together);
    // The columns of all devices. By room, they are the header of CSV and the units of the answer. Otherwise `add`
    // replaces them with the columns of the only group.
    let header = MetricColumns::choose(&request, &requested, &devices, is_one_row_for_all)?;
    // The requested metrics to which at least one function applies.
    let names = header.names();
    let rooms_of_all = RoomsOfRows::of_all(&groups);
    let behind = |id: &DeviceId| found.behind(id);

    // The cost of several devices is checked before a reading is read; `gather` limits a single device.
    let reads = groups.iter().flat_map(|group| group.planned_reads(&names, &plan));
    let reads: Vec<_> = reads.collect();
    let mut allowance = ReadAllowance::of_rows(&call.shared.densities);
    Box::pin(allowance.charge(call.session, &reads)).await.map_err(problem)?;

    let mut answer = SeriesAnswer::new(&request, &plan, header, found.is_shared());
    for group in &groups {
        let needs_neighbours = |rule: &MetricRule| request.needs_neighbours(rule);
        let read = group.read(call.session, &names, needs_neighbours, &plan);
        let mut rows = Box::pin(read).await.map_err(problem)?;
        answer.note_read(&rows);
        if let Some(rooms) = &rooms_of_all {
            answer.note_outside_rooms(group, rooms, &rows);
            rows.retain(|device| rooms.has_rows(group, device));
        }

        let columns = group.columns(&request, &names, &rows)?;
        // A meter may be silent in this range and still exclude the devices behind it from the sums. So absent devices
        // are dropped only after the exclusions are found.
        let exclusions = group.sum_exclusions(&rows, columns.sums(), behind, &plan, call.session);
        let exclusions = Box::pin(exclusions).await.map_err(problem)?;
        rows.retain(|device| group.was_present(device));

        answer.add(group, columns, rows, exclusions);
    }

    let (response, is_lacking) = answer.respond(&found)?;
    Ok(plan.cached(call, is_lacking, response))
}
