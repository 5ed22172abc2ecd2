//! `energy`: the kWh of devices, rooms and homes. Shows nothing itself.

use api::{Problem, Response};
use domain::{Device, MetricName};
use series::ReadAllowance;

use super::answer::energy::EnergyAnswer;
use super::question::devices::{DeviceSearch, QuestionDevices};
use super::question::plan::RowPlan;
use super::question::request::{Grouping, QueryScope, SeriesRequest, sent};
use super::summing::Summing;
use crate::failure::problem;
use crate::ports::Store;
use crate::shared_state::Call;

/// `GET .../energy`
pub(crate) async fn energy(
    scope: QueryScope,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let request = SeriesRequest::parse(call)?;
    let metric = request.only_metric()?;
    let plan = RowPlan::of(&request, scope, call).await?;

    let has_one =
        |found: &QuestionDevices, devices: &[&Device]| !found.metered(devices, metric).is_empty();
    let search = DeviceSearch::of(scope, &plan);
    let found = QuestionDevices::find(search, has_one, call).await?;
    let devices = found.devices()?;
    let metered = found.metered(&devices, metric);
    if metered.is_empty() {
        return Err(plan.with_lag(without_energy(scope, metric, &devices), scope));
    }

    let [group] = &found.groups(Grouping::Together, &devices)[..] else {
        unreachable!("together the devices are one group")
    };
    let summing = Summing { found: &found, group, plan: &plan, is_apart: request.is_apart() };
    let allowance = ReadAllowance::of_rows(&call.shared.densities);
    let sum = Box::pin(summing.read(metered, allowance, call.session)).await.map_err(problem)?;

    let mut events = None;
    if request.has_events {
        events = Some(Box::pin(summing.events(&sum, call.session)).await.map_err(problem)?);
    }

    let span = found.span(&plan, sum.reach);
    let is_lacking = span.is_lacking();
    let is_shared = found.is_shared();
    let answer = EnergyAnswer { request: &request, plan: &plan, sum: &sum, is_shared };
    Ok(plan.cached(call, is_lacking, answer.respond(span, events.as_ref())?))
}

fn without_energy(
    scope: QueryScope,
    requested: Option<&MetricName>,
    devices: &[&Device],
) -> Problem {
    let whose = match scope {
        QueryScope::Device => "the device",
        QueryScope::Room => "a device of the room",
        QueryScope::Home => "a device of the home",
        QueryScope::All => "a device",
    };

    let message = match requested {
        Some(name) => {
            format!("{name} is neither a counter in Wh, kWh or MWh nor a power of {whose}")
        }
        None => format!(
            "is needed: no metric of {whose} is a counter in Wh, kWh or MWh or a power in W, kW or MW that counts; \
             PATCH /devices/{{id}} sets a metric's kind, unit and role; {}",
            sent(devices)
        ),
    };
    Problem::field("metric", message)
}
