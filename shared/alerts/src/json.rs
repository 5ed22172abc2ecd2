//! A rule as people write it: the members of a JSON object, and the rule that they describe. Knows no endpoint and no
//! table.
//!
//! A body has a number with more than 15 digits as a string. [`Rule::to_json`] writes every limit as a string.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use chrono::TimeDelta;
use domain::{
    CalendarUnit, Decimal, DeviceId, Label, MetricName, RoomId, TextOrNumber, Timestamp, duration,
    excerpt,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::UNITS;
use crate::nearest::nearest;
use crate::rule::{
    CounterEvent, DemandLimit, Group, Limits, MAX_FOR, NoData, Rule, Scope, Threshold, Watch,
};
use domain::MemberError;

/// The longest time between two repetitions of a message, and the longest silence that a rule can name.
const MAX_REPEAT: TimeDelta = TimeDelta::days(7);
const MEMBERS: [&str; 26] = [
    "name",
    "device",
    "room",
    "kind",
    "tag",
    "mean_of_room",
    "metric",
    "above",
    "below",
    "clear",
    "clear_above",
    "clear_below",
    "silent_for",
    "budget_kwh",
    "per",
    "demand_kw",
    "period",
    "counter",
    "for",
    "clear_for",
    "no_data",
    "repeat",
    "recovery",
    "ignores_quiet_hours",
    "on",
    "paused_until",
];
/// Members that an answer about a rule adds. A request may repeat them, so that an answer can be sent back unchanged.
const OF_ANSWERS: [&str; 8] =
    ["id", "changed", "states", "firing", "pending", "has_more_states", "silent_after", "warnings"];
const SCOPES: &str = "needs exactly one of device, room, kind, tag and mean_of_room";
const WATCHES: &str = "needs exactly one of above or below (both are a band), silent_for, budget_kwh, demand_kw and counter";

/// The calendar units that a kind of rule permits, with their names.
type Units = &'static [(&'static str, CalendarUnit)];
const BUDGETS: Units = &[("day", CalendarUnit::Day), ("month", CalendarUnit::Month)];
const PERIODS: Units = &[
    ("15m", CalendarUnit::QuarterHour),
    ("30m", CalendarUnit::HalfHour),
    ("1h", CalendarUnit::Hour),
];

