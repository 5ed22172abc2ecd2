//! The search by the index of attributes, for a registry that is larger than memory. Trusts no index entry: each device
//! is read and tested.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use api::Problem;
use domain::{AttributeName, Device, DeviceId, SearchCondition, SearchRange, SearchTest, Subject};
use futures_util::future::try_join_all;
use runtime::http::Call;
use table::{Page, SearchHit, SearchQuery, StoreError};

use super::newest::{MAX_DEVICES, NewestValues};
use super::question::{Found, Plan, Search, not_indexed, unanswerable};
use crate::answer::cursor;
use crate::answer::pagination::ListRequest;
use crate::ports::Store;
use crate::readings::newest::NewestReader;

/// The number of index entries, and then of devices, that are read at once.
const HITS: usize = 100;
/// The maximum number of index entries that one request reads; its page then ends early.
const MAX_HITS: usize = 2_000;

/// Finds the devices of a page.
pub(super) async fn find<'a>(
    search: &Search,
    reader: &NewestReader<'_, impl Store>,
    list: &ListRequest,
    call: &mut Call<'_, impl Store>,
) -> Result<Found<'a>, Problem> {
    let is_indexed = call.session.is_indexed().await?;
    if !is_indexed {
        return Err(not_indexed());
    }
    let attributes = known_attributes(search, call).await?;
    let (own, newest) = search.parts(|name| attributes.contains(name));
    if own.is_empty() {
        return Err(nothing_drives(&newest));
    }

    let Driver { condition, after, estimated } = driver(&own, list, call).await?;
    let fits = |device: &Device| {
        search.is_in_room(device)
            && own.iter().all(|own| own.holds_for(device) && is_indexed_for(own, device))
            && newest.may_hold_for(device)
    };
    // A limit would be too low, because newest values leave out some of the candidates.
    let limit = if newest.is_empty() { list.limit() } else { usize::MAX };
    let found = candidates(condition, after, limit, fits, call).await?;
    let Candidates { devices: mut candidates, behind, has_more } = found;

    let tested = if newest.is_empty() { 0 } else { candidates.len() };
    if tested > MAX_DEVICES {
        return Err(unanswerable(format!(
            "The newest values of more than {MAX_DEVICES} devices would decide; narrow them by another condition."
        )));
    }

    if !newest.is_empty() {
        let devices = candidates.iter().map(|(_, device)| device);
        let mut holds = newest.hold_for(devices, reader).await?.into_iter();
        candidates.retain(|_| holds.next().expect("one for each"));
    }

    let n = own
        .iter()
        .position(|own_condition| *own_condition == condition)
        .expect("it is one of them");
    let place = |hit: &SearchHit| format!("{n} {}", hit.place());
    let rest = if candidates.len() > list.limit() {
        candidates.truncate(list.limit());
        candidates.last().map(|(hit, _)| place(hit))
    } else {
        behind.as_ref().filter(|_| has_more).map(place)
    };
    Ok(Found {
        devices: candidates
            .into_iter()
            .map(|(hit, device)| (Cow::Owned(device), place(&hit)))
            .collect(),
        rest,
        plan: search.is_explained.then(|| Plan {
            source: "index",
            driver: Some(condition.to_string()),
            newest_values: tested,
            estimated_read_units: estimated,
            consumed_read_units: call.session.invocation.read_units(),
        }),
        is_of_readings: !newest.is_empty(),
    })
}

/// Devices that the index has found, each with its entry.
struct Candidates {
    devices: Vec<(SearchHit, Device)>,
    /// The last index entry that was read.
    behind: Option<SearchHit>,
    has_more: bool,
}

/// Reads index entries of a condition, and their devices, until more than `limit` devices fit.
async fn candidates(
    condition: &SearchCondition,
    after: Option<SearchHit>,
    limit: usize,
    fits: impl Fn(&Device) -> bool,
    call: &mut Call<'_, impl Store>,
) -> Result<Candidates, Problem> {
    let (subject, range) = (&condition.subject, condition.range());
    let mut found = Candidates { devices: Vec::new(), behind: after, has_more: true };
    let mut hits_read = 0;

    while found.has_more && hits_read < MAX_HITS && found.devices.len() <= limit {
        let query =
            SearchQuery { subject, range: &range, after: found.behind.as_ref(), limit: HITS };
        let Page { items: hits, has_more } = call.session.search(&query).await?;
        hits_read += hits.len();
        found.has_more = has_more;
        found.behind = hits.last().cloned().or(found.behind);

        for (hit, device) in devices_of(hits, call).await? {
            let is_first = first_hit(&device, subject, &range).as_ref() == Some(&hit);
            if is_first && fits(&device) {
                found.devices.push((hit, device));
            }
        }
    }
    Ok(found)
}

