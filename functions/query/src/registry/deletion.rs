//! DELETE of devices, rooms and homes. Deletes no single reading.
//!
//! A device first gets a deletion mark. From then on no list shows the device, and no function registers it or stores
//! its readings. Each request then removes some of its items. The deletion ends when no item was found for some time:
//! by then every invocation that started before the mark has ended.

use std::time::Duration;

use api::{Problem, ProblemKind, Response};
use chrono::TimeDelta;
use domain::{DeletedDevice, Deletion, DeviceId, HomeId, RoomId, Timestamp};
use runtime::clock::Clock as _;
use runtime::registry::{FoundDevices, PageStart};
use serde_json::{Value, json};
use table::{BegunDeletion, Belongings, StoreResult};

use crate::ports::Store;
use crate::readings::ranges::timestamp;
use crate::registry::lookup::{self, members_of, not_found};
use crate::shared_state::{Call, SharedState};

/// The maximum number of a device's items that one request removes.
const MAX_REMOVED: usize = 10_000;
/// The number of items that are found and removed between two checks of the remaining time. The number is small,
/// because finding the keys of items costs as much as reading whole items.
const CHUNK: usize = 250;
/// With less time left, a request stops removing and answers.
const MIN_REMAINING: Duration = Duration::from_secs(3);
/// The number of devices that a refusal names.
const MAX_NAMED: usize = 5;

/// `DELETE /devices/{id}`
///
/// The same request, sent again, continues the deletion; two people may do so at once. With `begun`, it continues only
/// the deletion that began then. So a client that missed the end of a deletion does not delete a device that has
/// registered again.
pub(crate) async fn device(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let SharedState { registry, clock, .. } = call.shared;

    let id = lookup::path_id(call)?;
    let snapshot = registry.snapshot(call.session, call.log).await?;
    let quiet = registry.deletion_quiet(&snapshot);
    let continued = begun(call)?;
    let deletion = match continued {
        None => begin(&id, call).await?,
        Some(begun) => begun_at(&id, begun, call).await?,
    };

    if deletion.ended.is_some() {
        return Ok(over());
    }

    if continued.is_none() {
        // The device's alerts end before its readings are removed. Otherwise a judgement would take the alerts back.
        judging::end_device(call.session, &id).await?;
    }

    let found = call.session.belongings(&id, CHUNK).await?;
    if found.found.is_empty() {
        return end(quiet, DeletedDevice { id, deletion }, call).await;
    }

    // Noted before the removal: if the removal came first and the note failed, the deletion could end too early.
    let noted = call.session.note_found(&id, clock.now()).await;
    // If the deletion is over, the items belong to a device that has registered again.
    if noted?.is_none_or(|noted| noted.begun != deletion.begun) {
        return Ok(over());
    }

    let removal = remove(&id, found, call).await?;
    if removal.removed > CHUNK {
        // The last items were found later than the first note says.
        call.session.note_found(&id, clock.now()).await?;
    }
    Ok(answer(&deletion, &removal, quiet))
}

/// The parameter `begun`: the begin of the deletion that the request continues.
fn begun(call: &Call<'_, impl Store>) -> Result<Option<Timestamp>, Problem> {
    let text = timestamp(&call.params, "begun");
    let begun = text.map(|text| Timestamp::parse_absolute(&text)).transpose();
    begun.map_err(|why| Problem::field("begun", why))
}

/// The deletion that began at `begun`. Any other time is refused: 200 would say that the deletion is over.
async fn begun_at(
    id: &DeviceId,
    begun: Timestamp,
    call: &mut Call<'_, impl Store>,
) -> Result<Deletion, Problem> {
    let known = call.session.deletion(id).await?;
    let Some(known) = known else {
        let detail = format!(
            "No deletion of the device {id} is known: none has begun, or it is over and the device has come again."
        );
        return Err(Problem::new(ProblemKind::NotFound, detail));
    };

    if known.begun != begun {
        let state = if known.ended.is_some() { "is over" } else { "goes on" };
        let detail = format!(
            "No deletion of the device {id} began at {begun}. The one that began at {} {state}.",
            known.begun
        );
        return Err(Problem::new(ProblemKind::Conflict, detail));
    }

    Ok(known)
}

