//! The attributes that put a rollup into the conditions index, and the item of the index's schema. Encodes no value.

use super::attribute::{
    BITS, CONDITIONS_VALUES, CONDITIONS_VERSION, DOMAIN, ENCODING, NAME, READY, ROOMS, SCHEMA,
    VERSION,
};
use super::fields::{invalid, other_kind, parse_key};
use super::form::{
    At, ByPresence, List, Listed, Maybe, Members, Number, RoomOrNone, Seconds, Text, Whole, list,
    listed, part,
};
use super::kind::{group, kind, take};
use super::{Attribute, Attributes, FromItem, Group, Item, ItemError, NamedAttribute};
use crate::keys::{self, Key};
use crate::rollup::{Indexed, IndexedQuarter, RollupKey, StoredSchema};
use domain::{
    Bucket, ConditionsSchema, DeviceId, Encoding, IndexEntry, MetricMeans, SchemaMetric, Timestamp,
};

/// The attributes that put a rollup into the index. There are none before the first schema.
pub(super) fn indexed_attributes(
    indexed: &Indexed,
    device: &DeviceId,
    start: Timestamp,
) -> Vec<NamedAttribute> {
    if indexed.schema == 0 {
        return Vec::new();
    }

    let mut attributes = vec![(CONDITIONS_VERSION, part::<Whole, _>(&indexed.schema))];
    if let Some(IndexEntry { address, values }) = &indexed.entry {
        let month = Attribute::S(keys::conditions_month(device, start));
        attributes.extend([
            (keys::CONDITIONS_MONTH, Some(month)),
            (keys::CONDITIONS_ADDRESS, Some(Attribute::B(address.clone()))),
            (CONDITIONS_VALUES, part::<Listed<List>, _>(values)),
        ]);
    }

    attributes
}

list! { MetricMeans { mean: Number, min: Number, max: Number } }

impl Indexed {
    /// Decodes the attributes that [`indexed_attributes`] makes.
    pub(super) fn take(item: &mut Item) -> Result<Option<Self>, ItemError> {
        let Some(schema) = take::<Maybe<Whole>, _>(item, CONDITIONS_VERSION)? else {
            return Ok(None);
        };
        let is_there = item.contains_key(keys::CONDITIONS_ADDRESS);
        let entry = is_there.then(|| take_entry(item)).transpose()?;
        Ok(Some(Self { schema, entry }))
    }
}

fn take_entry(item: &mut Item) -> Result<IndexEntry, ItemError> {
    let Some(Attribute::B(address)) = item.remove(keys::CONDITIONS_ADDRESS) else {
        return Err(ItemError::Missing(keys::CONDITIONS_ADDRESS));
    };
    Ok(IndexEntry { address, values: take::<Listed<List>, _>(item, CONDITIONS_VALUES)? })
}

impl FromItem for IndexedQuarter {
    fn from_item(mut item: Item) -> Result<Self, ItemError> {
        let Key::Rollup(device, Bucket::QuarterHour(quarter)) = parse_key(&item)? else {
            return Err(other_kind(&item));
        };
        Ok(Self {
            key: RollupKey::quarter(device, quarter),
            quarter,
            entry: take_entry(&mut item)?,
            rooms: take::<Listed<RoomOrNone>, _>(&mut item, ROOMS)?,
            expires: take::<Maybe<Seconds>, _>(&mut item, keys::TTL)?,
        })
    }
}

kind! { StoredSchema = ConditionsSchema {
    schema: ConditionsSchema,
    is_ready: ByPresence = READY,
} }

impl Attributes for ConditionsSchema {
    fn attributes(&self) -> Vec<NamedAttribute> {
        vec![
            (VERSION, part::<Whole, _>(&self.version())),
            (SCHEMA, Some(listed::<Members, _>(self.metrics()))),
        ]
    }
}

impl Group for ConditionsSchema {
    fn take(item: &mut Item) -> Result<Self, ItemError> {
        let version = take::<Whole, _>(item, VERSION)?;
        let metrics = take::<Listed<Members>, _>(item, SCHEMA)?;
        Self::new(version, metrics).map_err(invalid(SCHEMA))
    }
}

