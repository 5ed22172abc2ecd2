//! Devices behind meters: no circle is ever written, and no meter is deleted that others are behind.

use std::collections::BTreeMap;

use domain::{
    BehindError, DeviceId, DevicePatch, DevicePatchError, Edit, MAX_METERS_ABOVE, MetricKind,
    MetricPatch,
};
use futures_util::future::join_all;
use table::{BegunDeletion, Edited, UpdateOutcome};

use super::Ports;
use super::registry::{device_now, registered};
use crate::given::{answer, at, device, number, patch_of, unit};

type Outcome = UpdateOutcome<Edited, DevicePatchError>;

async fn behind(store: &impl Ports, id: &str, meter: Edit<&str>) -> Outcome {
    let behind = match meter {
        Edit::Keep => Edit::Keep,
        Edit::Clear => Edit::Clear,
        Edit::Set(meter) => Edit::Set(device(meter)),
    };
    let patch = DevicePatch { behind, ..DevicePatch::default() };
    answer!(store.edit_device(&device(id), &patch, at(0)))
}

async fn put_behind(store: &impl Ports, id: &str, meter: &str) {
    let outcome = behind(store, id, Edit::Set(meter)).await;
    assert!(matches!(outcome, UpdateOutcome::Updated(_)), "{id} behind {meter}: {outcome:?}");
}

fn refused(why: BehindError) -> Outcome {
    UpdateOutcome::ConditionFailed(Some(why.into()))
}

fn circle(device_id: &str, meter: &str) -> Outcome {
    refused(BehindError::Circle { meter: device(meter), device: device(device_id) })
}

/// The meter of each of these devices.
async fn meters(store: &impl Ports, ids: &[&str]) -> BTreeMap<DeviceId, Option<DeviceId>> {
    let ids: Vec<DeviceId> = ids.iter().map(|id| device(id)).collect();
    let found = answer!(store.find_devices(&ids)).found;
    found.into_iter().map(|it| (it.id().clone(), it.behind().cloned())).collect()
}

/// A device from which the way up comes back to itself.
fn circular(meters: &BTreeMap<DeviceId, Option<DeviceId>>) -> Option<&DeviceId> {
    meters.keys().find(|start| {
        let up = |it: &&DeviceId| meters.get(*it).and_then(Option::as_ref);
        let way = std::iter::successors(up(start), up).take(meters.len());
        way.into_iter().any(|it| it == *start)
    })
}

pub(super) async fn a_circle_is_refused_however_long(store: &impl Ports) {
    for id in ["a", "b", "c", "d"] {
        registered(store, id).await;
    }
    assert_eq!(behind(store, "a", Edit::Set("a")).await, refused(BehindError::Itself));
    put_behind(store, "a", "b").await;
    assert_eq!(behind(store, "b", Edit::Set("a")).await, circle("b", "a"));
    put_behind(store, "b", "c").await;
    put_behind(store, "c", "d").await;
    for meter in ["a", "b", "c"] {
        assert_eq!(behind(store, "d", Edit::Set(meter)).await, circle("d", meter));
    }
    assert_eq!(device_now(store, "d").await.behind(), None);
    // From the top, the other way round makes no circle.
    behind(store, "a", Edit::Clear).await;
    put_behind(store, "d", "a").await;
}

pub(super) async fn what_cannot_be_a_meter_is_named(store: &impl Ports) {
    registered(store, "d").await;
    let nobody = refused(BehindError::NoMeter(device("nobody")));
    assert_eq!(behind(store, "d", Edit::Set("nobody")).await, nobody);
    let ids: Vec<String> = (0..=MAX_METERS_ABOVE).map(|n| format!("m{n:02}")).collect();
    for id in &ids {
        registered(store, id).await;
    }
    // From the top down, each with one more above it.
    for pair in ids.windows(2) {
        put_behind(store, &pair[1], &pair[0]).await;
    }
    let lowest = &ids[MAX_METERS_ABOVE];
    let too_deep = refused(BehindError::TooDeep(device(lowest)));
    assert_eq!(behind(store, "d", Edit::Set(lowest)).await, too_deep);
    put_behind(store, "d", &ids[MAX_METERS_ABOVE - 1]).await;
}

pub(super) async fn of_edits_at_once_that_close_a_circle_one_is_refused(store: &impl Ports) {
    let all = ["a", "b", "c", "d"];
    for id in all {
        registered(store, id).await;
    }
    for length in 2..=all.len() {
        let ids = &all[..length];
        let edits = (0..length).map(|n| behind(store, ids[n], Edit::Set(ids[(n + 1) % length])));
        let outcomes = join_all(edits).await;
        let done = outcomes.iter().filter(|it| matches!(it, UpdateOutcome::Updated(_))).count();
        let meters = meters(store, ids).await;
        assert_eq!(circular(&meters), None, "{outcomes:?}");
        assert_eq!(done, length - 1, "one is refused, no other: {outcomes:?}");
        for id in ids {
            behind(store, id, Edit::Clear).await;
        }
    }
}