/// Gives a device a deletion mark, or finds the mark of an earlier request.
async fn begin(id: &DeviceId, call: &mut Call<'_, impl Store>) -> Result<Deletion, Problem> {
    // All devices are searched: an older version did not list the devices behind a meter in the meter's item.
    let now = call.shared.registry.refresh(call.session, call.log).await?;
    let is_behind = |device: &&domain::Device| device.behind() == Some(id);
    let behind: Vec<_> = now.devices.values().filter(is_behind).map(domain::Device::id).collect();
    if now.devices.contains_key(id) && !behind.is_empty() {
        return Err(is_meter(id, &behind));
    }

    match call.session.begin_deletion(id, call.shared.clock.now()).await? {
        BegunDeletion::Deletion(deletion) => {
            call.shared.registry.keep_deleted(DeletedDevice { id: id.clone(), deletion });
            Ok(deletion)
        }
        BegunDeletion::NoDevice => Err(not_found("device", id.as_str())),
        BegunDeletion::Meter(behind) => Err(is_meter(id, &behind.iter().collect::<Vec<_>>())),
    }
}

/// 409: the device to delete is a meter with other devices behind it.
fn is_meter(id: &DeviceId, behind: &[&DeviceId]) -> Problem {
    let detail = format!(
        "{} behind the meter {id}, and sums would count twice; PATCH the member behind of each first.",
        sentence_about(behind, "is", "are")
    );
    Problem::new(ProblemKind::Conflict, detail)
}

/// The numbers of a device's items that a request removed and left.
#[derive(Default)]
struct Removal {
    removed: usize,
    /// The items that were found and not removed.
    left: usize,
    /// Whether the device has items that were not found yet.
    has_more: bool,
}

/// Removes items, and finds more, while time suffices.
async fn remove(
    id: &DeviceId,
    mut found: Belongings,
    call: &mut Call<'_, impl Store>,
) -> Result<Removal, Problem> {
    let mut removal = Removal::default();
    loop {
        let outcome = call.session.remove_belongings(&found.found).await;
        removal.left = outcome.not_stored.len();
        removal.removed += found.found.len() - removal.left;
        removal.has_more = found.has_more;

        // Removed items stay removed. The same request, sent again, removes the rest.
        if let Some(cause) = outcome.cause {
            if removal.removed == 0 {
                return Err(cause.into());
            }
            call.log.warn("table.error", &cause);
            return Ok(removal);
        }

        let has_time = call.session.invocation.remaining() >= MIN_REMAINING;
        if !removal.has_more || removal.removed >= MAX_REMOVED || !has_time {
            return Ok(removal);
        }

        found = match call.session.belongings(id, CHUNK).await {
            Ok(found) => found,
            Err(cause) => {
                call.log.warn("table.error", &cause);
                return Ok(removal);
            }
        };
    }
}

/// Ends a deletion, if no item has been found for the time `quiet`.
async fn end(
    quiet: TimeDelta,
    device: DeletedDevice,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let DeletedDevice { id, deletion } = device;

    // The device's alerts end once more: a judgement that began before the mark may have stored a state, which would
    // fire for ever.
    judging::end_device(call.session, &id).await?;

    let now = call.shared.clock.now();
    let wait = deletion.found.saturating_add(quiet).since(now);
    if deletion.may_end(now, quiet) && call.session.end_deletion(&id, &deletion, now).await? {
        let deletion = Deletion { ended: Some(now), ..deletion };
        call.shared.registry.keep_deleted(DeletedDevice { id, deletion });
        return Ok(over());
    }
    Ok(answer(&deletion, &Removal::default(), wait))
}

/// 200: the deletion is over.
fn over() -> Response {
    Response::json(200, &json!({"deleted": 0, "has_more": false, "left": 0}))
}

