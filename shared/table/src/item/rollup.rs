//! The items of rollups and of their state, and a reading's item with its expiry. Folds nothing.
//!
//! A metric's rollup is a list, not a map: named members and full timestamps nearly double what a year costs
//! to read.

use chrono::TimeDelta;

use super::attribute::{
    DONE_UNTIL, END, FROZEN, QUEUE, RAW_UNTIL, ROLLED_UP, ROOMS, SEALED, SETTINGS, SINCE, START,
    VERSION, ZONE,
};
use super::conditions;
use super::fields::{
    epoch_seconds, invalid, other_kind, parse_key, put, rooms, string, text, timestamp, to_decimal,
    whole_number,
};
use super::reading::mark;
use super::{Attribute, Decode, Item, ItemError, key};
use crate::keys::{self, Key};
use crate::rollup::{QueueDepth, Refold, RollupKey, RollupState, StoredReading, StoredRollup};
use domain::{
    Bucket, Decimal, Exact, Flags, MetricName, MetricRollup, OfKind, Reading, Rollup, RoomId,
    SWEEP_GROUPS, Sample, TimeRange, Timestamp,
};

/// The item of a rollup.
#[must_use]
pub fn from_rollup(stored: &StoredRollup) -> Item {
    let RollupKey { device, bucket } = &stored.key;
    let mut item = key(&Key::Rollup(device.clone(), *bucket));
    let seconds = |at: Timestamp| Attribute::number(at.as_millis() / 1_000);
    let room = |room: &Option<RoomId>| room.as_ref().map_or_else(String::new, ToString::to_string);
    let rooms = stored.rollup.rooms.iter().map(|it| Attribute::S(room(it)));
    let start = stored.range.from();
    let metrics = stored.rollup.metrics.iter();
    let metrics = metrics.map(|(name, it)| (name.to_string(), from_metric(it, start)));
    item.insert(VERSION.to_owned(), Attribute::number(stored.version));
    item.insert(SETTINGS.to_owned(), Attribute::number(stored.settings));
    item.insert(ROOMS.to_owned(), Attribute::L(rooms.collect()));
    item.insert(ROLLED_UP.to_owned(), Attribute::M(metrics.collect()));
    item.extend(stored.raw_until.map(|at| (RAW_UNTIL.to_owned(), seconds(at))));
    item.extend(stored.expires.map(|at| (keys::TTL.to_owned(), seconds(at))));
    item.extend(stored.is_frozen.then(|| (FROZEN.to_owned(), mark())));
    if let Some(indexed) = &stored.indexed {
        conditions::put_indexed(&mut item, indexed, device, start);
    }
    if let Some(zone) = &stored.zone {
        put(&mut item, ZONE, Some(zone.clone()));
        put(&mut item, START, Some(start.to_string()));
        put(&mut item, END, Some(stored.range.to().to_string()));
    }
    item
}

impl Decode for StoredRollup {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        to_rollup(attributes.into_iter().collect())
    }
}

fn to_rollup(mut item: Item) -> Result<StoredRollup, ItemError> {
    let Key::Rollup(device, bucket) = parse_key(&item)? else { return Err(other_kind(&item)) };
    let zone = text(&mut item, ZONE);
    let range = match bucket {
        Bucket::QuarterHour(quarter) => quarter.range(),
        Bucket::Day(_) => {
            let start = timestamp(&mut item, START)?.ok_or(ItemError::Missing(START))?;
            let end = timestamp(&mut item, END)?.ok_or(ItemError::Missing(END))?;
            TimeRange::new(start, end).map_err(invalid(END))?
        }
    };
    let rooms = rooms(&mut item)?;
    let Some(Attribute::M(metrics)) = item.remove(ROLLED_UP) else {
        return Err(ItemError::Missing(ROLLED_UP));
    };
    let metric = |(name, it): (String, Attribute)| {
        let name = MetricName::try_from(name).map_err(invalid(ROLLED_UP))?;
        let metric = to_metric(it, range.from()).ok_or(ItemError::Missing(ROLLED_UP))?;
        Ok((name, metric))
    };
    Ok(StoredRollup {
        indexed: conditions::indexed(&mut item)?,
        range,
        zone,
        version: whole_number(&mut item, VERSION)?.ok_or(ItemError::Missing(VERSION))?,
        settings: whole_number(&mut item, SETTINGS)?.ok_or(ItemError::Missing(SETTINGS))?,
        raw_until: epoch_seconds(&mut item, RAW_UNTIL)?,
        expires: epoch_seconds(&mut item, keys::TTL)?,
        is_frozen: item.contains_key(FROZEN),
        rollup: Rollup {
            rooms,
            metrics: metrics.into_iter().map(metric).collect::<Result<_, _>>()?,
        },
        key: RollupKey { device, bucket },
    })
}

