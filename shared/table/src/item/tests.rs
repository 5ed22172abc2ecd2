//! An item of each kind as it is stored, in a file: no change of the code may change what tables already hold. Has no
//! items of its own.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::iter;

use domain::{Annotation, Room, Token};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use super::*;
use crate::keys::tests::key as any_key;
use crate::late::LateChanges;
use crate::layout::Layout;
use crate::rollup::{Refold, RollupState, StoredRollup, StoredSchema};
use crate::shards::Shards;
use crate::{
    ChannelSecret, ItemKey, LoggedMessage, Recheck, RoomVisit, RunningNote, SourceSecrets,
    StoredAlertState, StoredChannel, StoredRule, StoredSource, StoredTariff, WaitingMessage,
};

/// By item its name, the item in `DynamoDB`'s JSON, and the value that is read from it.
const GOLDEN: &str = include_str!("golden.txt");

fn to_json(attribute: &Attribute) -> Value {
    match attribute {
        Attribute::S(text) => json!({ "S": text }),
        Attribute::N(number) => json!({ "N": number }),
        Attribute::B(bytes) => json!({ "B": bytes }),
        Attribute::L(list) => json!({"L": list.iter().map(to_json).collect::<Vec<_>>()}),
        Attribute::M(members) => json!({"M": to_object(members)}),
        Attribute::Ss(texts) => json!({ "SS": texts }),
        Attribute::Bool(flag) => json!({ "BOOL": flag }),
        Attribute::Other => panic!("of no item"),
    }
}

fn to_object(item: &Item) -> Map<String, Value> {
    item.iter().map(|(name, attribute)| (name.clone(), to_json(attribute))).collect()
}

fn of_json(value: &Value) -> Attribute {
    let (kind, value) = value.as_object().expect("an attribute").iter().next().expect("a type");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let list = || value.as_array().expect("a list").iter();
    match kind.as_str() {
        "S" => Attribute::S(text(value)),
        "N" => Attribute::N(text(value).into()),
        "B" => Attribute::B(serde_json::from_value(value.clone()).expect("bytes")),
        "L" => Attribute::L(list().map(of_json).collect()),
        "M" => Attribute::M(of_object(value)),
        "SS" => Attribute::Ss(list().map(text).collect()),
        "BOOL" => Attribute::Bool(value == true),
        other => panic!("{other}"),
    }
}

fn of_object(value: &Value) -> Item {
    let members = value.as_object().expect("an object").iter();
    members.map(|(name, value)| (name.clone(), of_json(value))).collect()
}

/// Attributes that are not read: a flag says something by being there, and others are for the table and its index only.
const NOT_READ: [&str; 8] =
    ["_zpk", "exp", "frozen", "ready", "done", "net", "described", "lacks_secrets"];
/// Attributes that leave out what cannot be read.
const LENIENT: [&str; 2] = ["changes", "metrics"];

/// The kinds of keys whose items are written and never read, or read only as what they are among.
const WITHOUT_GOLDEN_ITEM: [&str; 5] =
    ["Reading", "SearchEntry", "SeenOf", "Indexed", "Introduced"];

/// The value of an item as text, and the item that is made of the value.
fn read_and_written<T: Decode + Debug>(
    item: Item,
    write: impl Fn(&T) -> Item,
) -> Result<(String, Item), ItemError> {
    let value = T::decode(item)?;
    Ok((format!("{value:?}"), write(&value)))
}

fn again(item: Item) -> Result<(String, Item), ItemError> {
    let under = fields::parse_key(&item)?;
    match &under {
        Key::Room(_) => read_and_written(item, Room::item),
        Key::Device(..) => read_and_written(item, |device| from_device(device, Layout::default())),
        Key::Token(_) => read_and_written(item, Token::item),
        Key::Shards => read_and_written(item, Shards::item),
        Key::StayOf(..) => read_and_written(item, |stay| from_stay(stay)[0].clone()),
        Key::StayIn(..) => read_and_written(item, |stay| from_stay(stay)[1].clone()),
        Key::SeenIn(..) => read_and_written(item, RoomVisit::item),
        Key::Rollup(..) => read_and_written(item, StoredRollup::item),
        Key::RollupState => read_and_written(item, RollupState::item),
        Key::Refold(_) => {
            read_and_written(item, |refold: &Refold| with_key(&under, refold.attributes()))
        }
        Key::LateChanges => read_and_written(item, LateChanges::item),
        Key::ConditionsSchema => read_and_written(item, StoredSchema::item),
        Key::Annotation(_) => read_and_written(item, Annotation::item),
        Key::AlertRule(_) => read_and_written(item, StoredRule::item),
        Key::AlertChannel(_) => read_and_written(item, StoredChannel::item),
        // Its text has no secret.
        Key::AlertSecret(_) => {
            let secret = ChannelSecret::decode(item)?;
            let members = serde_json::to_string(&secret.0).expect("JSON");
            Ok((members, with_key(&under, secret.attributes())))
        }
        Key::AlertState(_) => read_and_written(item, StoredAlertState::item),
        Key::AlertTold(_) => read_and_written(item, LoggedMessage::item),
        Key::AlertWaiting(_) => read_and_written(item, WaitingMessage::item),
        Key::AlertRecheck(_) => read_and_written(item, Recheck::item),
        Key::AlertRunning => read_and_written(item, RunningNote::item),
        Key::Source(_) => read_and_written(item, StoredSource::item),
        Key::SourceSecrets(_) => {
            read_and_written(item, |secrets: &SourceSecrets| with_key(&under, secrets.attributes()))
        }
        Key::Tariff(_) => read_and_written(item, StoredTariff::item),
        Key::Reading(..)
        | Key::SearchEntry(..)
        | Key::SeenOf(..)
        | Key::Indexed
        | Key::Introduced(_) => panic!("{under:?} has no golden item"),
    }
}

