//! Finds devices by name, kind, tags, attributes and newest values. Edits nothing.
//!
//! If memory holds all devices, the search looks there. For a larger registry it asks the attribute index; without a
//! condition, it reads the devices from the table page by page. Memory and index find the same devices, each in an
//! order of its own.

mod index;
mod newest;
pub(crate) mod question;
mod registry;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use api::Problem;
use domain::Device;
use runtime::clock::{Clock as _, Deadline};
use runtime::registry::RegistrySnapshot;
use runtime::telemetry::{Telemetry, WideEvent};
use table::Invocation;

use crate::answer::pagination::ListRequest;
use crate::ports::Store;
use crate::registry::UNREADABLE;
use crate::registry::lookup::{FoundMembers, readable};
use crate::shared_state::{Call, SharedState};
pub(crate) use question::{FoundPage, Search};

/// The time limit for marking the index as complete at cold start.
const COLD_START: Duration = Duration::from_secs(5);

/// The devices of the page that `list` asks for.
pub(crate) async fn find<'a>(
    search: &Search,
    snapshot: &'a Arc<RegistrySnapshot>,
    list: &ListRequest,
    call: &mut Call<'_, impl Store>,
) -> Result<FoundPage<'a>, Problem> {
    match snapshot.all_devices() {
        Some(all) => Box::pin(registry::find(search, all, list, call)).await,
        None if search.is_unconditional() => Box::pin(page(search, snapshot, list, call)).await,
        None => Box::pin(index::find(search, list, call)).await,
    }
}

/// A page of devices from the table: of a room or of all devices.
async fn page<'a>(
    search: &Search,
    snapshot: &Arc<RegistrySnapshot>,
    list: &ListRequest,
    call: &mut Call<'_, impl Store>,
) -> Result<FoundPage<'a>, Problem> {
    if let Some(room) = &search.room {
        let rooms = [room.clone()].into();
        let members = FoundMembers::find(&rooms, Arc::clone(snapshot), list, call).await?;
        return Ok(members.into_page(list));
    }

    let page = call.session.device_page(list.after().as_ref(), list.limit()).await?;
    let found = readable(page.listing, UNREADABLE, call);
    Ok(FoundPage::by_id(found, page.has_more))
}

/// Marks the attribute index as complete if no device has anything to index. Such a table needs no `roomtide reindex`.
/// After a failure the next cold start tries again.
pub(crate) async fn mark_indexed(shared: &SharedState, store: &impl Store, telemetry: &Telemetry) {
    let has_none = |device: &Device| device.search_entries().is_empty();
    let current = shared.registry.current();
    let all = current.as_ref().and_then(|snapshot| snapshot.all_devices());
    if !all.is_some_and(|devices| devices.values().all(has_none)) {
        return;
    }

    let invocation = Invocation::until(Deadline::after(COLD_START));
    if let Err(error) = store.mark_indexed(shared.clock.now(), &invocation).await {
        let mut log = WideEvent::begin("query.mark_indexed");
        log.warn("search.error", &error);
        log.emit(&invocation, telemetry, &shared.clock);
    }
}
