//! An annotation's item, under its time. Says nothing of the device, room or home that it is about.

use super::attribute::{ABOUT, TEXT, UNTIL};
use super::fields::{invalid, other_kind, parse_key, parsed, text, timestamp};
use super::{Attribute, Decode, Item, ItemError};
use crate::keys::Key;
use domain::Annotation;

/// The attributes of an annotation. What has no value is absent from the item.
#[must_use]
pub fn from_annotation(annotation: &Annotation) -> [(&'static str, Option<Attribute>); 3] {
    let Annotation { id: _, to, about, text } = annotation;
    [
        (ABOUT, Some(Attribute::S(about.to_string()))),
        (TEXT, Some(Attribute::S(text.to_string()))),
        (UNTIL, to.map(|to| Attribute::S(to.to_string()))),
    ]
}

impl Decode for Annotation {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let mut item: Item = attributes.into_iter().collect();
        let Key::Annotation(id) = parse_key(&item)? else { return Err(other_kind(&item)) };
        let about = text(&mut item, ABOUT).ok_or(ItemError::Missing(ABOUT))?;
        let about = about.parse().map_err(invalid(ABOUT))?;
        let text = parsed(&mut item, TEXT)?.ok_or(ItemError::Missing(TEXT))?;
        Ok(Self { id, to: timestamp(&mut item, UNTIL)?, about, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::with_key;
    use domain::Timestamp;

    #[test]
    fn an_annotation_comes_back_and_is_in_no_index() {
        for (about, to) in
            [("device:a:b", None), ("room:hall", Some(Timestamp::MAX)), ("home:h", None)]
        {
            let annotation = Annotation {
                id: "2026-01-11T16:00:00.000Z-kettle".parse().expect("an id"),
                to,
                about: about.parse().expect("what it is about"),
                text: "Kettle".parse().expect("a label"),
            };
            let key = Key::Annotation(annotation.id.clone());
            let item = with_key(&key, from_annotation(&annotation));
            assert!(!item.contains_key(crate::keys::ROOM));
            assert_eq!(Annotation::decode(item.clone()).expect("an annotation"), annotation);
            for missing in [ABOUT, TEXT] {
                let mut item = item.clone();
                item.remove(missing);
                assert!(Annotation::decode(item).is_err(), "{missing}");
            }
        }
    }
}
