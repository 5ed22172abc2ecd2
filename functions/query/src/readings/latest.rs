//! Answers with the newest values of a device, a room or a home. Finds none itself.

use api::{Problem, ProblemKind, Response};
use domain::Device;
use runtime::clock::Clock;
use runtime::http::Call;
use runtime::registry::CachedRegistry;

use crate::answer::page;
use crate::answer::pagination::ListRequest;
use crate::answer::rows::{LATEST_COLUMNS, LatestRow};
use crate::answer::sheet::Columns;
use crate::answer::sheet::metrics_of;
use crate::ports::Store;
use crate::readings::newest::{Rollups, all_metrics, latest_of, newest};
use crate::registry::lookup::{self, Members};

/// `GET /devices/{id}/latest`
pub(crate) async fn of_device(
    registry: &CachedRegistry<impl Clock>,
    (store, rollups): (&impl Store, Rollups<'_>),
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    let device = lookup::device(registry, store, call).await?;
    let latest = newest((store, rollups), &device, &all_metrics(&device), call.invocation).await;
    let latest = latest.map_err(|error| call.failed(&error))?;
    let values = latest.ok_or_else(|| {
        Problem::new(
            ProblemKind::NotFound,
            format!("The device {:?} has no readings.", device.id().as_str()),
        )
    })?;
    Ok(Response::json(200, &LatestRow { device_id: device.id(), values }))
}

/// `GET /rooms/{id}/latest`
pub(crate) async fn of_room(
    registry: &CachedRegistry<impl Clock>,
    (store, rollups): (&impl Store, Rollups<'_>),
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    let list = ListRequest::of(call.request, &call.params)?;
    let members = Members::of_room(registry, store, &list, call).await?;
    page_of_latest((store, rollups), call, &list, members.devices()).await
}

/// `GET /homes/{id}/latest`
pub(crate) async fn of_home(
    registry: &CachedRegistry<impl Clock>,
    (store, rollups): (&impl Store, Rollups<'_>),
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    let list = ListRequest::of(call.request, &call.params)?;
    let members = Members::of_home(registry, store, &list, call).await?;
    page_of_latest((store, rollups), call, &list, members.devices()).await
}

/// A page of devices' newest values; a device without readings has none. The table may have more devices.
async fn page_of_latest(
    (store, rollups): (&impl Store, Rollups<'_>),
    call: &mut Call<'_>,
    list: &ListRequest,
    (all, has_more): (Vec<&Device>, bool),
) -> Result<Response, Problem> {
    let (devices, rest) = list.devices(all.clone(), has_more, true);
    let latest = latest_of((store, rollups), &devices, call).await?;
    let rows: Vec<LatestRow<'_>> = devices
        .iter()
        .zip(latest)
        .filter_map(|(device, values)| Some(LatestRow { device_id: device.id(), values: values? }))
        .collect();
    let known = || metrics_of(all.iter().copied());
    let columns = || Columns { own: &LATEST_COLUMNS, known: known() };
    let behind = |row: usize| list.cursor_behind(rows[row].device_id.as_str());
    let request = (call.request, &call.params);
    Ok(page::write(list.format, request, &rows, columns, rest, behind))
}
