//! Short functions for tests: they make ids, timestamps, numbers, readings and devices, and parse a text of test cases.
//! Holds no state.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::str::FromStr;

use chrono::TimeDelta;

use crate::{
    ChannelId, Decimal, Device, DeviceId, DeviceObservation, Exact, HomeId, Interval, Label,
    LocalDate, MetricName, Reading, RoomId, RuleId, Stay, Tags, TimeRange, Timestamp, Unit, Zone,
};

/// 2026-01-11T16:00:00Z, in milliseconds: the timestamp from which tests count.
pub const START: i64 = 1_768_147_200_000;

/// Parses a text of a test, which is always valid.
fn valid<T: FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().unwrap_or_else(|why| panic!("{text:?}: {why:?}"))
}

/// The id of a device.
pub fn device(id: &str) -> DeviceId {
    valid(id)
}

/// The id of a room.
pub fn room(id: &str) -> RoomId {
    valid(id)
}

/// The id of a home.
pub fn home(id: &str) -> HomeId {
    valid(id)
}

/// The id of a channel.
pub fn channel_id(id: &str) -> ChannelId {
    valid(id)
}

/// The id of a rule of alerts.
pub fn rule_id(id: &str) -> RuleId {
    valid(id)
}

/// The name of a metric.
pub fn metric(name: &str) -> MetricName {
    valid(name)
}

/// A label.
pub fn label(text: &str) -> Label {
    valid(text)
}

/// A unit.
pub fn unit(text: &str) -> Unit {
    valid(text)
}

/// Tags, one for each text.
pub fn tags(texts: &[&str]) -> Tags {
    Tags::try_from(texts.iter().map(|text| label(text)).collect::<Vec<_>>()).expect("tags")
}

/// A time zone.
pub fn zone(name: &str) -> Zone {
    valid(name)
}

/// A local day.
pub fn date(text: &str) -> LocalDate {
    valid(text)
}

/// A number.
pub fn number(text: &str) -> Decimal {
    Decimal::parse(text).expect(text)
}

/// A number of any length.
pub fn exact(text: &str) -> Exact {
    Exact::parse(text).expect(text)
}

/// The timestamp of a text.
pub fn at(text: &str) -> Timestamp {
    Timestamp::parse_absolute(text).expect(text)
}

/// The timestamp at this number of milliseconds after [`START`].
pub fn at_millis(millis: i64) -> Timestamp {
    let start = Timestamp::from_millis(START).expect("a timestamp");
    start.saturating_add(TimeDelta::milliseconds(millis))
}

/// The timestamp at this number of seconds after [`START`].
pub fn at_second(second: i64) -> Timestamp {
    at_millis(second * 1_000)
}

/// The timestamp at this number of minutes after [`START`].
pub fn at_minute(minute: i64) -> Timestamp {
    at_second(minute * 60)
}

/// The range from one timestamp to another.
pub fn range(from: Timestamp, to: Timestamp) -> TimeRange {
    TimeRange::new(from, to).expect("a range")
}

/// All timestamps except the last, 9999-12-31T23:59:59.999Z.
pub fn always() -> TimeRange {
    range(Timestamp::MIN, Timestamp::MAX)
}

/// Metrics with their numbers.
pub fn metrics(numbers: &[(&str, &str)]) -> BTreeMap<MetricName, Decimal> {
    numbers.iter().map(|(name, value)| (metric(name), number(value))).collect()
}

/// A range of numbers.
pub fn interval(text: &str) -> Interval {
    valid(text)
}

/// A reading of metrics with their numbers.
pub fn reading(
    id: &str,
    at: Timestamp,
    in_room: Option<&str>,
    numbers: &[(&str, &str)],
) -> Reading {
    Reading::new(device(id), at, in_room.map(room), metrics(numbers)).expect("a reading")
}

/// A stay in a room. `since` and `until` are minutes after [`START`]; without `until` the stay lasts.
pub fn stay(in_room: &str, since: i64, until: Option<i64>) -> Stay {
    Stay { room: room(in_room), since: at_minute(since), until: until.map(at_minute) }
}

/// The device that the registry would make of readings.
pub fn device_of<'a>(readings: impl IntoIterator<Item = &'a Reading>) -> Device {
    let mut readings = readings.into_iter();
    let first = readings.next().expect("one or more");

    let mut observation = DeviceObservation::of(first);
    readings.for_each(|reading| observation.see(reading));
    observation.new_device(first.device.clone(), |_| true)
}

/// One of the test cases that [`cases`] parses.
#[derive(Debug)]
pub struct Case<'a> {
    line: usize,
    statement: &'a str,
    /// The input: the line without an indent.
    pub given: &'a str,
    /// The expected lines.
    pub expected: Vec<&'a str>,
}

impl<'a> Case<'a> {
    /// The only expected line.
    pub fn answer(&self) -> &'a str {
        assert_eq!(self.expected.len(), 1, "{self}");
        self.expected[0]
    }
}

/// Writes the line of the case, its statement and its input.
impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, {}: {}", self.line, self.statement, self.given)
    }
}

/// Parses a text of test cases. A line that begins with `//` states what the cases below it show. A line without an
/// indent is the input of a case, and the indented lines below it are the expected output.
pub fn cases(text: &str) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    let mut statement = "";
    for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.is_empty()) {
        if let Some(comment) = text.strip_prefix("// ") {
            statement = comment;
        } else if let Some(expected) = text.strip_prefix("    ") {
            cases.last_mut().expect("something is given").expected.push(expected);
        } else {
            cases.push(Case { line, statement, given: text, expected: Vec::new() });
        }
    }

    assert!(!cases.is_empty(), "no cases");
    let empty = cases.iter().find(|case| case.statement.is_empty() || case.expected.is_empty());
    assert!(empty.is_none(), "nothing is stated or expected: {empty:?}");
    cases
}