/// `[count, sum, min, max, first, ms, last, ms]`, with ms from the start of the bucket; for a counter
/// `[increase]`, `[increase, flags]` or `[increase, flags, cycle of first, cycle of last]` behind, for a power its area and the ms during which a value held.
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
        OfKind::Counter { increase, flags } => {
            let mut counted = vec![from_exact(increase)];
            let cycles = [&metric.first.cycle, &metric.last.cycle];
            let has_cycle = cycles.iter().any(|cycle| cycle.is_some());
            let has_flags = has_cycle || !flags.is_empty();
            counted.extend(has_flags.then(|| Attribute::number(flags.bits())));
            // Text, because a counter need not tell its cycle in each reading.
            let text = |it: &Option<Decimal>| {
                Attribute::S(it.as_ref().map_or_else(String::new, ToString::to_string))
            };
            counted.extend(cycles.map(text).into_iter().filter(|_| has_cycle));
            list.push(Attribute::L(counted));
        }
        OfKind::Power { area, held } => {
            list.push(from_exact(area));
            list.push(Attribute::number(held.num_milliseconds()));
        }
    }
    Attribute::L(list)
}

fn to_metric(attribute: Attribute, start: Timestamp) -> Option<MetricRollup> {
    let Attribute::L(parts) = attribute else { return None };
    let [count, sum, min, max, first, first_at, last, last_at, of_kind @ ..] = &parts[..] else {
        return None;
    };
    let sample = |value: &Attribute, millis: &Attribute| {
        let at = Timestamp::from_millis(start.as_millis().checked_add(to_whole(millis)?)?).ok()?;
        Some(Sample::new(at, to_decimal(value)?))
    };
    let (mut first, mut last) = (sample(first, first_at)?, sample(last, last_at)?);
    let of_kind = match of_kind {
        [] => OfKind::Gauge,
        [Attribute::L(counted)] => {
            let (increase, flags) = match &counted[..] {
                [increase] => (increase, 0),
                [increase, flags] => (increase, to_whole(flags)?),
                [increase, flags, of_first, of_last] => {
                    (first.cycle, last.cycle) = (to_cycle(of_first), to_cycle(of_last));
                    (increase, to_whole(flags)?)
                }
                _ => return None,
            };
            let flags = Flags::from_bits(u8::try_from(flags).ok()?);
            OfKind::Counter { increase: to_exact(increase)?, flags }
        }
        [area, held] => OfKind::Power {
            area: to_exact(area)?,
            held: TimeDelta::try_milliseconds(to_whole(held)?)?,
        },
        _ => return None,
    };
    Some(MetricRollup {
        count: u64::try_from(to_whole(count)?).ok()?,
        sum: to_exact(sum)?,
        min: to_decimal(min)?,
        max: to_decimal(max)?,
        first,
        last,
        of_kind,
    })
}

/// The cycle of a counter's value; an empty text where its reading tells none.
fn to_cycle(attribute: &Attribute) -> Option<Decimal> {
    let Attribute::S(text) = attribute else { return None };
    Decimal::parse(text).ok()
}

/// A number of more digits than `DynamoDB` takes is kept as text.
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

pub(super) fn to_whole(attribute: &Attribute) -> Option<i64> {
    match attribute {
        Attribute::N(text) => text.parse().ok(),
        _ => None,
    }
}

/// The item of the state of the rollups.
#[must_use]
pub fn from_rollup_state(state: &RollupState) -> Item {
    let mut item = key(&Key::RollupState);
    put(&mut item, ZONE, Some(state.zone.clone()));
    put(&mut item, SINCE, Some(state.since.to_string()));
    let sealed = state.sealed.iter().enumerate();
    let sealed = sealed.map(|(group, at)| (group_name(group), Attribute::S(at.to_string())));
    item.insert(SEALED.to_owned(), Attribute::M(sealed.collect()));
    item.extend(state.queue.map(|depth| (QUEUE.to_owned(), from_queue_depth(depth))));
    item
}

/// The depth of the queue in the state.
#[must_use]
pub fn from_queue_depth(depth: QueueDepth) -> Attribute {
    Attribute::L(vec![Attribute::number(depth.messages), Attribute::S(depth.at.to_string())])
}

