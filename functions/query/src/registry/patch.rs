//! Parses the body of a PATCH: given members are set, `null` clears, all others stay. Edits nothing.

mod fault;
mod judgements;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use api::json::{Kind, Members, WrongKind, string};
use api::{Problem, ProblemKind, Request};
use domain::{
    AttributeName, AttributeValue, AttributeValues, Decimal, DevicePatch, Edit, IdError, Label,
    LabelError, MAX_SEARCH_ENTRIES, MetricKind, MetricName, MetricPatch, Role, RoomPatch, Tags,
    Timestamp, excerpt,
};
use serde_json::value::RawValue;

use crate::body;
use fault::{EARLIEST_SINCE, Fault, decimal, hold};

/// The largest body, inflated: more than all that can be set takes.
const MAX_PATCH: usize = 128 << 10;
/// The largest number of members of an object of settings: more than there are, so that the wrong one is
/// named.
const MAX_SETTINGS: usize = 16;
/// All that a device may have are removed and others set.
pub(crate) const MAX_PATCHED_ATTRIBUTES: usize = 2 * MAX_SEARCH_ENTRIES;

/// More than a device's settings are edited with at once.
pub(crate) const MAX_PATCHED_METRICS: usize = 16;

/// The member at fault, and why.
#[derive(Debug)]
struct Refusal {
    field: String,
    fault: Fault,
}

impl Refusal {
    /// Of a value, the refusal that names its member.
    fn of(field: impl fmt::Display) -> impl FnOnce(Fault) -> Self {
        move |fault| Self { field: field.to_string(), fault }
    }
}

/// Reads the patch of a device.
pub(crate) fn of_device(request: &Request, now: Timestamp) -> Result<DevicePatch, Problem> {
    read(request, |members| device_patch(members, now))
}

/// Reads the patch of a room.
pub(crate) fn of_room(request: &Request) -> Result<RoomPatch, Problem> {
    read(request, room_patch)
}