/// By item its name, the item, and its value as text.
fn golden() -> impl Iterator<Item = (&'static str, Item, &'static str)> {
    GOLDEN.split("\n\n").map(|block| {
        let [name, item, value] = block.lines().collect::<Vec<_>>()[..] else { panic!("{block}") };
        (name, of_object(&serde_json::from_str(item).expect(name)), value)
    })
}

#[test]
fn each_item_is_read_and_written_as_ever() {
    for (name, item, value) in golden() {
        let (read, written) = again(item.clone()).expect(name);
        assert!(read == value, "{name} is read as this line:\n{read}");
        assert_eq!(to_object(&written), to_object(&item), "{name}");
    }
}

/// Whoever adds a kind of item is told of the golden item and of the keys that tests make.
#[test]
fn each_kind_of_key_is_made_by_tests_and_has_a_golden_item() {
    let kind = |key: &Key| {
        let text = format!("{key:?}");
        text.split('(').next().map(str::to_owned)
    };
    let golden = golden().map(|(_, item, _)| fields::parse_key(&item).expect("a key"));
    let mut expected: BTreeSet<_> = golden.filter_map(|key| kind(&key)).collect();
    expected.extend(WITHOUT_GOLDEN_ITEM.map(str::to_owned));

    let mut runner = TestRunner::deterministic();
    let made = (0..5_000).map(|_| any_key().new_tree(&mut runner).expect("a key").current());
    let made: BTreeSet<_> = made.filter_map(|key| kind(&key)).collect();
    assert_eq!(made, expected, "left the strategy `key` of keys.rs, right golden.txt");
}

/// The device of all golden items is `d`.
#[test]
fn what_is_in_a_partition_of_a_device_is_deleted_with_it() {
    let deleted = keys::partitions_of(&"d".parse().expect("an id"));
    let mut of_device = 0;
    for (name, item, _) in golden() {
        let partition = ItemKey::of_item(&item).pk;
        let is_of_device = |part: &str| part == "d";
        if partition.split(|c: char| !c.is_ascii_alphanumeric()).any(is_of_device) {
            of_device += 1;
            assert!(deleted.contains(&partition), "{name}: keys::partitions_of has no {partition}");
        }
    }
    assert!(of_device > 0);
}

/// The index by room would show anything else that has this attribute.
#[test]
fn only_a_device_has_the_attribute_of_the_index_by_room() {
    for (name, item, _) in golden() {
        assert_eq!(item.contains_key(keys::ROOM), name == "device", "{name}");
    }
}

#[test]
fn an_attribute_of_another_type_is_an_error_that_names_it() {
    for (name, item, _) in golden() {
        for attribute in item.keys() {
            let is_read = !NOT_READ.contains(&attribute.as_str());
            if is_read && !LENIENT.contains(&attribute.as_str()) {
                let mut damaged = item.clone();
                damaged.insert(attribute.clone(), Attribute::Other);
                let why = again(damaged).expect_err(attribute).to_string();
                assert!(why.contains(attribute), "{name}: {attribute}: {why}");
            }
        }
    }
}

/// An attribute with one value within it of another type, for each that is read.
fn damaged(attribute: &Attribute) -> Vec<Attribute> {
    let mut damages = Vec::new();
    match attribute {
        Attribute::L(list) => {
            for (place, element) in list.iter().enumerate() {
                for damage in iter::once(Attribute::Other).chain(damaged(element)) {
                    let mut list = list.clone();
                    list[place] = damage;
                    damages.push(Attribute::L(list));
                }
            }
        }
        Attribute::M(members) => {
            for (name, member) in members {
                let is_read = !NOT_READ.contains(&name.as_str());
                let whole = is_read.then_some(Attribute::Other);
                for damage in whole.into_iter().chain(damaged(member)) {
                    let mut members = members.clone();
                    members.insert(name.clone(), damage);
                    damages.push(Attribute::M(members));
                }
            }
        }
        _ => {}
    }
    damages
}

#[test]
fn no_damage_within_an_attribute_passes_unseen() {
    for (name, item, value) in golden() {
        for (attribute, whole) in &item {
            for damage in damaged(whole) {
                let mut item = item.clone();
                item.insert(attribute.clone(), damage.clone());
                let read = again(item).map(|(read, _)| read);
                assert_ne!(read.ok().as_deref(), Some(value), "{name}: {attribute}: {damage:?}");
            }
        }
    }
}

#[test]
fn an_attribute_that_is_missing_is_an_error_or_makes_another_value() {
    for (name, item, value) in golden() {
        for attribute in item.keys() {
            let mut without = item.clone();
            without.remove(attribute);
            match again(without) {
                Ok(_) if ["_zpk", "exp", "metrics"].contains(&attribute.as_str()) => {}
                Ok((read, _)) => assert_ne!(read, value, "{name}: {attribute}"),
                Err(_) => {}
            }
        }
    }
}