/// A rule as people write it.
#[derive(Debug, Deserialize, Serialize)]
pub struct RuleBody {
    /// The name. A preview needs none; a saved rule does.
    pub name: Option<Label>,
    device: Option<DeviceId>,
    room: Option<RoomId>,
    kind: Option<Label>,
    tag: Option<Label>,
    mean_of_room: Option<RoomId>,
    metric: Option<MetricName>,
    above: Option<TextOrNumber>,
    below: Option<TextOrNumber>,
    clear: Option<TextOrNumber>,
    clear_above: Option<TextOrNumber>,
    clear_below: Option<TextOrNumber>,
    silent_for: Option<String>,
    budget_kwh: Option<TextOrNumber>,
    per: Option<String>,
    demand_kw: Option<TextOrNumber>,
    period: Option<String>,
    counter: Option<BTreeSet<CounterEvent>>,
    r#for: Option<String>,
    clear_for: Option<String>,
    no_data: Option<NoData>,
    repeat: Option<String>,
    recovery: Option<bool>,
    ignores_quiet_hours: Option<bool>,
    on: Option<bool>,
    paused_until: Option<String>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl RuleBody {
    /// The rule, with `changed` as the time of saving.
    pub fn rule(mut self, changed: Timestamp) -> Result<Rule, MemberError> {
        self.ensure_members_are_known()?;
        let name = self.name.take().ok_or_else(|| MemberError::of("name", "is missing"))?;
        let scope = self.scope()?;
        let watch = self.watch()?;
        let is_metric = matches!(watch, Watch::Metric { .. });
        if matches!(scope, Scope::RoomMean(_)) && !is_metric {
            let why = "is for limits of a metric only; use room for each of its devices";
            return Err(MemberError::of("mean_of_room", why));
        }

        let is_once = !is_metric && !matches!(watch, Watch::Silence { .. });
        let recovery = self.recovery.take();
        if is_once && recovery == Some(true) {
            let why = "must be false: budgets, demands and counters have none";
            return Err(MemberError::of("recovery", why));
        }

        let (breach_time, clear_time, no_data) = if is_once {
            (None, None, None)
        } else {
            (self.r#for.take(), self.clear_for.take(), self.no_data.take())
        };

        let until = self.paused_until.take();
        let until = until.as_deref().map(Timestamp::parse_absolute).transpose();
        let none = TimeDelta::zero();

        let rule = Rule {
            name,
            scope,
            watch,
            breach_time: time("for", breach_time, none..=MAX_FOR)?.unwrap_or(none),
            clear_time: time("clear_for", clear_time, none..=MAX_FOR)?.unwrap_or(none),
            no_data: no_data.unwrap_or(NoData::Keep),
            repeat: time("repeat", self.repeat.take(), TimeDelta::hours(1)..=MAX_REPEAT)?,
            sends_recovery: recovery.unwrap_or(!is_once),
            ignores_quiet_hours: self.ignores_quiet_hours.take().unwrap_or(false),
            is_on: self.on.take().unwrap_or(true),
            paused_until: until.map_err(|why| MemberError::of("paused_until", why))?,
            changed,
        };

        self.ensure_none_left().map(|()| rule)
    }

    fn scope(&mut self) -> Result<Scope, MemberError> {
        let found = [
            self.device.take().map(Scope::Device),
            self.room.take().map(|room| Scope::Each(Group::Room(room))),
            self.kind.take().map(|kind| Scope::Each(Group::Kind(kind))),
            self.tag.take().map(|tag| Scope::Each(Group::Tag(tag))),
            self.mean_of_room.take().map(Scope::RoomMean),
        ];
        let mut found = found.into_iter().flatten();
        match (found.next(), found.next()) {
            (Some(scope), None) => Ok(scope),
            _ => Err(MemberError::of("device", SCOPES)),
        }
    }

    /// Takes the members that say what the rule watches. A body names one kind of rule only.
    fn watch(&mut self) -> Result<Watch, MemberError> {
        let (silent_for, budget) = (self.silent_for.take(), self.budget_kwh.take());
        let (demand, counter) = (self.demand_kw.take(), self.counter.take());
        let has_limits = self.above.is_some() || self.below.is_some();

        match (has_limits, silent_for, budget, demand, counter) {
            (true, None, None, None, None) => self.limits(),
            (false, Some(after), None, None, None) => {
                let after = Some(after).filter(|after| after != "usual");
                let after = time("silent_for", after, TimeDelta::minutes(1)..=MAX_REPEAT)?;
                Ok(Watch::Silence { after })
            }
            (false, None, Some(kwh), None, None) => {
                let kwh = positive("budget_kwh", kwh)?;
                let per = unit("per", self.per.take(), BUDGETS, "day or month")?;
                Ok(Watch::Budget { kwh, per })
            }
            (false, None, None, Some(limit), None) => {
                let limit = match &*limit {
                    "peak" => DemandLimit::Peak,
                    _ => DemandLimit::Kilowatts(positive("demand_kw", limit)?),
                };
                let period = unit("period", self.period.take(), PERIODS, "15m, 30m or 1h")?;
                Ok(Watch::Demand { period, limit })
            }
            (false, None, None, None, Some(events)) if events.is_empty() => {
                Err(MemberError::of("counter", "must be an array of reset, suspect and ambiguous"))
            }
            (false, None, None, None, Some(events)) => {
                Ok(Watch::Counter { metric: self.metric()?, events })
            }
            _ => Err(MemberError::of("above", WATCHES)),
        }
    }

    fn metric(&mut self) -> Result<MetricName, MemberError> {
        self.metric.take().ok_or_else(|| MemberError::of("metric", "is missing"))
    }

    /// Limits of a value. `clear` belongs to a rule with one limit. `clear_above` and `clear_below` belong to the limit
    /// of their side, and replace `clear`.
    fn limits(&mut self) -> Result<Watch, MemberError> {
        let above = number("above", self.above.take())?;
        let below = number("below", self.below.take())?;
        let one = above.is_none() || below.is_none();
        let clear = number("clear", self.clear.take_if(|_| one))?;
        let clear_above = number("clear_above", self.clear_above.take_if(|_| above.is_some()))?;
        let clear_below = number("clear_below", self.clear_below.take_if(|_| below.is_some()))?;

        let threshold = |limit: Option<Decimal>, own: Option<Decimal>| {
            let limit = limit?;
            let clear = own.or_else(|| clear.clone()).unwrap_or_else(|| limit.clone());
            Some(Threshold { limit, clear })
        };
        let (above, below) = (threshold(above, clear_above), threshold(below, clear_below));
        let limits = Limits::new(above.clone(), below.clone());
        let limits = limits.ok_or_else(|| no_value_is_clear(above.as_ref(), below.as_ref()))?;
        Ok(Watch::Metric { metric: self.metric()?, limits })
    }

    /// Refuses unknown members, before members that are missing: a person may have written one by another name.
    fn ensure_members_are_known(&self) -> Result<(), MemberError> {
        let unknown = self.others.keys().find(|name| !OF_ANSWERS.contains(&name.as_str()));
        let Some(unknown) = unknown else { return Ok(()) };

        let meant = nearest(unknown, &MEMBERS);
        let meant = meant.map_or_else(String::new, |name| format!(", and may mean {name}"));
        let why = format!("is not known{meant}; known are {}", MEMBERS.join(", "));
        Err(MemberError::of(unknown, why))
    }

    /// Refuses members of another kind of rule.
    fn ensure_none_left(&self) -> Result<(), MemberError> {
        let members = json!(self);
        let is_left = |(name, value): &(&String, &Value)| {
            !value.is_null() && !self.others.contains_key(*name)
        };
        let left = members.as_object().into_iter().flatten().find(is_left);
        left.map_or(Ok(()), |(name, _)| Err(MemberError::of(name, why_left(name))))
    }
}

/// Why a known member is not for this rule, and what to do.
fn why_left(name: &str) -> &'static str {
    match name {
        "clear" => {
            "is for a rule with one limit; remove it, and give a band clear_above and clear_below"
        }
        "clear_above" => "is for a rule with the limit above; remove it, or write clear",
        "clear_below" => "is for a rule with the limit below; remove it, or write clear",
        _ => "is not for this kind of rule; remove it",
    }
}

/// Names the limit that leaves no value clear.
fn no_value_is_clear(above: Option<&Threshold>, below: Option<&Threshold>) -> MemberError {
    let is_band = above.is_some() && below.is_some();
    let member = |of_band| if is_band { of_band } else { "clear" };

    match (above, below) {
        (Some(above), _) if above.clear > above.limit => {
            let why = format!("must be at most above, which is {}", above.limit.as_str());
            MemberError::of(member("clear_above"), why)
        }
        (_, Some(below)) if below.clear < below.limit => {
            let why = format!("must be at least below, which is {}", below.limit.as_str());
            MemberError::of(member("clear_below"), why)
        }
        _ => MemberError::of(
            "above",
            "leaves no value clear with below; remove one of them, or exchange them",
        ),
    }
}

fn number(field: &str, text: Option<TextOrNumber>) -> Result<Option<Decimal>, MemberError> {
    text.map(|text| Decimal::parse(&text)).transpose().map_err(|why| MemberError::of(field, why))
}

fn positive(field: &str, text: TextOrNumber) -> Result<Decimal, MemberError> {
    let number = number(field, Some(text))?.filter(Decimal::is_positive);
    number.ok_or_else(|| MemberError::of(field, "must be a number above zero"))
}

fn time(
    field: &str,
    text: Option<String>,
    bounds: RangeInclusive<TimeDelta>,
) -> Result<Option<TimeDelta>, MemberError> {
    let Some(text) = text else { return Ok(None) };
    let read = duration::parse(&text, UNITS).filter(|time| bounds.contains(time));
    read.map(Some).ok_or_else(|| {
        let [least, most] =
            [bounds.start(), bounds.end()].map(|bound| duration::text(*bound, UNITS));
        let expected = format!("expected a time from {least} to {most} such as 90s, 15m or 6h");
        MemberError::of(field, format!("is {:?}; {expected}", excerpt(&text)))
    })
}

fn unit(
    field: &str,
    text: Option<String>,
    units: Units,
    expected: &str,
) -> Result<CalendarUnit, MemberError> {
    let text =
        text.ok_or_else(|| MemberError::of(field, format!("is missing; expected {expected}")))?;
    let found = units.iter().find(|(name, _)| *name == text).map(|(_, unit)| *unit);
    found.ok_or_else(|| {
        MemberError::of(field, format!("is {:?}; expected {expected}", excerpt(&text)))
    })
}

fn name_of(units: Units, unit: CalendarUnit) -> &'static str {
    units.iter().find(|(_, named)| *named == unit).map_or("", |(name, _)| name)
}

