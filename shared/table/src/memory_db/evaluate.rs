//! Evaluates conditions on items, and the effects of writes. Stores nothing before all effects are known.

use std::cmp::Ordering;

use domain::Decimal;

use super::items::{StoredItems, refuse_large};
use crate::db::{AttributeChange, If, Op, Path, Write, WriteChange};
use crate::item::{Attribute, Item};
use crate::{ItemKey, StoreError, StoreResult};

/// A write, evaluated against the stored item.
pub(super) enum Evaluated {
    /// All conditions hold.
    Applies(Effect),
    /// A condition fails. Has the stored item; `None` if there is no item.
    Refused(Option<Item>),
}

/// The effect of a write whose conditions hold.
pub(super) enum Effect {
    Store(Item),
    Delete,
    Nothing,
}

impl StoredItems {
    /// Checks the conditions of a write and finds its effect.
    pub(super) fn evaluate(&self, write: &Write) -> StoreResult<Evaluated> {
        let known = self.get(&write.key());
        if !write.conditions.iter().all(|condition| holds(condition, known)) {
            return Ok(Evaluated::Refused(known.cloned()));
        }

        let effect = match &write.change {
            WriteChange::Put(item) => Effect::Store(item.clone()),
            WriteChange::Update(key, changes) => Effect::Store(changed(key, known, changes)?),
            WriteChange::Delete(_) => Effect::Delete,
            WriteChange::Check(_) => Effect::Nothing,
        };
        if let Effect::Store(item) = &effect
            && let Some(error) = refuse_large(item)
        {
            return Err(error);
        }

        Ok(Evaluated::Applies(effect))
    }

    /// Applies an effect. Returns the deleted item.
    pub(super) fn apply(&mut self, key: &ItemKey, effect: Effect) -> Option<Item> {
        match effect {
            Effect::Store(item) => self.store(item),
            Effect::Delete => return self.remove(key),
            Effect::Nothing => {}
        }
        None
    }
}

/// Whether a condition holds for an item; `None` if there is no item.
pub(super) fn holds(condition: &If, item: Option<&Item>) -> bool {
    match condition {
        If::Absent(path) => at(item, path).is_none(),
        If::Present(path) => at(item, path).is_some(),
        If::Compare(path, op, value) => {
            at(item, path).is_some_and(|known| compares(known, *op, value))
        }
        If::Holds(path, element) => set_at(item, path).is_some_and(|set| set.contains(element)),
        If::Fewer(path, limit) => set_at(item, path).is_some_and(|set| set.len() < *limit),
        If::Any(conditions) => conditions.iter().any(|condition| holds(condition, item)),
    }
}

fn at<'a>(item: Option<&'a Item>, path: &Path) -> Option<&'a Attribute> {
    let value = item?.get(path.attribute.as_ref())?;
    match (&path.member, value) {
        (None, value) => Some(value),
        (Some(member), Attribute::M(map)) => map.get(member),
        (Some(_), _) => None,
    }
}

/// The set at a path. `DynamoDB` evaluates these conditions also on texts and lists, but no pattern uses that.
fn set_at<'a>(item: Option<&'a Item>, path: &Path) -> Option<&'a Vec<String>> {
    match at(item, path)? {
        Attribute::Ss(set) => Some(set),
        other => panic!("{path:?} is no set but {other:?}"),
    }
}

fn compares(known: &Attribute, op: Op, value: &Attribute) -> bool {
    if op == Op::Is {
        return is_equal(known, value);
    }
    order(known, value).is_some_and(|order| match op {
        Op::Is => order.is_eq(),
        Op::Below => order.is_lt(),
        Op::AtMost => order.is_le(),
        Op::Above => order.is_gt(),
        Op::AtLeast => order.is_ge(),
    })
}

