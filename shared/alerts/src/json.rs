//! A rule as people write it: parses and writes the members of an object. Does not know where it is sent or kept.
//!
//! The object is a [`Value`], which a document of JSON or TOML becomes. A number that needs more than 15 digits is
//! written as a string.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use domain::{CalendarUnit, Decimal, Timestamp, duration};
use serde_json::{Value, json};

use crate::UNITS;
use crate::members::{MemberError, Members, choice, name_of, string, wrong};
use crate::rule::{
    CounterEvent, DemandLimit, Edge, Group, Limits, MAX_FOR, NoData, Rule, Scope, Watch,
};

/// The longest time between repetitions, and the longest silence that a rule can name.
const MAX_REPEAT: TimeDelta = TimeDelta::days(7);
const MEMBERS: &str = "name, device, room, kind, tag, mean_of_room, metric, above, below, clear, clear_above, \
                       clear_below, silent_for, budget_kwh, per, demand_kw, period, counter, for, clear_for, \
                       no_data, repeat, recovery, ignores_quiet_hours, on and paused_until";
const SCOPES: &str = "needs exactly one of device, room, kind, tag and mean_of_room";
const WATCHES: &str = "needs exactly one of above or below (both are a band), silent_for, budget_kwh, demand_kw and counter";

const NO_DATA: [(&str, NoData); 3] =
    [("keep", NoData::Keep), ("fire", NoData::Fire), ("clear", NoData::Clear)];
const BUDGETS: [(&str, CalendarUnit); 2] =
    [("day", CalendarUnit::Day), ("month", CalendarUnit::Month)];
const PERIODS: [(&str, CalendarUnit); 3] = [
    ("15m", CalendarUnit::QuarterHour),
    ("30m", CalendarUnit::HalfHour),
    ("1h", CalendarUnit::Hour),
];
const EVENTS: [(&str, CounterEvent); 3] = [
    ("reset", CounterEvent::Reset),
    ("suspect", CounterEvent::Suspect),
    ("ambiguous", CounterEvent::Ambiguous),
];

impl Rule {
    /// Reads a rule that was saved at `changed`.
    pub fn from_json(value: Value, changed: Timestamp) -> Result<Self, MemberError> {
        let mut members = Members::of(value, "rule")?;
        let name = members.needed("name")?;
        let scope = scope(&mut members)?;
        let watch = watch(&mut members)?;
        if matches!(scope, Scope::RoomMean(_)) && !matches!(watch, Watch::Metric { .. }) {
            return Err(wrong(
                "mean_of_room",
                "is for limits of a metric only; use room for each of its devices",
            ));
        }
        let none = TimeDelta::zero();
        let is_once = !matches!(watch, Watch::Metric { .. } | Watch::Silence { .. });
        if is_once {
            for field in ["for", "clear_for", "no_data"] {
                if members.has(field) {
                    return Err(wrong(field, "is for metrics and silence only"));
                }
            }
        }
        let rule = Self {
            name,
            scope,
            watch,
            hold: members.duration("for", none..=MAX_FOR)?.unwrap_or(none),
            clear_hold: members.duration("clear_for", none..=MAX_FOR)?.unwrap_or(none),
            no_data: members.one_of("no_data", &NO_DATA)?.unwrap_or(NoData::Keep),
            repeat: members.duration("repeat", TimeDelta::hours(1)..=MAX_REPEAT)?,
            tells_recovery: members.flag("recovery", !is_once)?,
            ignores_quiet_hours: members.flag("ignores_quiet_hours", false)?,
            is_on: members.flag("on", true)?,
            paused_until: members.take("paused_until", |value| {
                Timestamp::parse_absolute(string(value)?).map_err(|why| why.to_string())
            })?,
            changed,
        };
        members.none_left(|| {
            format!("is not known or not for this kind of rule; known are {MEMBERS}")
        })?;
        if is_once && rule.tells_recovery {
            return Err(wrong(
                "recovery",
                "must be false: budgets, demands and counters have none",
            ));
        }
        Ok(rule)
    }

