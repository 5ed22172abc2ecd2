//! The table's names and keys. No other file writes or reads the separator `#`. Knows no attributes except keys.

use std::ops::RangeInclusive;

use crate::shards::{Shard, Shards};
use crate::{AlertKey, MessageKey, Rechecked, WaitingKey};
use domain::{
    AnnotationId, Bucket, ChannelId, Comparison, DeviceId, LocalDate, MAX_ANNOTATED,
    PolledSourceId, QuarterHour, RoomId, RuleId, SearchEntry, SearchRange, SearchValue, TariffId,
    TimeRange, Timestamp, TokenHash,
};

/// The partition key attribute.
pub const PK: &str = "pk";
/// The sort key attribute.
pub const SK: &str = "sk";
/// The attribute with the time, in epoch seconds, after which `DynamoDB` deletes an item.
pub const TTL: &str = "exp";
/// The attribute that names the room of a reading or a device.
pub const ROOM: &str = "room";
/// The prefix of every reading's sort key. The stream's filter and the room index find readings by it.
pub const READING_PREFIX: &str = "TS#";
/// The partition of the registry's devices. If a table has several of them, their names begin with this text.
pub const DEVICES: &str = "DEVICE";
/// The partition of the registry's rooms.
pub const ROOMS: &str = "ROOM";
/// The partition of the access tokens.
pub const TOKENS: &str = "TOKEN";

/// The partition of all annotations. They are sorted by time, so a single query finds the annotations of a range.
pub const ANNOTATIONS: &str = "ANNOTATION#";

/// The prefix of the partition of a device's rollups.
pub const ROLLUP_PREFIX: &str = "ROLLUP#";
/// The partition of the rollup function's own state.
pub const STATE: &str = "STATE#";
/// The partition of the announcements of late changes. It is not in [`STATE`], because the function that stores
/// readings writes it too.
pub const LATE: &str = "LATE#";
/// The partition of the schema of the conditions index. It is not in [`STATE`], because a person sets the schema.
pub const CONDITIONS: &str = "CONDITIONS#";
/// The prefix of the partition of a device's stays. The permissions of a role are limited to partitions, and a function
/// that edits the registry must not put readings. So stays are not in the partition of the device's readings.
pub const STAYS_OF_PREFIX: &str = "STAYS_OF#";
/// The prefix of the partition of the stays in a room.
pub const STAYS_IN_PREFIX: &str = "STAYS_IN#";
/// The prefix of the partition of the devices that were seen in a room. Other items of a room are elsewhere, because
/// the function that folds rollups may not write them.
pub const SEEN_IN_PREFIX: &str = "SEEN_IN#";
/// The partition of the counts of introduced devices, one count for each sender. Any function that may store readings
/// may write these counts.
const INTRODUCED: &str = "INTRODUCED#";
/// The prefix of the sort key of a rollup of 15 minutes.
const QUARTER_PREFIX: &str = "M15#";
/// The prefix of the sort key of a daily rollup.
const DAY_PREFIX: &str = "DAY#";
/// The partition key of the conditions index: the device and the month of a rollup of 15 minutes.
pub const CONDITIONS_MONTH: &str = "_zpk";
/// The sort key of the conditions index: the address of a rollup's means.
pub const CONDITIONS_ADDRESS: &str = "_z";
/// The sort key of the schema of the conditions index.
const CONDITIONS_SCHEMA: &str = "schema";
/// The prefix of a partition of the conditions index.
const CONDITIONS_PREFIX: &str = "conditions#";
/// The sort key of the state of the rollups.
const ROLLUP_STATE: &str = "rollup";
/// The sort key of the announcements of late changes.
const CHANGES: &str = "changes";
/// The sort key of the item that says how many partitions the registry's devices are in. No device has this id.
const SHARDS: &str = "#shards";
/// The sort key of the progress of folding a device's rollups again. The item is in the partition of these rollups.
const REFOLD: &str = "REFOLD";

/// The prefix of the partition of a device's entries for the attribute index.
pub const ATTRIBUTE_PREFIX: &str = "ATTR#";
/// The partition key of the attribute index: the subject of an entry. If devices are in several partitions, the number
/// of the device's partition follows.
pub const ATTRIBUTE: &str = "_attr";
/// The sort key of the attribute index: the value of an entry, followed by the device's id.
pub const VALUE: &str = "_value";
/// The sort key of the item that says whether the attribute index has every device.
const INDEXED: &str = "indexed";

/// The prefix of the partitions of alerts. Each kind of item has its own partition, because the permissions of a role
/// are limited to partitions: a function that judges need not read the secrets of channels.
pub const ALERT_PREFIX: &str = "ALERT#";
/// The partition of the rules of alerts.
pub const ALERT_RULES: &str = "ALERT#RULES";
/// The partition of the channels.
pub const ALERT_CHANNELS: &str = "ALERT#CHANNELS";
/// The partition of the channels' secrets.
pub const ALERT_SECRETS: &str = "ALERT#SECRETS";
/// The partition of the states of rules.
pub const ALERT_STATES: &str = "ALERT#STATES";
/// The partition of the log of messages.
pub const ALERT_TOLD: &str = "ALERT#TOLD";
/// The partition of the messages that wait to be sent.
pub const ALERT_WAITING: &str = "ALERT#WAITING";
/// The partition of the rechecks of devices and rules.
pub const ALERT_RECHECKS: &str = "ALERT#LOOKS";
/// The prefix of the sort key of a rule's recheck; no device's id begins with it.
const RECHECK_OF_RULE: &str = "#";
/// The partition of the note that says when the system last ran.
pub const ALERT_RUNNING: &str = "ALERT#RUNNING";
/// The sort key of the note that says when the system last ran.
const RUNNING_NOTE: &str = "mark";