fn queue_depth(item: &mut Item) -> Result<Option<QueueDepth>, ItemError> {
    match item.remove(QUEUE) {
        None => Ok(None),
        Some(Attribute::L(list)) => match &list[..] {
            [Attribute::N(messages), Attribute::S(at)] => Ok(Some(QueueDepth {
                messages: messages.parse().map_err(invalid(QUEUE))?,
                at: Timestamp::parse_absolute(at).map_err(invalid(QUEUE))?,
            })),
            _ => Err(ItemError::Missing(QUEUE)),
        },
        Some(_) => Err(ItemError::Missing(QUEUE)),
    }
}

/// The name of a group's member in the state.
#[must_use]
pub fn group_name(group: usize) -> String {
    group.to_string()
}

impl Decode for RollupState {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let mut item: Item = attributes.into_iter().collect();
        let Key::RollupState = parse_key(&item)? else { return Err(other_kind(&item)) };
        let Some(Attribute::M(mut groups)) = item.remove(SEALED) else {
            return Err(ItemError::Missing(SEALED));
        };
        let mut sealed = [Timestamp::MIN; SWEEP_GROUPS];
        for (group, sealed) in sealed.iter_mut().enumerate() {
            let text = groups.remove(&group_name(group)).and_then(string);
            let text = text.ok_or(ItemError::Missing(SEALED))?;
            *sealed = Timestamp::parse_absolute(&text).map_err(invalid(SEALED))?;
        }
        Ok(Self {
            zone: text(&mut item, ZONE).ok_or(ItemError::Missing(ZONE))?,
            since: timestamp(&mut item, SINCE)?.ok_or(ItemError::Missing(SINCE))?,
            sealed,
            queue: queue_depth(&mut item)?,
        })
    }
}

/// The attributes of how far the rollups of a device are folded again. What has no value is absent from the
/// item.
#[must_use]
pub fn from_refold(refold: &Refold) -> [(&'static str, Option<Attribute>); 2] {
    let under_way = refold.under_way.map(|(settings, until)| {
        Attribute::L(vec![Attribute::number(settings), Attribute::S(until.to_string())])
    });
    [(SETTINGS, Some(Attribute::number(refold.settings))), (DONE_UNTIL, under_way)]
}

impl Decode for Refold {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let mut item: Item = attributes.into_iter().collect();
        let Key::Refold(_) = parse_key(&item)? else { return Err(other_kind(&item)) };
        let under_way = match item.remove(DONE_UNTIL) {
            None => None,
            Some(Attribute::L(list)) => match &list[..] {
                [Attribute::N(settings), Attribute::S(until)] => Some((
                    settings.parse().map_err(invalid(DONE_UNTIL))?,
                    Timestamp::parse_absolute(until).map_err(invalid(DONE_UNTIL))?,
                )),
                _ => return Err(ItemError::Missing(DONE_UNTIL)),
            },
            Some(_) => return Err(ItemError::Missing(DONE_UNTIL)),
        };
        let settings = whole_number(&mut item, SETTINGS)?.ok_or(ItemError::Missing(SETTINGS))?;
        Ok(Self { settings, under_way })
    }
}

