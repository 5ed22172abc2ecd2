//! Writes of one item, each with its conditions, and their outcomes. Performs none.

use std::collections::BTreeMap;

use super::{If, Path, absent, present};
use crate::item::attribute::DELETED;
use crate::item::{Attribute, Attributes, Form, Item};
use crate::keys::{Key, PK, SK};
use crate::{Action, ItemKey};

/// A write of one item. It is refused if one of its conditions does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Write {
    /// The change that the write makes.
    pub change: WriteChange,
    /// The conditions on the stored item.
    pub conditions: Vec<If>,
}

/// The change that a write makes to an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteChange {
    /// Stores the item in place of the stored one.
    Put(Item),
    /// Changes attributes. An item that does not exist is created, even without changes.
    Update(ItemKey, Vec<AttributeChange>),
    /// Deletes the item. If it does not exist, this is not an error, unless a condition fails.
    Delete(ItemKey),
    /// Changes nothing. If a condition fails, the whole transaction is refused.
    Check(ItemKey),
}

/// A change of one value of an item. No two changes of an update may overlap. A member can be set only in a map that
/// exists; otherwise the update is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum AttributeChange {
    /// Sets the value.
    Set(Path, Attribute),
    /// Sets the value if there is no value yet.
    SetIfAbsent(Path, Attribute),
    /// Removes the value, if there is one.
    Remove(Path),
    /// Adds a number to a number, or elements to a set of texts. An absent number counts as 0, an absent set as empty.
    Add(Path, Attribute),
    /// Takes elements from a set of texts. A set that has become empty is removed.
    Take(Path, Attribute),
}

/// The outcome of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The write is done. Has the updated item after an update, and the deleted item after a deletion. Has nothing
    /// after a put, because the caller knows the item.
    Done(Option<Item>),
    /// A condition does not hold. Has the stored item, if there is one.
    Refused(Option<Item>),
}

/// The writes of a refused transaction whose conditions failed. Nothing of the transaction is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedWrites(BTreeMap<usize, Option<Item>>);

/// Stores an item, and replaces any stored item.
pub fn put<N: Into<String>>(item: impl IntoIterator<Item = (N, Attribute)>) -> Write {
    let item = item.into_iter().map(|(name, value)| (name.into(), value));
    Write::of(WriteChange::Put(item.collect()))
}

/// Changes an existing item. A device that is being deleted counts as absent.
pub fn update(key: &Key) -> Write {
    let is_no_tombstone = matches!(key, Key::Device(..)).then(|| absent(DELETED));
    upsert(key).when([present(PK)]).when(is_no_tombstone)
}

/// Changes an item, or creates it if it does not exist.
pub fn upsert(key: impl Into<ItemKey>) -> Write {
    Write::of(WriteChange::Update(key.into(), Vec::new()))
}

/// Deletes an item, if it exists.
pub fn delete(key: impl Into<ItemKey>) -> Write {
    Write::of(WriteChange::Delete(key.into()))
}

/// Writes nothing, but makes its transaction fail if a condition fails.
pub fn check(key: impl Into<ItemKey>) -> Write {
    Write::of(WriteChange::Check(key.into()))
}

impl Write {
    fn of(change: WriteChange) -> Self {
        Self { change, conditions: Vec::new() }
    }

    /// Adds conditions.
    pub fn when(mut self, conditions: impl IntoIterator<Item = If>) -> Self {
        self.conditions.extend(conditions);
        self
    }

    /// Adds changes to an update.
    pub fn with(mut self, more: impl IntoIterator<Item = AttributeChange>) -> Self {
        match &mut self.change {
            WriteChange::Update(_, changes) => changes.extend(more),
            other => unreachable!("only an update has changes, not {other:?}"),
        }
        self
    }

    /// The key of the item.
    pub fn key(&self) -> ItemKey {
        match &self.change {
            WriteChange::Put(item) => ItemKey::of_item(item),
            WriteChange::Update(key, _) | WriteChange::Delete(key) | WriteChange::Check(key) => {
                key.clone()
            }
        }
    }

    /// The action for which a role needs a permission.
    pub const fn action(&self) -> Action {
        match self.change {
            WriteChange::Put(_) => Action::PutItem,
            WriteChange::Update(..) => Action::UpdateItem,
            WriteChange::Delete(_) => Action::DeleteItem,
            WriteChange::Check(_) => Action::ConditionCheckItem,
        }
    }
}

/// Sets a value.
pub fn set(path: impl Into<Path>, value: Attribute) -> AttributeChange {
    AttributeChange::Set(path.into(), value)
}

/// Sets a value in the form `F`, or removes the attribute if this form leaves the value out.
pub(crate) fn set_as<F: Form<T>, T>(path: impl Into<Path>, value: &T) -> AttributeChange {
    replace(path, F::attribute(value))
}

/// Sets a value if there is no value yet.
pub fn set_if_absent(path: impl Into<Path>, value: Attribute) -> AttributeChange {
    AttributeChange::SetIfAbsent(path.into(), value)
}

/// Removes a value.
pub fn remove(path: impl Into<Path>) -> AttributeChange {
    AttributeChange::Remove(path.into())
}

/// Sets a value; `None` removes the stored one.
pub fn replace(path: impl Into<Path>, value: Option<Attribute>) -> AttributeChange {
    match value {
        Some(value) => set(path, value),
        None => remove(path),
    }
}

/// Sets all attributes of a value. Removes an attribute whose value is `None`.
pub fn replace_all(value: &impl Attributes) -> Vec<AttributeChange> {
    let attributes = value.attributes().into_iter();
    attributes.map(|(name, attribute)| replace(name, attribute)).collect()
}

/// Adds a number to a number, or elements to a set.
pub fn add(path: impl Into<Path>, more: Attribute) -> AttributeChange {
    AttributeChange::Add(path.into(), more)
}

/// Takes elements from a set.
pub fn take(path: impl Into<Path>, elements: Attribute) -> AttributeChange {
    AttributeChange::Take(path.into(), elements)
}

impl AttributeChange {
    /// The path of the value in the item.
    pub const fn path(&self) -> &Path {
        match self {
            Self::Set(path, _)
            | Self::SetIfAbsent(path, _)
            | Self::Remove(path)
            | Self::Add(path, _)
            | Self::Take(path, _) => path,
        }
    }
}

impl RefusedWrites {
    /// Whether the write at this position was refused.
    pub fn at(&self, position: usize) -> bool {
        self.0.contains_key(&position)
    }

    /// Takes out the stored item on which the write at this position failed; `None` if there is no item.
    pub fn take(&mut self, position: usize) -> Option<Item> {
        self.0.remove(&position).flatten()
    }
}

/// From the positions of the refused writes, each with the stored item.
impl FromIterator<(usize, Option<Item>)> for RefusedWrites {
    fn from_iter<I: IntoIterator<Item = (usize, Option<Item>)>>(refused: I) -> Self {
        Self(refused.into_iter().collect())
    }
}

impl ItemKey {
    /// The key of an item; a missing key attribute becomes an empty text.
    pub fn of_item(item: &Item) -> Self {
        let text = |name| match item.get(name) {
            Some(Attribute::S(text)) => text.clone(),
            _ => String::new(),
        };
        Self { pk: text(PK), sk: text(SK) }
    }

    /// The key attributes.
    pub fn into_item(self) -> Item {
        let Self { pk, sk } = self;
        [(PK.to_owned(), Attribute::S(pk)), (SK.to_owned(), Attribute::S(sk))].into()
    }
}

impl From<&Key> for ItemKey {
    fn from(key: &Key) -> Self {
        Self::of(key)
    }
}