fn read<T: Default + PartialEq>(
    request: &Request,
    read: impl Fn(Members<'_>) -> Result<T, Refusal>,
) -> Result<T, Problem> {
    let bad = |detail: String| Problem::new(ProblemKind::BadRequest, detail);
    let text = body::text(request, MAX_PATCH)?;
    let members = Members::parse(&text, MAX_SETTINGS)
        .map_err(|why| bad(format!("The body is no JSON object of what to change: {why}.")))?;
    let patch = read(members)
        .map_err(|Refusal { field, fault }| Problem::field(&field, fault.to_string()))?;
    if patch == T::default() {
        return Err(bad("The body changes nothing; name at least one member to set.".to_owned()));
    }
    Ok(patch)
}

fn device_patch(members: Members<'_>, now: Timestamp) -> Result<DevicePatch, Refusal> {
    let mut patch = DevicePatch::default();
    for (name, value) in members {
        let read = match name.as_ref() {
            "name" => label(value).map(|edit| patch.name = edit),
            "kind" => label(value).map(|edit| patch.kind = edit),
            "room" => id(value).map(|edit| patch.room = edit),
            "room_since" => since(value, now).map(|at| patch.room_since = Some(at)),
            "behind" => id(value).map(|edit| patch.behind = edit),
            "in_room_means" => flag(value).map(|edit| patch.in_room_means = edit),
            "tags" => tags(value).map(|edit| patch.tags = edit),
            "attributes" => {
                patch.attributes = attributes(value)?;
                Ok(())
            }
            "metrics" => {
                (patch.metrics, patch.dropped_metrics) = metrics(value)?;
                Ok(())
            }
            _ => Err(Fault::Fixed(
                "name, room, room_since, kind, tags, attributes, behind, in_room_means and metrics",
            )),
        };
        read.map_err(Refusal::of(excerpt(&name)))?;
    }
    if patch.room_since.is_some() && patch.room == Edit::Keep {
        return Err(Refusal::of("room_since")(Fault::WithoutRoom));
    }
    Ok(patch)
}

fn since(value: &RawValue, now: Timestamp) -> Result<Timestamp, Fault> {
    let at = judgements::timestamp(value)?;
    let earliest = Timestamp::parse_absolute(EARLIEST_SINCE)?;
    match at {
        at if at > now => Err(Fault::Future(at)),
        at if at < earliest => Err(Fault::TooEarly(at)),
        at => Ok(at),
    }
}

fn room_patch(members: Members<'_>) -> Result<RoomPatch, Refusal> {
    let mut patch = RoomPatch::default();
    for (name, value) in members {
        let read = match name.as_ref() {
            "name" => label(value).map(|edit| patch.name = edit),
            "home" => id(value).map(|edit| patch.home = edit),
            "outside" => flag(value).map(|edit| patch.outside = edit),
            _ => Err(Fault::Fixed("name, home and outside")),
        };
        read.map_err(Refusal::of(excerpt(&name)))?;
    }
    Ok(patch)
}

/// Attributes to set, or to remove, `null`.
fn attributes(
    value: &RawValue,
) -> Result<BTreeMap<AttributeName, Option<AttributeValues>>, Refusal> {
    let members = object(value, MAX_PATCHED_ATTRIBUTES).map_err(Refusal::of("attributes"))?;
    let attribute = |(name, value): (Cow<'_, str>, &RawValue)| {
        let read = || Ok((name.parse()?, attribute_values(value)?));
        read().map_err(Refusal::of(format_args!("attributes.{}", excerpt(&name))))
    };
    members.into_iter().map(attribute).collect()
}

/// One value, several in an array, or `null`.
fn attribute_values(value: &RawValue) -> Result<Option<AttributeValues>, Fault> {
    match Kind::of(value) {
        Kind::Null => Ok(None),
        Kind::Array => {
            let values: Vec<&RawValue> =
                serde_json::from_str(value.get()).map_err(|_| Fault::NotAttribute)?;
            let values = values.into_iter().map(attribute_value).collect::<Result<Vec<_>, _>>()?;
            Ok(Some(values.try_into()?))
        }
        _ => Ok(Some(vec![attribute_value(value)?].try_into()?)),
    }
}

fn attribute_value(value: &RawValue) -> Result<AttributeValue, Fault> {
    match Kind::of(value) {
        Kind::String => Ok(AttributeValue::Text(string(value)?.into_owned().try_into()?)),
        Kind::Number => Ok(AttributeValue::Number(decimal(value)?)),
        _ => Err(Fault::NotAttribute),
    }
}

/// The settings of metrics, and those that are to be dropped, `null`.
type Metrics = (BTreeMap<MetricName, MetricPatch>, BTreeSet<MetricName>);

fn metrics(value: &RawValue) -> Result<Metrics, Refusal> {
    let members = object(value, MAX_PATCHED_METRICS).map_err(Refusal::of("metrics"))?;
    let (mut patches, mut dropped) = Metrics::default();
    for (name, value) in members {
        let at = || format!("metrics.{}", excerpt(&name));
        let metric: MetricName =
            name.parse().map_err(|why| Refusal::of(at())(Fault::MetricName(why)))?;
        if value.get() == "null" {
            dropped.insert(metric);
        } else {
            let settings = object(value, MAX_SETTINGS).map_err(Refusal::of(at()))?;
            patches.insert(metric, settings_of_metric(&name, settings)?);
        }
    }
    Ok((patches, dropped))
}

fn settings_of_metric(metric: &str, settings: Members<'_>) -> Result<MetricPatch, Refusal> {
    let mut patch = MetricPatch::default();
    for (name, value) in settings {
        let read = match name.as_ref() {
            "kind" => kind(value).map(|edit| patch.kind = edit),
            "unit" => label(value).map(|edit| patch.unit = edit),
            "modulus" => positive(value).map(|edit| patch.modulus = edit),
            "max_w" => positive(value).map(|edit| patch.max_w = edit),
            "tolerance" => positive(value).map(|edit| patch.tolerance = edit),
            "hold" => edit(value, hold).map(|edit| patch.hold = edit),
            "exchanges" => edit(value, judgements::exchanges).map(|edit| patch.exchanges = edit),
            "verdicts" => edit(value, judgements::verdicts).map(|edit| patch.verdicts = edit),
            "role" => edit(value, role).map(|edit| patch.role = edit),
            "net" => edit(value, boolean).map(|edit| patch.net = edit),
            "cycle" => {
                edit(value, |cycle| Ok(string(cycle)?.parse()?)).map(|edit| patch.cycle = edit)
            }
            "in_room_means" => flag(value).map(|edit| patch.in_room_means = edit),
            "hourly_until" => {
                edit(value, judgements::timestamp).map(|edit| patch.hourly_until = edit)
            }
            _ => Err(Fault::Fixed(
                "kind, unit, modulus, max_w, tolerance, hold, exchanges, verdicts, in_room_means, role, \
                 net, cycle and hourly_until",
            )),
        };
        read.map_err(Refusal::of(format_args!("metrics.{metric}.{}", excerpt(&name))))?;
    }
    Ok(patch)
}

fn object(value: &RawValue, max: usize) -> Result<Members<'_>, Fault> {
    if value.get().starts_with('{') {
        Ok(Members::parse(value.get(), max)?)
    } else {
        Err(WrongKind::of(value, "an object").into())
    }
}

