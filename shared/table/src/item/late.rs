//! The item of late changes. Judges none.

use super::attribute::{BACKLOG, MARKS, VERSION};
use super::fields::{invalid, other_kind, parse_key, whole_number};
use super::{Attribute, Decode, Item, ItemError};
use crate::keys::Key;
use crate::late::{Backlog, DeviceGroups, LateChanges, LateMark};
use domain::{TimeRange, Timestamp};

/// The marks as an attribute: of each its range and its end in milliseconds, and its groups as bits.
#[must_use]
pub fn from_late_marks(marks: &[LateMark]) -> Attribute {
    let mark = |mark: &LateMark| {
        let LateMark { range, groups, until } = mark;
        let numbers = [range.from(), range.to(), *until].map(Timestamp::as_millis);
        let bits = [i64::from(groups.bits())];
        let numbers = numbers.into_iter().chain(bits).map(Attribute::number);
        Attribute::L(numbers.collect())
    };
    Attribute::L(marks.iter().map(mark).collect())
}

fn to_late_mark(attribute: &Attribute) -> Option<LateMark> {
    let Attribute::L(list) = attribute else { return None };
    let number = |attribute: &Attribute| match attribute {
        Attribute::N(text) => text.parse::<i64>().ok(),
        _ => None,
    };
    let [from, to, until, bits] = &list[..] else { return None };
    let at = |attribute| Timestamp::from_millis(number(attribute)?).ok();
    Some(LateMark {
        range: TimeRange::new(at(from)?, at(to)?).ok()?,
        groups: DeviceGroups::from_bits(u16::try_from(number(bits)?).ok()?)?,
        until: at(until)?,
    })
}

/// The changes that came late, as an attribute.
#[must_use]
pub fn from_backlog(backlog: Backlog) -> Attribute {
    Attribute::L([backlog.since, backlog.at].map(|at| Attribute::S(at.to_string())).to_vec())
}

fn to_backlog(attribute: &Attribute) -> Result<Backlog, ItemError> {
    let Attribute::L(list) = attribute else { return Err(ItemError::Missing(BACKLOG)) };
    let [Attribute::S(since), Attribute::S(at)] = &list[..] else {
        return Err(ItemError::Missing(BACKLOG));
    };
    Ok(Backlog {
        since: Timestamp::parse_absolute(since).map_err(invalid(BACKLOG))?,
        at: Timestamp::parse_absolute(at).map_err(invalid(BACKLOG))?,
    })
}

impl Decode for LateChanges {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let mut item: Item = attributes.into_iter().collect();
        let Key::LateChanges = parse_key(&item)? else { return Err(other_kind(&item)) };
        let marks = match item.remove(MARKS) {
            None => Vec::new(),
            Some(Attribute::L(marks)) => {
                let marks: Option<Vec<_>> = marks.iter().map(to_late_mark).collect();
                marks.ok_or(ItemError::Missing(MARKS))?
            }
            Some(_) => return Err(ItemError::Missing(MARKS)),
        };
        Ok(Self {
            version: whole_number(&mut item, VERSION)?.unwrap_or(0),
            marks,
            backlog: item.remove(BACKLOG).as_ref().map(to_backlog).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis).expect("in range")
    }

    #[test]
    fn late_changes_come_back_and_fit_into_one_write_unit() {
        let mark = LateMark {
            range: TimeRange::new(Timestamp::MIN, Timestamp::MAX).expect("a range"),
            groups: DeviceGroups::ALL,
            until: at(1_768_147_200_123),
        };
        let mut late = LateChanges { version: 3, ..LateChanges::default() };
        for n in 0..40 {
            let from = at(1_768_147_200_000 + n);
            let until = mark.until.saturating_add(chrono::TimeDelta::milliseconds(n));
            let range = TimeRange::new(from, Timestamp::MAX).expect("a range");
            late.marks = late.marks_with(LateMark { range, until, ..mark }, from);
        }
        late.backlog = Some(Backlog { since: at(5), at: at(6) });
        let mut item = super::super::key(&Key::LateChanges);
        item.insert(VERSION.to_owned(), Attribute::number(3));
        item.insert(MARKS.to_owned(), from_late_marks(&late.marks));
        item.insert(BACKLOG.to_owned(), from_backlog(late.backlog.expect("one")));
        assert_eq!(LateChanges::decode(item.clone()).expect("late changes"), late);
        // A list and each of its elements take 3 and 1 bytes, and two digits of a number one.
        let each = 3 + 4 + 3 * 9 + 4;
        assert!(late.marks.len() * (each + 1) + 100 < 1_024, "{}", late.marks.len());
        for damaged in [MARKS, BACKLOG] {
            let mut item = item.clone();
            item.insert(damaged.to_owned(), Attribute::L(vec![Attribute::Other]));
            assert!(LateChanges::decode(item).is_err(), "{damaged}");
        }
        let none = super::super::key(&Key::LateChanges);
        assert_eq!(LateChanges::decode(none).expect("late changes"), LateChanges::default());
    }
}