/// The prefix of the partitions of polled sources.
pub const SOURCE_PREFIX: &str = "POLL#";
/// The partition of the polled sources.
pub const SOURCES: &str = "POLL#SOURCES";
/// The partition of the sources' secrets.
pub const SOURCE_SECRETS: &str = "POLL#SECRETS";
/// The partition of the tariffs.
pub const TARIFFS: &str = "TARIFF#";

/// The key of one item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// A reading.
    Reading(DeviceId, Timestamp),
    /// A device of the registry, in its partition; see [`Layout::device_key`](crate::layout::Layout::device_key).
    Device(DeviceId, Shard),
    /// The number of partitions of the registry's devices. The item is in the first partition, where a process that
    /// expects a single partition finds it too.
    Shards,
    /// A room of the registry.
    Room(RoomId),
    /// An access token.
    Token(TokenHash),
    /// A rollup.
    Rollup(DeviceId, Bucket),
    /// An entry of a device for the attribute index.
    SearchEntry(DeviceId, SearchEntry),
    /// Whether the attribute index has every device. No device has this partition.
    Indexed,
    /// The state of the rollups.
    RollupState,
    /// The announcements of changes of past readings that rollups may not have yet.
    LateChanges,
    /// The progress of folding a device's rollups again after a change of its settings.
    Refold(DeviceId),
    /// The schema of the conditions index.
    ConditionsSchema,
    /// A room in which a device was seen, stored among the device's rollups. When the device is deleted, this item
    /// leads to [`SeenIn`](Self::SeenIn) in the room's partition.
    SeenOf(DeviceId, RoomId),
    /// The months in which a device was seen in a room, stored in the room's partition.
    SeenIn(RoomId, DeviceId),
    /// The number of devices that a sender has introduced. Functions count in the table if the registry is too large
    /// for memory.
    Introduced(String),
    /// A stay, in the partition of its device.
    StayOf(DeviceId, Timestamp),
    /// A stay, in the partition of its room.
    StayIn(RoomId, Timestamp, DeviceId),
    /// An annotation.
    Annotation(AnnotationId),
    /// A rule of alerts.
    AlertRule(RuleId),
    /// A channel.
    AlertChannel(ChannelId),
    /// The secret of a channel.
    AlertSecret(ChannelId),
    /// The state of a rule on one device or room.
    AlertState(AlertKey),
    /// A message in the log of messages.
    AlertTold(MessageKey),
    /// A message that a channel is to send.
    AlertWaiting(WaitingKey),
    /// A recheck of a device or a rule.
    AlertRecheck(Rechecked),
    /// The note that says when the system last ran.
    AlertRunning,
    /// A polled source.
    Source(PolledSourceId),
    /// The secrets of a source.
    SourceSecrets(PolledSourceId),
    /// A tariff.
    Tariff(TariffId),
}

/// The key of a stored item, whether or not it can be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[must_use]
pub struct ItemKey {
    /// The partition key.
    pub pk: String,
    /// The sort key.
    pub sk: String,
}

impl ItemKey {
    /// The key of an item by its partition and its sort key.
    pub fn new(pk: impl Into<String>, sk: impl Into<String>) -> Self {
        Self { pk: pk.into(), sk: sk.into() }
    }

