//! The item of late changes. Judges none.

use super::Attribute;
use super::attribute::{BACKLOG, MARKS, VERSION};
use super::form::{
    At, Damage, Form, List, Listed, Maybe, Millis, OrDefault, Whole, element, elements, list,
    list_of,
};
use super::kind::kind;
use crate::late::{Backlog, DeviceGroups, LateChanges, LateMark};
use domain::TimeRange;

kind! { LateChanges = LateChanges {
    version: OrDefault<Whole> = VERSION,
    marks: OrDefault<Listed<List>> = MARKS,
    backlog: Maybe<List> = BACKLOG,
} }

list! { Backlog { since: At, at: At } }

/// A mark as a list: the start and end of the range, the time until which the mark holds, and the groups as bits.
impl Form<LateMark> for List {
    fn attribute(mark: &LateMark) -> Option<Attribute> {
        let LateMark { range, groups, until } = mark;
        let times = [range.from(), range.to(), *until].map(|at| Millis::attribute(&at));
        let [from, to, until] = times;
        Some(list_of([from, to, until, Whole::attribute(&groups.bits())]))
    }

    fn value(attribute: Option<Attribute>) -> Result<LateMark, Damage> {
        let [from, to, until, bits] = elements(attribute)?;
        let range = TimeRange::new(element::<Millis, _>(from)?, element::<Millis, _>(to)?);
        Ok(LateMark {
            range: range.map_err(Damage::of)?,
            groups: DeviceGroups::from_bits(element::<Whole, _>(bits)?).ok_or(Damage::Missing)?,
            until: element::<Millis, _>(until)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use domain::Timestamp;

    use super::*;
    use crate::item::{Decode as _, Kind as _, key};
    use crate::keys::Key;

    #[test]
    fn late_changes_fit_into_one_write_unit() {
        let at = |millis| Timestamp::from_millis(1_768_147_200_000 + millis).expect("in range");
        let mut late = LateChanges { version: 3, ..LateChanges::default() };
        for n in 0..40 {
            let range = TimeRange::new(at(n), Timestamp::MAX).expect("a range");
            let until = at(123).saturating_add(TimeDelta::milliseconds(n));
            let mark = LateMark { range, groups: DeviceGroups::ALL, until };
            late.marks = late.marks_with(mark, at(n));
        }
        assert_eq!(LateChanges::decode(late.item()).expect("late changes"), late);
        // A list and each of its elements take 3 and 1 bytes, and two digits of a number one.
        let each = 3 + 4 + 3 * 9 + 4;
        assert!(late.marks.len() * (each + 1) + 100 < 1_024, "{}", late.marks.len());
    }

    #[test]
    fn an_item_without_marks_is_of_nothing_late() {
        let none = key(&Key::LateChanges);
        assert_eq!(LateChanges::decode(none).expect("late changes"), LateChanges::default());
    }
}
