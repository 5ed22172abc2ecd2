//! A person's edits of the registry: PATCH. Writes nothing that the edit does not name.

use alerts::MAX_BACK;
use api::{Problem, Response};
use domain::{DevicePatch, Edit};
use table::{Edited, UpdateOutcome};

use crate::answer::rows::{DeviceRow, RoomRow};
use crate::ports::Store;
use crate::recheck::recheck;
use crate::registry::lookup::{self, not_found};
use crate::registry::patch;
use crate::series::check_verdicts;
use crate::shared_state::{Call, SharedState};

/// `PATCH /devices/{id}`
pub(crate) async fn device(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let SharedState { registry, .. } = call.shared;
    let now = call.session.now;

    let id = lookup::path_id(call)?;
    let patch = patch::of_device(call.request, call.params.flag("restore"), now)?;
    if judges(&patch) && !patch.restores {
        let device = call.session.device(&id).await;
        if let Some(device) = device?
            // An edit with any other error is refused below.
            && patch.check(&device).is_ok()
        {
            check_verdicts(&device, &patch, call).await?;
        }
    }

    match call.session.edit_device(&id, &patch, now).await? {
        UpdateOutcome::Updated(Edited { device, room }) => {
            let response = Response::json(200, &DeviceRow::from(&device));
            registry.keep_device(device);
            room.into_iter().for_each(|room| registry.keep_room(room));

            // The rules of new groups judge the device by the readings of the last day.
            if changes_groups(&patch) && !patch.restores {
                recheck(id, now.saturating_add(-MAX_BACK), call).await?;
            }
            Ok(response)
        }
        UpdateOutcome::ConditionFailed(Some(why)) => Err(Problem::field(&why.field(), why)),
        UpdateOutcome::ConditionFailed(None) => Err(lookup::device_not_found(&id, call).await),
    }
}

/// Whether an edit may bring a device into the group of a rule.
fn changes_groups(patch: &DevicePatch) -> bool {
    patch.room != Edit::Keep || patch.kind != Edit::Keep || patch.tags != Edit::Keep
}

/// Whether an edit sets verdicts, by which a person says how steps of a counter are counted.
fn judges(patch: &DevicePatch) -> bool {
    patch.settings().any(|(_, settings)| matches!(settings.verdicts, Edit::Set(_)))
}

/// `PATCH /rooms/{id}`
pub(crate) async fn room(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let id = lookup::path_id(call)?;
    let patch = patch::of_room(call.request)?;
    match call.session.edit_room(&id, &patch).await? {
        UpdateOutcome::Updated(room) => {
            call.shared.registry.keep_room(room.clone());
            Ok(Response::json(200, &RoomRow::from(&room)))
        }
        UpdateOutcome::ConditionFailed(_) => Err(not_found("room", id.as_str())),
    }
}
