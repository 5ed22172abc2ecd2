//! Random devices and random questions: both plans answer as a filter over all devices does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::Request;
use api::endpoints::{Access, find_path};
use api::{Params, ProblemKind};
use chrono::TimeDelta;
use domain::given::{at_millis, label};
use domain::{AttributeValue, Decimal, DeviceId, DevicePatch, Edit, Label, Reading};
use domain::{SearchCondition, Timestamp};
use form_urlencoded::byte_serialize;
use runtime::auth::Auth;
use runtime::authentication::Authenticator;
use runtime::clock::SystemClock;
use runtime::telemetry::WideEvent;
use table::Listing;
use table::given::{self, invocation};
use table::layout::{ATTRIBUTE_INDEX, Layout};
use table::memory_db::MemoryDb;
use table::{
    EditRegistry as _, IndexDevices as _, PutReadings as _, ReadRegistry as _,
    RegisterDevices as _, Session,
};

use super::*;
use crate::Settings;

const NAMES: [&str; 6] = ["Kitchen", "kitchen 2", "Küche", "KU\u{308}CHE #1", "hall", "1.5"];
const KINDS: [&str; 3] = ["Sensor", "plug", "sensor 2"];
const TAGS: [&str; 5] = ["window", "Window 2", "wind#w", "west", "ouest"];
const VERSIONS: [&str; 6] = ["1.4", "1.10", "1.40", "2", "-3", "beta"];
const SERVED: [i64; 4] = [-7, 0, 3, 12];

const QUESTIONS: [&str; 32] = [
    "name=kitchen",
    "name=KIT*",
    "name=ku\u{308}c*",
    "name=*",
    "name=1.5",
    "kind=sensor",
    "kind=sens*",
    "kind=plug",
    "tag=window",
    "tag=win*",
    "tag=w*",
    "tag=wind",
    "where=firmware=1.4",
    "where=firmware<1.4",
    "where=firmware<=1.4",
    "where=firmware>1.1",
    "where=firmware>=-3",
    "where=firmware=beta",
    "where=firmware=1*",
    "where=firmware=*",
    "where=rooms_served>3",
    "where=rooms_served>=3",
    "where=rooms_served<0",
    "where=rooms_served=3",
    "where=rooms_served=*",
    "where=tag=west",
    "where=unknown=1",
    "where=battery<20",
    "where=battery>=20",
    "where=battery=20",
    "silent=2h",
    "room=r1",
];

fn now() -> Timestamp {
    at_millis(0)
}

struct Fleet {
    store: MemoryDb,
    batteries: BTreeMap<String, (Option<i64>, Timestamp)>,
}

fn some<'a>(rng: &mut fastrand::Rng, all: &[&'a str], most: usize) -> Vec<&'a str> {
    let mut all = all.to_vec();
    rng.shuffle(&mut all);
    all.truncate(rng.usize(0..=most));
    all
}

fn patch(rng: &mut fastrand::Rng) -> DevicePatch {
    let mut patch = DevicePatch {
        name: Edit::Set(label(rng.choice(NAMES).expect("some"))),
        ..DevicePatch::default()
    };
    patch.kind = match some(rng, &KINDS, 1)[..] {
        [kind] => Edit::Set(label(kind)),
        _ => Edit::Clear,
    };
    let tags: Vec<Label> = some(rng, &TAGS, 3).into_iter().map(label).collect();
    patch.tags = Edit::Set(tags.try_into().expect("tags"));
    let number = |n: i64| AttributeValue::Number(decimal(n));
    let mut set = |name: &str, values: Vec<AttributeValue>| {
        let values = (!values.is_empty()).then(|| values.try_into().expect("different"));
        patch.attributes.insert(name.parse().expect("a name"), values);
    };
    let versions = some(rng, &VERSIONS, 2);
    set("firmware", versions.into_iter().map(|it| AttributeValue::Text(label(it))).collect());
    set(
        "rooms_served",
        rng.choice(SERVED).filter(|_| rng.bool()).map(number).into_iter().collect(),
    );
    patch
}

fn decimal(number: i64) -> Decimal {
    given::number(&number.to_string())
}

impl Fleet {
    fn empty() -> Self {
        let store = MemoryDb::of(Layout { attribute_index: true, ..Layout::default() });
        Self { store, batteries: BTreeMap::new() }
    }

