//! Checks for requests that `DynamoDB` always refuses. They panic, because a pattern that makes such a request is
//! wrong.

use std::collections::BTreeSet;

use domain::Decimal;

use super::evaluate::order;
use super::pages::{has_key, is_projected, place_keys};
use crate::ItemKey;
use crate::db::{AttributeChange, If, ItemQuery, Keys, Op, Path, Write, WriteChange};
use crate::item::{Attribute, Item};
use crate::keys::{PK, SK};
use crate::layout::{CONDITIONS_INDEX, Layout};

/// The largest numbers of bytes: of a partition key, of a sort key and of an expression.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html>
const MAX_PARTITION_KEY: usize = 2_048;
const MAX_SORT_KEY: usize = 1_024;
const MAX_EXPRESSION: usize = 4_096;

/// The largest number of writes of a transaction.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html>
const MAX_TRANSACTION: usize = 100;

/// The longest placeholder of a name or a value in an expression: `#n` and three digits.
const PLACEHOLDER: usize = 5;

/// Panics if two keys are equal.
pub(super) fn refuse_duplicates(keys: &[ItemKey]) {
    let mut seen = BTreeSet::new();
    for key in keys {
        assert!(seen.insert(key), "{key:?} is there twice");
    }
}

/// Panics if `DynamoDB` refuses such a transaction.
pub(super) fn check_transaction(writes: &[Write], layout: Layout) {
    let count = writes.len();
    assert!((1..=MAX_TRANSACTION).contains(&count), "a transaction of {count} writes");
    refuse_duplicates(&writes.iter().map(Write::key).collect::<Vec<_>>());
    for write in writes {
        // https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Update.html
        let changes_nothing =
            matches!(&write.change, WriteChange::Update(_, changes) if changes.is_empty());
        assert!(!changes_nothing, "an update of a transaction changes something: {write:?}");
        check_write(write, layout);
    }
}

/// Panics if `DynamoDB` refuses such a write.
pub(super) fn check_write(write: &Write, layout: Layout) {
    check_key(&write.key());
    write.conditions.iter().for_each(check_condition);
    let length = condition_length(&write.conditions);
    assert!(length <= MAX_EXPRESSION, "a condition of {length} bytes");

    match &write.change {
        WriteChange::Put(item) => check_item(item, layout),
        WriteChange::Update(_, changes) => check_changes(changes, layout),
        WriteChange::Delete(_) => {}
        WriteChange::Check(key) => assert!(!write.conditions.is_empty(), "{key:?}: checks nothing"),
    }
}

/// Panics if `DynamoDB` refuses one of the items, or all of them because two have the same key. Returns the keys.
pub(super) fn check_items(items: &[Item], layout: Layout) -> Vec<ItemKey> {
    let keys: Vec<ItemKey> = items.iter().map(ItemKey::of_item).collect();
    refuse_duplicates(&keys);
    items.iter().for_each(|item| check_item(item, layout));
    keys
}

/// Panics if `DynamoDB` refuses such an item. The size is not checked here.
fn check_item(item: &Item, layout: Layout) {
    check_key(&ItemKey::of_item(item));
    for (name, value) in item {
        check_value(value);
        check_index_key(name, value, layout);
    }
}

fn check_key(key: &ItemKey) {
    let is_key = |text: &str, most| (1..=most).contains(&text.len());
    assert!(is_key(&key.pk, MAX_PARTITION_KEY) && is_key(&key.sk, MAX_SORT_KEY), "{key:?}");
}

/// Panics if the key attribute of an index is empty, too long, or of another type.
fn check_index_key(name: &str, value: &Attribute, layout: Layout) {
    let limits = layout.indexes().flat_map(|index| {
        [(index.partition_key, MAX_PARTITION_KEY), (index.sort_key, MAX_SORT_KEY)]
    });
    for (_, most) in limits.filter(|(key, _)| *key == name) {
        let length = match value {
            Attribute::B(bytes) if name == CONDITIONS_INDEX.sort_key => bytes.len(),
            Attribute::S(text) if name != CONDITIONS_INDEX.sort_key => text.len(),
            other => panic!("{name} is the key of an index, and not {other:?}"),
        };
        assert!((1..=most).contains(&length), "{name} has {length} bytes, as the key of an index");
    }
}

fn check_value(value: &Attribute) {
    match value {
        Attribute::N(number) => assert!(Decimal::parse(number).is_ok(), "{number} is no number"),
        Attribute::Ss(set) => {
            let elements: BTreeSet<&String> = set.iter().collect();
            assert!(!set.is_empty() && elements.len() == set.len(), "{set:?} is no set");
        }
        Attribute::L(list) => list.iter().for_each(check_value),
        Attribute::M(map) => map.values().for_each(check_value),
        Attribute::S(_) | Attribute::B(_) | Attribute::Bool(_) | Attribute::Other => {}
    }
}

fn check_changes(changes: &[AttributeChange], layout: Layout) {
    for (number, change) in changes.iter().enumerate() {
        let path = change.path();
        assert!(![PK, SK].contains(&&*path.attribute), "{path:?} is the item's key");
        let others = changes.iter().skip(number + 1);
        others.for_each(|other| assert!(!overlap(path, other.path()), "{path:?} is changed twice"));
        check_change(change, layout);
    }

    let length = "SET REMOVE ADD DELETE ".len() + changes.iter().map(change_length).sum::<usize>();
    assert!(length <= MAX_EXPRESSION, "an update of {length} bytes");
}