    /// The stored form of a valid key.
    pub fn of(key: &Key) -> Self {
        match key {
            // Readings of a device sort by timestamp, because all timestamps are written with the same width.
            Key::Reading(device, at) => Self::new(device.to_string(), reading_sk(*at)),
            Key::Device(id, shard) => Self::new(shard.of_name(DEVICES), id.to_string()),
            Key::Shards => Self::new(DEVICES, SHARDS),
            Key::Room(id) => Self::new(ROOMS, id.to_string()),
            Key::Token(hash) => Self::new(TOKENS, hash.to_string()),
            Key::Rollup(device, bucket) => Self::new(rollup_pk(device), bucket_sk(*bucket)),
            Key::SearchEntry(device, entry) => {
                Self::new(search_pk(device), format!("{}#{}", entry.subject.as_str(), entry.value))
            }
            Key::Indexed => Self::new(ATTRIBUTE_PREFIX, INDEXED),
            Key::RollupState => Self::new(STATE, ROLLUP_STATE),
            Key::LateChanges => Self::new(LATE, CHANGES),
            Key::Refold(device) => Self::new(rollup_pk(device), REFOLD),
            Key::ConditionsSchema => Self::new(CONDITIONS, CONDITIONS_SCHEMA),
            Key::SeenOf(device, room) => {
                Self::new(rollup_pk(device), format!("{SEEN_IN_PREFIX}{room}"))
            }
            Key::SeenIn(room, device) => Self::new(seen_in_pk(room), device.to_string()),
            Key::Introduced(sender) => Self::new(INTRODUCED, sender),
            Key::StayOf(device, since) => Self::new(stays_of_pk(device), since.to_string()),
            Key::StayIn(room, since, device) => {
                Self::new(stays_in_pk(room), format!("{since}#{device}"))
            }
            Key::Annotation(id) => Self::new(ANNOTATIONS, id.to_string()),
            Key::AlertRule(id) => Self::new(ALERT_RULES, id.to_string()),
            Key::AlertChannel(id) => Self::new(ALERT_CHANNELS, id.to_string()),
            Key::AlertSecret(id) => Self::new(ALERT_SECRETS, id.to_string()),
            Key::AlertState(alert) => Self::new(ALERT_STATES, alert_sk(alert)),
            Key::AlertTold(MessageKey { at, alert, number }) => {
                Self::new(ALERT_TOLD, format!("{at}#{}", message_sk(alert, *number)))
            }
            Key::AlertWaiting(WaitingKey { channel, alert, number }) => {
                Self::new(ALERT_WAITING, format!("{channel}#{}", message_sk(alert, *number)))
            }
            Key::AlertRecheck(Rechecked::Device(id)) => Self::new(ALERT_RECHECKS, id.to_string()),
            Key::AlertRecheck(Rechecked::Rule(id)) => {
                Self::new(ALERT_RECHECKS, format!("{RECHECK_OF_RULE}{id}"))
            }
            Key::AlertRunning => Self::new(ALERT_RUNNING, RUNNING_NOTE),
            Key::Source(id) => Self::new(SOURCES, id.to_string()),
            Key::SourceSecrets(id) => Self::new(SOURCE_SECRETS, id.to_string()),
            Key::Tariff(id) => Self::new(TARIFFS, id.to_string()),
        }
    }
}

impl Key {
    /// Parses a key that [`ItemKey::of`] has written; `None` for all other texts.
    pub fn parse(pk: &str, sk: &str) -> Option<Self> {
        if let Some(shard) = Shard::parse(pk, DEVICES) {
            return match sk {
                SHARDS => (pk == DEVICES).then_some(Self::Shards),
                id => Some(Self::Device(id.parse().ok()?, shard)),
            };
        }

        match pk {
            ROOMS => sk.parse().ok().map(Self::Room),
            TOKENS => sk.parse().ok().map(Self::Token),
            ANNOTATIONS => sk.parse().ok().map(Self::Annotation),
            ATTRIBUTE_PREFIX => (sk == INDEXED).then_some(Self::Indexed),
            STATE if sk == ROLLUP_STATE => Some(Self::RollupState),
            LATE if sk == CHANGES => Some(Self::LateChanges),
            CONDITIONS if sk == CONDITIONS_SCHEMA => Some(Self::ConditionsSchema),
            SOURCES => sk.parse().ok().map(Self::Source),
            SOURCE_SECRETS => sk.parse().ok().map(Self::SourceSecrets),
            TARIFFS => sk.parse().ok().map(Self::Tariff),
            INTRODUCED => Some(Self::Introduced(sk.to_owned())),
            alerts if alerts.starts_with(ALERT_PREFIX) => Self::parse_of_alerts(alerts, sk),
            pk => {
                if let Some(device) = pk.strip_prefix(ATTRIBUTE_PREFIX) {
                    let (subject, value) = sk.split_once('#')?;
                    let (subject, value) = (subject.parse().ok()?, SearchValue::parse(value)?);
                    let entry = SearchEntry { subject, value };
                    return Some(Self::SearchEntry(device.parse().ok()?, entry));
                }

                if let Some(device) = pk.strip_prefix(ROLLUP_PREFIX) {
                    let device = device.parse().ok()?;
                    if sk == REFOLD {
                        return Some(Self::Refold(device));
                    }
                    if let Some(room) = sk.strip_prefix(SEEN_IN_PREFIX) {
                        return Some(Self::SeenOf(device, room.parse().ok()?));
                    }
                    return Some(Self::Rollup(device, parse_bucket(sk)?));
                }

                if let Some(room) = pk.strip_prefix(SEEN_IN_PREFIX) {
                    return Some(Self::SeenIn(room.parse().ok()?, sk.parse().ok()?));
                }
                if let Some(device) = pk.strip_prefix(STAYS_OF_PREFIX) {
                    return Some(Self::StayOf(device.parse().ok()?, parse_timestamp(sk)?));
                }
                if let Some(room) = pk.strip_prefix(STAYS_IN_PREFIX) {
                    let (since, device) = sk.split_once('#')?;
                    let (since, device) = (parse_timestamp(since)?, device.parse().ok()?);
                    return Some(Self::StayIn(room.parse().ok()?, since, device));
                }

                let at = parse_timestamp(sk.strip_prefix(READING_PREFIX)?)?;
                Some(Self::Reading(pk.parse().ok()?, at))
            }
        }
    }
}

