//! The items of rollups and of their state, and the decoding of readings with their expiry. Folds nothing.
//!
//! A metric's rollup is a list and not a map: the names of members, and full timestamps, would nearly double the cost
//! of reading a year.

use chrono::TimeDelta;

use super::attribute::{
    DONE_UNTIL, END, FROZEN, QUEUE, RAW_UNTIL, ROLLED_UP, ROOMS, SEALED, SETTINGS, SINCE, START,
    VERSION, ZONE,
};
use super::conditions::indexed_attributes;
use super::fields::{invalid, other_kind, parse_key};
use super::form::{
    At, ByPresence, Damage, Form, List, Listed, Maybe, RoomOrNone, Seconds, Text, Whole, element,
    elements, list, list_of, members, part,
};
use super::kind::{kind, take};
use super::{Attribute, Attributes, Decode as _, FromItem, Item, ItemError, Kind, NamedAttribute};
use crate::keys::{self, Key};
use crate::rollup::{
    Indexed, QueueDepth, Refold, RollupKey, RollupState, StoredReading, StoredRollup,
};
use domain::{
    Bucket, Decimal, Exact, Flags, MetricName, MetricRollup, OfKind, Reading, Rollup, SWEEP_GROUPS,
    Sample, TimeRange, Timestamp,
};

impl Kind for StoredRollup {
    fn key(&self) -> Key {
        let RollupKey { device, bucket } = &self.key;
        Key::Rollup(device.clone(), *bucket)
    }
}

impl Attributes for StoredRollup {
    fn attributes(&self) -> Vec<NamedAttribute> {
        let start = self.range.from();
        let metrics = self.rollup.metrics.iter();
        let metrics = metrics.map(|(name, metric)| (name.to_string(), from_metric(metric, start)));

        let mut attributes = vec![
            (VERSION, part::<Whole, _>(&self.version)),
            (SETTINGS, part::<Whole, _>(&self.settings)),
            (ROOMS, part::<Listed<RoomOrNone>, _>(&self.rollup.rooms)),
            (ROLLED_UP, Some(Attribute::M(metrics.collect()))),
            (RAW_UNTIL, part::<Maybe<Seconds>, _>(&self.raw_until)),
            (keys::TTL, part::<Maybe<Seconds>, _>(&self.expires)),
            (FROZEN, part::<ByPresence, _>(&self.is_frozen)),
        ];

        if let Some(indexed) = &self.indexed {
            attributes.extend(indexed_attributes(indexed, &self.key.device, start));
        }

        if let Some(zone) = &self.zone {
            attributes.extend([
                (ZONE, part::<Text, _>(zone)),
                (START, part::<At, _>(&start)),
                (END, part::<At, _>(&self.range.to())),
            ]);
        }

        attributes
    }
}

impl FromItem for StoredRollup {
    fn from_item(mut item: Item) -> Result<Self, ItemError> {
        let Key::Rollup(device, bucket) = parse_key(&item)? else { return Err(other_kind(&item)) };
        let range = match bucket {
            Bucket::QuarterHour(quarter) => quarter.range(),
            Bucket::Day(_) => {
                let start = take::<At, _>(&mut item, START)?;
                TimeRange::new(start, take::<At, _>(&mut item, END)?).map_err(invalid(END))?
            }
        };

        let metrics =
            members(item.remove(ROLLED_UP)).map_err(|damage| damage.in_attribute(ROLLED_UP))?;
        let metric = |(name, metric): (String, Attribute)| {
            let name = MetricName::try_from(name).map_err(invalid(ROLLED_UP))?;
            let metric = to_metric(metric, range.from()).ok_or(ItemError::Missing(ROLLED_UP))?;
            Ok((name, metric))
        };
        let metrics = metrics.into_iter().map(metric).collect::<Result<_, _>>()?;

        Ok(Self {
            indexed: Indexed::take(&mut item)?,
            range,
            zone: take::<Maybe<Text>, _>(&mut item, ZONE)?,
            version: take::<Whole, _>(&mut item, VERSION)?,
            settings: take::<Whole, _>(&mut item, SETTINGS)?,
            raw_until: take::<Maybe<Seconds>, _>(&mut item, RAW_UNTIL)?,
            expires: take::<Maybe<Seconds>, _>(&mut item, keys::TTL)?,
            is_frozen: take::<ByPresence, _>(&mut item, FROZEN)?,
            rollup: Rollup { rooms: take::<Listed<RoomOrNone>, _>(&mut item, ROOMS)?, metrics },
            key: RollupKey { device, bucket },
        })
    }
}