fn edit<'a, T>(
    value: &'a RawValue,
    read: impl Fn(&'a RawValue) -> Result<T, Fault>,
) -> Result<Edit<T>, Fault> {
    if value.get() == "null" { Ok(Edit::Clear) } else { read(value).map(Edit::Set) }
}

/// A label or a unit.
fn label<T: TryFrom<String, Error = LabelError>>(value: &RawValue) -> Result<Edit<T>, Fault> {
    edit(value, |value| Ok(string(value)?.into_owned().try_into()?))
}

/// The id of a room or a device.
fn id<T: std::str::FromStr<Err = IdError>>(value: &RawValue) -> Result<Edit<T>, Fault> {
    edit(value, |value| Ok(string(value)?.parse()?))
}

/// `true` or `false`.
fn flag(value: &RawValue) -> Result<Edit<bool>, Fault> {
    edit(value, |value| match value.get() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(WrongKind::of(value, "true, false or null").into()),
    })
}

fn kind(value: &RawValue) -> Result<Edit<MetricKind>, Fault> {
    edit(value, |value| {
        let text = string(value)?;
        MetricKind::parse(&text).ok_or_else(|| Fault::NotKind(excerpt(&text)))
    })
}

fn role(value: &RawValue) -> Result<Role, Fault> {
    let text = string(value)?;
    Role::parse(&text).ok_or_else(|| Fault::NotRole(excerpt(&text)))
}

fn boolean(value: &RawValue) -> Result<bool, Fault> {
    match value.get() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(WrongKind::of(value, "true or false").into()),
    }
}

fn tags(value: &RawValue) -> Result<Edit<Tags>, Fault> {
    edit(value, |value| {
        let tags: Vec<String> = serde_json::from_str(value.get()).map_err(|_| Fault::NotTags)?;
        let tags = tags.into_iter().map(Label::try_from).collect::<Result<Vec<_>, _>>()?;
        Ok(tags.try_into()?)
    })
}