impl Key {
    fn parse_of_alerts(pk: &str, sk: &str) -> Option<Self> {
        match pk {
            ALERT_RULES => sk.parse().ok().map(Self::AlertRule),
            ALERT_CHANNELS => sk.parse().ok().map(Self::AlertChannel),
            ALERT_SECRETS => sk.parse().ok().map(Self::AlertSecret),
            ALERT_STATES => parse_alert(sk).map(Self::AlertState),
            ALERT_TOLD => {
                let (at, message) = sk.split_once('#')?;
                let (alert, number) = parse_message(message)?;
                Some(Self::AlertTold(MessageKey { at: parse_timestamp(at)?, alert, number }))
            }
            ALERT_WAITING => {
                let (channel, message) = sk.split_once('#')?;
                let (alert, number) = parse_message(message)?;
                let channel = channel.parse().ok()?;
                Some(Self::AlertWaiting(WaitingKey { channel, alert, number }))
            }
            ALERT_RECHECKS => match sk.strip_prefix(RECHECK_OF_RULE) {
                Some(rule) => rule.parse().ok().map(Rechecked::Rule).map(Self::AlertRecheck),
                None => sk.parse().ok().map(Rechecked::Device).map(Self::AlertRecheck),
            },
            ALERT_RUNNING => (sk == RUNNING_NOTE).then_some(Self::AlertRunning),
            _ => None,
        }
    }
}

/// The sort key of the state of a rule.
fn alert_sk(alert: &AlertKey) -> String {
    format!("{}#{}", alert.rule, alert.subject)
}

fn parse_alert(sk: &str) -> Option<AlertKey> {
    let (rule, subject) = sk.split_once('#')?;
    Some(AlertKey { rule: rule.parse().ok()?, subject: subject.parse().ok()? })
}

/// The end of a message's sort key. The number has a fixed width, so that the texts sort like the numbers.
fn message_sk(alert: &AlertKey, number: u64) -> String {
    format!("{}#{number:020}", alert_sk(alert))
}

fn parse_message(text: &str) -> Option<(AlertKey, u64)> {
    let (alert, number) = text.rsplit_once('#')?;
    let (alert, number) = (parse_alert(alert)?, number.parse().ok()?);
    (message_sk(&alert, number) == text).then_some((alert, number))
}

/// Bounds for `BETWEEN`: the states of a rule.
pub fn alert_states_of(rule: &RuleId) -> RangeInclusive<String> {
    format!("{rule}#{BEFORE_IDS}")..=format!("{rule}#{BEHIND_IDS}")
}

/// Bounds for `BETWEEN`: the messages that a channel is to send.
pub fn waiting_of(channel: &ChannelId) -> RangeInclusive<String> {
    format!("{channel}#{BEFORE_IDS}")..=format!("{channel}#{BEHIND_IDS}")
}

/// Bounds for `BETWEEN`: the messages of a range in the log.
pub fn told_in(range: TimeRange) -> RangeInclusive<String> {
    range.from().to_string()..=format!("{}{BEHIND_IDS}", range.last())
}

/// A lower bound for the sort keys after an id; `None`: for all sort keys. The bound is the id and a space, which sorts
/// before all characters of ids.
pub fn behind(id: Option<&str>) -> String {
    format!("{} ", id.unwrap_or_default())
}

/// Bounds for `BETWEEN`: the devices of a room after an id, in the room's partition of the room index. The room's
/// readings are in the same partition, so there may be one pair of bounds before the readings and one after them.
pub fn devices_of_room(after: Option<&DeviceId>) -> Vec<RangeInclusive<String>> {
    let after = behind(after.map(DeviceId::as_str));
    let readings = (READING_PREFIX.to_owned(), format!("{READING_PREFIX}~"));
    let ranges = [after.clone()..=readings.0, after.max(readings.1)..="~".to_owned()];
    ranges.into_iter().filter(|range| !range.is_empty()).collect()
}

impl Shard {
    /// The name of this partition: `name`, and after it the partition's number if there are several partitions.
    pub fn of_name(self, name: &str) -> String {
        match self.0 {
            Some(n) => format!("{name}#{n}"),
            None => name.to_owned(),
        }
    }

    /// Parses a name that [`of_name`](Self::of_name) has made of `name`.
    pub fn parse(text: &str, name: &str) -> Option<Self> {
        let rest = text.strip_prefix(name)?;
        if rest.is_empty() {
            return Some(Self(None));
        }
        let n = rest.strip_prefix('#')?.parse().ok().filter(|n| *n < Shards::MAX)?;
        let shard = Self(Some(n));
        // Only this spelling of the number is accepted, not `01` for example.
        (shard.of_name(name) == text).then_some(shard)
    }
}

/// The sort key of a reading.
pub fn reading_sk(at: Timestamp) -> String {
    format!("{READING_PREFIX}{at}")
}

/// The partitions of all items of a device, except its item in the registry. The readings come first, because new
/// rollups may appear as long as there are readings.
pub fn partitions_of(device: &DeviceId) -> [String; 4] {
    [device.to_string(), rollup_pk(device), stays_of_pk(device), search_pk(device)]
}

/// The partition key of a device's rollups.
pub fn rollup_pk(device: &DeviceId) -> String {
    format!("{ROLLUP_PREFIX}{device}")
}

/// The partition of the conditions index for a device's rollups of 15 minutes in a month of UTC. Its name has no room,
/// so a move of the device does not change it.
pub fn conditions_month(device: &DeviceId, at: Timestamp) -> String {
    let month = &at.to_string()[..7];
    format!("{CONDITIONS_PREFIX}{device}#{month}")
}

