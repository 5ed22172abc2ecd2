//! `series`, `energy`, `events` and `conditions`: what devices, rooms and homes measured, and when.
//!
//! `request` parses the parameters. `plan` has the rows and the time up to which there are rollups. `asked` finds the
//! devices. `groups` reads devices whose rows belong together, and `summing` the devices of a sum of energy. `columns`
//! chooses the columns. `answer`, `energy_answer` and `events` show the result. Computes nothing.

pub(crate) mod answer;
mod asked;
mod columns;
pub(crate) mod conditions;
pub(crate) mod cost;
mod energy;
pub(crate) mod energy_answer;
pub(crate) mod events;
mod groups;
mod plan;
mod request;
mod rest;
mod summing;
mod verdicts;
mod write;

use api::{Problem, Response};
use domain::{Device, DeviceId, MetricRule};
use runtime::clock::Clock;
use runtime::http::Call;
use series::RowReader;

use crate::failure::problem;
use crate::handlers::Handlers;
use crate::ports::Store;
use answer::SeriesAnswer;
use asked::{AskedDevices, DeviceSearch};
use columns::MetricColumns;
pub(crate) use conditions::conditions;
pub(crate) use cost::{cost, device_cost};
pub(crate) use energy::energy;
pub(crate) use events::device_events;
use groups::{DeviceGroup, GroupMeters, GroupOf, RoomsOfRows};
use plan::RowPlan;
pub(crate) use request::QueryScope;
use request::{Grouping, SeriesRequest, metric_names};
pub(crate) use verdicts::check_verdicts;

/// `GET .../series`: metrics of a device, a room, a home or all, in rows of the calendar.
pub(crate) async fn series(
    handlers: &Handlers<impl Clock>,
    scope: QueryScope,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let now = call.session.now;
    let request = SeriesRequest::parse(call.request, &call.params, now)?;
    let plan = RowPlan::of(&request, scope, &handlers.known_state, call).await?;
    let is_answerable = |_: &AskedDevices, devices: &[&Device]| request.has_all_metrics(devices);
    let search = DeviceSearch {
        is_by_room: request.grouping == Grouping::ByRoom,
        ..DeviceSearch::of(scope, &plan)
    };
    let asked = AskedDevices::find(search, handlers, is_answerable, call).await?;
    let devices = asked.devices()?;
    let requested = metric_names(request.metrics.as_deref(), &devices)
        .map_err(|unknown| plan.with_lag(unknown, scope))?;

    let groups = asked.groups(request.grouping, &devices);
    let is_combined = groups.first().is_some_and(|group| group.of == GroupOf::All);
    // The columns of all devices together. Each group below has columns of its own.
    let all_columns = MetricColumns::choose(&request, &requested, &devices, is_combined)?;
    let names = all_columns.names();
    let rooms = RoomsOfRows(groups.iter().filter_map(DeviceGroup::room).collect());
    let behind = |id: &DeviceId| asked.behind(id);
    let mut reader = RowReader::of(call.session, &handlers.densities);

    // The cost of all groups is checked before a reading is read.
    let rows = groups.iter().flat_map(|group| group.rows(&names, &plan));
    let rows: Vec<_> = rows.collect();
    Box::pin(reader.check_and_charge(&rows)).await.map_err(problem)?;

    let mut answer = SeriesAnswer::new(&request, &plan, all_columns, asked.is_shared());
    for group in &groups {
        let columns = group.columns(&request, &names)?;
        let needs_neighbours = |rule: &MetricRule| columns.needs_neighbours(rule);
        let mut values = Box::pin(group.read(call.session, &names, needs_neighbours, &plan))
            .await
            .map_err(problem)?;
        answer.note_read(&values);
        if scope == QueryScope::All && request.grouping == Grouping::ByRoom {
            answer.note_without_room(group, &rooms, &mut values);
        }

        // Meters are found before `retain` drops silent devices: a meter of the room may be silent in this range.
        let mut meters = GroupMeters::default();
        if group.of.is_combined() {
            let found = group.behind_meters(&values, columns.sums(), behind, &plan, &reader);
            meters = Box::pin(found).await.map_err(problem)?;
        }
        values.retain(|device| group.was_present(device));

        // The rows have only the columns of the remaining devices.
        let present = DeviceGroup {
            devices: values.iter().map(|device| device.device).collect(),
            ..group.clone()
        };
        answer.add(group, present.columns(&request, &names)?, values, meters);
    }

    let (response, is_lacking) = answer.respond(&asked)?;
    Ok(plan.cached(call, is_lacking, response))
}
