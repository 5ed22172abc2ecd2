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
    let (own, newest) =
        search.parts(|name| devices.values().any(|device| device.attributes().contains_key(name)));
    let is_candidate = |device: &&Device| {
        search.is_in_room(device)
            && own.iter().all(|condition| condition.holds_for(device))
            && newest.may_hold_for(device)
    };
    let candidates = devices.values().filter(is_candidate);
    let follows = |device: &&Device| list.position().is_none_or(|last| device.id().as_str() > last);

    let (mut estimated, mut tested) = (0, 0);
    let mut found: Vec<&Device> = if newest.is_empty() {
        // One device more than the page has shows that there are more.
        candidates.filter(follows).take(list.limit() + 1).collect()
    } else {
        let candidates: Vec<_> = candidates.collect();
        check_number(candidates.len())?;
        let candidates: Vec<_> = candidates.into_iter().filter(follows).collect();
        estimated = candidates.len();
        let tests = newest_page(&candidates, &newest, &NewestReader::of(call), list).await?;
        tested = tests.tested;
        tests.passed
    };

    let has_more = found.len() > list.limit();
    found.truncate(list.limit());
    let devices: Vec<_> =
        found.into_iter().map(|device| (Cow::Borrowed(device), device.id().to_string())).collect();

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

/// Refuses to read the newest values of too many devices.
fn check_number(candidates: usize) -> Result<(), Problem> {
    if candidates <= MAX_DEVICES {
        return Ok(());
    }
    Err(unanswerable(format!(
        "The newest values of {candidates} devices would decide, and at most {MAX_DEVICES} can be read at once; \
         narrow them by room, name, kind, tag or an attribute."
    )))
}

/// Devices that were tested by their newest values.
struct NewestTests<'a> {
    tested: usize,
    passed: Vec<&'a Device>,
}

/// Tests candidates by their newest values, until more than a page of them have passed.
async fn newest_page<'a>(
    candidates: &[&'a Device],
    newest: &NewestValues<'_>,
    reader: &NewestReader<'_, impl Store>,
    list: &ListRequest,
) -> StoreResult<NewestTests<'a>> {
    let mut tests = NewestTests { tested: 0, passed: Vec::new() };
    for some in candidates.chunks(list.limit()) {
        tests.tested += some.len();
        let holds = newest.hold_for(some.iter().copied(), reader).await?;
        let passed = some.iter().zip(holds).filter(|(_, holds)| *holds);
        tests.passed.extend(passed.map(|(device, _)| *device));
        if tests.passed.len() > list.limit() {
            break;
        }
    }
    Ok(tests)
}
