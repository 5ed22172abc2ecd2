//! The items of devices and rules to be looked at again, and of when the system last ran. Looks at nothing.

use super::attribute::{AFTER, AT, PAUSES, SINCE, TOUCH, VERSION};
use super::fields::{invalid, other_kind, parse_key, parsed, put, string, timestamp, whole_number};
use super::{Attribute, Decode, Item, ItemError, key};
use crate::keys::Key;
use crate::{Look, RunningMark};
use domain::{TimeRange, Timestamp};

/// The attributes of a look beside its key.
#[must_use]
pub fn from_look(since: Timestamp, touch: u64) -> [(&'static str, Attribute); 2] {
    [(SINCE, Attribute::S(since.to_string())), (TOUCH, Attribute::number(touch))]
}

impl Decode for Look {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let mut item: Item = attributes.into_iter().collect();
        let Key::AlertLook(what) = parse_key(&item)? else { return Err(other_kind(&item)) };
        Ok(Self {
            what,
            since: timestamp(&mut item, SINCE)?.ok_or(ItemError::Missing(SINCE))?,
            after: parsed(&mut item, AFTER)?,
            touch: whole_number(&mut item, TOUCH)?.ok_or(ItemError::Missing(TOUCH))?,
        })
    }
}

/// The item of when the system last ran.
#[must_use]
pub fn from_running_mark(mark: &RunningMark) -> Item {
    let mut item = key(&Key::AlertRunning);
    item.insert(VERSION.to_owned(), Attribute::number(mark.version));
    put(&mut item, AT, Some(mark.at.to_string()));
    let pause = |range: &TimeRange| {
        Attribute::L([range.from(), range.to()].map(|at| Attribute::S(at.to_string())).to_vec())
    };
    item.insert(PAUSES.to_owned(), Attribute::L(mark.pauses.iter().map(pause).collect()));
    item
}

fn to_pause(attribute: Attribute) -> Result<TimeRange, ItemError> {
    let Attribute::L(list) = attribute else { return Err(ItemError::Missing(PAUSES)) };
    let texts = list.into_iter().map(|it| string(it).ok_or(ItemError::Missing(PAUSES)));
    let [from, to] = &texts.collect::<Result<Vec<_>, _>>()?[..] else {
        return Err(ItemError::Missing(PAUSES));
    };
    let at = |text: &String| Timestamp::parse_absolute(text).map_err(invalid(PAUSES));
    TimeRange::new(at(from)?, at(to)?).map_err(invalid(PAUSES))
}

impl Decode for RunningMark {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let mut item: Item = attributes.into_iter().collect();
        let Key::AlertRunning = parse_key(&item)? else { return Err(other_kind(&item)) };
        let Some(Attribute::L(pauses)) = item.remove(PAUSES) else {
            return Err(ItemError::Missing(PAUSES));
        };
        Ok(Self {
            version: whole_number(&mut item, VERSION)?.ok_or(ItemError::Missing(VERSION))?,
            at: timestamp(&mut item, AT)?.ok_or(ItemError::Missing(AT))?,
            pauses: pauses.into_iter().map(to_pause).collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::ALERT_LOOKS;

    #[test]
    fn a_look_comes_back() {
        for (sk, after) in [("d", None), ("#r", None), ("#r", Some("d"))] {
            let Some(Key::AlertLook(what)) = Key::parse(ALERT_LOOKS, sk) else { panic!("{sk}") };
            let look = Look {
                what,
                since: Timestamp::MIN,
                after: after.map(|id| id.parse().expect("an id")),
                touch: u64::MAX,
            };
            let mut item = key(&Key::AlertLook(look.what.clone()));
            item.extend(from_look(look.since, look.touch).map(|(name, it)| (name.to_owned(), it)));
            put(&mut item, AFTER, after.map(str::to_owned));
            assert_eq!(Look::decode(item.clone()).expect("a look"), look);
            item.remove(TOUCH);
            assert!(Look::decode(item).is_err());
        }
    }

    #[test]
    fn the_mark_comes_back_with_its_pauses() {
        let pause = TimeRange::new(Timestamp::MIN, Timestamp::MAX).expect("a range");
        for pauses in [vec![], vec![pause; 3]] {
            let mark = RunningMark { version: 2, at: Timestamp::MAX, pauses };
            let item = from_running_mark(&mark);
            assert_eq!(RunningMark::decode(item.clone()).expect("a mark"), mark);
            for damaged in [Attribute::Other, Attribute::L(vec![])] {
                let mut item = item.clone();
                item.insert(PAUSES.to_owned(), Attribute::L(vec![damaged]));
                assert!(RunningMark::decode(item).is_err());
            }
        }
    }
}
