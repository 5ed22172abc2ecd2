//! What the ports ask of `DynamoDB` is what they say that they must be permitted. Asks no role.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use domain::{
    About, Deletion, DevicePatch, DeviceUpdate, Edit, Month, Order, QuarterHour, Rollup, Room,
    RoomPatch, SWEEP_GROUPS, Scope, SearchRange, Stay, Subject,
};
use dynamodb::DynamoStore;
use serde_json::Value;
use table::given;
use table::keys::{self, Key};
use table::layout::{ATTRIBUTE_INDEX, CONDITIONS_INDEX};
use table::{
    Action, AddArrival, AddToken, AnnotationQuery, Backlog, Belonging, ChannelSecret,
    ConditionsQuery, CountIntroduced, DeleteAlertStates, DeleteReadings, EditAlertRules,
    EditAlertStates, EditAnnotations, EditChannels, EditRegistry, EditSources, EditTariffs,
    Expected, FindRegistry, FindToken, FinishRechecks, IndexDevices, ItemKey, KeepRollupState,
    ListDevices, LookUpRegistry, ManageTokens, MarkDeletions, MarkIndexed, MarkLateChanges,
    MergeReadings, MessageQuery, NewJudgement, NoteChannels, NoteRechecks, NoteRunning, NoteSeen,
    PageRegistry, Permission, PutConditionsSchema, PutJudgements, PutReadings, PutRollups,
    PutTestMessages, QueryConditions, QueryReadings, QueryRoomReadings, ReadAlertRules,
    ReadAlertStates, ReadAnnotations, ReadChannelSecrets, ReadChannels, ReadConditionsSchema,
    ReadLateChanges, ReadRechecks, ReadRefold, ReadRegistry, ReadRollupState, ReadRollups,
    ReadRunning, ReadSeen, ReadSourceSecrets, ReadSources, ReadStays, ReadStoredReadings,
    ReadTariffs, ReadToldMessages, ReadWaitingMessages, ReadingKey, Recheck, Refold,
    RegisterDevices, RemoveBelongings, RemoveRooms, RestoreStays, RollupState, RoomVisit,
    RunSources, RunningNote, SearchDevices, SearchQuery, SendWaitingMessages, SetConditionsReady,
    SourceSecrets, StayQuery, StoredSource, StoredTariff, Target, UpdateRegistry, WaitingMessage,
};

use crate::engine::{Engine, Table};
use crate::faults::proxy::{Call, Proxy};
use crate::given::{
    always, annotation, at, device, device_of, into_room, invocation, label, named, reading_in,
    room, schema, stored_quarter,
};
use crate::stored::first_page;

/// The permissions that a request needs.
fn needed(call: &Call) -> BTreeSet<Permission> {
    let body = &call.body;
    let of_table = || body["RequestItems"].as_object().into_iter().flatten().map(|(_, it)| it);
    let key = |item: &Value| Target::of_partition(item["pk"]["S"].as_str().expect("a key"));
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    match call.operation.as_str() {
        "BatchWriteItem" => of_table()
            .flat_map(list)
            .map(|put| (Action::BatchWriteItem, key(&put["PutRequest"]["Item"])))
            .collect(),
        "BatchExecuteStatement" => list(&body["Statements"])
            .iter()
            .map(|statement| {
                let text = statement["Statement"].as_str().expect("a statement");
                assert!(text.starts_with("INSERT INTO ") && text.contains("{'pk': ?, "), "{text}");
                let pk = &statement["Parameters"][0]["S"];
                (Action::PartiQLInsert, Target::of_partition(pk.as_str().expect("a key")))
            })
            .collect(),
        "BatchGetItem" => of_table()
            .flat_map(|asked| list(&asked["Keys"]))
            .map(|asked| (Action::BatchGetItem, key(&asked)))
            .collect(),
        "DeleteItem" => [(Action::DeleteItem, key(&body["Key"]))].into(),
        "GetItem" => [(Action::GetItem, key(&body["Key"]))].into(),
        "PutItem" => [(Action::PutItem, key(&body["Item"]))].into(),
        "UpdateItem" => [(Action::UpdateItem, key(&body["Key"]))].into(),
        "Query" if body["IndexName"] == CONDITIONS_INDEX.name => {
            [(Action::Query, Target::ConditionsIndex)].into()
        }
        "Query" if body["IndexName"] == ATTRIBUTE_INDEX.name => {
            [(Action::Query, Target::AttributeIndex)].into()
        }
        "Query" if body["IndexName"].is_string() => [(Action::Query, Target::RoomIndex)].into(),
        "Query" => {
            let pk = &body["ExpressionAttributeValues"][":p"]["S"];
            [(Action::Query, Target::of_partition(pk.as_str().expect("a key")))].into()
        }
        // A transaction has no action of its own: each of its parts needs that of the same name.
        "TransactWriteItems" => list(&body["TransactItems"])
            .iter()
            .map(|part| {
                let (name, part) = part.as_object().and_then(|it| it.iter().next()).expect("one");
                match name.as_str() {
                    "Put" => (Action::PutItem, key(&part["Item"])),
                    "Update" => (Action::UpdateItem, key(&part["Key"])),
                    "Delete" => (Action::DeleteItem, key(&part["Key"])),
                    "ConditionCheck" => (Action::ConditionCheckItem, key(&part["Key"])),
                    other => panic!("a part that this test does not know: {other}"),
                }
            })
            .collect(),
        other => panic!("an operation that this test does not know: {other}"),
    }
}