fn check_change(change: &AttributeChange, layout: Layout) {
    let value = match change {
        AttributeChange::Remove(_) => return,
        AttributeChange::Add(_, value) => {
            assert!(matches!(value, Attribute::N(_) | Attribute::Ss(_)), "{value:?} is added");
            value
        }
        AttributeChange::Take(_, value) => {
            assert!(matches!(value, Attribute::Ss(_)), "{value:?} is taken from a set");
            value
        }
        AttributeChange::Set(_, value) | AttributeChange::SetIfAbsent(_, value) => value,
    };

    check_value(value);
    if change.path().member.is_none() {
        check_index_key(&change.path().attribute, value, layout);
    }
}

/// Whether two paths are equal, or one contains the other.
fn overlap(one: &Path, other: &Path) -> bool {
    one.attribute == other.attribute
        && (one.member == other.member || one.member.is_none() || other.member.is_none())
}

fn check_condition(condition: &If) {
    match condition {
        If::Compare(_, op, value) => {
            check_value(value);
            let has_order = order(value, value).is_some();
            assert!(*op == Op::Is || has_order, "{op:?} compares no {value:?}");
        }
        If::Any(conditions) => {
            assert!(!conditions.is_empty(), "no condition");
            conditions.iter().for_each(check_condition);
        }
        If::Absent(_) | If::Present(_) | If::Holds(..) | If::Fewer(..) => {}
    }
}

/// Panics if `DynamoDB` refuses such a query.
pub(super) fn check_query(query: &ItemQuery, layout: Layout) {
    if let Some(index) = query.index {
        let is_there = layout.indexes().any(|known| known == index);
        assert!(is_there, "the table has no {}", index.name);
        assert!(!query.consistent, "an index is never consistent");
    }

    assert!(query.limit != Some(0), "a page of no item");
    if let Keys::Between(first, last) = &query.keys {
        let in_order = order(first, last).is_some_and(std::cmp::Ordering::is_le);
        assert!(in_order, "{first:?} to {last:?} is no range");
    }
    check_start(query);
    check_filter(query);
}

/// Panics unless the page begins after an item that is in the partition and between the sort keys.
fn check_start(query: &ItemQuery) {
    let Some(start) = &query.start else { return };
    let names: BTreeSet<&str> = place_keys(query.index).collect();
    let given: BTreeSet<&str> = start.keys().map(String::as_str).collect();
    assert_eq!(given, names, "the key behind which a page begins");

    let (partition_key, sort_key) =
        query.index.map_or((PK, SK), |index| (index.partition_key, index.sort_key));
    let partition = &start[partition_key];
    assert_eq!(*partition, Attribute::S(query.partition.clone()), "begins in another partition");
    assert!(has_key(&query.keys, &start[sort_key]), "begins outside of the range: {start:?}");
}

fn check_filter(query: &ItemQuery) {
    if query.filter.is_empty() {
        return;
    }

    query.filter.iter().for_each(check_condition);
    let length = condition_length(&query.filter);
    assert!(length <= MAX_EXPRESSION, "a filter of {length} bytes");

    let keys: Vec<&str> = match query.index {
        None => vec![PK, SK],
        Some(index) => vec![index.partition_key, index.sort_key],
    };

    for path in query.filter.iter().flat_map(paths) {
        let name = &*path.attribute;
        assert!(!keys.contains(&name), "a filter by the key {name}");
        let is_there = query.index.is_none_or(|index| is_projected(index, name));
        assert!(is_there, "the index does not hold {name}");
    }
}

fn paths(condition: &If) -> Vec<&Path> {
    match condition {
        If::Absent(path)
        | If::Present(path)
        | If::Compare(path, ..)
        | If::Holds(path, _)
        | If::Fewer(path, _) => vec![path],
        If::Any(conditions) => conditions.iter().flat_map(paths).collect(),
    }
}

/// The number of bytes that the expression of some conditions has at most.
fn condition_length(conditions: &[If]) -> usize {
    let length = |condition: &If| match condition {
        If::Absent(path) => "attribute_not_exists()".len() + path_length(path),
        If::Present(path) => "attribute_exists()".len() + path_length(path),
        If::Compare(path, ..) => path_length(path) + " >= ".len() + PLACEHOLDER,
        If::Holds(path, _) => "contains(, )".len() + path_length(path) + PLACEHOLDER,
        If::Fewer(path, _) => "size() < ".len() + path_length(path) + PLACEHOLDER,
        If::Any(conditions) => "()".len() + condition_length(conditions),
    };
    let between = " AND ".len() * conditions.len().saturating_sub(1);
    conditions.iter().map(length).sum::<usize>() + between
}

/// The number of bytes that a change has at most in the expression of an update, including the separator.
fn change_length(change: &AttributeChange) -> usize {
    let path = path_length(change.path());
    ", ".len()
        + match change {
            AttributeChange::Set(..) => path + " = ".len() + PLACEHOLDER,
            AttributeChange::SetIfAbsent(..) => {
                path + " = if_not_exists(, )".len() + path + PLACEHOLDER
            }
            AttributeChange::Remove(_) => path,
            AttributeChange::Add(..) | AttributeChange::Take(..) => path + " ".len() + PLACEHOLDER,
        }
}

fn path_length(path: &Path) -> usize {
    PLACEHOLDER + path.member.as_ref().map_or(0, |_| ".".len() + PLACEHOLDER)
}