    /// Puts every device into the index of attributes, as `roomtide reindex` does.
    async fn index_attributes(&self) {
        let (store, invocation) = (&self.store, invocation());
        store.begin_index("run", &invocation).await.expect("memory");
        for device in store.devices(&invocation).await.expect("memory").found {
            store.index_device(&device, &invocation).await.expect("memory");
        }
        assert!(store.end_index("run", now(), &invocation).await.expect("memory"));
    }

    async fn random(rng: &mut fastrand::Rng) -> Self {
        let fleet = Self::empty();
        let mut batteries = BTreeMap::new();
        for n in 0..rng.usize(1..60) {
            let id: DeviceId = given::device(&format!("d{n}"));
            let battery = rng.bool().then(|| rng.i64(18..23));
            let at = now().saturating_add(-TimeDelta::minutes(rng.i64(0..240)));
            let (metric, value) = battery.map_or(("t", 1), |battery| ("battery", battery));
            let values = [(given::metric(metric), decimal(value))];
            let room = Some(format!("r{}", rng.u8(0..3)).parse().expect("an id"));
            let reading = Reading::new(id.clone(), at, room, values.into()).expect("a reading");
            fleet.store.put_readings(std::slice::from_ref(&reading), None, &invocation()).await;
            given::register_devices_of(&fleet.store, &[reading]).await;
            batteries.insert(id.to_string(), (battery, at));
            if rng.u8(0..4) > 0 {
                fleet.edit(&id, &patch(rng)).await;
            }
        }
        Self { batteries, ..fleet }
    }

    async fn edit(&self, id: &DeviceId, patch: &DevicePatch) {
        self.store.edit_device(id, patch, now(), &invocation()).await.expect("memory");
    }

    async fn devices(&self) -> BTreeMap<DeviceId, Device> {
        let devices = self.store.devices(&invocation()).await.expect("memory").found;
        devices.into_iter().map(|device| (device.id().clone(), device)).collect()
    }

    /// The answer as the devices and their readings have it, one after the other.
    fn expected(&self, devices: &BTreeMap<DeviceId, Device>, asked: &[&str]) -> BTreeSet<String> {
        let is_attribute = |name: &str| {
            devices.values().flat_map(|it| it.attributes().keys()).any(|it| it.as_str() == name)
        };
        let holds = |device: &Device, question: &str| {
            let (battery, at) = self.batteries[device.id().as_str()];
            let (parameter, value) = question.split_once('=').expect("a parameter");
            match parameter {
                "room" => device.place().room().is_some_and(|room| room.as_str() == value),
                "silent" => at < now().saturating_add(-TimeDelta::hours(2)),
                "where" => {
                    let condition: SearchCondition = value.parse().expect("a condition");
                    let name = condition.subject.as_str();
                    if name == "battery" && !is_attribute(name) {
                        let battery = battery.map(decimal);
                        battery.is_some_and(|it| condition.holds_for_metric(&it))
                    } else {
                        condition.holds_for(device)
                    }
                }
                name => SearchCondition::like(name.parse().expect("a subject"), value)
                    .expect("a condition")
                    .holds_for(device),
            }
        };
        let found = devices.values().filter(|device| asked.iter().all(|it| holds(device, it)));
        found.map(|device| device.id().to_string()).collect()
    }