fn positive(value: &RawValue) -> Result<Edit<Decimal>, Fault> {
    edit(value, |value| {
        let number = decimal(value)?;
        if number.is_positive() { Ok(number) } else { Err(Fault::NotPositive(number)) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::{at, cases, number};

    fn patched(body: &str) -> Result<DevicePatch, String> {
        let request = Request { body: body.into(), ..Request::default() };
        let now = at("2026-01-11T16:00:00Z");
        of_device(&request, now).map_err(|problem| problem.detail)
    }

    #[test]
    fn what_is_there_is_set_null_takes_away_and_the_rest_stays() {
        let patch = patched(
            r#"{"name": "Smart meter", "room": null, "tags": ["a", "b"],
                "metrics": {"cumulative_kwh_p": {"modulus": 100000, "max_w": null}}}"#,
        )
        .expect("a patch");
        assert_eq!(patch.name, Edit::Set("Smart meter".parse().expect("a label")));
        assert_eq!(patch.room, Edit::Clear);
        assert_eq!(patch.kind, Edit::Keep);
        assert!(patch.dropped_metrics.is_empty());
        let (_, metric) = patch.metrics.into_iter().next().expect("one");
        assert_eq!(metric.modulus, Edit::Set(number("100000")));
        assert_eq!(metric.max_w, Edit::Clear);
        assert_eq!(metric.tolerance, Edit::Keep);
    }

    #[test]
    fn an_attribute_is_a_text_a_number_or_several_and_null_removes_it() {
        let patch = patched(
            r#"{"attributes": {"model": "SHT45", "size": 1.50, "serves": ["hall", 4], "old": null}}"#,
        )
        .expect("a patch");
        let attributes: Vec<String> = patch
            .attributes
            .iter()
            .map(|(name, values)| format!("{name}={}", serde_json::json!(values)))
            .collect();
        assert_eq!(
            attributes,
            [r#"model="SHT45""#, "old=null", r#"serves=["hall",4]"#, "size=1.5"]
        );
    }

    #[test]
    fn a_metric_that_is_null_is_dropped() {
        let patch =
            patched(r#"{"metrics": {"old": null, "t": {"tolerance": 1}}}"#).expect("a patch");
        let names = |names: &mut dyn Iterator<Item = &MetricName>| -> Vec<String> {
            names.map(ToString::to_string).collect()
        };
        assert_eq!(names(&mut patch.dropped_metrics.iter()), ["old"]);
        assert_eq!(names(&mut patch.metrics.keys()), ["t"]);
    }

    #[test]
    fn a_body_that_is_larger_than_all_settings_is_not_taken() {
        let body = format!(r#"{{"tags": [{}]}}"#, vec![r#""a""#; MAX_PATCH].join(","));
        let request = Request { body: body.into(), ..Request::default() };
        let problem = of_device(&request, Timestamp::MIN).expect_err("too large");
        assert_eq!(problem.kind.status(), 413);
    }

    #[test]
    fn settings_of_meters_have_their_words() {
        for (body, expected) in [
            (
                r#"{"metrics": {"t": {"role": "bought"}}}"#,
                "metrics.t.role: is \"bought\"; expected import, export, production, storage, consumer or none",
            ),
            (r#"{"metrics": {"t": {"role": 5}}}"#, "metrics.t.role: must be a string"),
            (r#"{"metrics": {"t": {"net": 1}}}"#, "metrics.t.net: must be true or false"),
            (
                r#"{"metrics": {"t": {"cycle": "A"}}}"#,
                "metrics.t.cycle: \"A\" is not a metric name",
            ),
        ] {
            let error = patched(body).expect_err(body);
            assert!(error.starts_with(expected), "{body}: {error}");
        }
        let patch = patched(r#"{"metrics": {"t": {"role": "none", "net": false, "cycle": null}}}"#);
        let (_, metric) = patch.expect("a patch").metrics.into_iter().next().expect("one");
        assert_eq!((metric.role, metric.net), (Edit::Set(Role::None), Edit::Set(false)));
        assert_eq!(metric.cycle, Edit::Clear);
    }

    #[test]
    fn every_bad_member_is_named() {
        let long = format!(r#"{{"name": "{}"}}"#, "x".repeat(101));
        let many =
            format!(r#"{{"tags": {:?}}}"#, (0..51).map(|n| n.to_string()).collect::<Vec<_>>());
        let names = (0..17).map(|n| format!(r#""m{n}": {{"tolerance": 1}}"#)).collect::<Vec<_>>();
        let metrics = format!(r#"{{"metrics": {{{}}}}}"#, names.join(", "));
        for (body, expected) in [
            ("", "no JSON object"),
            (&long, "name: is 101 characters long"),
            (&many, "tags: are 51"),
            (&metrics, "metrics: there are more than 16 members"),
        ] {
            let error = patched(body).expect_err(body);
            assert!(error.contains(expected), "{body}: {error}");
        }
        for case in cases(include_str!("patch/refused.txt")) {
            let error = patched(case.given).expect_err(case.given);
            assert!(error.contains(case.answer()), "{case}: {error}");
        }
    }
}
