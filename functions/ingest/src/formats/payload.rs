//! Reads a device's own payload by tables that map keys to metrics. Knows no format by name, no sender and no clock.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use api::endpoints::Operation;
use api::json::JsonKind;
use domain::{Decimal, MAX_METRICS, MetricName, Timestamp};
use serde_json::value::{RawValue, Value};

use super::line_protocol::mapping::metric_name;
use super::scale::{Scale, Scaled};
use super::{units, vocabulary};
use crate::formats::draft::{Fault, Refusal};
use crate::formats::moment::PayloadTime;

/// A format whose payloads are trees of JSON.
#[derive(Debug)]
pub(crate) struct TreeFormat {
    /// The operation of the format's endpoint.
    pub(crate) operation: Operation,
    /// The members that mark a payload of the format, named when another payload is refused.
    pub(crate) expected: &'static str,
    /// Reads a body that arrived at the timestamp; `None` if the body is not of this format.
    pub(crate) read: fn(&Value, Timestamp) -> Option<Vec<Payload>>,
    /// Finds the device in the part of a topic after the format's name; `None` if the topic carries no readings.
    pub(crate) device_of: fn(&str) -> Option<&str>,
    /// The format's tables.
    #[cfg(test)]
    pub(crate) tables: &'static [&'static [Row]],
}

/// The values of one device at one time.
#[derive(Debug)]
pub(crate) struct Payload {
    /// The device, if the payload names it.
    pub(crate) device: Option<String>,
    /// The name that people gave the device.
    pub(crate) name: Option<String>,
    pub(crate) moment: PayloadTime,
    /// The values by part, such as `switch:1`. The part without a name is the device itself.
    pub(crate) parts: BTreeMap<String, BTreeMap<MetricName, Measured>>,
    /// The refusals of values that cannot be read.
    pub(crate) refused: Vec<Refusal>,
    /// The names of members that are not stored.
    pub(crate) ignored: BTreeSet<String>,
    /// For each part and metric, the value's key in the payload, and whether the value was stored without conversion.
    pub(super) keys: BTreeMap<(String, MetricName), (String, bool)>,
}

/// A value of one metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Measured {
    pub(crate) value: Decimal,
    /// The value at which a counter wraps to zero, if the payload has it.
    pub(crate) modulus: Option<Decimal>,
    /// Whether the metric keeps the sender's name, so that the unit is unknown.
    pub(crate) is_own: bool,
}

/// A row of a format's table: a key with `/` between levels, the metric, and the conversion to the metric's unit.
pub(crate) type Row = (&'static str, &'static str, Scale);

/// The rows of a table, in order. Each scale is followed by keys; a key that is not the name of its metric is followed
/// by a colon and the metric. A key of `phases` stands for three: `"pf"` for `a_pf`, `b_pf` and `c_pf`.
macro_rules! rows {
    (@rows [$($row:expr,)*]) => { &[$($row,)*] };
    (@rows [$($row:expr,)*]
        phases $scale:expr => $($key:literal $(: $metric:literal)?),+; $($rest:tt)*) => {
        rows!(@rows [$($row,)* $(
            (concat!("a_", $key), rows!(@metric $key $($metric)?, "_a"), $scale),
            (concat!("b_", $key), rows!(@metric $key $($metric)?, "_b"), $scale),
            (concat!("c_", $key), rows!(@metric $key $($metric)?, "_c"), $scale),
        )+] $($rest)*)
    };
    (@rows [$($row:expr,)*]
        $scale:expr => $($key:literal $(: $metric:literal)?),+; $($rest:tt)*) => {
        rows!(@rows
            [$($row,)* $(($key, rows!(@metric $key $($metric)?, ""), $scale),)+] $($rest)*)
    };
    (@metric $key:literal, $phase:literal) => { concat!($key, $phase) };
    (@metric $key:literal $metric:literal, $phase:literal) => { concat!($metric, $phase) };
    ($($groups:tt)+) => { rows!(@rows [] $($groups)+) };
}
pub(crate) use rows;

/// How to read the members of an object that are in no table of the format.
#[derive(Clone, Copy)]
pub(crate) struct Rest<'a> {
    /// The part of the device that gets the values.
    pub(crate) part: &'a str,
    /// The prefix for the names of members that are not stored, such as `SML/`.
    pub(crate) prefix: &'a str,
    /// Whether a key, with `/` between levels, was read already.
    pub(crate) is_read: &'a dyn Fn(&str) -> bool,
    /// Keys of any level, separated by spaces, that are skipped because they describe the device itself. A key that
    /// ends with `*` stands for all keys that begin so.
    pub(crate) ignored: &'a [&'a str],
}