    /// All pages of a plan's answer.
    async fn walk(
        &self,
        asked: &[&str],
        limit: usize,
        in_memory: bool,
    ) -> Result<Vec<String>, Problem> {
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let (ids, next) = self.page(asked, limit, in_memory, cursor).await?;
            found.extend(ids);
            if next.is_none() {
                return Ok(found);
            }
            cursor = next;
        }
    }

    /// A page of a plan's answer: the ids of its devices, and the cursor of the next page.
    async fn page(
        &self,
        asked: &[&str],
        limit: usize,
        in_memory: bool,
        cursor: Option<String>,
    ) -> Result<(Vec<String>, Option<String>), Problem> {
        let devices = self.devices().await;
        let listing = Listing { found: devices.into_values().collect(), ..Listing::default() };
        let devices = in_memory.then_some(listing);
        let snapshot = Arc::new(RegistrySnapshot::of(devices, Some(Listing::default()), now()));
        let mut query: Vec<String> = asked
            .iter()
            .map(|it| {
                let (name, value) = it.split_once('=').expect("a parameter");
                format!("{name}={}", byte_serialize(value.as_bytes()).collect::<String>())
            })
            .collect();
        query.push(format!("limit={limit}"));
        query.extend(cursor.map(|cursor| format!("cursor={cursor}")));
        let request = Request {
            path: "/devices".to_owned(),
            raw_query: query.join("&"),
            ..Request::default()
        };
        let (endpoint, _) = find_path("GET", "/devices").expect("an endpoint");
        let params = Params::of(&request, endpoint)?;
        let (invocation, mut log) = (invocation(), WideEvent::begin("test"));
        let session = Session::new(&self.store, &invocation, now());
        let open = Authenticator::new(Auth::Owner);
        let grant = open.authorize(&request, Access::Public.into(), session, &mut log).await?;
        let list = ListRequest::of(&request, &params)?;
        let search = Search::of(&params, now())?;
        let mut call = Call {
            endpoint,
            id: String::new(),
            params,
            grant,
            request: &request,
            session,
            log: &mut log,
            shared: &SharedState::new(SystemClock, Settings::default()),
        };

        let page = find(&search, &snapshot, &list, &mut call).await?;
        assert!(page.devices.len() <= limit);
        let ids = page.devices.iter().map(|(device, _)| device.id().to_string()).collect();
        Ok((ids, page.rest.map(|place| list.cursor_after(&place))))
    }
}

/// Questions; the index can answer at least one of them.
fn questions(rng: &mut fastrand::Rng) -> Vec<&'static str> {
    let mut asked = some(rng, &QUESTIONS, 3);
    let own = &QUESTIONS[rng.usize(0..26)];
    if !asked.contains(own) {
        asked.push(own);
    }
    let is_once = |name: &str| asked.iter().filter(|it| it.starts_with(name)).count() < 2;
    if is_once("silent") && is_once("room") { asked } else { vec![own] }
}

#[tokio::test]
async fn both_plans_find_what_a_filter_over_all_devices_finds() {
    for seed in 0..150 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let fleet = Fleet::random(&mut rng).await;
        fleet.index_attributes().await;
        let devices = fleet.devices().await;
        for _ in 0..10 {
            let (asked, limit) = (questions(&mut rng), rng.usize(1..20));
            let expected = fleet.expected(&devices, &asked);
            for in_memory in [true, false] {
                let found = match fleet.walk(&asked, limit, in_memory).await {
                    Ok(found) => found,
                    // No device has the attribute, so that the name is a metric's and nothing is left to ask.
                    Err(problem) => {
                        assert!(
                            !in_memory && problem.detail.contains("name at least"),
                            "{problem:?}"
                        );
                        continue;
                    }
                };
                let distinct: BTreeSet<String> = found.iter().cloned().collect();
                assert_eq!(distinct.len(), found.len(), "{seed} {asked:?} {in_memory}: one twice");
                assert_eq!(distinct, expected, "{seed} {asked:?} {in_memory} {limit}");
            }
        }
    }
}

#[tokio::test]
async fn a_name_that_a_sender_taught_is_found_in_memory_only() {
    let fleet = Fleet::empty();
    let device = given::device_of([&given::reading("d", now(), None, &[("t", "20")])]);
    let device = device.changed(|it| it.source.name = Some(label("Meter"))).expect("a device");
    let id = device.id().clone();
    fleet.store.register_device(&device, &invocation()).await.expect("memory");
    let kind = Edit::Set(label("plug"));
    fleet.edit(&id, &DevicePatch { kind, ..DevicePatch::default() }).await;
    fleet.index_attributes().await;
    for asked in [&["name=meter"][..], &["name=m*", "kind=plug"]] {
        let found = async |in_memory| fleet.walk(asked, 10, in_memory).await.expect("an answer");
        assert_eq!((found(true).await, found(false).await), (vec!["d".to_owned()], vec![]));
    }
}

#[tokio::test]
async fn an_index_that_lags_behind_shows_no_device_that_is_not_asked_for() {
    for seed in 0..100 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let fleet = Fleet::random(&mut rng).await;
        fleet.index_attributes().await;
        fleet.store.freeze_index(&ATTRIBUTE_INDEX);
        let before = fleet.devices().await;
        for id in before.keys() {
            if rng.bool() {
                fleet.edit(id, &patch(&mut rng)).await;
            }
        }
        let devices = fleet.devices().await;
        for _ in 0..5 {
            let (asked, limit) = (questions(&mut rng), rng.usize(1..20));
            let Ok(found) = fleet.walk(&asked, limit, false).await else { continue };
            let found: BTreeSet<String> = found.into_iter().collect();
            let expected = fleet.expected(&devices, &asked);
            assert!(found.is_subset(&expected), "{seed} {asked:?}: {found:?} of {expected:?}");
            let same = |id: &&String| {
                let id: DeviceId = given::device(id);
                devices[&id] == before[&id]
            };
            let unchanged: BTreeSet<String> = expected.iter().filter(same).cloned().collect();
            assert!(unchanged.is_subset(&found), "{seed} {asked:?}: {unchanged:?} of {found:?}");
        }
    }
}

