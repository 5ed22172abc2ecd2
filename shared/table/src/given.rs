//! Data for tests: readings with their devices and rooms, rollups as they are first put, and alerts. Holds no state.

use std::collections::BTreeMap;
use std::time::Duration;

use alerts::{
    AlertSubject, Anchor, EpisodeState, Fold, LinkKey, Message, News, Phase, Rule, ToldAlert,
};
pub use domain::given::*;
use domain::{
    Bucket, DeviceId, QuarterHour, Reading, Rollup, Room, SWEEP_GROUPS, Scope, TimeRange,
    Timestamp, Token, TokenHash,
};

use crate::db::{Db, put};
use crate::item::Attribute;
use crate::keys::STATE;
use crate::{
    AlertKey, AlertState, Deadline, Expected, Invocation, KeepRollupState, PutReadings, PutRollups,
    RegisterDevices, RollupKey, RollupState, Session, StoredAlertState, StoredChannel,
    StoredRollup, StoredRule,
};

/// A deadline after a minute. No test takes as long, so no test fails on a slow machine.
pub fn minute() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

/// A session for which the time of day does not matter.
pub const fn session<'a, S>(store: &'a S, invocation: &'a Invocation) -> Session<'a, S> {
    Session::new(store, invocation, Timestamp::MAX)
}

/// An invocation of a [`minute`].
pub fn invocation() -> Invocation {
    Invocation::until(minute())
}

/// The secret of a test's token in its usual form; an empty name gives an empty text.
pub fn secret(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("rt_{name:-<43}") }
}

/// The token with that [`secret`]. It is not revoked.
pub fn token(name: &str, scope: Scope) -> Token {
    let hash = TokenHash::of(&secret(name));
    Token {
        hash,
        scope,
        name: None,
        created: Timestamp::MIN,
        revoked: None,
        expires: None,
        issued_by: None,
    }
}

/// Registers the devices of some readings.
pub async fn register_devices_of(store: &impl RegisterDevices, readings: &[Reading]) {
    let mut of_devices: BTreeMap<&DeviceId, Vec<&Reading>> = BTreeMap::new();
    for reading in readings {
        of_devices.entry(&reading.device).or_default().push(reading);
    }
    for own in of_devices.into_values() {
        store.register_device(&device_of(own), &invocation()).await.expect("written");
    }
}

/// Registers a room with the time of its first reading.
pub async fn register_room(store: &impl RegisterDevices, id: &str, first_seen: Timestamp) {
    let room = Room::new(room(id), first_seen);
    store.register_room(&room, &invocation()).await.expect("written");
}

/// Stores readings, and registers their devices and rooms.
pub async fn store_home(store: &(impl PutReadings + RegisterDevices), readings: &[Reading]) {
    assert!(store.put_readings(readings, None, &invocation()).await.not_stored.is_empty());
    register_devices_of(store, readings).await;
    let rooms = readings.iter().rev();
    let rooms = rooms.filter_map(|reading| Some((reading.room.as_ref()?.as_str(), reading.at)));
    for (room, at) in rooms.collect::<BTreeMap<_, _>>() {
        register_room(store, room, at).await;
    }
}

/// The first version of a rollup. The rollup of a day is in UTC.
pub fn stored_rollup(
    device: &DeviceId,
    bucket: Bucket,
    range: TimeRange,
    rollup: Rollup,
) -> StoredRollup {
    StoredRollup {
        key: RollupKey { device: device.clone(), bucket },
        range,
        zone: matches!(bucket, Bucket::Day(_)).then(|| "UTC".to_owned()),
        version: 1,
        settings: 0,
        raw_until: None,
        expires: None,
        is_frozen: false,
        indexed: None,
        rollup,
    }
}

/// The first version of the rollup of a quarter of an hour.
pub fn stored_quarter(device: &DeviceId, quarter: QuarterHour, rollup: Rollup) -> StoredRollup {
    stored_rollup(device, Bucket::QuarterHour(quarter), quarter.range(), rollup)
}