    /// The rule as [`from_json`](Self::from_json) reads it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut members = json!({
            "name": self.name,
            "recovery": self.tells_recovery,
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
            set("for", duration::text(self.hold, UNITS).into());
            set("clear_for", duration::text(self.clear_hold, UNITS).into());
            set("no_data", name_of(&NO_DATA, &self.no_data).into());
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
    /// Sets the members that say what is watched.
    fn set_members(&self, mut set: impl FnMut(&str, Value)) {
        let exact = |value: &Decimal| Value::from(value.as_str());
        match self {
            Self::Metric { metric, limits } => {
                set("metric", metric.as_str().into());
                if let Some(edge) = limits.above() {
                    set("above", exact(&edge.limit));
                    set("clear_above", exact(&edge.clear));
                }
                if let Some(edge) = limits.below() {
                    set("below", exact(&edge.limit));
                    set("clear_below", exact(&edge.clear));
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
                set("per", name_of(&BUDGETS, per).into());
            }
            Self::Demand { period, limit } => {
                let limit = match limit {
                    DemandLimit::Kilowatts(kilowatts) => exact(kilowatts),
                    DemandLimit::Peak => "peak".into(),
                };
                set("demand_kw", limit);
                set("period", name_of(&PERIODS, period).into());
            }
            Self::Counter { metric, events } => {
                set("metric", metric.as_str().into());
                let events = events.iter().map(|event| name_of(&EVENTS, event));
                set("counter", events.collect());
            }
        }
    }
}

fn scope(members: &mut Members) -> Result<Scope, MemberError> {
    let found = [
        members.parsed("device")?.map(Scope::Device),
        members.parsed("room")?.map(|room| Scope::Each(Group::Room(room))),
        members.parsed("kind")?.map(|kind| Scope::Each(Group::Kind(kind))),
        members.parsed("tag")?.map(|tag| Scope::Each(Group::Tag(tag))),
        members.parsed("mean_of_room")?.map(Scope::RoomMean),
    ];
    let mut found = found.into_iter().flatten();
    match (found.next(), found.next()) {
        (Some(scope), None) => Ok(scope),
        _ => Err(wrong("device", SCOPES)),
    }
}

fn watch(members: &mut Members) -> Result<Watch, MemberError> {
    let kinds = ["above", "silent_for", "budget_kwh", "demand_kw", "counter"];
    let named = kinds
        .into_iter()
        .filter(|kind| members.has(kind) || *kind == "above" && members.has("below"));
    match named.collect::<Vec<_>>()[..] {
        ["above"] => limits(members),
        ["silent_for"] => {
            let is_usual = members.is("silent_for", "usual");
            let bounds = TimeDelta::minutes(1)..=MAX_REPEAT;
            let after = if is_usual {
                members.forget("silent_for");
                None
            } else {
                members.duration("silent_for", bounds)?
            };
            Ok(Watch::Silence { after })
        }
        ["budget_kwh"] => {
            let kwh = positive("budget_kwh", members.number("budget_kwh")?)?;
            let per = members.one_of("per", &BUDGETS)?;
            Ok(Watch::Budget {
                kwh,
                per: per.ok_or_else(|| wrong("per", "is missing; expected day or month"))?,
            })
        }
        ["demand_kw"] => {
            let limit = if members.is("demand_kw", "peak") {
                members.forget("demand_kw");
                DemandLimit::Peak
            } else {
                DemandLimit::Kilowatts(positive("demand_kw", members.number("demand_kw")?)?)
            };
            let period = members.one_of("period", &PERIODS)?;
            let period =
                period.ok_or_else(|| wrong("period", "is missing; expected 15m, 30m or 1h"))?;
            Ok(Watch::Demand { period, limit })
        }
        ["counter"] => {
            let events = members.take("counter", |value| {
                let events = value.as_array().filter(|events| !events.is_empty());
                let events = events.ok_or("must be an array of reset, suspect and ambiguous")?;
                let events = events.iter().map(|event| choice(string(event)?, &EVENTS));
                events.collect::<Result<BTreeSet<_>, String>>()
            })?;
            Ok(Watch::Counter { metric: metric(members)?, events: events.unwrap_or_default() })
        }
        _ => Err(wrong("above", WATCHES)),
    }
}

fn metric(members: &mut Members) -> Result<domain::MetricName, MemberError> {
    members.needed("metric")
}

fn positive(field: &str, number: Option<Decimal>) -> Result<Decimal, MemberError> {
    match number {
        Some(number) if number.is_positive() => Ok(number),
        _ => Err(wrong(field, "must be a number above zero")),
    }
}

/// `clear` is for a rule with one limit; a band has `clear_above` and `clear_below`.
fn limits(members: &mut Members) -> Result<Watch, MemberError> {
    let (above, below) = (members.number("above")?, members.number("below")?);
    let one = if above.is_some() && below.is_some() { None } else { members.number("clear")? };
    let mut edge = |field: &str, limit: Option<Decimal>| {
        let Some(limit) = limit else { return Ok(None) };
        let clear = members.number(field)?.or_else(|| one.clone());
        Ok(Some(Edge { clear: clear.unwrap_or_else(|| limit.clone()), limit }))
    };
    let (above, below) = (edge("clear_above", above)?, edge("clear_below", below)?);
    let limits = Limits::new(above, below).ok_or_else(|| {
        wrong("clear", "must be at most above and at least below, and some value must be clear")
    })?;
    Ok(Watch::Metric { metric: metric(members)?, limits })
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::cases;

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
            r#"{"name": "Day", "device": "meter", "budget_kwh": 10, "per": "day"}"#,
            r#"{"name": "Peak", "device": "meter", "demand_kw": "peak", "period": "15m"}"#,
            r#"{"name": "Demand", "device": "meter", "demand_kw": 4.5, "period": "1h"}"#,
            r#"{"name": "Meter", "device": "meter", "metric": "cumulative_kwh_p", "counter": ["reset", "suspect"]}"#,
        ] {
            let rule = read(text).expect(text);
            assert_eq!(Rule::from_json(rule.to_json(), Timestamp::MIN), Ok(rule), "{text}");
        }
    }

    #[test]
    fn every_other_rule_is_refused_with_its_field_and_what_is_allowed() {
        for case in cases(include_str!("refused/rules.txt")) {
            let refused = read(case.given).expect_err(case.given);
            assert!(refused.starts_with(case.answer()), "{case}: {refused}");
        }
    }
}