/// The partition key of a device's entries for the attribute index.
pub fn search_pk(device: &DeviceId) -> String {
    format!("{ATTRIBUTE_PREFIX}{device}")
}

/// The sort key of an entry for the attribute index.
pub fn search_place(value: &SearchValue, device: &DeviceId) -> String {
    format!("{value}#{device}")
}

/// Parses a sort key that [`search_place`] has made. A value may contain `#`, an id cannot.
pub(crate) fn parse_search_place(place: &str) -> Option<(SearchValue, DeviceId)> {
    let (value, device) = place.rsplit_once('#')?;
    Some((SearchValue::parse(value)?, device.parse().ok()?))
}

/// A character that sorts after `#` and after all characters of ids.
const BEHIND_IDS: char = '~';
/// The last character. `MAX_TEXT` of them sort after every text of the index.
const BEHIND_TEXTS: char = char::MAX;
const MAX_TEXT: usize = 65;
/// A character that sorts before all characters of ids.
const BEFORE_IDS: char = '!';

/// Bounds for `BETWEEN` around all entries of a range. They may also enclose a text that begins with the searched text
/// and `#`. Neither bound is the key of an entry.
pub fn search_range(range: &SearchRange, after: Option<&str>) -> RangeInclusive<String> {
    let numbers =
        || (SearchValue::NUMBERS.to_owned(), format!("{}{BEHIND_IDS}", SearchValue::NUMBERS));
    let (mut first, last) = match range {
        SearchRange::All => (String::from(BEFORE_IDS), String::from(BEHIND_IDS)),
        SearchRange::Equals(value) => (format!("{value}#"), format!("{value}#{BEHIND_IDS}")),
        SearchRange::BeginsWith(value) => {
            (value.to_string(), format!("{value}{}", BEHIND_TEXTS.to_string().repeat(MAX_TEXT)))
        }
        SearchRange::Is(Comparison::Below, value) => (numbers().0, value.to_string()),
        SearchRange::Is(Comparison::AtMost, value) => {
            (numbers().0, format!("{value}#{BEHIND_IDS}"))
        }
        SearchRange::Is(Comparison::Above, value) => (format!("{value}#{BEHIND_IDS}"), numbers().1),
        SearchRange::Is(Comparison::AtLeast, value) => (value.to_string(), numbers().1),
    };

    if let Some(after) = after {
        first = first.max(format!("{after}{BEFORE_IDS}"));
    }
    first..=last
}

/// The partition key of a device's stays.
pub fn stays_of_pk(device: &DeviceId) -> String {
    format!("{STAYS_OF_PREFIX}{device}")
}

/// The partition key of the stays in a room.
pub fn stays_in_pk(room: &RoomId) -> String {
    format!("{STAYS_IN_PREFIX}{room}")
}

/// The partition key of the devices that were seen in a room.
pub fn seen_in_pk(room: &RoomId) -> String {
    format!("{SEEN_IN_PREFIX}{room}")
}

/// Bounds for `BETWEEN`: all sort keys that begin with an id.
pub fn all_ids() -> RangeInclusive<String> {
    String::from(BEFORE_IDS)..=String::from(BEHIND_IDS)
}

fn bucket_sk(bucket: Bucket) -> String {
    match bucket {
        Bucket::QuarterHour(quarter) => format!("{QUARTER_PREFIX}{}", quarter.start()),
        Bucket::Day(date) => format!("{DAY_PREFIX}{date}"),
    }
}

fn parse_bucket(sk: &str) -> Option<Bucket> {
    if let Some(text) = sk.strip_prefix(QUARTER_PREFIX) {
        return QuarterHour::starting_at(parse_timestamp(text)?).map(Bucket::QuarterHour);
    }
    sk.strip_prefix(DAY_PREFIX)?.parse().ok().map(Bucket::Day)
}

/// Parses a timestamp in the form that keys have. Other forms are refused, because they sort differently.
fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let at = Timestamp::parse(text, Timestamp::MIN).ok()?;
    (at.to_string() == text).then_some(at)
}

/// Bounds for `BETWEEN`: the rollups of the quarters that begin in a range.
pub fn quarter_range(range: TimeRange) -> RangeInclusive<String> {
    format!("{QUARTER_PREFIX}{}", range.from())..=format!("{QUARTER_PREFIX}{}", range.last())
}

/// Bounds for `BETWEEN`: the rollups of the days from `first` to `last`, both inclusive.
pub fn day_range(first: LocalDate, last: LocalDate) -> RangeInclusive<String> {
    bucket_sk(Bucket::Day(first))..=bucket_sk(Bucket::Day(last))
}

/// Bounds for `BETWEEN` around exactly the readings of a range. Neither bound is the key of a reading. Otherwise
/// `DynamoDB` Local would end a query at the first of several index entries with this key, and could not go on.
pub fn reading_range(range: TimeRange) -> RangeInclusive<String> {
    let first = reading_sk(range.from());
    let below = first.strip_suffix('Z').unwrap_or(&first).to_owned();
    below..=reading_sk(range.last()) + "~"
}