impl Rule {
    /// Reads a rule, with `changed` as the time of saving.
    pub fn from_json(value: Value, changed: Timestamp) -> Result<Self, MemberError> {
        let body: RuleBody =
            serde_json::from_value(value).map_err(|why| MemberError::of("rule", why))?;
        body.rule(changed)
    }

    /// The rule as [`from_json`](Self::from_json) reads it.
    pub fn to_json(&self) -> Value {
        let mut members = json!({
            "name": self.name,
            "recovery": self.sends_recovery,
            "ignores_quiet_hours": self.ignores_quiet_hours,
            "on": self.is_on,
        });
        let mut set = |field: &str, value: Value| members[field] = value;
        let (field, value) = match &self.scope {
            Scope::Device(id) => ("device", id.as_str()),
            Scope::Each(Group::Room(id)) => ("room", id.as_str()),
            Scope::Each(Group::Kind(kind)) => ("kind", kind.as_str()),
            Scope::Each(Group::Tag(tag)) => ("tag", tag.as_str()),
            Scope::RoomMean(id) => ("mean_of_room", id.as_str()),
        };
        set(field, value.into());

        self.watch.set_members(&mut set);
        if matches!(self.watch, Watch::Metric { .. } | Watch::Silence { .. }) {
            set("for", duration::text(self.breach_time, UNITS).into());
            set("clear_for", duration::text(self.clear_time, UNITS).into());
            set("no_data", json!(self.no_data));
        }

        if let Some(repeat) = self.repeat {
            set("repeat", duration::text(repeat, UNITS).into());
        }
        if let Some(until) = self.paused_until {
            set("paused_until", until.to_string().into());
        }
        members
    }
}

