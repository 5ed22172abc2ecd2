//! `events`: the notable steps of a device's counters, such as resets. Finds no step itself.

use api::{Problem, Response};
use domain::Flags;
use serde::Serialize;
use series::{CounterSteps, DeviceQuestion, Level, RollupLag, events};

use super::answer::write::respond;
use super::question::plan::RowPlan;
use super::question::request::{QueryScope, SeriesRequest, metric_names};
use crate::failure::problem;
use crate::ports::Store;
use crate::registry::lookup;
use crate::shared_state::Call;

/// `GET /devices/{id}/events`
pub(crate) async fn device_events(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let request = SeriesRequest::parse(call)?;
    let mut device = lookup::device(call).await?;
    // A device that was just read from the table, without the registry, is up to date.
    let is_old = !call.shared.registry.would_read_many();
    if request.metrics.is_some() && !request.has_all_metrics(&[&device]) && is_old {
        let snapshot = call.shared.registry.snapshot(call.session, call.log).await?;
        if call.shared.registry.has_news(&snapshot, call.session, call.log).await? {
            device = lookup::device(call).await?;
        }
    }

    let plan = RowPlan::of(&request, QueryScope::Device, call).await?;
    let names = metric_names(request.metrics.as_deref(), &[&device])?;
    let question = DeviceQuestion { coarsest: Level::Days, ..plan.question(&device) };
    let CounterSteps { events, has_more } =
        events(call.session, &question, &names, Flags::ALL).await.map_err(problem)?;

    let rollups_lack = plan.lag(plan.grid.range(), Some(&device));
    let is_lacking = rollups_lack.is_some();
    let columns = || EVENT_COLUMNS.map(ToOwned::to_owned).to_vec();
    let more = More { has_more, rollups_lack };
    let response = respond(request.format, columns, events.into_iter(), &more)?;
    Ok(plan.cached(call, is_lacking, response))
}

/// The members beside the events.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct More {
    has_more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    rollups_lack: Option<RollupLag>,
}

/// The columns of an event in CSV.
const EVENT_COLUMNS: [&str; 14] = [
    "timestamp",
    "device_id",
    "metric",
    "events",
    "amount",
    "size",
    "from_timestamp",
    "from_value",
    "to_timestamp",
    "to_value",
    "until",
    "amount_if_wrapped",
    "verdict",
    "verdicts",
];