/// The order of two values of the same type, if the type has an order.
pub(super) fn order(a: &Attribute, b: &Attribute) -> Option<Ordering> {
    match (a, b) {
        (Attribute::S(a), Attribute::S(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
        (Attribute::B(a), Attribute::B(b)) => Some(a.cmp(b)),
        (Attribute::N(a), Attribute::N(b)) => Some(number(a).cmp(&number(b))),
        _ => None,
    }
}

/// Whether two values are equal. A set has no order, and a number can be written in several ways.
fn is_equal(a: &Attribute, b: &Attribute) -> bool {
    match (a, b) {
        (Attribute::N(_), Attribute::N(_)) => order(a, b).is_some_and(Ordering::is_eq),
        (Attribute::Ss(a), Attribute::Ss(b)) => {
            a.len() == b.len() && a.iter().all(|element| b.contains(element))
        }
        (Attribute::L(a), Attribute::L(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a, b))
        }
        (Attribute::M(a), Attribute::M(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((a, x), (b, y))| a == b && is_equal(x, y))
        }
        (a, b) => a == b,
    }
}

fn number(text: &str) -> Decimal {
    Decimal::parse(text).expect("the table refuses other numbers")
}

/// The item after an update.
fn changed(key: &ItemKey, known: Option<&Item>, changes: &[AttributeChange]) -> StoreResult<Item> {
    let mut item = known.cloned().unwrap_or_else(|| key.clone().into_item());
    for change in changes {
        let path = change.path();
        let (map, name) = match &path.member {
            None => (&mut item, path.attribute.as_ref()),
            Some(member) => match item.get_mut(path.attribute.as_ref()) {
                Some(Attribute::M(map)) => (map, member.as_str()),
                _ => return Err(inapplicable(format!("{} is no map", path.attribute))),
            },
        };
        change_value(map, name, change)?;
    }

    Ok(item)
}

/// Changes one value. No other change of the update is about this value, so the order of changes does not matter.
fn change_value(map: &mut Item, name: &str, change: &AttributeChange) -> StoreResult<()> {
    let known = map.remove(name);
    let value = match change {
        AttributeChange::Set(_, value) => Some(value.clone()),
        AttributeChange::SetIfAbsent(_, value) => Some(known.unwrap_or_else(|| value.clone())),
        AttributeChange::Remove(_) => None,
        AttributeChange::Add(_, more) => Some(sum(known, more)?),
        AttributeChange::Take(_, elements) => difference(known, elements)?,
    };
    map.extend(value.map(|value| (name.to_owned(), value)));
    Ok(())
}

/// The sum of two numbers, or a set with added elements.
fn sum(known: Option<Attribute>, more: &Attribute) -> StoreResult<Attribute> {
    match (known, more) {
        (None, more) => Ok(more.clone()),
        (Some(Attribute::N(known)), Attribute::N(more)) => {
            let sum = number(&known).checked_add(&number(more));
            let sum = sum.map_err(|error| StoreError::Inapplicable(error.into()))?;
            Ok(Attribute::number(sum))
        }
        (Some(Attribute::Ss(mut set)), Attribute::Ss(more)) => {
            set.extend(more.iter().cloned());
            set.sort_unstable();
            set.dedup();
            Ok(Attribute::Ss(set))
        }
        (Some(known), more) => Err(inapplicable(format!("{more:?} is not added to {known:?}"))),
    }
}

/// A set without some elements; `None` for an empty set.
fn difference(known: Option<Attribute>, elements: &Attribute) -> StoreResult<Option<Attribute>> {
    match (known, elements) {
        (None, _) => Ok(None),
        (Some(Attribute::Ss(mut set)), Attribute::Ss(elements)) => {
            set.retain(|element| !elements.contains(element));
            Ok((!set.is_empty()).then_some(Attribute::Ss(set)))
        }
        (Some(known), elements) => {
            Err(inapplicable(format!("{elements:?} is not taken from {known:?}")))
        }
    }
}

/// The error of an update that does not fit the item.
fn inapplicable(why: String) -> StoreError {
    StoreError::Inapplicable(why.into())
}