/// 422: the index holds nothing by which the conditions could be searched.
fn nothing_drives(newest: &NewestValues<'_>) -> Problem {
    const DETAIL: &str = "There are more devices than can be read one by one; name at least one name, kind, tag or \
                          attribute.";
    let names: BTreeSet<&str> = newest.metrics.iter().map(|(metric, _)| metric.as_str()).collect();
    if names.is_empty() {
        return unanswerable(DETAIL);
    }
    let names: Vec<&str> = names.into_iter().collect();
    unanswerable(format!(
        "No device has an attribute {}, so newest values of metrics would decide. {DETAIL}",
        names.join(" or ")
    ))
}

/// The names in the conditions that are attributes of any device.
async fn known_attributes(
    search: &Search,
    call: &mut Call<'_, impl Store>,
) -> Result<BTreeSet<AttributeName>, Problem> {
    let names: BTreeSet<&AttributeName> =
        search.conditions.iter().filter_map(SearchCondition::attribute).collect();
    let asked = names.into_iter().map(async |name| {
        let subject = Subject::Attribute(name.clone());
        let query =
            SearchQuery { subject: &subject, range: &SearchRange::All, after: None, limit: 1 };
        let page = call.session.search(&query).await?;
        Ok::<_, StoreError>((!page.items.is_empty()).then(|| name.clone()))
    });
    let found = try_join_all(asked).await?;
    Ok(found.into_iter().flatten().collect())
}

/// How candidates are read from the index: the condition whose entries are read, the entry after which
/// reading begins, and the estimated read units.
struct Driver<'c> {
    condition: &'c SearchCondition,
    after: Option<SearchHit>,
    estimated: f64,
}

/// Chooses the condition whose entries are read. A cursor continues its own condition. A first page takes the condition
/// with the fewest entries, as far as the first page of each tells.
async fn driver<'c>(
    own: &[&'c SearchCondition],
    list: &ListRequest,
    call: &mut Call<'_, impl Store>,
) -> Result<Driver<'c>, Problem> {
    if let Some(place) = list.place() {
        let (condition, after) = parse_place(place, own).ok_or_else(cursor::foreign)?;
        return Ok(Driver { condition, after: Some(after), estimated: estimate(HITS) });
    }

    let pages = own.iter().map(async |condition| {
        let (subject, range) = (&condition.subject, condition.range());
        let query = SearchQuery { subject, range: &range, after: None, limit: HITS };
        call.session.search(&query).await
    });
    let pages = try_join_all(pages).await?;
    let size = |(condition, page): &(&&'c SearchCondition, Page<SearchHit>)| {
        let is_exact = matches!(condition.test, SearchTest::Equals(_));
        (page.has_more, page.has_more && !is_exact, page.items.len())
    };
    let (condition, page) = own.iter().zip(pages).min_by_key(size).expect("there is one");
    Ok(Driver { condition, after: None, estimated: estimate(page.items.len()) })
}

/// Estimated read units: one for each device that is read, and half a unit for the entries.
fn estimate(hits: usize) -> f64 {
    f64::from(u32::try_from(hits).unwrap_or(u32::MAX)) + 0.5
}

fn parse_place<'c>(
    place: &str,
    own: &[&'c SearchCondition],
) -> Option<(&'c SearchCondition, SearchHit)> {
    let (n, hit) = place.split_once(' ')?;
    Some((*own.get(n.parse::<usize>().ok()?)?, SearchHit::parse(hit)?))
}

/// The first index entry of a device in a range. Only this entry finds the device, so that several values in the range
/// do not find it twice.
fn first_hit(device: &Device, subject: &Subject, range: &SearchRange) -> Option<SearchHit> {
    let entries = device.search_entries().into_iter();
    let entries = entries.filter(|entry| entry.subject == *subject && range.contains(&entry.value));
    let hits = entries.map(|entry| SearchHit { value: entry.value, device: device.id().clone() });
    hits.min_by_key(SearchHit::place)
}

/// Whether the index could find the device by this condition. Names that senders taught are not in the index, because
/// only edits write entries. So the result does not depend on the condition whose entries are read.
fn is_indexed_for(condition: &SearchCondition, device: &Device) -> bool {
    condition.subject != Subject::Name || device.name().is_some()
}

/// The current devices of some index entries, in the order of the entries. Deleted devices are left out.
async fn devices_of(
    hits: Vec<SearchHit>,
    call: &mut Call<'_, impl Store>,
) -> Result<Vec<(SearchHit, Device)>, Problem> {
    let ids: BTreeSet<&DeviceId> = hits.iter().map(|hit| &hit.device).collect();
    let ids: Vec<DeviceId> = ids.into_iter().cloned().collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }

    let found = call.session.find_devices(&ids).await;
    let found = found?.found;
    let found: BTreeMap<&DeviceId, &Device> =
        found.iter().map(|device| (device.id(), device)).collect();
    let device = |hit: SearchHit| {
        let device = *found.get(&hit.device)?;
        Some((hit, device.clone()))
    };
    Ok(hits.into_iter().filter_map(device).collect())
}
