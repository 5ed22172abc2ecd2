//! Homes: lists, single homes and their rooms. A home is a set of rooms, and has no item in the table.

use std::collections::BTreeMap;

use api::caching::with_revalidation;
use api::{Problem, Response};
use domain::{HomeId, Room};

use crate::answer::page::RowPage;
use crate::answer::pagination::{ListRequest, ensure_all_rooms};
use crate::answer::rows::{HOME_COLUMNS, HomeRow};
use crate::answer::sheet::FixedColumns;
use crate::ports::Store;
use crate::registry::lists::page_of_rooms;
use crate::registry::lookup;
use crate::shared_state::Call;

/// `GET /homes`
pub(crate) async fn homes(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let list = ListRequest::of(call.request, &call.params)?;
    let snapshot = call.shared.registry.snapshot_for_list(call.session, call.log).await?;
    ensure_all_rooms(&snapshot)?;

    let mut rooms: BTreeMap<&HomeId, Vec<&Room>> = BTreeMap::new();
    for room in snapshot.rooms.values() {
        if let Some(home) = &room.home {
            rooms.entry(home).or_default().push(room);
        }
    }

    let homes: Vec<HomeRow<'_>> =
        rooms.into_iter().filter_map(|(home, rooms)| HomeRow::of(home, rooms)).collect();
    let (homes, rest) = list.paginate(homes.iter().collect(), false, |home| home.id());
    let rows: Vec<HomeRow<'_>> = homes.into_iter().cloned().collect();

    let columns = || FixedColumns { own: &HOME_COLUMNS, known: Vec::new() };
    let cursor_after = |row: usize| list.cursor_after(rows[row].id());
    let page = RowPage::of(list.format, call.request, &call.params);
    let response = page.write(&rows, columns, rest, cursor_after);
    Ok(with_revalidation(call.request, response))
}

/// `GET /homes/{id}`
pub(crate) async fn home(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let (home, snapshot) = lookup::home(call).await?;
    let row = HomeRow::of(&home, snapshot.rooms_of(&home));
    let row = row.ok_or_else(|| lookup::not_found("home", home.as_str()))?;
    Ok(with_revalidation(call.request, Response::json(200, &row)))
}

/// `GET /homes/{id}/rooms`
pub(crate) async fn rooms(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let list = ListRequest::of(call.request, &call.params)?;
    let (home, snapshot) = lookup::home(call).await?;
    let rooms = snapshot.rooms_of(&home).collect();
    Ok(page_of_rooms(call, &list, rooms, false))
}