group! { SchemaMetric { name: Text = NAME, encoding: Encoding, bits: Whole = BITS } }

/// The name of the encoding, and a list of the knots or times that it needs.
impl Attributes for Encoding {
    fn attributes(&self) -> Vec<NamedAttribute> {
        let domain = match self {
            Self::Decimal(knots) => listed::<Number, _>(knots),
            Self::Time(from, to) => listed::<At, _>([from, to]),
            Self::Unsigned | Self::Signed | Self::Float => Attribute::L(Vec::new()),
        };
        vec![(ENCODING, Some(Attribute::S(self.name().to_owned()))), (DOMAIN, Some(domain))]
    }
}

impl Group for Encoding {
    fn take(item: &mut Item) -> Result<Self, ItemError> {
        let name: String = take::<Text, _>(item, ENCODING)?;
        let without_domain = match name.as_str() {
            "decimal" => return take::<Listed<Number>, _>(item, DOMAIN).map(Self::Decimal),
            "time" => {
                let ends: Vec<Timestamp> = take::<Listed<At>, _>(item, DOMAIN)?;
                let [from, to] = ends[..] else { return Err(ItemError::Missing(DOMAIN)) };
                return Ok(Self::Time(from, to));
            }
            "unsigned" => Self::Unsigned,
            "signed" => Self::Signed,
            "float" => Self::Float,
            _ => return Err(ItemError::Missing(ENCODING)),
        };
        match item.remove(DOMAIN) {
            Some(Attribute::L(_)) => Ok(without_domain),
            _ => Err(ItemError::Missing(DOMAIN)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::item::{Decode as _, Kind as _};
    use crate::rollup::StoredRollup;
    use domain::{Decimal, QuarterHour, Rollup};

    fn stored(indexed: Option<Indexed>) -> StoredRollup {
        let quarter =
            QuarterHour::of(Timestamp::parse_absolute("2026-02-28T23:46:00Z").expect("valid"));
        StoredRollup {
            key: RollupKey::quarter("remo-3".parse().expect("an id"), quarter),
            range: quarter.range(),
            zone: None,
            version: 1,
            settings: 0,
            raw_until: None,
            expires: Some(quarter.end()),
            is_frozen: false,
            rollup: Rollup { rooms: BTreeSet::from([None]), ..Rollup::default() },
            indexed,
        }
    }

    #[test]
    fn what_the_index_has_of_a_rollup_is_read_alone() {
        let number = |text: &str| Decimal::parse(text).expect("a number");
        let means = MetricMeans { mean: number("1.5"), min: number("-1"), max: number("20") };
        let entry = IndexEntry { address: vec![7, 0, 255], values: vec![means.clone(), means] };
        let rollup = stored(Some(Indexed { schema: 7, entry: Some(entry.clone()) }));
        let mut item = rollup.item();
        let month = Attribute::S("conditions#remo-3#2026-02".to_owned());
        assert_eq!(item[keys::CONDITIONS_MONTH], month);

        let found = IndexedQuarter::decode(item.clone()).expect("an entry");
        assert_eq!(found.entry, entry);
        assert_eq!((found.rooms, found.expires), (rollup.rollup.rooms, rollup.expires));

        item.remove(CONDITIONS_VALUES);
        assert!(IndexedQuarter::decode(item).is_err());
    }

    #[test]
    fn a_rollup_without_a_place_in_the_index_comes_back() {
        let rollup = stored(Some(Indexed { schema: 7, entry: None }));
        assert!(!rollup.item().contains_key(keys::CONDITIONS_MONTH));
        assert_eq!(StoredRollup::decode(rollup.item()).expect("a rollup"), rollup);
    }

    #[test]
    fn without_a_schema_the_item_is_as_without_the_index() {
        let unset = stored(Some(Indexed { schema: 0, entry: None }));
        assert_eq!(unset.item(), stored(None).item());
    }
}
