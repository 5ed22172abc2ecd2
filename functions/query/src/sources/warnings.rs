//! The warning about a source whose energy another device measures too. The source is saved all the same.

use api::Problem;
use domain::{Device, DeviceId, Meter};
use polling::PolledSource;
use table::StoredSource;

use crate::ports::Store;
use crate::shared_state::Call;

/// The maximum number of devices that a warning names.
const MAX_NAMED: usize = 10;

/// The warnings about a saved source.
pub(super) async fn of_saved(
    stored: &StoredSource,
    source: &PolledSource,
    call: &mut Call<'_, impl Store>,
) -> Result<Vec<String>, Problem> {
    if !source.has_meter() {
        return Ok(Vec::new());
    }

    let mut own: Vec<DeviceId> = stored.status.devices.clone();
    own.extend(source.rooms.keys().cloned());
    own.extend(stored.id.as_str().parse().ok());
    of_second_meters(&own, call).await
}

/// The warning that devices other than the source's `own` measure imported energy too.
pub(super) async fn of_second_meters(
    own: &[DeviceId],
    call: &mut Call<'_, impl Store>,
) -> Result<Vec<String>, Problem> {
    let snapshot = call.shared.registry.snapshot_for_list(call.session, call.log).await?;
    // If memory does not hold all devices, the other meters are unknown.
    let Some(devices) = snapshot.all_devices() else { return Ok(Vec::new()) };

    let others = devices.values().filter(|device| {
        let is_own = own.iter().any(|own| device.id().is_part_of(own));
        !is_own && measures_import(device)
    });
    let others: Vec<&str> = others.map(|device| device.id().as_str()).collect();
    if others.is_empty() {
        return Ok(Vec::new());
    }

    let named = others.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = others.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Ok(vec![format!(
        "imported energy is measured by {named}{more} too; if it is the same energy, PATCH one of the devices with \
         \"role\": \"none\" for its metric, or it is counted twice"
    )])
}

fn measures_import(device: &Device) -> bool {
    let meter = Meter::of(device.metrics());
    meter.is_some_and(|meter| meter.other_role.is_none() && !meter.used.is_empty())
}
