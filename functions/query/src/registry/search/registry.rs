//! The search among all devices in memory, by id. Asks no index.

use std::borrow::Cow;

use api::Problem;
use domain::Device;
use runtime::registry::Devices;
use table::StoreResult;

use super::newest::{MAX_DEVICES, NewestValues};
use super::question::{FoundPage, Search, SearchPlan, unanswerable};
use crate::answer::pagination::ListRequest;
use crate::ports::Store;
use crate::readings::newest::NewestReader;
use crate::shared_state::Call;

/// Finds the devices of a page.
pub(super) async fn find<'a>(
    search: &Search,
    devices: &'a Devices,
    list: &ListRequest,
    call: &mut Call<'_, impl Store>,
) -> Result<FoundPage<'a>, Problem> {
    let all = || devices.values();
    let (own, newest) =
        search.parts(|name| all().any(|device| device.attributes().contains_key(name)));
    let is_candidate = |device: &&Device| {
        search.is_in_room(device)
            && own.iter().all(|condition| condition.holds_for(device))
            && newest.may_hold_for(device)
    };
    let is_behind =
        |device: &&Device| list.position().is_none_or(|after| device.id().as_str() > after);

    let mut estimated = 0;
    let mut candidates: Vec<&Device> = if newest.is_empty() {
        // One device more than the page is taken, which shows that there are more.
        all().filter(is_behind).filter(is_candidate).take(list.limit() + 1).collect()
    } else {
        let candidates: Vec<_> = all().filter(is_candidate).collect();
        if candidates.len() > MAX_DEVICES {
            return Err(unanswerable(format!(
                "The newest values of {} devices would decide, and at most {MAX_DEVICES} can be read at once; \
                 narrow them by room, name, kind, tag or an attribute.",
                candidates.len()
            )));
        }
        let candidates: Vec<_> = candidates.into_iter().filter(is_behind).collect();
        estimated = candidates.len();
        candidates
    };

    let mut tested = 0;
    if !newest.is_empty() {
        let reader = NewestReader::of(call);
        (candidates, tested) = page_of(&candidates, &newest, &reader, list.limit()).await?;
    }

    let has_more = candidates.len() > list.limit();
    candidates.truncate(list.limit());
    let devices: Vec<_> = candidates
        .into_iter()
        .map(|device| (Cow::Borrowed(device), device.id().to_string()))
        .collect();

    Ok(FoundPage {
        rest: devices.last().map(|(_, place)| place.clone()).filter(|_| has_more),
        devices,
        plan: search.is_explained.then(|| SearchPlan {
            source: "registry",
            driver: None,
            newest_values: tested,
            // An estimate: half a unit for each candidate whose newest values may be read.
            estimated_read_units: f64::from(u32::try_from(estimated).unwrap_or(u32::MAX)) / 2.0,
            consumed_read_units: call.session.invocation.read_units(),
        }),
        is_of_readings: !newest.is_empty(),
    })
}

/// Tests candidates by their newest values, until more than `limit` have passed. Returns the devices that passed, and
/// the number of tested devices.
async fn page_of<'a>(
    candidates: &[&'a Device],
    newest: &NewestValues<'_>,
    reader: &NewestReader<'_, impl Store>,
    limit: usize,
) -> StoreResult<(Vec<&'a Device>, usize)> {
    let (mut found, mut tested) = (Vec::new(), 0);
    for some in candidates.chunks(limit) {
        tested += some.len();
        let holds = newest.hold_for(some.iter().copied(), reader).await?;
        let held = some.iter().zip(holds).filter(|(_, holds)| *holds);
        found.extend(held.map(|(device, _)| *device));
        if found.len() > limit {
            break;
        }
    }
    Ok((found, tested))
}