/// 202: the number of items left, or the time until the final check.
fn answer(deletion: &Deletion, removal: &Removal, wait: TimeDelta) -> Response {
    let Removal { removed, left, has_more } = *removal;
    let (name, left) = if has_more { ("left_at_least", left + 1) } else { ("left", left) };
    let mut body =
        json!({"begun": deletion.begun, "deleted": removed, "has_more": true, name: left});
    if left > 0 {
        return Response::json(202, &body);
    }

    // At least a second, because an immediate repeat would be in vain.
    let seconds = wait.num_seconds().max(0) + 1;
    body["wait_seconds"] = Value::from(seconds);
    Response::json(202, &body).with("retry-after", seconds)
}

/// `DELETE /rooms/{id}`
///
/// The stays of devices in the room remain. They belong to the devices, and are deleted with them.
pub(crate) async fn room(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let SharedState { registry, .. } = call.shared;

    let id = lookup::path_id(call)?;
    let found = call.session.room(&id).await?;
    ensure_empty(&id, call).await?;
    let Some(room) = found else { return Err(not_found("room", id.as_str())) };

    call.session.remove_room(&id).await?;
    registry.forget_room(&id);
    if let Err(problem) = ensure_empty(&id, call).await {
        // A device has moved in meanwhile, so the room is put back as it was.
        call.session.put_back_room(&room).await?;
        registry.keep_room(room);
        return Err(problem);
    }

    Ok(Response::json(200, &json!({"deleted": 1, "has_more": false, "left": 0})))
}

/// 409 if the table has devices in the room at this moment.
async fn ensure_empty(id: &RoomId, call: &mut Call<'_, impl Store>) -> Result<(), Problem> {
    let now = call.shared.registry.refresh(call.session, call.log).await?;
    let page = PageStart { after: None, limit: MAX_NAMED + 1 };
    let members = members_of(&mut FoundDevices::of(now), &[id.clone()].into(), page, call).await?;
    if members.ids.is_empty() {
        return Ok(());
    }

    let detail = format!(
        "{} in the room {id}; PATCH the room of each, or DELETE it, first.",
        sentence_about(&members.ids.iter().collect::<Vec<_>>(), "is", "are")
    );
    Err(Problem::new(ProblemKind::Conflict, detail))
}

/// The beginning of a sentence: some devices by name, the number of the others, and the verb.
fn sentence_about(devices: &[&DeviceId], one_does: &str, several_do: &str) -> String {
    let names: Vec<&str> = devices.iter().take(MAX_NAMED).map(|id| id.as_str()).collect();
    let more = devices.len() - names.len();
    let names = names.join(", ");
    match (devices.len(), more) {
        (1, _) => format!("The device {names} {one_does}"),
        (_, 0) => format!("The devices {names} {several_do}"),
        _ => format!("The devices {names} and {more} more {several_do}"),
    }
}

/// `DELETE /homes/{id}`: takes all rooms out of the home. Without rooms the home is gone. If time runs out, the answer
/// is 202, and the same request, sent again, takes out the rest.
pub(crate) async fn home(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let SharedState { registry, .. } = call.shared;

    let (home, _) = lookup::home(call).await?;
    let now = call.shared.registry.refresh(call.session, call.log).await?;
    let mut rooms: Vec<_> = now.rooms_of(&home).cloned().collect();
    let mut taken = 0;

    while let Some(mut room) = rooms.pop() {
        leave(&room.id, &home, call).await?;
        room.home = None;
        registry.keep_room(room);
        taken += 1;
        if call.session.invocation.remaining() < MIN_REMAINING {
            break;
        }
    }

    let left = rooms.len();
    let status = if left == 0 { 200 } else { 202 };
    Ok(Response::json(status, &json!({"deleted": taken, "has_more": left > 0, "left": left})))
}

async fn leave(room: &RoomId, home: &HomeId, call: &Call<'_, impl Store>) -> StoreResult<bool> {
    call.session.leave_home(room, home).await
}
