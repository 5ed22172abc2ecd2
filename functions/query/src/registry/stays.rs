//! The rooms in which a device has been, and the devices that have been in a room. Reads no reading.

use api::{Problem, Response};
use domain::{DeviceId, DeviceStay, RoomId};
use table::{Page, StayKey, StayQuery};

use crate::answer::range_page::{self, RangeListPage};
use crate::answer::rows::{STAY_COLUMNS, StayRow};
use crate::ports::Store;
use crate::readings::ranges::open_range;
use crate::registry::lookup;
use crate::shared_state::Call;

/// `GET /devices/{id}/stays`
pub(crate) async fn of_device(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let query = query(call)?;
    let device: DeviceId = lookup::device(call).await?.id().clone();
    let page = call.session.stays_of(&device, &query).await?;
    Ok(respond(call, &query, &page))
}

/// `GET /rooms/{id}/stays`
pub(crate) async fn in_room(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let query = query(call)?;
    let room: RoomId = lookup::room(call).await?.0.id;
    let page = call.session.stays_in(&room, &query).await?;
    Ok(respond(call, &query, &page))
}

/// The page that a request asks for.
fn query(call: &Call<'_, impl Store>) -> Result<StayQuery, Problem> {
    let Call { request, params, .. } = call;
    let (range, after) =
        range_page::begin(request, params, || open_range(params, call.session.now))?;
    Ok(StayQuery { range, after, limit: params.limit() })
}

fn respond(call: &Call<'_, impl Store>, query: &StayQuery, page: &Page<DeviceStay>) -> Response {
    let Page { items: stays, has_more } = page;
    let rows: Vec<StayRow<'_>> = stays.iter().map(StayRow::from).collect();
    let page = RangeListPage { range: query.range, own: &STAY_COLUMNS, has_more: *has_more };
    page.write(call, &rows, |row| StayKey::of(&stays[row]))
}
