//! What the energy of single devices cost, as if all of it had been bought. Knows no price.

use api::{Problem, Response};
use domain::{Device, DeviceId, Meter, meters_above};
use runtime::clock::Clock;
use runtime::http::Call;
use runtime::registry::FoundDevices;
use series::ReadAllowance;

use super::answer::CostAnswer;
use super::{BillGroup, Biller, CostRequest, devices_of, zone_of};
use crate::handlers::Handlers;
use crate::ports::Store;
use crate::series::question::plan::RowPlan;
use crate::series::question::request::QueryScope;
use crate::tariffs::KnownTariff;

/// `GET /devices/{id}/cost`
pub(crate) async fn device_cost(
    handlers: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let mut request = CostRequest::parse(call)?;
    let device = handlers.device(call).await?;
    let home = handlers.known_state.horizon(call.session).await?.zone();
    let mut tariffs = request.named(home, call).await?;
    let is_compared = !tariffs.is_empty();
    if !is_compared {
        let above = above(&device, handlers, call).await?;
        tariffs = KnownTariff::all(home, call).await?;
        tariffs
            .retain(|known| known.tariff.meters.iter().any(|meter| above.contains(&meter.device)));
    }
    if tariffs.is_empty() {
        let why = "is needed: the device is no meter of a tariff, and behind none";
        return Err(Problem::field("tariff", why));
    }

    request.series.prefer_zone(zone_of(&tariffs));
    let scope = QueryScope::Device;
    let plan = RowPlan::of(&request.series, scope, &handlers.known_state, call).await?;
    let groups = BillGroup::of(&tariffs, is_compared);
    let devices = devices_of(&groups, handlers, call).await?;
    let allowance = ReadAllowance::of_rows(&handlers.densities);
    let mut biller = Biller::new(&request, &plan, &devices, allowance, call.session);
    let mut bills = Vec::new();
    for group in &groups {
        let reads = biller.read(group, false).await?;
        let steps = biller.steps_of_share(&device, &reads).await?;
        let steps = steps.ok_or_else(|| {
            let id = device.id();
            let why = format!("{id} measures no energy: no counter in Wh, kWh or MWh and no power");
            Problem::field("device_id", why)
        })?;
        for known in &group.tariffs {
            bills.push(biller.shown(known, &reads, &steps, true)?);
        }
    }
    CostAnswer { request: &request, plan: &plan, bills }.respond(biller.reach, call)
}

/// The device and the meters above it.
async fn above(
    device: &Device,
    handlers: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Vec<DeviceId>, Problem> {
    let snapshot = handlers.registry.snapshot(call.session, call.log).await?;
    let mut found = FoundDevices::of(snapshot);
    found.add(vec![device.clone()]);
    found.look_up_meters(call.session).await?;

    let above = meters_above(device.id(), |id| found.device(id)?.behind());
    Ok(above.into_iter().chain([device.id()]).cloned().collect())
}

/// The devices that have shares of the bills: devices that use energy, are no meter of a tariff, and are behind such a
/// meter or behind none.
pub(super) async fn devices(
    tariffs: &[KnownTariff],
    handlers: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Vec<Device>, Problem> {
    let snapshot = handlers.registry.snapshot(call.session, call.log).await?;
    let meters: Vec<&DeviceId> =
        tariffs.iter().flat_map(|known| &known.tariff.meters).map(|meter| &meter.device).collect();
    let behind = |id: &DeviceId| snapshot.devices.get(id)?.behind();

    let mut found = Vec::new();
    for device in snapshot.devices.values() {
        let uses = Meter::of(device.metrics()).is_some_and(|meter| !meter.used.is_empty());
        let above = meters_above(device.id(), behind);
        let is_behind = above.is_empty() || above.iter().any(|id| meters.contains(id));
        if uses && is_behind && !meters.contains(&device.id()) {
            found.push(device.clone());
        }
    }
    Ok(found)
}
