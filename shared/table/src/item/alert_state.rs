//! The item of a rule's state. Two times have an attribute of their own, so that they can be read without the state:
//! when the state is due, and when it expires.

use super::attribute::{DUE, ONCE, STATE, VERSION};
use super::form::{At, Maybe, Seconds, Whole, part};
use super::json::Json;
use super::kind::{kind, take};
use super::{Attributes, Group, Item, ItemError, NamedAttribute};
use crate::keys::TTL;
use crate::{AlertState, StoredAlertState};
use alerts::EpisodeState;

kind! { StoredAlertState = AlertState(key) {
    state: AlertState,
    version: Whole = VERSION,
    expires: Maybe<Seconds> = TTL,
} }

impl Attributes for AlertState {
    fn attributes(&self) -> Vec<NamedAttribute> {
        match self {
            Self::Episodes(state) => {
                let without_due = EpisodeState { due: None, ..EpisodeState::clone(state) };
                vec![
                    (DUE, part::<Maybe<At>, _>(&state.due)),
                    (STATE, part::<Json, _>(&without_due)),
                ]
            }
            Self::Figures(figures) => vec![(ONCE, part::<Json, _>(figures))],
        }
    }
}

impl Group for AlertState {
    fn take(item: &mut Item) -> Result<Self, ItemError> {
        if item.contains_key(ONCE) {
            return take::<Json, _>(item, ONCE).map(Self::Figures);
        }
        let due = take::<Maybe<At>, _>(item, DUE)?;
        let state = take::<Json, EpisodeState>(item, STATE)?;
        Ok(Self::Episodes(Box::new(EpisodeState { due, ..state })))
    }
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;

    use super::*;
    use crate::item::{Attribute, Decode as _, Kind as _};
    use crate::{AlertKey, STATE_KEPT, given};

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_absolute(text).expect("a timestamp")
    }

    fn written(key: &AlertKey, state: AlertState, now: Timestamp) -> (StoredAlertState, Item) {
        let stored = StoredAlertState::next(None, key.clone(), state, now);
        let item = stored.item();
        assert_eq!(StoredAlertState::decode(item.clone()).expect("a state"), stored);
        (stored, item)
    }

    #[test]
    fn a_state_that_is_to_be_judged_again_does_not_expire() {
        let now = at("2026-01-11T16:00:00Z");
        let firing = given::firing("r", "d");
        let AlertState::Episodes(mut state) = firing.state.clone() else { panic!("episodes") };
        let (stored, item) = written(&firing.key, firing.state.clone(), now);
        assert_eq!(stored.expires, None);
        assert_eq!(item[DUE], Attribute::S(state.due.expect("due").to_string()));
        assert!(!item.contains_key(TTL));
        let Attribute::M(members) = &item[STATE] else { panic!("a map") };
        assert!(!members.contains_key("due"), "{members:?}");
        state.due = None;
        let (stored, item) = written(&firing.key, AlertState::Episodes(state), now);
        assert_eq!(stored.expires, Some(now.saturating_add(STATE_KEPT)));
        assert!(item.contains_key(TTL) && !item.contains_key(DUE));
        let next =
            StoredAlertState::next(Some(&stored), stored.key.clone(), stored.state.clone(), now);
        assert_eq!(next.version, 2);
    }

    /// A judgement that tells nothing puts one item, and is meant to cost one unit.
    #[test]
    fn a_state_of_long_names_fits_into_one_write_unit() {
        let long = "d".repeat(64);
        let item = given::firing(&long, &long).item();
        assert!(size(&item) < 1_024, "{}", size(&item));
    }

    /// The bytes of an item as `DynamoDB` counts them.
    fn size(item: &Item) -> usize {
        fn of(attribute: &Attribute) -> usize {
            match attribute {
                Attribute::S(text) => text.len(),
                Attribute::N(number) => number.len() / 2 + 2,
                Attribute::L(list) => 3 + list.iter().map(|element| of(element) + 1).sum::<usize>(),
                Attribute::M(item) => 3 + size(item) + item.len(),
                _ => 1,
            }
        }
        item.iter().map(|(name, value)| name.len() + of(value)).sum()
    }
}