/// The largest depth of a tree, which is also the limit of `serde_json`.
const MAX_DEPTH: usize = 128;

/// The largest number of names of members that are not stored, for one payload.
const MAX_IGNORED: usize = 100;
/// The last name in a list of members that are not stored, if there are too many names.
const AND_MORE: &str = "... and more";

/// A number of a member that is in no table.
struct NamedNumber {
    path: String,
    /// The path as the name of a metric.
    name: MetricName,
    /// The metric and the conversion by the unit at the end of the name, if there is a unit.
    unit: Option<(&'static str, units::UnitConversion)>,
    value: Decimal,
}

impl NamedNumber {
    fn of(path: String, value: Decimal) -> Self {
        let name = metric_name(&path.replace('/', "_"));
        let unit = units::of_name(name.as_str(), &path);
        Self { path, name, unit, value }
    }
}

impl Measured {
    /// A value under a name of the vocabulary, whose unit is known.
    pub(crate) const fn new(value: Decimal) -> Self {
        Self { value, modulus: None, is_own: false }
    }
}

impl Payload {
    /// A payload before anything is read from it.
    pub(crate) fn new(device: Option<&str>, moment: PayloadTime) -> Self {
        Self {
            device: device.map(str::to_owned),
            name: None,
            moment,
            parts: BTreeMap::new(),
            refused: Vec::new(),
            ignored: BTreeSet::new(),
            keys: BTreeMap::new(),
        }
    }

    /// Takes the values of an object's members by a table. Returns whether the object has a key of the table.
    pub(crate) fn take(&mut self, part: &str, object: &Value, rows: &[Row]) -> bool {
        let mut is_known = false;
        let (mut read, mut unread) = (Vec::new(), Vec::new());
        for (key, metric, scale) in rows {
            let Some(value) = object.pointer(&format!("/{key}")) else { continue };
            is_known = true;
            let is_read = self.put(part, key, metric, value, *scale);
            if is_read { &mut read } else { &mut unread }.push(*key);
        }
        for key in unread.into_iter().filter(|key| !read.contains(key)) {
            self.ignore(key);
        }
        is_known
    }

    /// Adds a value, or a refusal if the value cannot be read. An array has the values of phases; `null` is not a
    /// value. Returns `false` for a word that stands for no state.
    pub(crate) fn put(
        &mut self,
        part: &str,
        key: &str,
        metric: &str,
        value: &Value,
        scale: Scale,
    ) -> bool {
        let phases = value.as_array().filter(|_| vocabulary::may_have_phases(metric));
        let Some(phases) = phases else {
            return self.put_one(part, key, metric, value, scale);
        };

        let mut is_read = true;
        for (phase, value) in phases.iter().enumerate() {
            match vocabulary::of_phase(metric, phase) {
                Some(metric) => is_read &= self.put_one(part, key, &metric, value, scale),
                None => {
                    self.refused.push(Refusal::of(key, Fault::TooManyPhases));
                    break;
                }
            }
        }

        is_read
    }

    fn put_one(
        &mut self,
        part: &str,
        key: &str,
        metric: &str,
        value: &Value,
        scale: Scale,
    ) -> bool {
        match scale.apply(value) {
            Ok(Scaled::Value(value)) => {
                let metric: MetricName = metric.parse().expect("tables have names of metrics");
                self.displace(part, &metric, &value);
                self.keys
                    .insert((part.to_owned(), metric.clone()), (key.to_owned(), scale.is_same()));
                self.keep(part, metric, Measured::new(value));
            }
            Ok(Scaled::Nothing) => {}
            Ok(Scaled::UnknownWord) => return false,
            Err(fault) => self.refused.push(Refusal::of(key, fault)),
        }

        true
    }

    /// Makes room for another value of a metric. If the metric already has a different value, that earlier value moves
    /// to the name of its key, or its key is listed as not stored.
    fn displace(&mut self, part: &str, metric: &MetricName, value: &Decimal) {
        let known = self.parts.get(part).and_then(|values| values.get(metric));
        let Some(known) = known.filter(|known| known.value != *value).cloned() else { return };
        let target = (part.to_owned(), metric.clone());
        let Some((key, is_same)) = self.keys.get(&target).cloned() else { return };

        let own = metric_name(&key.replace('/', "_"));
        let has_meaning = vocabulary::meaning(own.as_str()).is_some();
        if is_same && !has_meaning && !self.has(part, own.as_str()) && !self.is_full(part) {
            let kept = Measured { is_own: true, ..known };
            self.keep(part, own, kept);
        } else {
            self.ignore(&key);
        }
    }

    fn is_full(&self, part: &str) -> bool {
        self.parts.get(part).is_some_and(|values| values.len() >= MAX_METRICS)
    }

