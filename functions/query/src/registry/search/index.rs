//! The search by the attribute index, for a registry that is larger than memory. Trusts no index entry: each device is
//! read and tested.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use api::Problem;
use domain::{AttributeName, Device, DeviceId, SearchCondition, SearchRange, SearchTest, Subject};
use futures_util::future::try_join_all;
use table::{Page, SearchHit, SearchQuery, StoreError};

use super::newest::{MAX_DEVICES, NewestValues};
use super::question::{FoundPage, Search, SearchPlan, not_indexed, unanswerable};
use crate::answer::cursor;
use crate::answer::pagination::ListRequest;
use crate::ports::Store;
use crate::readings::newest::NewestReader;
use crate::shared_state::Call;

/// The number of index entries, and then of devices, that are read at once.
const HITS: usize = 100;
/// The maximum number of index entries that one request reads; its page then ends early.
const MAX_HITS: usize = 2_000;

/// Finds the devices of a page.
pub(super) async fn find<'a>(
    search: &Search,
    list: &ListRequest,
    call: &mut Call<'_, impl Store>,
) -> Result<FoundPage<'a>, Problem> {
    if !call.session.is_indexed().await? {
        return Err(not_indexed());
    }
    let attributes = known_attributes(search, call).await?;
    let (own, newest) = search.parts(|name| attributes.contains(name));
    if own.is_empty() {
        return Err(nothing_drives(&newest));
    }

    let driver = driver(search, &own, list, call).await?;
    let fits = |device: &Device| {
        search.is_in_room(device)
            && own.iter().all(|own| own.holds_for(device) && is_indexed_for(own, device))
            && newest.may_hold_for(device)
    };

    // Newest values drop some candidates afterwards, so more candidates are needed than the page has devices.
    let limit = if newest.is_empty() { list.limit() } else { usize::MAX };
    let mut found = candidates(&driver, limit, fits, call).await?;
    let tested = found.keep_by_newest(&newest, &NewestReader::of(call)).await?;

    let place = |hit: &SearchHit| format!("{} {}", driver.index, hit.place());
    let rest = if found.devices.len() > list.limit() {
        found.devices.truncate(list.limit());
        found.devices.last().map(|last| place(&last.hit))
    } else {
        found.behind.as_ref().filter(|_| found.has_more).map(place)
    };

    let plan = search.is_explained.then(|| SearchPlan {
        source: "index",
        driver: Some(driver.condition.to_string()),
        newest_values: tested,
        estimated_read_units: driver.estimated,
        consumed_read_units: call.session.invocation.read_units(),
    });
    let found = found.devices.into_iter();
    let devices = found.map(|found| (Cow::Owned(found.device), place(&found.hit))).collect();
    Ok(FoundPage { devices, rest, plan, is_of_readings: !newest.is_empty() })
}

/// A device, and the index entry that has found it.
struct SearchCandidate {
    hit: SearchHit,
    device: Device,
}

/// Devices that the index has found.
struct Candidates {
    devices: Vec<SearchCandidate>,
    /// The last index entry that was read.
    behind: Option<SearchHit>,
    has_more: bool,
}

impl Candidates {
    /// Keeps the devices whose newest values fit. Returns the number of devices whose newest values were read.
    async fn keep_by_newest(
        &mut self,
        newest: &NewestValues<'_>,
        reader: &NewestReader<'_, impl Store>,
    ) -> Result<usize, Problem> {
        let tested = self.devices.len();
        if newest.is_empty() {
            return Ok(0);
        }

        if tested > MAX_DEVICES {
            return Err(unanswerable(format!(
                "The newest values of more than {MAX_DEVICES} devices would decide; narrow them by another condition."
            )));
        }

        let devices = self.devices.iter().map(|candidate| &candidate.device);
        let mut holds = newest.hold_for(devices, reader).await?.into_iter();
        self.devices.retain(|_| holds.next().expect("one for each"));
        Ok(tested)
    }
}

/// Reads the index entries of the chosen condition, and their devices, until more than `limit` devices fit.
async fn candidates(
    driver: &Driver<'_>,
    limit: usize,
    fits: impl Fn(&Device) -> bool,
    call: &mut Call<'_, impl Store>,
) -> Result<Candidates, Problem> {
    let (subject, range) = (&driver.condition.subject, driver.condition.range());
    let behind = driver.after.clone();
    let mut found = Candidates { devices: Vec::new(), behind, has_more: true };
    let mut hits_read = 0;

    while found.has_more && hits_read < MAX_HITS && found.devices.len() <= limit {
        let query =
            SearchQuery { subject, range: &range, after: found.behind.as_ref(), limit: HITS };
        let Page { items: hits, has_more } = call.session.search(&query).await?;
        hits_read += hits.len();
        found.has_more = has_more;
        found.behind = hits.last().cloned().or(found.behind);

        for candidate in devices_of(hits, call).await? {
            let first = first_hit(&candidate.device, subject, &range);
            if first.as_ref() == Some(&candidate.hit) && fits(&candidate.device) {
                found.devices.push(candidate);
            }
        }
    }
    Ok(found)
}

