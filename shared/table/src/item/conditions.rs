//! The attributes of a rollup in the index by conditions, and the item of the index's schema. Encodes no value.

use super::attribute::{
    BITS, CONDITIONS_VALUES, CONDITIONS_VERSION, DOMAIN, ENCODING, NAME, READY, SCHEMA, VERSION,
};
use super::fields::{epoch_seconds, invalid, other_kind, parse_key, string, text, whole_number};
use super::fields::{rooms, to_decimal};
use super::{Attribute, Decode, Item, ItemError, key};
use crate::keys::{self, Key};
use crate::rollup::{Indexed, IndexedQuarter, RollupKey, StoredSchema};
use domain::{
    Bucket, ConditionsSchema, Decimal, DeviceId, Encoding, IndexEntry, MetricMeans, MetricName,
    SchemaMetric, Timestamp,
};

/// Adds to the item of a rollup what the index has of it. An item without a schema's version is of none.
pub(super) fn put_indexed(item: &mut Item, indexed: &Indexed, device: &DeviceId, start: Timestamp) {
    if indexed.schema == 0 {
        return;
    }
    let number = |decimal: &Decimal| Attribute::number(decimal);
    item.insert(CONDITIONS_VERSION.to_owned(), Attribute::number(indexed.schema));
    if let Some(IndexEntry { address, values }) = &indexed.entry {
        let values = values.iter().map(|MetricMeans { mean, min, max }| {
            Attribute::L([mean, min, max].map(number).into())
        });
        let month = keys::conditions_month(device, start);
        item.insert(keys::CONDITIONS_MONTH.to_owned(), Attribute::S(month));
        item.insert(keys::CONDITIONS_ADDRESS.to_owned(), Attribute::B(address.clone()));
        item.insert(CONDITIONS_VALUES.to_owned(), Attribute::L(values.collect()));
    }
}

/// What the index has of a rollup.
pub(super) fn indexed(item: &mut Item) -> Result<Option<Indexed>, ItemError> {
    let Some(schema) = whole_number(item, CONDITIONS_VERSION)? else { return Ok(None) };
    Ok(Some(Indexed { schema, entry: entry(item)? }))
}

fn entry(item: &mut Item) -> Result<Option<IndexEntry>, ItemError> {
    let address = match item.remove(keys::CONDITIONS_ADDRESS) {
        None => return Ok(None),
        Some(Attribute::B(address)) => address,
        Some(_) => return Err(ItemError::Missing(keys::CONDITIONS_ADDRESS)),
    };
    let means = |it: &Attribute| match it {
        Attribute::L(parts) => match &parts[..] {
            [mean, min, max] => Some(MetricMeans {
                mean: to_decimal(mean)?,
                min: to_decimal(min)?,
                max: to_decimal(max)?,
            }),
            _ => None,
        },
        _ => None,
    };
    let values = match item.remove(CONDITIONS_VALUES) {
        Some(Attribute::L(values)) => values.iter().map(means).collect(),
        _ => None,
    };
    let values = values.ok_or(ItemError::Missing(CONDITIONS_VALUES))?;
    Ok(Some(IndexEntry { address, values }))
}

impl Decode for IndexedQuarter {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let mut item: Item = attributes.into_iter().collect();
        let Key::Rollup(device, Bucket::QuarterHour(quarter)) = parse_key(&item)? else {
            return Err(other_kind(&item));
        };
        Ok(Self {
            key: RollupKey::quarter(device, quarter),
            quarter,
            entry: entry(&mut item)?.ok_or(ItemError::Missing(keys::CONDITIONS_ADDRESS))?,
            rooms: rooms(&mut item)?,
            expires: epoch_seconds(&mut item, keys::TTL)?,
        })
    }
}

/// The item of a schema that is not ready.
#[must_use]
pub fn from_conditions_schema(schema: &ConditionsSchema) -> Item {
    let text = |text: &str| Attribute::S(text.to_owned());
    let metric = |metric: &SchemaMetric| {
        let mut member = Item::new();
        member.insert(NAME.to_owned(), text(metric.name.as_str()));
        member.insert(BITS.to_owned(), Attribute::number(metric.bits));
        member.insert(ENCODING.to_owned(), text(metric.encoding.name()));
        let domain = match &metric.encoding {
            Encoding::Decimal(knots) => knots.iter().map(Attribute::number).collect(),
            Encoding::Time(from, to) => [from, to].map(|at| Attribute::S(at.to_string())).into(),
            Encoding::Unsigned | Encoding::Signed | Encoding::Float => Vec::new(),
        };
        member.insert(DOMAIN.to_owned(), Attribute::L(domain));
        Attribute::M(member)
    };
    let mut item = key(&Key::ConditionsSchema);
    item.insert(VERSION.to_owned(), Attribute::number(schema.version()));
    let metrics = schema.metrics().iter().map(metric);
    item.insert(SCHEMA.to_owned(), Attribute::L(metrics.collect()));
    item
}