/// Bounds for `BETWEEN`: the stays of a device, or in a room, that begin before the end of a range.
pub fn stays_begun_before_end(range: TimeRange) -> RangeInclusive<String> {
    Timestamp::MIN.to_string()..=format!("{}~", range.last())
}

/// Bounds for `BETWEEN`: the annotations that may overlap a range. They begin before the range ends, and at most
/// [`MAX_ANNOTATED`] before it begins.
pub fn annotations_in(range: TimeRange) -> RangeInclusive<String> {
    let first = range.from().saturating_add(-MAX_ANNOTATED);
    first.to_string()..=format!("{}{BEHIND_IDS}", range.last())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::layout::Layout;
    use domain::{Decimal, RESERVED_IDS, RESERVED_SORT_KEY, Subject};
    use proptest::prelude::*;

    fn id() -> impl Strategy<Value = String> {
        "[A-Za-z0-9._:-]{1,128}".prop_filter("reserved", |id| id.parse::<DeviceId>().is_ok())
    }

    fn timestamp() -> impl Strategy<Value = Timestamp> {
        (Timestamp::MIN.as_millis()..=Timestamp::MAX.as_millis())
            .prop_map(|millis| Timestamp::from_millis(millis).expect("in range"))
    }

    pub(crate) fn key() -> impl Strategy<Value = Key> {
        prop_oneof![
            (id(), timestamp()).prop_map(|(id, at)| Key::Reading(id.parse().expect("an id"), at)),
            (id(), 1..=64_u64).prop_map(|(id, shards)| {
                let id = id.parse().expect("an id");
                let shards = Shards::new(shards).expect("a number");
                Layout { shards, ..Layout::default() }.device_key(&id)
            }),
            Just(Key::Shards),
            id().prop_map(|id| Key::Room(id.parse().expect("an id"))),
            id().prop_map(|secret| Key::Token(TokenHash::of(&secret))),
            (id(), timestamp()).prop_map(|(id, at)| {
                Key::Rollup(id.parse().expect("an id"), Bucket::QuarterHour(QuarterHour::of(at)))
            }),
            (id(), timestamp()).prop_map(|(id, at)| {
                let date = at.to_string()[..10].parse().expect("a date");
                Key::Rollup(id.parse().expect("an id"), Bucket::Day(date))
            }),
            (id(), subject(), value()).prop_map(|(id, subject, value)| {
                Key::SearchEntry(id.parse().expect("an id"), SearchEntry { subject, value })
            }),
            Just(Key::Indexed),
            Just(Key::RollupState),
            Just(Key::LateChanges),
            (id(), id()).prop_map(|(id, room)| {
                Key::SeenOf(id.parse().expect("an id"), room.parse().expect("an id"))
            }),
            (id(), id()).prop_map(|(room, id)| {
                Key::SeenIn(room.parse().expect("an id"), id.parse().expect("an id"))
            }),
            Just(Key::ConditionsSchema),
            id().prop_map(Key::Introduced),
            id().prop_map(|id| Key::Refold(id.parse().expect("an id"))),
            (id(), timestamp()).prop_map(|(id, at)| Key::StayOf(id.parse().expect("an id"), at)),
            (id(), timestamp(), id()).prop_map(|(room, at, id)| {
                Key::StayIn(room.parse().expect("an id"), at, id.parse().expect("an id"))
            }),
            (timestamp(), "[A-Za-z0-9._:-]{1,64}").prop_map(|(at, suffix)| {
                Key::Annotation(format!("{at}-{suffix}").parse().expect("an id"))
            }),
            alert_id().prop_map(|id| Key::AlertRule(id.parse().expect("an id"))),
            alert_id().prop_map(|id| Key::AlertChannel(id.parse().expect("an id"))),
            alert_id().prop_map(|id| Key::AlertSecret(id.parse().expect("an id"))),
            alert_id().prop_map(|id| Key::Source(id.parse().expect("an id"))),
            alert_id().prop_map(|id| Key::SourceSecrets(id.parse().expect("an id"))),
            alert_id().prop_map(|id| Key::Tariff(id.parse().expect("an id"))),
            alert().prop_map(Key::AlertState),
            told().prop_map(Key::AlertTold),
            waiting().prop_map(Key::AlertWaiting),
            id().prop_map(|id| Key::AlertRecheck(Rechecked::Device(id.parse().expect("an id")))),
            alert_id()
                .prop_map(|id| Key::AlertRecheck(Rechecked::Rule(id.parse().expect("an id")))),
            Just(Key::AlertRunning),
        ]
    }

    /// Short ids, so that many are equal, or one begins as another.
    fn alert_id() -> impl Strategy<Value = String> {
        "[Ta.:-]{1,2}|TSa".prop_filter("reserved", |id| id.parse::<RuleId>().is_ok())
    }

    fn alert() -> impl Strategy<Value = AlertKey> {
        (alert_id(), alert_id(), any::<bool>()).prop_map(|(rule, id, is_room)| {
            let subject = if is_room {
                alerts::AlertSubject::Room(id.parse().expect("an id"))
            } else {
                alerts::AlertSubject::Device(id.parse().expect("an id"))
            };
            AlertKey { rule: rule.parse().expect("an id"), subject }
        })
    }

    fn told() -> impl Strategy<Value = MessageKey> {
        (timestamp(), alert(), any::<u64>()).prop_map(|(at, alert, number)| MessageKey {
            at,
            alert,
            number,
        })
    }

    fn waiting() -> impl Strategy<Value = WaitingKey> {
        (alert_id(), alert(), any::<u64>()).prop_map(|(channel, alert, number)| {
            let channel = channel.parse().expect("an id");
            WaitingKey { channel, alert, number: number >> (number % 64) }
        })
    }

    fn subject() -> impl Strategy<Value = Subject> {
        let attribute =
            "[a-c]{1,3}".prop_map(|name| Subject::Attribute(name.parse().expect("a name")));
        prop_oneof![Just(Subject::Name), Just(Subject::Kind), Just(Subject::Tag), attribute]
    }

    fn decimal() -> impl Strategy<Value = Decimal> {
        (-20_i32..20).prop_map(|n| Decimal::parse(&n.to_string()).expect("a number"))
    }

    fn value() -> impl Strategy<Value = SearchValue> {
        let number = decimal().prop_map(|number| SearchValue::number(&number));
        prop_oneof!["[ab#!~ é]{0,4}".prop_map(|text| SearchValue::text(&text)), number]
    }

    fn range() -> impl Strategy<Value = SearchRange> {
        let comparison = prop_oneof![
            Just(Comparison::Below),
            Just(Comparison::AtMost),
            Just(Comparison::Above),
            Just(Comparison::AtLeast)
        ];
        let text = || "[ab#!~ é]{0,3}".prop_map(|text| SearchValue::text(&text));
        prop_oneof![
            Just(SearchRange::All),
            text().prop_map(SearchRange::Equals),
            text().prop_map(SearchRange::BeginsWith),
            (comparison, decimal()).prop_map(|(comparison, limit)| {
                SearchRange::Is(comparison, SearchValue::number(&limit))
            }),
        ]
    }

    proptest! {
        #[test]
        fn a_range_of_values_holds_their_entries(range in range(), value in value(), id in id()) {
            let device = id.parse().expect("an id");
            let place = search_place(&value, &device);
            prop_assert_eq!(parse_search_place(&place), Some((value.clone(), device)));
            let between = search_range(&range, None);
            prop_assert!(between.start() < between.end());
            prop_assert!(*between.start() != place && *between.end() != place);
            let is_between = between.contains(&place);
            if range.contains(&value) {
                prop_assert!(is_between);
            } else if let SearchRange::Equals(wanted) = &range {
                let longer = format!("{wanted}#");
                prop_assert!(!is_between || value.as_str().starts_with(&longer));
            } else {
                // `#` and an id follow a shorter value as they follow a value with them. Devices are tested again.
                let begins = |wanted: &SearchValue| place.starts_with(wanted.as_str());
                let is_like = matches!(&range, SearchRange::BeginsWith(wanted) if begins(wanted));
                prop_assert!(!is_between || is_like);
            }
        }

        #[test]
        fn behind_an_entry_are_those_that_come_later(a in value(), b in value(), x in id(), y in id()) {
            let place = |value, id: &str| search_place(value, &id.parse().expect("an id"));
            let (a, b) = (place(&a, &x), place(&b, &y));
            prop_assert_eq!(search_range(&SearchRange::All, Some(&a)).contains(&b), b > a);
        }

        #[test]
        fn the_order_of_keys_is_the_order_of_timestamps(a in timestamp(), b in timestamp()) {
            prop_assert_eq!(reading_sk(a).cmp(&reading_sk(b)), a.cmp(&b));
        }

        #[test]
        fn keys_of_different_things_never_collide(a in key(), b in key()) {
            prop_assert_eq!(ItemKey::of(&a) == ItemKey::of(&b), a == b);
        }

        #[test]
        fn a_key_is_read_back_as_it_was_written(key in key()) {
            let ItemKey { pk, sk } = ItemKey::of(&key);
            prop_assert_eq!(Key::parse(&pk, &sk), Some(key));
        }

        /// The stream's filter and the index by room take whatever begins so for a reading.
        #[test]
        fn only_a_readings_sort_key_begins_as_one(key in key()) {
            let is_reading = matches!(key, Key::Reading(..));
            prop_assert_eq!(ItemKey::of(&key).sk.starts_with(READING_PREFIX), is_reading);
        }

        #[test]
        fn states_of_a_rule_and_messages_of_a_channel_lie_apart(
            a in alert(), b in alert(), c in waiting(), d in waiting(),
        ) {
            let is_between = alert_states_of(&a.rule).contains(&alert_sk(&b));
            prop_assert_eq!(is_between, a.rule == b.rule);
            let is_between = waiting_of(&c.channel).contains(&ItemKey::of(&Key::AlertWaiting(d.clone())).sk);
            prop_assert_eq!(is_between, c.channel == d.channel);
        }

        #[test]
        fn messages_are_in_the_order_of_time_and_number(
            a in told(), b in told(), c in waiting(), d in waiting(),
        ) {
            let sk = |key: &MessageKey| ItemKey::of(&Key::AlertTold(key.clone())).sk;
            prop_assert_eq!(sk(&a).cmp(&sk(&b)), a.cmp(&b));
            prop_assert_eq!(alert_sk(&a.alert).cmp(&alert_sk(&b.alert)), a.alert.cmp(&b.alert));
            let sk = |key: &WaitingKey| ItemKey::of(&Key::AlertWaiting(key.clone())).sk;
            prop_assert_eq!(sk(&c).cmp(&sk(&d)), c.cmp(&d));
        }

        #[test]
        fn messages_of_a_range_are_those_of_its_time(
            a in timestamp(), b in timestamp(), key in told(),
        ) {
            prop_assume!(a < b);
            let range = TimeRange::new(a, b).expect("a < b");
            for at in [key.at, a, b] {
                let sk = ItemKey::of(&Key::AlertTold(MessageKey { at, ..key.clone() })).sk;
                prop_assert_eq!(told_in(range).contains(&sk), range.contains(at));
            }
        }

        #[test]
        fn a_range_holds_exactly_its_keys(a in timestamp(), b in timestamp(), t in timestamp()) {
            prop_assume!(a < b);
            let range = TimeRange::new(a, b).expect("a < b");
            prop_assert_eq!(reading_range(range).contains(&reading_sk(t)), range.contains(t));
        }

        #[test]
        fn a_list_goes_on_behind_its_last_entry(a in id(), b in id()) {
            prop_assert_eq!(b >= behind(Some(&a)), b > a);
            prop_assert!(b >= behind(None));
        }

        #[test]
        fn a_rooms_devices_lie_apart_from_its_readings(a in id(), b in id(), t in timestamp()) {
            let after = a.parse().expect("an id");
            for (after, is_inside) in [(None, true), (Some(&after), b > a)] {
                let bounds = devices_of_room(after);
                let holds = |sk: &String| bounds.iter().filter(|range| range.contains(sk)).count();
                prop_assert_eq!(holds(&b), usize::from(is_inside));
                prop_assert_eq!(holds(&reading_sk(t)), 0);
            }
        }

        #[test]
        fn the_stays_begun_before_an_end_are_those(a in timestamp(), b in timestamp(), t in timestamp(), id in id()) {
            prop_assume!(a < b);
            let begun = stays_begun_before_end(TimeRange::new(a, b).expect("a < b"));
            let id: DeviceId = id.parse().expect("an id");
            for key in [Key::StayOf(id.clone(), t), Key::StayIn("r".parse().expect("an id"), t, id)] {
                prop_assert_eq!(begun.contains(&ItemKey::of(&key).sk), t < b);
            }
        }

        #[test]
        fn no_id_of_a_device_lies_among_the_readings_of_a_room(id in id(), a in timestamp(), b in timestamp()) {
            prop_assume!(a < b);
            prop_assert!(!reading_range(TimeRange::new(a, b).expect("a < b")).contains(&id));
        }
    }

    #[test]
    fn partitions_of_their_own_are_reserved_ids() {
        for partition in [DEVICES, ROOMS, TOKENS] {
            assert!(RESERVED_IDS.contains(&partition));
        }
        assert_eq!(READING_PREFIX, format!("{RESERVED_SORT_KEY}#"));
    }

    #[test]
    fn foreign_keys_are_none() {
        for (pk, sk) in [
            ("d", "TS#2026-01-11T16:00:00Z"),
            ("d", "TS#yesterday"),
            ("d", "TS#1768147200"),
            ("d", "M15#2026-01-11T16:00:00.000Z"),
            ("ROLLUP#d", "M15#2026-01-11T16:01:00.000Z"),
            ("ROLLUP#d", "M15#2026-01-11T16:00:00Z"),
            ("ROLLUP#d", "DAY#2026-1-11"),
            ("ROLLUP#d", "TS#2026-01-11T16:00:00.000Z"),
            ("ROLLUP#", "DAY#2026-01-11"),
            ("STATE#", "rollups"),
            ("STATE#", "schema"),
            ("LATE#", "rollup"),
            ("STAYS_OF#d", "2026-01-11T16:00:00Z"),
            ("STAYS_OF#d", "2026-01-11T16:00:00.000Z#d"),
            ("STAYS_IN#r", "2026-01-11T16:00:00.000Z"),
            ("STAYS_IN#", "2026-01-11T16:00:00.000Z#d"),
            ("a#b", "TS#2026-01-11T16:00:00.000Z"),
            ("DEVICE", "TS#2026-01-11T16:00:00.000Z"),
            ("DEVICE#64", "d"),
            ("DEVICE#3", "#shards"),
            ("device", "x"),
            ("ALERT#RULES", "TS"),
            ("ALERT#RULES", "a#device:b"),
            ("ALERT#STATES", "a"),
            ("ALERT#STATES", "a#b"),
            ("ALERT#STATES", "a#device:b#00000000000000000001"),
            ("ALERT#TOLD", "2026-01-11T16:00:00Z#a#device:b#00000000000000000001"),
            ("ALERT#TOLD", "2026-01-11T16:00:00.000Z#a#device:b#1"),
            ("ALERT#WAITING", "c#a#device:b#1"),
            ("ALERT#WAITING", "a#device:b#00000000000000000001"),
            ("ALERT#RUNNING", "last"),
            ("ALERT#", "a"),
            ("ALERT#OTHERS", "a"),
        ] {
            assert_eq!(Key::parse(pk, sk), None, "{pk} {sk}");
        }
    }
}