async fn noted(store: &impl Ports, meter: &str) -> Vec<String> {
    let now = device_now(store, meter).await;
    now.behind_it().iter().map(ToString::to_string).collect()
}

pub(super) async fn a_meter_knows_who_is_behind_it(store: &impl Ports) {
    for id in ["main", "sub", "x", "y"] {
        registered(store, id).await;
    }
    put_behind(store, "x", "main").await;
    put_behind(store, "y", "main").await;
    put_behind(store, "sub", "main").await;
    assert_eq!(noted(store, "main").await, ["sub", "x", "y"]);
    let versions =
        (device_now(store, "main").await.version(), device_now(store, "x").await.version());
    put_behind(store, "x", "main").await;
    let now = (device_now(store, "main").await.version(), device_now(store, "x").await.version());
    assert_eq!(now, versions, "done twice, the second time changes nothing");
    // To a meter below the one that it leaves: both are written in one transaction.
    put_behind(store, "x", "sub").await;
    assert_eq!(noted(store, "main").await, ["sub", "y"]);
    assert_eq!(noted(store, "sub").await, ["x"]);
    put_behind(store, "x", "main").await;
    assert_eq!(noted(store, "sub").await, [""; 0]);
    behind(store, "x", Edit::Clear).await;
    behind(store, "sub", Edit::Clear).await;
    assert_eq!(noted(store, "main").await, ["y"]);
}

async fn begun(store: &impl Ports, id: &str) -> BegunDeletion {
    answer!(store.begin_deletion(&device(id), at(5)))
}

pub(super) async fn a_meter_with_devices_behind_it_is_not_deleted(store: &impl Ports) {
    for id in ["main", "x", "y"] {
        registered(store, id).await;
    }
    put_behind(store, "y", "main").await;
    put_behind(store, "x", "main").await;
    let both = BegunDeletion::Meter(["x", "y"].map(device).into());
    assert_eq!(begun(store, "main").await, both);
    assert_eq!(device_now(store, "main").await.behind_it().len(), 2, "nothing has changed");
    behind(store, "x", Edit::Clear).await;
    assert_eq!(begun(store, "main").await, BegunDeletion::Meter([device("y")].into()));
    // A device that is deleted is behind nothing any more.
    assert!(matches!(begun(store, "y").await, BegunDeletion::Deletion(_)));
    assert_eq!(noted(store, "main").await, [""; 0]);
    assert!(matches!(begun(store, "main").await, BegunDeletion::Deletion(_)));
    let gone = refused(BehindError::NoMeter(device("main")));
    assert_eq!(behind(store, "x", Edit::Set("main")).await, gone);
}

pub(super) async fn a_device_put_behind_a_meter_or_the_meter_deleted_not_both(store: &impl Ports) {
    for n in 0..4 {
        let (meter, id) = (&format!("m{n}"), &format!("x{n}"));
        registered(store, meter).await;
        registered(store, id).await;
        let edit = behind(store, id, Edit::Set(meter));
        let (edited, deleted) = futures_util::join!(edit, begun(store, meter));
        let is_edited = matches!(edited, UpdateOutcome::Updated(_));
        let is_deleted = matches!(deleted, BegunDeletion::Deletion(_));
        assert_ne!(is_edited, is_deleted, "{edited:?} {deleted:?}");
    }
}

pub(super) async fn settings_are_checked_on_what_is_stored(store: &impl Ports) {
    registered(store, "d").await;
    let patch = |settings: MetricPatch| patch_of("temperature", settings);
    let modulus =
        patch(MetricPatch { modulus: Edit::Set(number("1000")), ..MetricPatch::default() });
    let edit = async |patch: &DevicePatch| answer!(store.edit_device(&device("d"), patch, at(0)));
    match edit(&modulus).await {
        UpdateOutcome::ConditionFailed(Some(why)) => {
            assert_eq!(why.field(), "metrics.temperature.modulus");
        }
        other => panic!("{other:?}"),
    }
    let counter = MetricPatch {
        kind: Edit::Set(MetricKind::Counter),
        unit: Edit::Set(unit("kWh")),
        ..MetricPatch::default()
    };
    assert!(matches!(edit(&patch(counter)).await, UpdateOutcome::Updated(_)));
    assert!(matches!(edit(&modulus).await, UpdateOutcome::Updated(_)));
}