/// Stores the first state of the rollups, with all rollups before `until` complete.
pub async fn seal(store: &impl KeepRollupState, zone: &str, until: Timestamp) {
    let (zone, since, sealed) = (zone.to_owned(), Timestamp::MIN, [until; SWEEP_GROUPS]);
    let state = RollupState { zone, since, sealed, queue: None };
    store.begin_rollups(&state, &invocation()).await.expect("written");
}

/// Damages the state of the rollups: its item keeps only its key.
pub async fn damage_rollup_state(store: &impl Db) {
    let text = |text: &str| Attribute::S(text.into());
    let state = put([("pk", text(STATE)), ("sk", text("rollup"))]);
    store.write(state, &invocation()).await.expect("written");
}

/// Puts the first version of a rollup.
pub async fn put_first(store: &impl PutRollups, rollup: &StoredRollup) {
    let put = store.put_rollup(rollup, Expected::Absent, &invocation()).await;
    assert!(put.expect("asked"), "there is one: {:?}", rollup.key);
}

/// The identity of a rule's state on a device.
pub fn alert_key(rule: &str, device: &str) -> AlertKey {
    let subject = AlertSubject::Device(domain::given::device(device));
    AlertKey { rule: rule.parse().expect("an id"), subject }
}

/// The first version of a rule about one metric of a device.
pub fn alert_rule(id: &str, changed: Timestamp) -> StoredRule {
    let members = serde_json::json!({
        "name": "冷凍庫 ❄", "device": "d", "metric": "temperature", "for": "10m",
        "above": "-12.5", "clear": "-15.000000000000000000000000000000000001",
    });
    let rule = Rule::from_json(members, changed).expect("a rule");
    StoredRule { id: id.parse().expect("an id"), version: 1, definition: rule }
}

/// The first version of a state. Its alert fires, and nearly every optional field has a value.
pub fn firing(rule: &str, device: &str) -> StoredAlertState {
    let fold = |minute| Fold {
        phase: Phase::Recovering {
            since: at_minute(0),
            fired: at_minute(10),
            clear: at_minute(minute),
        },
        value: Some(number("-0.12345678901234567890123456789012345678")),
        seen: Some(at_minute(minute)),
        is_silent: true,
    };

    let told = ToldAlert {
        is_firing: true,
        since: Some(at_minute(0)),
        fired: Some(at_minute(10)),
        until: Some(at_minute(10)),
        told_at: Some(at_minute(11)),
    };

    let state = EpisodeState {
        changed: at_minute(-60),
        watched: None,
        fold: fold(60),
        silence: None,
        judged_until: Some(at_minute(60)),
        anchor: Anchor { at: at_minute(0), fold: fold(0) },
        told,
        number: 1,
        acknowledged: Some(at_minute(0)),
        links: vec![LinkKey::new([7; 16]).hash(); 3],
        due: Some(at_minute(65)),
    };

    let state = AlertState::Episodes(Box::new(state));
    StoredAlertState::next(None, alert_key(rule, device), state, at_minute(60))
}

/// A message in which every optional field has a value.
pub fn message(number: u64, news: News) -> Message {
    Message {
        number,
        news,
        since: at("2026-01-11T16:00:00Z"),
        fired: at("2026-01-11T16:10:00Z"),
        ended: Some(at("2026-01-11T17:00:00Z")),
        value: Some(domain::given::number("-0.12345678901234567890123456789012345678")),
        seen: Some(at("2026-01-11T17:00:00Z")),
        is_silent: false,
    }
}

/// The first version of a channel.
pub fn channel(id: &str) -> StoredChannel {
    let settings =
        serde_json::json!({"kind": "webhook", "name": "電話 ☎", "retries": 3, "on": true});
    StoredChannel {
        id: channel_id(id),
        version: 1,
        settings: settings.as_object().expect("an object").clone(),
        quiet_hours: Some("22:00-07:00".parse().expect("quiet hours")),
        failing: None,
        created: Some(Timestamp::MIN),
    }
}