    /// Takes the numbers of members that are in no table. A unit at the end of a member's name decides the metric.
    /// Without a unit, the name is the metric. Members that are not numbers are listed as not stored.
    ///
    /// If two members map to one metric, a member with the metric's own name gets it, else the first in alphabetical
    /// order. The other member keeps its name.
    pub(crate) fn rest<'a>(
        &mut self,
        rest: Rest<'_>,
        members: impl IntoIterator<Item = (&'a String, &'a Value)>,
    ) {
        let mut numbers = Vec::new();
        for (key, value) in members {
            self.gather(rest, key.clone(), key, value, &mut numbers);
        }

        // Names without a unit come first. The sort is stable, so the order of the members stays.
        numbers.sort_by_key(|number| number.unit.is_some());

        for NamedNumber { path, name, unit, value } in numbers {
            let unit = unit.filter(|(metric, _)| !self.has(rest.part, metric));
            if self.is_full(rest.part) || unit.is_none() && self.has(rest.part, name.as_str()) {
                self.ignore(&format!("{}{path}", rest.prefix));
                continue;
            }

            let Some((metric, conversion)) = unit else {
                let measured = Measured { is_own: true, ..Measured::new(value) };
                self.keep(rest.part, name, measured);
                continue;
            };
            match conversion.apply(value) {
                Ok(value) => self.insert(rest.part, metric, Measured::new(value)),
                Err(why) => self.refused.push(Refusal::of(&path, why)),
            }
        }
    }

    fn gather(
        &mut self,
        rest: Rest<'_>,
        path: String,
        key: &str,
        value: &Value,
        numbers: &mut Vec<NamedNumber>,
    ) {
        let mut ignored = rest.ignored.iter().flat_map(|keys| keys.split_whitespace());
        let is_ignored = |known: &str| match known.strip_suffix('*') {
            Some(beginning) => key.starts_with(beginning),
            None => known == key,
        };
        if (rest.is_read)(&path) || ignored.any(is_ignored) {
            return;
        }

        match value {
            Value::Null => {}
            Value::String(text) if text.is_empty() => {}
            Value::Object(members) => {
                for (key, value) in members {
                    self.gather(rest, format!("{path}/{key}"), key, value, numbers);
                }
            }
            Value::Array(elements)
                if elements.iter().any(|element| !element.is_string() && !element.is_boolean()) =>
            {
                for (n, value) in elements.iter().enumerate() {
                    match vocabulary::of_phase(&path, n) {
                        Some(path) => self.gather(rest, path, key, value, numbers),
                        None => return self.ignore(&format!("{}{path}", rest.prefix)),
                    }
                }
            }
            Value::Number(number) => match Decimal::parse(&number.to_string()) {
                Ok(value) => numbers.push(NamedNumber::of(path, value)),
                Err(why) => self.refused.push(Refusal::of(&path, why)),
            },
            Value::Array(elements) if elements.is_empty() => {}
            _ => self.ignore(&format!("{}{path}", rest.prefix)),
        }
    }

    /// Whether a part has a value of a metric.
    pub(crate) fn has(&self, part: &str, metric: &str) -> bool {
        let known = self.parts.get(part);
        known.is_some_and(|known| known.keys().any(|known| known.as_str() == metric))
    }

    /// Lists a member as not stored.
    pub(crate) fn ignore(&mut self, name: &str) {
        let name = domain::excerpt(name);
        if self.ignored.len() < MAX_IGNORED {
            self.ignored.insert(name);
        } else if !self.ignored.contains(&name) {
            self.ignored.insert(AND_MORE.to_owned());
        }
    }

    /// Adds the values of one component. Another component may have given the part the same metric already. Then a
    /// value under a name of the vocabulary is refused, and a value under the sender's own name goes to a part named
    /// after its component.
    pub(crate) fn unite(&mut self, component: &str, one: Self) {
        self.refused.extend(one.refused);
        for name in one.ignored {
            let has_prefix = name.starts_with(component);
            let prefix = if has_prefix { String::new() } else { format!("{component}/") };
            self.ignore(&format!("{prefix}{name}"));
        }

        for (part, values) in one.parts {
            for (metric, measured) in values {
                match self.parts.entry(part.clone()).or_default().entry(metric) {
                    Entry::Vacant(slot) => drop(slot.insert(measured)),
                    Entry::Occupied(slot) if measured.is_own => {
                        let metric = slot.key().clone();
                        self.keep(component, metric, measured);
                    }
                    Entry::Occupied(slot) => {
                        let fault = Fault::SharedMetric(slot.key().clone());
                        self.refused.push(Refusal::of(component, fault));
                    }
                }
            }
        }
    }