impl Decode for StoredSchema {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let mut item: Item = attributes.into_iter().collect();
        let Key::ConditionsSchema = parse_key(&item)? else { return Err(other_kind(&item)) };
        let version = whole_number(&mut item, VERSION)?.ok_or(ItemError::Missing(VERSION))?;
        let Some(Attribute::L(metrics)) = item.remove(SCHEMA) else {
            return Err(ItemError::Missing(SCHEMA));
        };
        let metrics = metrics.into_iter().map(to_metric).collect::<Result<_, _>>()?;
        let schema = ConditionsSchema::new(version, metrics).map_err(invalid(SCHEMA))?;
        Ok(Self { schema, is_ready: item.contains_key(READY) })
    }
}

fn to_metric(attribute: Attribute) -> Result<SchemaMetric, ItemError> {
    let Attribute::M(mut member) = attribute else { return Err(ItemError::Missing(SCHEMA)) };
    let name = text(&mut member, NAME).ok_or(ItemError::Missing(NAME))?;
    let bits = whole_number(&mut member, BITS)?.ok_or(ItemError::Missing(BITS))?;
    let Some(Attribute::L(domain)) = member.remove(DOMAIN) else {
        return Err(ItemError::Missing(DOMAIN));
    };
    let encoding = match text(&mut member, ENCODING).as_deref() {
        Some("decimal") => {
            let knots = domain.iter().map(to_decimal).collect::<Option<_>>();
            Encoding::Decimal(knots.ok_or(ItemError::Missing(DOMAIN))?)
        }
        Some("time") => {
            let mut ends = domain.into_iter().filter_map(string);
            let mut end = || {
                let text = ends.next().ok_or(ItemError::Missing(DOMAIN))?;
                Timestamp::parse_absolute(&text).map_err(invalid(DOMAIN))
            };
            Encoding::Time(end()?, end()?)
        }
        Some("unsigned") => Encoding::Unsigned,
        Some("signed") => Encoding::Signed,
        Some("float") => Encoding::Float,
        _ => return Err(ItemError::Missing(ENCODING)),
    };
    let name = MetricName::try_from(name).map_err(invalid(NAME))?;
    Ok(SchemaMetric { name, encoding, bits })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::item::from_rollup;
    use crate::rollup::StoredRollup;
    use domain::{QuarterHour, Rollup};

    fn number(text: &str) -> Decimal {
        Decimal::parse(text).expect("a number")
    }

    fn schema() -> ConditionsSchema {
        let at = |text| Timestamp::parse_absolute(text).expect("a timestamp");
        let metric = |name: &str, encoding, bits| {
            let name = name.parse().expect("a name");
            SchemaMetric { name, encoding, bits }
        };
        let metrics = vec![
            metric("a", Encoding::Decimal(["1", "2.5", "1e30"].map(number).into()), 12),
            metric("b", Encoding::Time(at("2026-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z")), 9),
            metric("c", Encoding::Unsigned, 1),
            metric("d", Encoding::Signed, 5),
            metric("e", Encoding::Float, 32),
        ];
        ConditionsSchema::new(7, metrics).expect("a schema")
    }

    #[test]
    fn a_schema_comes_back() {
        let mut item = from_conditions_schema(&schema());
        let stored = |is_ready| StoredSchema { schema: schema(), is_ready };
        assert_eq!(StoredSchema::decode(item.clone()).expect("a schema"), stored(false));
        item.insert(READY.to_owned(), super::super::mark());
        assert_eq!(StoredSchema::decode(item.clone()).expect("a schema"), stored(true));
        for name in [VERSION, SCHEMA] {
            let mut broken = item.clone();
            broken.insert(name.to_owned(), Attribute::Other);
            assert!(StoredSchema::decode(broken).is_err(), "{name}");
        }
    }

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
    fn what_the_index_has_comes_back_with_the_rollup_and_alone() {
        let means = |text: &str| MetricMeans {
            mean: number(text),
            min: number("-1"),
            max: number("123456789012345"),
        };
        let entry = IndexEntry { address: vec![7, 0, 255], values: vec![means("1.5"), means("0")] };
        for entry in [None, Some(entry.clone())] {
            let rollup = stored(Some(Indexed { schema: 7, entry }));
            let item = from_rollup(&rollup);
            let has_month = item.contains_key(keys::CONDITIONS_MONTH);
            assert_eq!(has_month, rollup.indexed.as_ref().is_some_and(|it| it.entry.is_some()));
            assert_eq!(StoredRollup::decode(item).expect("a rollup"), rollup);
        }
        let rollup = stored(Some(Indexed { schema: 7, entry: Some(entry.clone()) }));
        let mut item = from_rollup(&rollup);
        let month = Attribute::S("conditions#remo-3#2026-02".to_owned());
        assert_eq!(item[keys::CONDITIONS_MONTH], month);
        let found = IndexedQuarter::decode(item.clone()).expect("an entry");
        assert_eq!(
            (found.entry, found.rooms, found.expires),
            (entry, rollup.rollup.rooms.clone(), rollup.expires)
        );
        item.insert(CONDITIONS_VALUES.to_owned(), Attribute::L(vec![Attribute::Other]));
        assert!(StoredRollup::decode(item.clone()).is_err());
        assert!(IndexedQuarter::decode(item).is_err());
    }

    #[test]
    fn without_a_schema_the_item_is_as_without_the_index() {
        let unset = stored(Some(Indexed { schema: 0, entry: None }));
        assert_eq!(from_rollup(&unset), from_rollup(&stored(None)));
    }
}
