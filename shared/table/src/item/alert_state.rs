//! The item of a state: when it is due and when it expires beside it, so that others need not read it.

use super::attribute::{DUE, ONCE, STATE, VERSION};
use super::fields::{epoch_seconds, other_kind, parse_key, put, timestamp, whole_number};
use super::json::{object, put_object};
use super::{Attribute, Decode, Item, ItemError, key};
use crate::keys::{self, Key};
use crate::{AlertState, StoredAlertState};
use alerts::State;

/// The item of a state.
#[must_use]
pub fn from_alert_state(stored: &StoredAlertState) -> Item {
    let mut item = key(&Key::AlertState(stored.key.clone()));
    item.insert(VERSION.to_owned(), Attribute::number(stored.version));
    let seconds = stored.expires.map(|at| Attribute::number(at.as_millis() / 1_000));
    item.extend(seconds.map(|it| (keys::TTL.to_owned(), it)));
    put(&mut item, DUE, stored.state.due().map(|at| at.to_string()));
    match &stored.state {
        AlertState::Episodes(state) => {
            put_object(&mut item, STATE, &State { due: None, ..State::clone(state) });
        }
        AlertState::Once(once) => put_object(&mut item, ONCE, once),
    }
    item
}

impl Decode for StoredAlertState {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let mut item: Item = attributes.into_iter().collect();
        let Key::AlertState(key) = parse_key(&item)? else { return Err(other_kind(&item)) };
        let due = timestamp(&mut item, DUE)?;
        let state = if item.contains_key(ONCE) {
            AlertState::Once(object(&mut item, ONCE)?)
        } else {
            AlertState::Episodes(Box::new(State { due, ..object(&mut item, STATE)? }))
        };
        Ok(Self {
            key,
            version: whole_number(&mut item, VERSION)?.ok_or(ItemError::Missing(VERSION))?,
            state,
            expires: epoch_seconds(&mut item, keys::TTL)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use alerts::Once;
    use chrono::TimeDelta;
    use domain::Timestamp;

    use super::*;
    use crate::given;
    use crate::{AlertKey, STATE_KEPT};

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_absolute(text).expect("a timestamp")
    }

    fn written(key: &AlertKey, state: AlertState, now: Timestamp) -> (StoredAlertState, Item) {
        let stored = StoredAlertState::next(None, key.clone(), state, now);
        let item = from_alert_state(&stored);
        assert_eq!(StoredAlertState::decode(item.clone()).expect("a state"), stored);
        (stored, item)
    }

    #[test]
    fn a_state_comes_back_to_the_last_digit() {
        let now = at("2026-01-11T16:00:00Z");
        let firing = given::firing("r", "d");
        let AlertState::Episodes(mut state) = firing.state.clone() else { panic!("episodes") };
        let (stored, item) = written(&firing.key, firing.state.clone(), now);
        assert_eq!(stored.expires, None);
        assert_eq!(item[DUE], Attribute::S(state.due.expect("due").to_string()));
        assert!(!item.contains_key(keys::TTL) && !item.contains_key(keys::ROOM));
        let Attribute::M(members) = &item[STATE] else { panic!("a map") };
        assert!(!members.contains_key("due"), "{members:?}");
        state.due = None;
        let (stored, item) = written(&firing.key, AlertState::Episodes(state), now);
        assert_eq!(stored.expires, Some(now.saturating_add(STATE_KEPT)));
        assert!(item.contains_key(keys::TTL) && !item.contains_key(DUE));
        let next =
            StoredAlertState::next(Some(&stored), stored.key.clone(), stored.state.clone(), now);
        assert_eq!(next.version, 2);
    }

    #[test]
    fn what_was_told_once_comes_back() {
        let now = at("2026-01-11T16:00:00Z");
        let mut once = Once::default();
        for told in [0, 1, 40] {
            for n in 0..told {
                once.told.insert(now.saturating_add(TimeDelta::minutes(n)), u64::MAX);
            }
            once.changed = (told > 0).then_some(now);
            let key = given::alert_key("r", "d");
            let (stored, item) = written(&key, AlertState::Once(once.clone()), now);
            assert!(stored.expires.is_some() && !item.contains_key(STATE));
        }
    }

    #[test]
    fn a_damaged_state_is_an_error() {
        let whole = from_alert_state(&given::firing("r", "d"));
        for name in [VERSION, STATE] {
            let mut item = whole.clone();
            item.remove(name);
            let why = StoredAlertState::decode(item).expect_err(name).to_string();
            assert!(why.contains(name), "{why}");
        }
        let mut item = whole;
        item.insert(ONCE.to_owned(), Attribute::M(Item::new()));
        assert!(StoredAlertState::decode(item).is_err());
    }

    /// A judgement that tells nothing puts one item, and is meant to cost one unit.
    #[test]
    fn a_state_of_long_names_fits_into_one_write_unit() {
        let long = "d".repeat(64);
        let item = from_alert_state(&given::firing(&long, &long));
        assert!(size(&item) < 1_024, "{}", size(&item));
    }

    /// The bytes of an item as `DynamoDB` counts them.
    fn size(item: &Item) -> usize {
        fn of(attribute: &Attribute) -> usize {
            match attribute {
                Attribute::S(text) => text.len(),
                Attribute::N(number) => number.len() / 2 + 2,
                Attribute::L(list) => 3 + list.iter().map(|it| of(it) + 1).sum::<usize>(),
                Attribute::M(item) => 3 + size(item) + item.len(),
                _ => 1,
            }
        }
        item.iter().map(|(name, value)| name.len() + of(value)).sum()
    }
}
