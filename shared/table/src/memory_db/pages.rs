//! Makes one page of a query: visits items, sends those that pass the filter, and finds the start of the next page.

use std::cmp::Ordering;
use std::iter;
use std::ops::Bound;

use domain::Order;

use super::evaluate::{holds, order};
use super::items::{StoredItems, item_bytes};
use crate::ItemKey;
use crate::db::{ItemQuery, Keys};
use crate::item::{Attribute, Item};
use crate::keys::{PK, SK};
use crate::layout::{CONDITIONS_ATTRIBUTES, CONDITIONS_INDEX, Index};

/// The number of bytes after which a page ends. The item that exceeds it still belongs to the page, even if the filter
/// leaves it out.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.Pagination.html>
const MAX_PAGE_BYTES: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Page<'a> {
    /// The items for which the filter holds.
    pub(super) sent: Vec<&'a Item>,
    /// The number of items that were visited.
    pub(super) visited: u32,
    /// The key after which the next page begins.
    pub(super) next: Option<Item>,
}

pub(super) fn page<'a>(items: &'a StoredItems, query: &ItemQuery) -> Page<'a> {
    let limit = query.limit.map_or(u32::MAX, |limit| u32::try_from(limit).unwrap_or(u32::MAX));
    let mut page = Page::default();
    let mut bytes = 0;

    for item in visited(items, query) {
        page.visited += 1;
        bytes += item_bytes(item);
        if query.filter.iter().all(|condition| holds(condition, Some(item))) {
            page.sent.push(item);
        }

        // As in `DynamoDB`, a full page always says where the next one begins, even if no item follows.
        if page.visited >= limit || bytes > MAX_PAGE_BYTES {
            page.next = Some(place(item, query.index));
            break;
        }
    }
    page
}

/// The attributes of an item in the answer to a query: the query asks for them, and its index holds them.
pub(super) fn sent_attributes(
    query: &ItemQuery,
    item: &Item,
) -> impl Iterator<Item = (String, Attribute)> {
    let is_sent = |name: &str| {
        let is_wanted = query.only.is_empty() || query.only.contains(&name);
        is_wanted && query.index.is_none_or(|index| is_projected(index, name))
    };
    let sent = item.iter().filter(move |(name, _)| is_sent(name));
    sent.map(|(name, value)| (name.clone(), value.clone()))
}

/// Whether an attribute of an item is also in an index.
pub(super) fn is_projected(index: &Index, name: &str) -> bool {
    match index.projection {
        "ALL" => true,
        _ if [PK, SK, index.partition_key, index.sort_key].contains(&name) => true,
        "INCLUDE" => *index == CONDITIONS_INDEX && CONDITIONS_ATTRIBUTES.contains(&name),
        _ => false,
    }
}

/// Whether a query selects a sort key.
pub(super) fn has_key(keys: &Keys, sort: &Attribute) -> bool {
    let is_from = |first: &Attribute| order(sort, first).is_some_and(Ordering::is_ge);
    let is_until = |last: &Attribute| order(sort, last).is_some_and(Ordering::is_le);
    match keys {
        Keys::All => true,
        Keys::From(first) => is_from(&Attribute::S(first.clone())),
        Keys::Between(first, last) => is_from(first) && is_until(last),
    }
}

/// The items that a query visits, in its order, from its start on.
fn visited<'a>(
    items: &'a StoredItems,
    query: &ItemQuery,
) -> Box<dyn Iterator<Item = &'a Item> + 'a> {
    match query.index {
        None => in_table(items, query),
        Some(index) => Box::new(in_index(items, index, query).into_iter()),
    }
}

fn in_table<'a>(
    items: &'a StoredItems,
    query: &ItemQuery,
) -> Box<dyn Iterator<Item = &'a Item> + 'a> {
    let Some(partition) = items.partition(&query.partition) else {
        return Box::new(iter::empty());
    };
    let (mut first, mut last) = match &query.keys {
        Keys::All => (Bound::Unbounded, Bound::Unbounded),
        Keys::From(first) => (Bound::Included(first.clone()), Bound::Unbounded),
        Keys::Between(first, last) => (Bound::Included(text(first)), Bound::Included(text(last))),
    };
    if let Some(start) = &query.start {
        let behind = Bound::Excluded(ItemKey::of_item(start).sk);
        match query.order {
            Order::Ascending => first = behind,
            Order::Descending => last = behind,
        }
    }

    let range = partition.range((first, last)).map(|(_, item)| item);
    match query.order {
        Order::Ascending => Box::new(range),
        Order::Descending => Box::new(range.rev()),
    }
}

fn text(key: &Attribute) -> String {
    match key {
        Attribute::S(text) => text.clone(),
        other => panic!("the table's sort key is a text, not {other:?}"),
    }
}

fn in_index<'a>(items: &'a StoredItems, index: &Index, query: &ItemQuery) -> Vec<&'a Item> {
    let in_order = |a: &Item, b: &Item| match query.order {
        Order::Ascending => index_order(index, a, b),
        Order::Descending => index_order(index, b, a),
    };
    let partition = Attribute::S(query.partition.clone());
    let is_visited = |item: &&Item| {
        item.get(index.partition_key) == Some(&partition)
            && item.get(index.sort_key).is_some_and(|sort| has_key(&query.keys, sort))
            && query.start.as_ref().is_none_or(|start| in_order(item, start).is_gt())
    };

    let mut found: Vec<&Item> = items.all().filter(is_visited).collect();
    found.sort_by(|a, b| in_order(a, b));
    found
}

/// The order of items in a partition of an index. Items with the same sort key are sorted by their keys in the table;
/// `DynamoDB` promises no order for them.
fn index_order(index: &Index, a: &Item, b: &Item) -> Ordering {
    let by_sort_key = a.get(index.sort_key).zip(b.get(index.sort_key));
    let by_sort_key = by_sort_key.and_then(|(a, b)| order(a, b)).unwrap_or(Ordering::Equal);
    by_sort_key.then_with(|| ItemKey::of_item(a).cmp(&ItemKey::of_item(b)))
}

/// The key after which the next page begins, if a page ends with this item.
fn place(item: &Item, index: Option<&Index>) -> Item {
    let keys = place_keys(index);
    keys.filter_map(|name| Some((name.to_owned(), item.get(name)?.clone()))).collect()
}

/// The attributes that make up the key after which a page begins.
pub(super) fn place_keys(index: Option<&Index>) -> impl Iterator<Item = &'static str> {
    let of_index = index.map(|index| [index.partition_key, index.sort_key]);
    [PK, SK].into_iter().chain(of_index.into_iter().flatten())
}