impl Decode for StoredReading {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let mut item: Item = attributes.into_iter().collect();
        let expires = epoch_seconds(&mut item, keys::TTL)?;
        Ok(Self { reading: Reading::decode(item)?, expires })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{DeviceId, DeviceObservation, Flag, FoldRules, QuarterHour};

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_absolute(text).expect("a timestamp")
    }

    fn reading(time: &str, metrics: &[(&str, &str)]) -> Reading {
        let metrics = metrics.iter().map(|(name, value)| {
            (name.parse().expect("a name"), Decimal::parse(value).expect("a number"))
        });
        let room = Some("living".parse().expect("an id"));
        Reading::new("remo-e".parse().expect("an id"), at(time), room, metrics.collect())
            .expect("a reading")
    }

    fn stored(readings: &[Reading]) -> StoredRollup {
        let id: DeviceId = "remo-e".parse().expect("an id");
        let mut observation = DeviceObservation::of(&readings[0]);
        readings.iter().for_each(|reading| observation.see(reading));
        let rules = FoldRules::of(&observation.new_device(id.clone(), |_| true));
        let quarter = QuarterHour::of(readings[0].at);
        StoredRollup {
            key: RollupKey::quarter(id, quarter),
            range: quarter.range(),
            zone: None,
            version: 3,
            settings: 7,
            raw_until: Some(at("2027-01-11T16:00:00Z")),
            expires: Some(at("2028-01-11T16:00:00Z")),
            is_frozen: true,
            rollup: Rollup::fold(readings, &rules),
            indexed: None,
        }
    }

    fn of_a_home() -> StoredRollup {
        stored(&[
            reading(
                "2026-01-11T16:00:10Z",
                &[("temperature", "21.5"), ("current_w", "512"), ("cumulative_kwh_p", "8048.1")],
            ),
            reading(
                "2026-01-11T16:01:10Z",
                &[("temperature", "-1e20"), ("current_w", "498"), ("cumulative_kwh_p", "0.1")],
            ),
            reading("2026-01-11T16:14:59.999Z", &[("temperature", "1e-20")]),
        ])
    }

    #[test]
    fn a_rollup_comes_back_to_the_last_digit() {
        let mut rollup = of_a_home();
        let counter: MetricName = "cumulative_kwh_p".parse().expect("a name");
        assert!(matches!(
            rollup.rollup.metrics[&counter].of_kind,
            OfKind::Counter { flags, .. } if flags == Flags::from(Flag::Reset)
        ));
        let temperature: MetricName = "temperature".parse().expect("a name");
        assert!(rollup.rollup.metrics[&temperature].sum.to_decimal().is_err(), "41 digits");
        assert_eq!(StoredRollup::decode(from_rollup(&rollup)).expect("a rollup"), rollup);
        rollup.rollup.rooms.insert(None);
        rollup.is_frozen = false;
        rollup.key.bucket = Bucket::Day("2026-01-12".parse().expect("a date"));
        rollup.range =
            TimeRange::new(at("2026-01-11T15:00:00Z"), at("2026-01-12T15:00:00Z")).expect("a day");
        rollup.zone = Some("Asia/Tokyo".to_owned());
        assert_eq!(StoredRollup::decode(from_rollup(&rollup)).expect("a rollup"), rollup);
        let none = StoredRollup { rollup: Rollup::default(), expires: None, ..rollup };
        assert_eq!(StoredRollup::decode(from_rollup(&none)).expect("a rollup"), none);
    }

    #[test]
    fn a_damaged_rollup_is_an_error_and_no_rollup_of_nothing() {
        let whole = from_rollup(&of_a_home());
        for name in [VERSION, SETTINGS, ROOMS, ROLLED_UP] {
            let mut item = whole.clone();
            item.remove(name);
            let why = StoredRollup::decode(item).expect_err(name).to_string();
            assert!(why.contains(name), "{why}");
        }
        let Some(Attribute::M(metrics)) = whole.get(ROLLED_UP) else { panic!("metrics") };
        for (name, metric) in metrics {
            let Attribute::L(list) = metric else { panic!("a list") };
            for n in 0..list.len() {
                let mut broken = list.clone();
                broken[n] = Attribute::Other;
                let mut item = whole.clone();
                let metrics = [(name.clone(), Attribute::L(broken))].into();
                item.insert(ROLLED_UP.to_owned(), Attribute::M(metrics));
                assert!(StoredRollup::decode(item).is_err(), "{name} {n}");
            }
        }
    }

    #[test]
    fn the_state_comes_back() {
        let mut state = RollupState {
            zone: "Europe/Berlin".to_owned(),
            since: Timestamp::MIN,
            sealed: [at("2026-01-11T16:00:00Z"); SWEEP_GROUPS],
            queue: None,
        };
        assert_eq!(RollupState::decode(from_rollup_state(&state)).expect("a state"), state);
        state.queue = Some(QueueDepth { messages: 3, at: at("2026-01-11T16:11:00Z") });
        state.sealed[7] = at("2026-01-11T15:45:00Z");
        assert_eq!(RollupState::decode(from_rollup_state(&state)).expect("a state"), state);
        assert_eq!(state.sealed(), state.sealed[7]);
        let device: DeviceId = "remo-e".parse().expect("an id");
        for under_way in [None, Some((4, state.sealed()))] {
            let refold = Refold { settings: 3, under_way };
            let mut item = key(&Key::Refold(device.clone()));
            let set = from_refold(&refold).map(|(name, value)| Some((name.to_owned(), value?)));
            item.extend(set.into_iter().flatten());
            assert_eq!(Refold::decode(item).expect("a mark"), refold);
        }
    }

    #[test]
    fn a_reading_comes_with_its_expiry() {
        let reading = reading("2026-01-11T16:00:00Z", &[("temperature", "21.5")]);
        let item = super::super::from_reading(&reading, Some(TimeDelta::days(1)));
        let item: Item = item.map(|(name, value)| (name.to_owned(), value)).collect();
        let expires = Some(at("2026-01-15T16:00:00Z"));
        assert_eq!(
            StoredReading::decode(item).expect("a reading"),
            StoredReading { reading, expires }
        );
    }
}
