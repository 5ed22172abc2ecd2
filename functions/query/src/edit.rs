//! A person's edits of the registry: PATCH. Writes nothing that the edit does not name.

use api::{Problem, Response};
use domain::{DeviceId, DevicePatch, Edit, Timestamp};
use runtime::clock::Clock;
use runtime::http::Call;
use runtime::registry::CachedRegistry;
use table::{EditRegistry, Edited, LookUpRegistry, ReadRegistry, UpdateOutcome};

use crate::lookup::{self, not_found};
use crate::meaning;
use crate::patch;
use crate::rows::{DeviceRow, RoomRow};

/// `PATCH /devices/{id}`
pub(crate) async fn device(
    registry: &CachedRegistry<impl Clock>,
    store: &(impl EditRegistry + ReadRegistry + LookUpRegistry),
    now: Timestamp,
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    let id = lookup::device_id(call)?;
    let patch = patch::of_device(call.request, now)?;
    check(registry, store, &id, &patch, now, call).await?;
    let edited = store.edit_device(&id, &patch, now, call.invocation).await;
    match edited.map_err(|error| call.failed(&error))? {
        UpdateOutcome::Updated(Edited { device, room }) => {
            let response = Response::json(200, &DeviceRow::from(&device));
            registry.keep_device(device);
            room.into_iter().for_each(|room| registry.keep_room(room));
            Ok(response)
        }
        UpdateOutcome::ConditionFailed(was) => {
            Err(match was.as_ref().and_then(|was| patch.check(was).err()) {
                Some(why) => Problem::field(&why.field(), why.to_string()),
                None => lookup::device_not_found(store, &id, call).await,
            })
        }
    }
}

/// Refuses what means nothing for the device. One that is not registered is refused by the edit itself.
async fn check(
    registry: &CachedRegistry<impl Clock>,
    store: &(impl ReadRegistry + LookUpRegistry),
    id: &DeviceId,
    patch: &DevicePatch,
    now: Timestamp,
    call: &mut Call<'_>,
) -> Result<(), Problem> {
    if let Edit::Set(meter) = &patch.behind {
        let known = registry.device(meter, store, call.invocation, call.log).await;
        let Some(known) = known.map_err(|error| call.failed(&error))? else {
            return Err(Problem::field("behind", format!("there is no device {meter}")));
        };
        let snapshot = lookup::snapshot(registry, store, call).await?;
        let mut meters = [(meter.clone(), known)].into();
        lookup::add_meters(&mut meters, store, &snapshot, call).await?;
        meaning::check_behind(id, meter, (&snapshot.devices, &meters))?;
    }
    if patch.metrics.is_empty() {
        return Ok(());
    }
    let device = registry.device(id, store, call.invocation, call.log).await;
    match device.map_err(|error| call.failed(&error))? {
        Some(device) => meaning::check_metrics(&device, patch, now),
        None => Ok(()),
    }
}

/// `PATCH /rooms/{id}`
pub(crate) async fn room(
    registry: &CachedRegistry<impl Clock>,
    store: &impl EditRegistry,
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    let id = lookup::room_id(call)?;
    let patch = patch::of_room(call.request)?;
    let edited = store.edit_room(&id, &patch, call.invocation).await;
    match edited.map_err(|error| call.failed(&error))? {
        UpdateOutcome::Updated(room) => {
            registry.keep_room(room.clone());
            Ok(Response::json(200, &RoomRow::from(&room)))
        }
        UpdateOutcome::ConditionFailed(_) => Err(not_found("room", id.as_str())),
    }
}