fn declared(permissions: &[Permission]) -> BTreeSet<Permission> {
    permissions.iter().copied().collect()
}

/// Tables that note which permissions the requests to them need.
struct Watched {
    asked: Arc<Mutex<BTreeSet<Permission>>>,
    tables: Vec<Table>,
    proxies: Vec<Proxy>,
    _engine: Engine,
}

impl Watched {
    async fn tables_of(parameters: &[&[(&str, &str)]]) -> Self {
        let engine = Engine::embedded().await;
        let asked: Arc<Mutex<BTreeSet<Permission>>> = Arc::default();
        let (mut tables, mut proxies) = (Vec::new(), Vec::new());
        for parameters in parameters {
            let seen = Arc::clone(&asked);
            let table = engine.table_of(parameters).await;
            let proxy = Proxy::start(table.endpoint(), move |call| {
                seen.lock().expect("no test panics with it").extend(needed(call));
                None
            });
            proxies.push(proxy.await);
            tables.push(table);
        }
        Self { asked, tables, proxies, _engine: engine }
    }

    /// A store asks once in how many partitions the devices are: each check has a new one.
    fn store_of(&self, n: usize) -> DynamoStore {
        self.tables[n].store_by_way_of(self.proxies[n].url())
    }

    /// What was needed since the last time.
    fn taken(&self) -> BTreeSet<Permission> {
        std::mem::take(&mut *self.asked.lock().expect("no test panics with it"))
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one list of ports")]
async fn each_port_asks_what_it_declares() {
    let watched = Watched::tables_of(&[
        &[
            ("RoomIndex", "on"),
            ("AttributeIndex", "on"),
            ("ConditionsIndex", "on"),
            ("DeviceShards", "4"),
        ],
        &[
            ("RoomIndex", "off"),
            ("AttributeIndex", "off"),
            ("ConditionsIndex", "off"),
            ("DeviceShards", "1"),
        ],
    ]);
    let watched = watched.await;
    let without_index = watched.store_of(1);
    let mut store;
    let invocation = &invocation();
    macro_rules! check {
        ($port:ident: $($call:expr),+) => {
            store = watched.store_of(0);
            watched.taken();
            $(drop(Box::pin($call).await);)+
            let declared = declared(<DynamoStore as $port>::PERMISSIONS);
            assert_eq!(watched.taken(), declared, stringify!($port));
        };
    }

    let reading = reading_in("d", 0, "room-a");
    let (d, a) = (device("d"), room("room-a"));
    let first = std::slice::from_ref(&reading);
    // Of many, new ones are inserted and the others updated.
    let many: Vec<_> = (0..50).map(|n| reading_in("d", n, "room-a")).collect();
    let new = device_of([&reading]);
    let new_room = |id| Room::new(room(id), at(5));
    let query = &first_page(always(), Order::Ascending, 10);
    let issued = given::token("a", Scope::Read);
    let move_to = into_room("room-b");
    let rename = named("Sensor");
    let begun = &Stay::begun(a.clone(), at(0));
    let stays = &StayQuery { range: always(), after: None, limit: 10 };
    let about = Some(About { name: Some(label("Meter")), ..About::default() });
    let described = DeviceUpdate { about, ..DeviceUpdate::default() };
    let earlier = DeviceUpdate { first_seen: Some(at(-1)), ..DeviceUpdate::default() };

    check!(PutReadings: store.put_readings(first, None, invocation));
    check!(MergeReadings:
        store.merge_readings(&many, None, invocation),
        store.merge_readings(&many, None, invocation)
    );
    check!(AddArrival: store.add_arrival(&reading, "a", None, invocation));
    check!(RegisterDevices:
        store.register_device(&new, invocation),
        store.register_room(&new_room("room-a"), invocation));
    check!(UpdateRegistry:
        store.update_device(&new, &described, invocation),
        store.update_device(&new, &earlier, invocation),
        store.introduce_room(&d, &a, invocation),
        store.name_room(&a, &label("Hall"), invocation),
        store.begin_stay(&new, begun, invocation),
        store.update_room(&a, at(0), invocation));
    let search =
        &SearchQuery { subject: &Subject::Name, range: &SearchRange::All, after: None, limit: 10 };
    check!(SearchDevices:
        store.is_indexed(invocation),
        store.search(search, invocation));
    check!(MarkIndexed: store.mark_indexed(at(0), invocation));
    let kitchen = new.changed(|it| it.name = Some(label("Kitchen"))).expect("a device");
    let old = named("Old");
    store.edit_device(&d, &old, at(0), invocation).await.expect("edited");
    check!(IndexDevices:
        store.begin_index("1", invocation),
        store.index_device(&kitchen, invocation),
        store.end_index("1", at(0), invocation));
    let restored = store.device(&d, invocation).await.expect("asked").expect("it is registered");
    let behind =
        |meter: &str| DevicePatch { behind: Edit::Set(device(meter)), ..DevicePatch::default() };
    for id in ["meter", "main"] {
        let meter = device_of([&reading_in(id, 0, "room-a")]);
        Box::pin(store.register_device(&meter, invocation)).await.expect("registered");
    }
    let (to_main, to_meter) = (behind("main"), behind("meter"));
    store.edit_device(&device("meter"), &to_main, at(0), invocation).await.expect("edited");
    check!(EditRegistry:
        store.edit_device(&d, &rename, at(0), invocation),
        store.edit_device(&d, &move_to, at(0), invocation),
        store.edit_device(&d, &to_meter, at(0), invocation),
        store.edit_room(&a, &RoomPatch::default(), invocation));
    check!(RestoreStays: store.restore_stays(&restored, std::slice::from_ref(begun), invocation));
    check!(ReadStays:
        store.stays_of(&d, stays, invocation),
        store.stays_in(&a, stays, invocation));
    check!(QueryReadings: store.device_readings(&d, query, invocation));
    check!(QueryRoomReadings:
        store.room_readings(&a, std::slice::from_ref(&d), query, invocation),
        without_index.room_readings(&a, std::slice::from_ref(&d), query, invocation));
    check!(ReadRegistry: store.devices(invocation), store.rooms(invocation));
    check!(PageRegistry:
        store.room_page(None, 10, invocation),
        store.room_device_page(&a, None, 10, invocation));
    check!(LookUpRegistry: store.device(&d, invocation), store.deletion(&d, invocation), store.room(&a, invocation));
    check!(FindRegistry:
        store.find_devices(std::slice::from_ref(&d), invocation),
        store.find_rooms(std::slice::from_ref(&a), invocation));
    let annotation = annotation(0, "d");
    let annotations = &AnnotationQuery { range: always(), about: None, after: None, limit: 10 };
    check!(ReadAnnotations: store.annotations(annotations, invocation));
    check!(EditAnnotations:
        store.put_annotation(&annotation, invocation),
        store.delete_annotation(&annotation.id, invocation));
    let tariff = StoredTariff {
        id: "grid".parse().expect("an id"),
        version: 1,
        edited: at(0),
        written: "{}".to_owned(),
    };
    check!(ReadTariffs: store.tariffs(invocation), store.tariff(&tariff.id, invocation));
    check!(EditTariffs:
        store.save_tariff(&tariff, Expected::Absent, invocation),
        store.delete_tariff(&tariff, invocation));
    check!(AddToken: store.add_token(&issued, invocation));
    check!(ManageTokens:
        store.tokens(invocation),
        store.revoke_token(&issued.hash, at(0), invocation));
    check!(CountIntroduced: store.count_introduced("mqtt:plug", 1, 32, invocation));
    check!(FindToken: store.token(&issued.hash, invocation));
    check!(ListDevices:
        store.all_devices(invocation),
        store.device_page(None, 10, invocation));
    check!(ListDevices: store.all_devices(invocation));
    let patch = into_room("room-c");
    let other = device("other");
    let registered = device_of([&reading_in("other", 0, "room-a")]);
    Box::pin(store.register_device(&registered, invocation)).await.expect("registered");
    Box::pin(store.edit_device(&other, &patch, at(0), invocation)).await.expect("edited");
    let parts = [Key::Reading(other.clone(), at(0)), Key::Refold(other.clone())];
    let mut belongings: Vec<_> =
        parts.iter().map(|key| Belonging(vec![ItemKey::of(key)])).collect();
    belongings.push(Belonging::of_stay(&other, &room("room-c"), at(0)));
    belongings.push(Belonging::of_seen(&other, &room("room-c")));
    belongings.push(Belonging(vec![ItemKey::of(&Key::Annotation(annotation.id.clone()))]));
    let value = ItemKey { pk: keys::search_pk(&other), sk: "name".to_owned() };
    belongings.push(Belonging(vec![value]));
    check!(RemoveBelongings:
        store.belongings(&other, 10, invocation),
        store.remove_belongings(&belongings, invocation));
    check!(RemoveRooms:
        store.remove_room(&room("room-c"), invocation),
        store.put_back_room(&new_room("room-c"), invocation),
        store.leave_home(&a, &"home".parse().expect("an id"), invocation));
    let deletion = Deletion::begin(at(0), 0);
    check!(MarkDeletions:
        store.begin_deletion(&device("meter"), at(0), invocation),
        store.begin_deletion(&other, at(0), invocation),
        store.note_found(&other, at(1), invocation),
        store.end_deletion(&other, &deletion, at(2), invocation));
    check!(DeleteReadings: store.delete_readings(&[ReadingKey::of(&reading)], invocation));
    check!(ReadStoredReadings: store.stored_readings(&d, always(), invocation));
    let quarter = QuarterHour::of(at(0));
    let rollup = stored_quarter(&d, quarter, Rollup::default());
    let date = "2026-01-11".parse().expect("a date");
    check!(ReadRollups:
        store.rollup(&rollup.key, invocation),
        store.quarters(&d, always(), true, invocation),
        store.days(&d, date..=date, Order::Ascending, 1, invocation));
    let seen = RoomVisit::begun(a.clone(), d.clone(), Month::of(at(0)));
    check!(NoteSeen:
        store.seen(&a, &d, invocation),
        store.put_seen(&seen, Expected::Absent, invocation),
        store.put_seen(&seen, Expected::Version(1), invocation));
    check!(ReadSeen: store.seen_in(&a, seen.first..=seen.last, 10, invocation));
    check!(PutRollups: store.put_rollup(&rollup, Expected::Absent, invocation));
    let state = RollupState {
        zone: "UTC".to_owned(),
        since: at(0),
        sealed: [at(0); SWEEP_GROUPS],
        queue: None,
    };
    check!(ReadRollupState: store.rollup_state(invocation));
    check!(ReadRefold: store.refold(&d, invocation));
    check!(ReadLateChanges: store.late_changes(invocation));
    check!(MarkLateChanges: store.put_late_marks(&[], 0, invocation));
    let schema = schema(1);
    check!(PutConditionsSchema:
        store.put_conditions_schema(&schema, Expected::Absent, invocation));
    check!(ReadConditionsSchema:
        store.conditions_schema(invocation),
        store.indexing(invocation));
    check!(SetConditionsReady: store.set_conditions_ready(1, invocation));
    let in_index = ConditionsQuery {
        device: &d,
        month: at(0),
        first: &[1],
        last: &[1, 9],
        after: None,
        limit: 10,
    };
    check!(QueryConditions:
        store.indexed_quarters(&in_index, invocation));
    check!(KeepRollupState:
        store.begin_rollups(&state, invocation),
        store.advance_sealed(&[0].into(), at(1), None, invocation),
        store.set_back_sealed(&[0].into(), at(0), invocation),
        store.note_backlog(Backlog { since: at(0), at: at(1) }, invocation),
        without_index.distrust_conditions(invocation),
        store.set_rebuilt(at(0), "UTC", invocation),
        store.set_refold(&d, &Refold::default(), invocation));
}

#[tokio::test]
async fn each_port_of_alerts_asks_what_it_declares() {
    let watched = Watched::tables_of(&[&[]]).await;
    let store = watched.store_of(0);
    let invocation = &invocation();
    macro_rules! check {
        ($port:ident: $($call:expr),+) => {
            watched.taken();
            $(drop(Box::pin($call).await);)+
            let declared = declared(<DynamoStore as $port>::PERMISSIONS);
            assert_eq!(watched.taken(), declared, stringify!($port));
        };
    }

    let d = device("d");
    let (rule, channel) = (given::alert_rule("r", at(0)), given::channel("c"));
    check!(EditAlertRules:
        store.put_alert_rule(&rule, invocation),
        store.delete_alert_rule(&"gone".parse().expect("an id"), invocation));
    check!(ReadAlertRules: store.alert_rules(invocation), store.alert_rule(&rule.id, invocation));
    let secret = ChannelSecret(serde_json::Map::new());
    check!(EditChannels:
        store.put_channel(&channel, Some(&secret), invocation),
        store.delete_channel(&given::channel_id("gone"), invocation));
    check!(ReadChannels: store.channels(invocation));
    check!(ReadChannelSecrets: store.channel_secret(&channel.id, invocation));
    check!(NoteChannels: store.note_channel(&channel, None, invocation));
    let state = given::firing("r", "d");
    let news = vec![given::message(1, alerts::News::Fired)];
    let by = [(channel.id.clone(), at(0))];
    let judgement = NewJudgement::new(&rule, state.clone(), news, &by, at(0));
    check!(PutJudgements: store.put_judgement(&judgement, invocation));
    check!(EditAlertStates: store.put_alert_state(&state, invocation));
    check!(ReadAlertStates:
        store.alert_states(std::slice::from_ref(&state.key), invocation),
        store.alert_state_page(Some(&rule.id), None, 10, invocation),
        store.due_alert_states(at(0), None, 10, invocation));
    let told = MessageQuery { range: always(), rule: None, after: None, limit: 10 };
    check!(ReadToldMessages: store.told_messages(&told, invocation));
    check!(ReadWaitingMessages:
        store.waiting_messages(&channel.id, None, 10, invocation));
    let test = WaitingMessage::test(channel.id.clone(), label("Phone"), at(0));
    check!(PutTestMessages: store.put_test_message(&test, invocation));
    let waiting: &WaitingMessage = &judgement.waiting()[0];
    check!(SendWaitingMessages:
        store.lease_waiting(waiting, at(1), invocation),
        store.postpone_waiting(waiting, at(2), false, invocation),
        store.delete_waiting(waiting, invocation));
    check!(DeleteAlertStates:
        store.delete_alert_states(&rule.id, invocation),
        store.delete_alert_state(&state.key, 1, invocation));
    check!(NoteRechecks: store.note_rechecks(&[(d.clone().into(), at(0))], invocation));
    check!(ReadRechecks: store.rechecks(None, 10, invocation));
    let recheck = Recheck { target: d.clone().into(), since: at(0), after: None, touch: 0 };
    check!(FinishRechecks:
        store.move_recheck(&recheck, &d, invocation),
        store.remove_recheck(&recheck, invocation));
    let mark = RunningNote { version: 1, at: at(0), pauses: Vec::new() };
    check!(NoteRunning: store.put_running_note(&mark, Expected::Absent, invocation));
    check!(ReadRunning: store.running_note(invocation));
}

#[tokio::test]
async fn each_port_of_sources_asks_what_it_declares() {
    let watched = Watched::tables_of(&[&[]]).await;
    let store = watched.store_of(0);
    let invocation = &invocation();
    macro_rules! check {
        ($port:ident: $($call:expr),+) => {
            watched.taken();
            $(drop(Box::pin($call).await);)+
            let declared = declared(<DynamoStore as $port>::PERMISSIONS);
            assert_eq!(watched.taken(), declared, stringify!($port));
        };
    }

    let members = serde_json::json!({"kind": "remo"});
    let members = members.as_object().expect("an object").clone();
    let source = polling::PolledSource::read(members, outgoing::Reach::Public).expect("a source");
    let stored = StoredSource::new("remo".parse().expect("an id"), None, &source, at(0));
    let secrets = polling::SecretTexts::of([("token".into(), "t".into())].into());
    let secrets = SourceSecrets::given_for(&source, secrets);
    check!(EditSources:
        store.current_sources(invocation),
        store.save_source(&stored, Some(&secrets), invocation),
        store.delete_source(&"gone".parse().expect("an id"), invocation));
    check!(ReadSources: store.sources(invocation));
    check!(ReadSourceSecrets: store.source_secrets(&stored.id, invocation));
    check!(RunSources: store.begin_source_run(&stored, stored.spent, Some(at(45)), invocation));
}