/// The list of a metric's rollup. For a gauge it is `[count, sum, min, max, first, ms, last, ms]`, where ms counts from
/// the start of the bucket. A counter has one more element, a list: `[increase]`, `[increase, flags]` or `[increase,
/// flags, cycle of first, cycle of last]`. A power has two more elements: its area, and the ms during which values
/// held.
fn from_metric(metric: &MetricRollup, start: Timestamp) -> Attribute {
    let decimal = |number: &Decimal| Attribute::N(number.as_str().into());
    let since = |sample: &Sample| Attribute::number(sample.at.since(start).num_milliseconds());
    let mut list = vec![
        Attribute::number(metric.count),
        from_exact(&metric.sum),
        decimal(&metric.min),
        decimal(&metric.max),
        decimal(&metric.first.value),
        since(&metric.first),
        decimal(&metric.last.value),
        since(&metric.last),
    ];

    match &metric.of_kind {
        OfKind::Gauge => {}
        OfKind::Counter { increase, flags } => list.push(from_counter(metric, increase, *flags)),
        OfKind::Power { area, held } => {
            list.push(from_exact(area));
            list.push(Attribute::number(held.num_milliseconds()));
        }
    }

    Attribute::L(list)
}

fn from_counter(metric: &MetricRollup, increase: &Exact, flags: Flags) -> Attribute {
    let (increase, bits) = (from_exact(increase), Attribute::number(flags.bits()));
    let (first, last) = (metric.first.cycle.as_ref(), metric.last.cycle.as_ref());
    Attribute::L(match (first, last) {
        (None, None) if flags.is_empty() => vec![increase],
        (None, None) => vec![increase, bits],
        _ => vec![increase, bits, from_cycle(first), from_cycle(last)],
    })
}

fn to_metric(attribute: Attribute, start: Timestamp) -> Option<MetricRollup> {
    let Attribute::L(parts) = attribute else { return None };
    let [count, sum, min, max, first, first_at, last, last_at, of_kind @ ..] = &parts[..] else {
        return None;
    };

    let (of_kind, cycles) = to_kind(of_kind)?;
    let [of_first, of_last] = cycles;
    let sample = |value: &Attribute, millis: &Attribute, cycle: Option<Decimal>| {
        let at = Timestamp::from_millis(start.as_millis().checked_add(to_whole(millis)?)?).ok()?;
        Some(Sample { cycle, ..Sample::new(at, to_decimal(value)?) })
    };

    Some(MetricRollup {
        count: u64::try_from(to_whole(count)?).ok()?,
        sum: to_exact(sum)?,
        min: to_decimal(min)?,
        max: to_decimal(max)?,
        first: sample(first, first_at, of_first)?,
        last: sample(last, last_at, of_last)?,
        of_kind,
    })
}

/// Decodes the elements that follow those of a gauge. Also returns the cycles of a counter's first and last value.
fn to_kind(parts: &[Attribute]) -> Option<(OfKind, [Option<Decimal>; 2])> {
    Some(match parts {
        [] => (OfKind::Gauge, [None, None]),
        [Attribute::L(counted)] => to_counter(counted)?,
        [area, held] => {
            let held = TimeDelta::try_milliseconds(to_whole(held)?)?;
            (OfKind::Power { area: to_exact(area)?, held }, [None, None])
        }
        _ => return None,
    })
}

fn to_counter(counted: &[Attribute]) -> Option<(OfKind, [Option<Decimal>; 2])> {
    let (increase, flags, cycles) = match counted {
        [increase] => (increase, 0, [None, None]),
        [increase, flags] => (increase, to_whole(flags)?, [None, None]),
        [increase, flags, first, last] => {
            (increase, to_whole(flags)?, [to_cycle(first), to_cycle(last)])
        }
        _ => return None,
    };
    let flags = Flags::from_bits(u8::try_from(flags).ok()?);
    Some((OfKind::Counter { increase: to_exact(increase)?, flags }, cycles))
}

