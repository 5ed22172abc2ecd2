//! The item of the number of partitions of the registry's devices. Compares it with nothing.

use super::attribute::SHARDS;
use super::fields::{other_kind, parse_key, whole_number};
use super::{Attribute, Decode, Item, ItemError, key};
use crate::keys::Key;
use crate::shards::Shards;

/// The item of a number of partitions.
#[must_use]
pub fn from_shards(shards: Shards) -> Item {
    let mut item = key(&Key::Shards);
    item.insert(SHARDS.to_owned(), Attribute::number(shards));
    item
}

impl Decode for Shards {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let mut item: Item = attributes.into_iter().collect();
        let Key::Shards = parse_key(&item)? else { return Err(other_kind(&item)) };
        let number = whole_number(&mut item, SHARDS)?.ok_or(ItemError::Missing(SHARDS))?;
        Self::new(number).map_err(super::fields::invalid(SHARDS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_partitions_comes_back() {
        for number in [1, 4, 64] {
            let shards = Shards::new(number).expect("a number");
            assert_eq!(Shards::decode(from_shards(shards)).expect("a number"), shards);
        }
    }

    #[test]
    fn a_damaged_number_is_an_error() {
        let mut item = from_shards(Shards::ONE);
        item.insert(SHARDS.to_owned(), Attribute::number(65));
        Shards::decode(item.clone()).expect_err("too many");
        item.remove(SHARDS);
        Shards::decode(item).expect_err("none");
    }
}
