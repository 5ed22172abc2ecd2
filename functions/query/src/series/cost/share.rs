//! Shares of bills: the devices and tariffs for which the cost of a single device's energy is computed. Knows no price.

use std::collections::BTreeSet;

use api::Problem;
use domain::{Device, DeviceId, Meter, meters_above};
use runtime::registry::FoundDevices;
use tariffs::TariffMeter;

use crate::ports::Store;
use crate::shared_state::Call;
use crate::tariffs::KnownTariff;

/// Keeps the tariffs that bill the device or a meter above it.
pub(super) async fn retain_tariffs_of(
    device: &Device,
    tariffs: &mut Vec<KnownTariff>,
    call: &mut Call<'_, impl Store>,
) -> Result<(), Problem> {
    let above = above(device, call).await?;
    tariffs.retain(|known| known.tariff.meters.iter().any(|meter| above.contains(&meter.device)));
    if tariffs.is_empty() {
        let why = "is needed: the device is no meter of a tariff, and behind none";
        return Err(Problem::field("tariff", why));
    }
    Ok(())
}

/// The problem of a device that has no share of a bill.
pub(super) fn measures_no_energy(device: &Device) -> Problem {
    let id = device.id();
    let why = format!("{id} measures no energy: no counter in Wh, kWh or MWh and no power");
    Problem::field("device_id", why)
}

/// The device and the meters above it.
async fn above(device: &Device, call: &mut Call<'_, impl Store>) -> Result<Vec<DeviceId>, Problem> {
    let snapshot = call.shared.registry.snapshot(call.session, call.log).await?;
    let mut found = FoundDevices::of(snapshot);
    found.add(vec![device.clone()]);
    found.look_up_meters(call.session).await?;

    let above = meters_above(device.id(), |id| found.device(id)?.behind());
    Ok(above.into_iter().chain([device.id()]).cloned().collect())
}

/// The devices with shares of the bills of some meters: devices that use energy and are no meters of a tariff. A device
/// behind a meter has a share only if one of the meters above it is billed.
pub(super) async fn devices(
    billed: &[TariffMeter],
    tariffs: &[KnownTariff],
    call: &mut Call<'_, impl Store>,
) -> Result<Vec<Device>, Problem> {
    let snapshot = call.shared.registry.snapshot(call.session, call.log).await?;
    let meters = tariffs.iter().flat_map(|known| &known.tariff.meters);
    let meters: BTreeSet<&DeviceId> = meters.map(|meter| &meter.device).collect();
    let billed: BTreeSet<&DeviceId> = billed.iter().map(|meter| &meter.device).collect();
    let behind = |id: &DeviceId| snapshot.devices.get(id)?.behind();

    let mut found = Vec::new();
    for device in snapshot.devices.values() {
        let uses = Meter::of(device.metrics()).is_some_and(|meter| !meter.used.is_empty());
        let above = meters_above(device.id(), behind);
        let is_behind = above.is_empty() || above.iter().any(|id| billed.contains(id));
        if uses && is_behind && !meters.contains(&device.id()) {
            found.push(device.clone());
        }
    }

    Ok(found)
}