#[tokio::test]
async fn a_page_goes_on_where_the_last_one_ended_although_a_name_becomes_that_of_an_attribute() {
    let fleet = Fleet::empty();
    let set = async |id: &str, name: &str, number: Option<i64>| {
        let value = number.map(|number| vec![AttributeValue::Number(decimal(number))]);
        let value = value.map(|value| value.try_into().expect("one value"));
        let attributes = [(name.parse().expect("a name"), value)].into();
        fleet.edit(&given::device(id), &DevicePatch { attributes, ..DevicePatch::default() }).await;
    };
    for (id, metric) in [("d0", "battery"), ("d1", "battery"), ("d2", "t"), ("d3", "t")] {
        let reading = given::reading(id, now(), None, &[(metric, "20")]);
        fleet.store.put_readings(std::slice::from_ref(&reading), None, &invocation()).await;
        given::register_devices_of(&fleet.store, &[reading]).await;
        set(id, "firmware", Some(30)).await;
    }
    fleet.index_attributes().await;
    let asked = ["where=battery>=20", "where=firmware=30"];
    let page = async |cursor| fleet.page(&asked, 1, false, cursor).await;

    let (of_newest_values, cursor) = page(None).await.expect("an answer");
    for id in ["d2", "d3"] {
        set(id, "battery", Some(20)).await;
    }
    let (of_attributes, cursor) = page(cursor).await.expect("an answer");
    assert_eq!(
        (&of_newest_values[..], &of_attributes[..]),
        (&["d0".to_owned()][..], &["d2".to_owned()][..])
    );

    for id in ["d0", "d1", "d2", "d3"] {
        set(id, "firmware", None).await;
    }
    let refused = page(cursor).await.expect_err("no device has the attribute any more");
    assert_eq!(refused.errors[0].field.as_deref(), Some("cursor"));
}

#[tokio::test]
async fn what_would_cost_too_much_or_is_not_indexed_is_refused() {
    let fleet = Fleet::empty();
    let at = now().saturating_add(-TimeDelta::hours(3));
    for n in 0..=newest::MAX_DEVICES {
        let reading = given::reading(&format!("d{n}"), at, None, &[("battery", "20")]);
        given::register_devices_of(&fleet.store, std::slice::from_ref(&reading)).await;
        let kind = Edit::Set(label(if n == 0 { "plug" } else { "sensor" }));
        fleet.edit(&reading.device, &DevicePatch { kind, ..DevicePatch::default() }).await;
    }
    let refused = async |asked: &[&str], in_memory| {
        let problem = fleet.walk(asked, 10, in_memory).await.expect_err("refused");
        assert_eq!(problem.kind, ProblemKind::Unanswerable);
        problem.detail
    };
    let why = refused(&["where=battery<50"], true).await;
    assert!(why.starts_with("The newest values of 1001 devices would decide"), "{why}");
    assert_eq!(fleet.walk(&["silent=2h", "kind=plug"], 10, true).await.expect("answered"), ["d0"]);
    let why = refused(&["kind=plug"], false).await;
    assert!(why.contains("set AttributeIndex to on, and run roomtide reindex"), "{why}");
    fleet.index_attributes().await;
    assert_eq!(fleet.walk(&["silent=2h", "kind=plug"], 10, false).await.expect("answered"), ["d0"]);
    let why = refused(&["silent=2h", "kind=*"], false).await;
    assert!(why.contains("more than 1000 devices would decide"), "{why}");
    let why = refused(&["silent=2h"], false).await;
    assert!(why.starts_with("There are more devices than can be read one by one; name"), "{why}");
    let why = refused(&["where=firmwear=1.4", "where=battery<5"], false).await;
    assert!(why.starts_with("No device has an attribute battery or firmwear, so"), "{why}");
    assert!(why.contains("name at least one name, kind, tag or attribute"), "{why}");
}
