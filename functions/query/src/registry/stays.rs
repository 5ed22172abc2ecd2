//! The rooms in which a device has been, and the devices that have been in a room. Reads no reading.

use api::{Problem, Response};
use domain::{DeviceId, DeviceStay, RoomId};
use runtime::clock::Clock;
use runtime::http::Call;
use table::{Page, StayKey, StayQuery};

use crate::answer::cursor;
use crate::answer::page::RowPage;
use crate::answer::rows::{STAY_COLUMNS, StayRow};
use crate::answer::sheet::Columns;
use crate::handlers::Handlers;
use crate::ports::Store;
use crate::readings::ranges::open_range;
use crate::registry::lookup;

/// `GET /devices/{id}/stays`
pub(crate) async fn of_device(
    handlers: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let Handlers { registry, .. } = handlers;

    let query = query(call)?;
    let device: DeviceId = lookup::device(registry, call).await?.id().clone();
    let page = call.session.stays_of(&device, &query).await?;
    Ok(respond(call, &query, &page))
}

/// `GET /rooms/{id}/stays`
pub(crate) async fn in_room(
    handlers: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let Handlers { registry, .. } = handlers;

    let query = query(call)?;
    let room: RoomId = lookup::room(registry, call).await?.0.id;
    let page = call.session.stays_in(&room, &query).await?;
    Ok(respond(call, &query, &page))
}

/// The page that a request asks for.
fn query(call: &Call<'_, impl Store>) -> Result<StayQuery, Problem> {
    let Call { request, params, .. } = call;
    let limit = params.limit();
    if let Some(cursor) = params.get("cursor") {
        let (range, after) = cursor::decode_stays(&params.query_fingerprint(request), cursor)?;
        return Ok(StayQuery { range, after: Some(after), limit });
    }
    Ok(StayQuery { range: open_range(params, call.session.now)?, after: None, limit })
}

fn respond(call: &Call<'_, impl Store>, query: &StayQuery, page: &Page<DeviceStay>) -> Response {
    let Call { request, params, .. } = call;
    let query_fingerprint = params.query_fingerprint(request);
    let behind =
        |of: &DeviceStay| cursor::encode_stays(&query_fingerprint, query.range, &StayKey::of(of));
    let rest = page.items.last().filter(|_| page.has_more).map(behind);
    let rows: Vec<StayRow<'_>> = page.items.iter().map(StayRow::from).collect();
    let columns = || Columns { own: &STAY_COLUMNS, known: Vec::new() };
    let format = params.format(request);
    RowPage::of(format, request, params).write(&rows, columns, rest, |row| behind(&page.items[row]))
}