impl Watch {
    /// Sets the members that say what the rule watches.
    fn set_members(&self, mut set: impl FnMut(&str, Value)) {
        let exact = |value: &Decimal| Value::from(value.as_str());
        match self {
            Self::Metric { metric, limits } => {
                set("metric", metric.as_str().into());
                if let Some(threshold) = limits.above() {
                    set("above", exact(&threshold.limit));
                    set("clear_above", exact(&threshold.clear));
                }
                if let Some(threshold) = limits.below() {
                    set("below", exact(&threshold.limit));
                    set("clear_below", exact(&threshold.clear));
                }
            }
            Self::Silence { after } => {
                set(
                    "silent_for",
                    after.map_or_else(|| "usual".into(), |time| duration::text(time, UNITS).into()),
                );
            }
            Self::Budget { kwh, per } => {
                set("budget_kwh", exact(kwh));
                set("per", name_of(BUDGETS, *per).into());
            }
            Self::Demand { period, limit } => {
                let limit = match limit {
                    DemandLimit::Kilowatts(kilowatts) => exact(kilowatts),
                    DemandLimit::Peak => "peak".into(),
                };
                set("demand_kw", limit);
                set("period", name_of(PERIODS, *period).into());
            }
            Self::Counter { metric, events } => {
                set("metric", metric.as_str().into());
                set("counter", json!(events));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Rule, String> {
        let value = serde_json::from_str(text).expect("JSON");
        Rule::from_json(value, Timestamp::MIN).map_err(|why| why.to_string())
    }

    #[test]
    fn each_kind_of_rule_is_read_back_as_it_was_written() {
        for text in [
            r#"{"name": "Freezer", "device": "f", "metric": "temperature", "above": -12.5, "clear": -15,
                "for": "10m", "clear_for": "5m", "no_data": "fire", "repeat": "6h", "recovery": false,
                "ignores_quiet_hours": true, "paused_until": "2026-01-11T16:00:00Z", "on": false}"#,
            r#"{"name": "Air", "mean_of_room": "bed", "metric": "humidity", "above": 60, "below": 40,
                "clear_above": 55, "clear_below": "45"}"#,
            r#"{"name": "Cold", "kind": "thermometer", "metric": "temperature", "below": 5}"#,
            r#"{"name": "Gone", "tag": "battery", "silent_for": "usual"}"#,
            r#"{"name": "Gone", "room": "cellar", "silent_for": "2h", "repeat": "7d"}"#,
            r#"{"name": "DayCounts", "device": "meter", "budget_kwh": 10, "per": "day"}"#,
            r#"{"name": "Peak", "device": "meter", "demand_kw": "peak", "period": "15m"}"#,
            r#"{"name": "Demand", "device": "meter", "demand_kw": 4.5, "period": "1h"}"#,
            r#"{"name": "Meter", "device": "meter", "metric": "cumulative_kwh_p", "counter": ["reset", "suspect"]}"#,
        ] {
            let rule = read(text).expect(text);
            assert_eq!(Rule::from_json(rule.to_json(), Timestamp::MIN), Ok(rule), "{text}");
        }
    }
}
