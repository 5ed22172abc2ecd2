//! Lists and single entries of the registry. Reads no range and edits nothing.

use api::caching::with_revalidation;
use api::{Problem, Response};
use domain::{Device, Room, RoomId};
use serde_json::json;

use crate::answer::page::RowPage;
use crate::answer::pagination::{self, ListRequest};
use crate::answer::rows::{
    COLUMNS_WITHOUT_LATEST, DEVICE_COLUMNS, DeviceRow, Latest, ROOM_COLUMNS, RoomRow,
};
use crate::answer::sheet::FixedColumns;
use crate::answer::sheet::metrics_of;
use crate::ports::Store;
use crate::readings::newest::NewestReader;
use crate::registry::search::{self, FoundPage, Search};
use crate::registry::{UNREADABLE, lookup};
use crate::shared_state::Call;

/// `GET /devices`
pub(crate) async fn devices(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let list = ListRequest::of(call.request, &call.params)?;
    let search = Search::of(&call.params, call.session.now)?;
    let snapshot = call.shared.registry.snapshot_for_list(call.session, call.log).await?;
    let found = search::find(&search, &snapshot, &list, call).await?;
    page_of_devices(call, &list, found).await
}

/// `GET /rooms/{id}/devices`
pub(crate) async fn devices_of_room(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let list = ListRequest::of(call.request, &call.params)?;
    let members = lookup::members_of_room(&list, call).await?;
    page_of_devices(call, &list, members.into_page(&list)).await
}

/// `GET /homes/{id}/devices`
pub(crate) async fn devices_of_home(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let list = ListRequest::of(call.request, &call.params)?;
    let members = lookup::members_of_home(&list, call).await?;
    page_of_devices(call, &list, members.into_page(&list)).await
}

/// A page of devices, with their newest values if these are requested.
async fn page_of_devices(
    call: &mut Call<'_, impl Store>,
    list: &ListRequest,
    found: FoundPage<'_>,
) -> Result<Response, Problem> {
    let FoundPage { devices: found, mut rest, plan, is_of_readings } = found;
    let with_latest = call.params.flag("latest");
    let mut devices: Vec<&Device> = found.iter().map(|(device, _)| &**device).collect();
    if with_latest {
        // Reading newest values costs units, so they are read only for devices that fit into the answer.
        let fitting = pagination::fitting(devices.iter().copied());
        if fitting < devices.len() {
            rest = fitting.checked_sub(1).map(|last| found[last].1.clone());
            devices.truncate(fitting);
        }
    }

    let mut rows: Vec<DeviceRow<'_>> =
        devices.iter().map(|device| DeviceRow::from(*device)).collect();
    let mut own = COLUMNS_WITHOUT_LATEST;
    if with_latest {
        own = &DEVICE_COLUMNS;
        let latest = NewestReader::of(call).latest_of(&devices).await?;
        for (row, latest) in rows.iter_mut().zip(latest) {
            row.latest = Latest::Asked(latest);
        }
    }

    let known = || metrics_of(devices.iter().copied().filter(|_| with_latest));
    let cursor_after = |row: usize| list.cursor_after(&found[row].1);
    let rest = rest.map(|place| list.cursor_after(&place));
    let mut page = RowPage::of(list.format, call.request, &call.params);
    page.members.extend(plan.map(|plan| ("plan".to_owned(), json!(plan))));
    let response = page.write(&rows, || FixedColumns { own, known: known() }, rest, cursor_after);

    let is_stable = !is_of_readings && !with_latest;
    Ok(if is_stable { with_revalidation(call.request, response) } else { response })
}

/// `GET /rooms`
pub(crate) async fn rooms(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let list = ListRequest::of(call.request, &call.params)?;
    let snapshot = call.shared.registry.snapshot_for_list(call.session, call.log).await?;
    if !snapshot.has_all_rooms {
        let after: Option<RoomId> = list.after();
        let page = call.session.room_page(after.as_ref(), list.limit()).await?;
        let rooms = lookup::readable(page.listing, UNREADABLE, call);
        return Ok(page_of_rooms(call, &list, rooms.iter().collect(), page.has_more));
    }
    Ok(page_of_rooms(call, &list, snapshot.rooms.values().collect(), false))
}

/// A page of rooms. `has_more` says that the table has further rooms.
pub(crate) fn page_of_rooms(
    call: &Call<'_, impl Store>,
    list: &ListRequest,
    rooms: Vec<&Room>,
    has_more: bool,
) -> Response {
    let (rooms, rest) = list.paginate(rooms, has_more, |room: &Room| room.id.as_str());
    let rows: Vec<RoomRow<'_>> = rooms.iter().map(|room| RoomRow::from(*room)).collect();
    let columns = || FixedColumns { own: &ROOM_COLUMNS, known: Vec::new() };
    let cursor_after = |row: usize| list.cursor_after(rooms[row].id.as_str());
    let page = RowPage::of(list.format, call.request, &call.params);
    let response = page.write(&rows, columns, rest, cursor_after);
    with_revalidation(call.request, response)
}

/// `GET /devices/{id}`
pub(crate) async fn device(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let device = lookup::device(call).await?;
    Ok(with_revalidation(call.request, Response::json(200, &DeviceRow::from(&device))))
}

/// `GET /rooms/{id}`
pub(crate) async fn room(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let (room, _) = lookup::room(call).await?;
    Ok(with_revalidation(call.request, Response::json(200, &RoomRow::from(&room))))
}