/// 422: the index cannot search by any of the conditions.
fn nothing_drives(newest: &NewestValues<'_>) -> Problem {
    const DETAIL: &str = "There are more devices than can be read one by one; name at least one name, kind, tag or \
                          attribute.";
    let names: BTreeSet<&str> = newest.metrics.iter().map(|(metric, _)| metric.as_str()).collect();
    if names.is_empty() {
        return unanswerable(DETAIL);
    }
    let names = Vec::from_iter(names).join(" or ");
    unanswerable(format!(
        "No device has an attribute {names}, so newest values of metrics would decide. {DETAIL}"
    ))
}

/// The names in the conditions that are attributes of at least one device.
async fn known_attributes(
    search: &Search,
    call: &mut Call<'_, impl Store>,
) -> Result<BTreeSet<AttributeName>, Problem> {
    let names: BTreeSet<&AttributeName> =
        search.conditions.iter().filter_map(SearchCondition::attribute).collect();
    let requests = names.into_iter().map(async |name| {
        let subject = Subject::Attribute(name.clone());
        let query =
            SearchQuery { subject: &subject, range: &SearchRange::All, after: None, limit: 1 };
        let page = call.session.search(&query).await?;
        Ok::<_, StoreError>((!page.items.is_empty()).then(|| name.clone()))
    });

    let found = try_join_all(requests).await?;
    Ok(found.into_iter().flatten().collect())
}

/// The condition and the position by which candidates are read from the index.
struct Driver<'c> {
    /// The condition whose entries are read.
    condition: &'c SearchCondition,
    /// The position of this condition among all conditions of the search. A cursor keeps the position.
    index: usize,
    /// The entry after which reading begins.
    after: Option<SearchHit>,
    /// The estimated read units.
    estimated: f64,
}

/// Chooses the condition whose entries are read. A cursor says which condition it continues. Without a cursor, a page
/// of entries of each condition is read, and the condition with the fewest entries is chosen. If each condition has
/// more than a page, an equality is preferred.
async fn driver<'c>(
    search: &'c Search,
    own: &[&'c SearchCondition],
    list: &ListRequest,
    call: &mut Call<'_, impl Store>,
) -> Result<Driver<'c>, Problem> {
    if let Some(place) = list.position() {
        return driver_of(place, search, own).ok_or_else(cursor::foreign);
    }

    let pages = own.iter().map(async |condition| {
        let (subject, range) = (&condition.subject, condition.range());
        let query = SearchQuery { subject, range: &range, after: None, limit: HITS };
        call.session.search(&query).await
    });
    let pages = try_join_all(pages).await?;

    let size = |index: &usize| {
        let page: &Page<SearchHit> = &pages[*index];
        let is_exact = matches!(own[*index].test, SearchTest::Equals(_));
        (page.has_more, page.has_more && !is_exact, page.items.len())
    };
    let chosen = (0..own.len()).min_by_key(size).expect("there is one");
    let (condition, estimated) = (own[chosen], estimate(pages[chosen].items.len()));
    let index = search.conditions.iter().position(|known| known == condition);
    Ok(Driver { condition, index: index.expect("it is of the search"), after: None, estimated })
}

/// The condition whose entries a cursor continues, and the last entry that was read. `None` if the condition is no
/// longer on an attribute, because no device has this attribute any more.
fn driver_of<'c>(place: &str, search: &'c Search, own: &[&SearchCondition]) -> Option<Driver<'c>> {
    let (index, hit) = place.split_once(' ')?;
    let index = index.parse().ok()?;
    let condition = search.conditions.get(index).filter(|condition| own.contains(condition))?;
    let after = Some(SearchHit::parse(hit)?);
    Some(Driver { condition, index, after, estimated: estimate(HITS) })
}

/// Estimated read units: one for each device that is read, and half a unit for the entries.
fn estimate(hits: usize) -> f64 {
    f64::from(u32::try_from(hits).unwrap_or(u32::MAX)) + 0.5
}

/// The first index entry of a device in a range. Only this entry finds the device, so that a device with several values
/// in the range is found once.
fn first_hit(device: &Device, subject: &Subject, range: &SearchRange) -> Option<SearchHit> {
    let entries = device.search_entries().into_iter();
    let entries = entries.filter(|entry| entry.subject == *subject && range.contains(&entry.value));
    let hits = entries.map(|entry| SearchHit { value: entry.value, device: device.id().clone() });
    hits.min_by_key(SearchHit::place)
}

/// Whether the index can find the device by this condition. The index has only names that people set, and no names from
/// senders. With this test, the result does not depend on which condition's entries are read.
fn is_indexed_for(condition: &SearchCondition, device: &Device) -> bool {
    condition.subject != Subject::Name || device.name().is_some()
}

/// The current devices of some index entries, in the order of the entries. Deleted devices are left out.
async fn devices_of(
    hits: Vec<SearchHit>,
    call: &mut Call<'_, impl Store>,
) -> Result<Vec<SearchCandidate>, Problem> {
    let ids: BTreeSet<&DeviceId> = hits.iter().map(|hit| &hit.device).collect();
    let ids: Vec<DeviceId> = ids.into_iter().cloned().collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }

    let found = call.session.find_devices(&ids).await?.found;
    let found: BTreeMap<&DeviceId, &Device> =
        found.iter().map(|device| (device.id(), device)).collect();
    let candidate = |hit: SearchHit| {
        let device = (*found.get(&hit.device)?).clone();
        Some(SearchCandidate { hit, device })
    };
    Ok(hits.into_iter().filter_map(candidate).collect())
}