    /// Adds a value that is already in the metric's unit.
    pub(crate) fn insert(&mut self, part: &str, metric: &str, measured: Measured) {
        let metric = metric.parse().expect("tables and phases have names of metrics");
        self.keep(part, metric, measured);
    }

    fn keep(&mut self, part: &str, metric: MetricName, measured: Measured) {
        let is_known = measured.is_own || vocabulary::meaning(metric.as_str()).is_some();
        debug_assert!(is_known, "{metric} is not in the vocabulary");
        self.parts.entry(part.to_owned()).or_default().insert(metric, measured);
    }
}

/// Whether a table has a key.
pub(crate) fn has_row(rows: &[Row], key: &str) -> bool {
    rows.iter().any(|(known, ..)| *known == key)
}

/// Parses a JSON text as a tree. Numbers beyond a double's range become texts, so that only these numbers are refused.
pub(crate) fn tree_of_any_numbers(json: &[u8]) -> Option<Value> {
    branch(serde_json::from_slice(json).ok()?, MAX_DEPTH)
}

fn branch(raw: &RawValue, depth: usize) -> Option<Value> {
    let (text, depth) = (raw.get(), depth.checked_sub(1)?);
    match JsonKind::of(raw) {
        JsonKind::Array => {
            let elements: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            elements.into_iter().map(|element| branch(element, depth)).collect()
        }
        JsonKind::Object => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
            members.into_iter().map(|(name, it)| Some((name, branch(it, depth)?))).collect()
        }
        JsonKind::Number => Some(serde_json::from_str(text).unwrap_or_else(|_| text.into())),
        _ => serde_json::from_str(text).ok(),
    }
}

/// The text of an object's member; `None` if the member is absent, empty or no text.
pub(crate) fn text<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// The time by the device's clock, from an epoch number or a text; without either, the time of arrival. A clock that
/// was never set shows 1970, and [`PayloadTime::settle`] does not trust it.
pub(crate) fn moment(value: Option<&Value>) -> PayloadTime {
    match value {
        Some(Value::Number(number)) => PayloadTime::parse(&number.to_string()),
        Some(Value::String(text)) => PayloadTime::parse(text),
        _ => PayloadTime::Arrival,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;
    use crate::formats::scale::SAME;

    /// What a format reads from a text, in words.
    pub(crate) fn shown(
        read: impl Fn(&Value) -> Option<Vec<Payload>>,
        text: &str,
    ) -> Option<Vec<String>> {
        let value = serde_json::from_str(text).expect("JSON");
        let payloads = read(&value)?;
        let mut shown = Vec::new();
        for Payload { device, name, moment, parts, refused, ignored, .. } in payloads {
            shown.extend(name.map(|name| format!("called {name}")));
            let device = device.unwrap_or_default();
            for (part, values) in parts {
                let values = values.iter().map(|(name, it)| {
                    let modulus = it.modulus.iter().map(|modulus| format!("%{modulus}"));
                    format!(" {name}={}{}", it.value, modulus.collect::<String>())
                });
                shown.push(format!("{device}|{part}{} {moment}", values.collect::<String>()));
            }
            shown.extend(refused.iter().map(ToString::to_string));
            shown.extend(ignored.iter().map(|name| format!("not {name}")));
        }

        Some(shown)
    }

    impl std::fmt::Display for PayloadTime {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            match self {
                Self::Arrival => f.write_str("@arrival"),
                Self::Known(at) => write!(f, "@known {at}"),
                Self::Shown(at) => write!(f, "@{at}"),
                Self::Local(local) => write!(f, "@local {local}"),
                Self::Unset => f.write_str("@unset"),
            }
        }
    }

    #[test]
    fn an_array_is_phases_and_a_bad_value_takes_no_other_down() {
        let mut payload = Payload::new(None, PayloadTime::Arrival);
        let rows: &[Row] = &[("W", "current_w", SAME), ("V", "voltage", SAME)];
        let object = json!({"W": [1, null, "3", "x"], "V": [0, 0, 0, 0, 0, 0, 0, 0, 9]});
        assert!(payload.take("", &object, rows));
        assert!(!payload.take("", &json!({"A": 1}), rows));
        let names: Vec<_> = payload.parts[""].keys().map(MetricName::as_str).collect();
        assert_eq!(names[..2], ["current_w_a", "current_w_c"]);
        assert_eq!(names.len(), 2 + 8);
        let refused: Vec<_> = payload.refused.iter().map(ToString::to_string).collect();
        assert_eq!(
            refused,
            ["W \"x\" is not a number", "V has more than 8 values; a phase or a relay is one of 8"]
        );
    }
}
