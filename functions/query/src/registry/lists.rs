//! Lists and single entries of the registry. Reads no range and edits nothing.

use api::caching::with_cache_headers;
use api::{Problem, Response};
use domain::{Device, Room, RoomId};
use runtime::clock::Clock;
use runtime::http::Call;
use serde_json::json;

use crate::answer::page::RowPage;
use crate::answer::pagination::{self, ListRequest};
use crate::answer::rows::{DEVICE_COLUMNS, DeviceRow, Latest, ROOM_COLUMNS, RoomRow};
use crate::answer::sheet::Columns;
use crate::answer::sheet::metrics_of;
use crate::handlers::Handlers;
use crate::ports::Store;
use crate::registry::lookup::{self, Members};
use crate::registry::search::{self, Found, Plan, Search};

/// `GET /devices`
pub(crate) async fn devices(
    handlers: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let list = ListRequest::of(call.request, &call.params)?;
    let search = Search::of(&call.params, call.session.now)?;
    let snapshot = handlers.registry.snapshot_for_list(call.session, call.log).await?;
    let Found { devices, mut rest, plan, is_of_readings } =
        search::find(&search, &snapshot, &handlers.newest_reader(call), &list, call).await?;
    let mut page: Vec<&Device> = devices.iter().map(|(device, _)| &**device).collect();
    if call.params.flag("latest") {
        let fitting = pagination::fitting(page.iter().copied());
        if fitting < page.len() {
            rest = fitting.checked_sub(1).map(|last| devices[last].1.clone());
            page.truncate(fitting);
        }
    }
    let found = DevicePage { devices: page, rest, plan };
    let response =
        write_devices(handlers, call, &list, found, |row| devices[row].1.as_str()).await?;
    let is_stable = !is_of_readings && !call.params.flag("latest");
    Ok(if is_stable { with_cache_headers(call.request, response) } else { response })
}

/// `GET /rooms/{id}/devices`
pub(crate) async fn devices_of_room(
    handlers: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let list = ListRequest::of(call.request, &call.params)?;
    let members = handlers.members_of_room(&list, call).await?;
    page_of_members(handlers, call, &list, &members).await
}

/// `GET /homes/{id}/devices`
pub(crate) async fn devices_of_home(
    handlers: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let list = ListRequest::of(call.request, &call.params)?;
    let members = handlers.members_of_home(&list, call).await?;
    page_of_members(handlers, call, &list, &members).await
}

/// A page of the devices of rooms.
async fn page_of_members(
    handlers: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
    list: &ListRequest,
    members: &Members,
) -> Result<Response, Problem> {
    let with_latest = call.params.flag("latest");
    let (devices, rest) =
        list.devices(members.devices().collect(), members.has_more(), with_latest);
    let rest = devices.last().filter(|_| rest.is_some()).map(|last| last.id().to_string());
    let places: Vec<&str> = devices.iter().map(|device| device.id().as_str()).collect();
    let page = DevicePage { devices, rest, plan: None };
    let response = write_devices(handlers, call, list, page, |row| places[row]).await?;
    Ok(if with_latest { response } else { with_cache_headers(call.request, response) })
}

/// The devices of a page.
struct DevicePage<'a> {
    devices: Vec<&'a Device>,
    /// The place behind which there are more.
    rest: Option<String>,
    plan: Option<Plan>,
}

/// A page of devices, with their newest values if they are asked for. `place` is the place of a row.
async fn write_devices<'a>(
    handlers: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
    list: &ListRequest,
    page: DevicePage<'_>,
    place: impl Fn(usize) -> &'a str,
) -> Result<Response, Problem> {
    let with_latest = call.params.flag("latest");
    let DevicePage { devices, rest, plan } = page;
    let mut rows: Vec<DeviceRow<'_>> =
        devices.iter().map(|device| DeviceRow::from(*device)).collect();
    if with_latest {
        for (row, latest) in
            rows.iter_mut().zip(handlers.newest_reader(call).latest_of(&devices).await?)
        {
            row.latest = Latest::Asked(latest);
        }
    }
    let columns = || {
        let known = metrics_of(devices.iter().copied().filter(|_| with_latest));
        let own = if with_latest {
            &DEVICE_COLUMNS[..]
        } else {
            &DEVICE_COLUMNS[..DEVICE_COLUMNS.len() - 2]
        };
        Columns { own, known }
    };
    let behind = |row: usize| list.cursor_behind(place(row));
    let rest = rest.map(|place| list.cursor_behind(&place));
    let plan = plan.map(|plan| json!(plan));
    let page = RowPage { plan, ..RowPage::of(list.format, call.request, &call.params) };
    Ok(page.write(&rows, columns, rest, behind))
}

/// `GET /rooms`
pub(crate) async fn rooms(
    handlers: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let list = ListRequest::of(call.request, &call.params)?;
    let snapshot = handlers.registry.snapshot_for_list(call.session, call.log).await?;
    if !snapshot.has_all_rooms {
        let after: Option<RoomId> = list.after();
        let page =
            lookup::readable(call.session.room_page(after.as_ref(), list.limit()).await?, call);
        let rooms = page.listing.found.iter().collect();
        return Ok(page_of_rooms(call, &list, rooms, page.has_more));
    }
    Ok(page_of_rooms(call, &list, snapshot.rooms.values().collect(), false))
}

/// A page of rooms. The table may have more.
pub(crate) fn page_of_rooms(
    call: &Call<'_, impl Store>,
    list: &ListRequest,
    rooms: Vec<&Room>,
    has_more: bool,
) -> Response {
    let (rooms, rest) = list.paginate(rooms, has_more, |room: &Room| room.id.as_str(), |_| 0);
    let rows: Vec<RoomRow<'_>> = rooms.iter().map(|room| RoomRow::from(*room)).collect();
    let columns = || Columns { own: &ROOM_COLUMNS, known: Vec::new() };
    let behind = |row: usize| list.cursor_behind(rooms[row].id.as_str());
    let page = RowPage::of(list.format, call.request, &call.params);
    let response = page.write(&rows, columns, rest, behind);
    with_cache_headers(call.request, response)
}

/// `GET /devices/{id}`
pub(crate) async fn device(
    handlers: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let device = handlers.device(call).await?;
    Ok(with_cache_headers(call.request, Response::json(200, &DeviceRow::from(&device))))
}

/// `GET /rooms/{id}`
pub(crate) async fn room(
    handlers: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let (room, _) = handlers.room(call).await?;
    Ok(with_cache_headers(call.request, Response::json(200, &RoomRow::from(&room))))
}