/// The cycle of a counter's value as text; empty without a cycle.
fn from_cycle(cycle: Option<&Decimal>) -> Attribute {
    Attribute::S(cycle.map_or_else(String::new, Decimal::to_string))
}

/// The cycle of a counter's value; `None` for an empty text.
fn to_cycle(attribute: &Attribute) -> Option<Decimal> {
    let Attribute::S(text) = attribute else { return None };
    Decimal::parse(text).ok()
}

/// A number. If it has more digits than `DynamoDB` stores in a number, it is stored as text.
fn from_exact(number: &Exact) -> Attribute {
    match number.to_decimal() {
        Ok(decimal) => Attribute::N(decimal.as_str().into()),
        Err(_) => Attribute::S(number.to_string()),
    }
}

fn to_exact(attribute: &Attribute) -> Option<Exact> {
    match attribute {
        Attribute::N(number) => Exact::parse(number),
        Attribute::S(text) => Exact::parse(text),
        _ => None,
    }
}

fn to_decimal(attribute: &Attribute) -> Option<Decimal> {
    match attribute {
        Attribute::N(text) => Decimal::parse(text).ok(),
        _ => None,
    }
}

fn to_whole(attribute: &Attribute) -> Option<i64> {
    match attribute {
        Attribute::N(text) => text.parse().ok(),
        _ => None,
    }
}

kind! { RollupState = RollupState {
    zone: Text = ZONE,
    since: At = SINCE,
    sealed: ByGroup = SEALED,
    queue: Maybe<List> = QUEUE,
} }

list! { QueueDepth { messages: Whole, at: At } }

/// One time for each group of devices, as a map.
pub(super) struct ByGroup;

impl Form<[Timestamp; SWEEP_GROUPS]> for ByGroup {
    fn attribute(times: &[Timestamp; SWEEP_GROUPS]) -> Option<Attribute> {
        let groups = times.iter().enumerate();
        let times = groups.map(|(group, at)| (group_name(group), Attribute::text(at)));
        Some(Attribute::M(times.collect()))
    }

    fn value(attribute: Option<Attribute>) -> Result<[Timestamp; SWEEP_GROUPS], Damage> {
        let mut groups = members(attribute)?;
        let mut times = [Timestamp::MIN; SWEEP_GROUPS];
        for (group, at) in times.iter_mut().enumerate() {
            *at = At::value(groups.remove(&group_name(group)))?;
        }
        Ok(times)
    }
}

/// The name under which the watermark of a group is stored.
pub fn group_name(group: usize) -> String {
    group.to_string()
}

kind! { Refold = Refold(_) {
    settings: Whole = SETTINGS,
    under_way: Maybe<List> = DONE_UNTIL,
} }

/// The fold that is under way: the number of its settings, and the time up to which rollups are folded.
impl Form<(u64, Timestamp)> for List {
    fn attribute((settings, until): &(u64, Timestamp)) -> Option<Attribute> {
        Some(list_of([Whole::attribute(settings), At::attribute(until)]))
    }

    fn value(attribute: Option<Attribute>) -> Result<(u64, Timestamp), Damage> {
        let [settings, until] = elements(attribute)?;
        Ok((element::<Whole, _>(settings)?, element::<At, _>(until)?))
    }
}

impl FromItem for StoredReading {
    fn from_item(mut item: Item) -> Result<Self, ItemError> {
        let expires = take::<Maybe<Seconds>, _>(&mut item, keys::TTL)?;
        Ok(Self { reading: Reading::decode(item)?, expires })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::from_reading;

    #[test]
    fn a_reading_comes_with_its_expiry() {
        let at = |text| Timestamp::parse_absolute(text).expect("a timestamp");
        let metrics = [("t".parse().expect("a name"), Decimal::parse("21.5").expect("a number"))];
        let device = "d".parse().expect("an id");
        let reading = Reading::new(device, at("2026-01-11T16:00:00Z"), None, metrics.into());
        let reading = reading.expect("a reading");
        let item = from_reading(&reading, Some(TimeDelta::days(1)));
        let item: Item = item.map(|(name, value)| (name.to_owned(), value)).collect();
        let expires = Some(at("2026-01-15T16:00:00Z"));
        assert_eq!(
            StoredReading::decode(item).expect("a reading"),
            StoredReading { reading, expires }
        );
    }
}
