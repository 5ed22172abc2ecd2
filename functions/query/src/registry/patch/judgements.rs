//! Reads a person's exchanges of meters and verdicts on steps: whole lists. Judges nothing.

use std::collections::BTreeMap;

use api::json::{Kind, Members, WrongKind, string};
use domain::{Exchange, MAX_JUDGEMENTS, Timestamp, Verdict, excerpt};
use serde_json::value::RawValue;

use super::fault::{Fault, decimal};

/// `[{"timestamp", "old", "new"}]`: the last figure of the old meter, the first of the new one.
pub(crate) fn exchanges(value: &RawValue) -> Result<BTreeMap<Timestamp, Exchange>, Fault> {
    list(value, |members| {
        let old = decimal(required(members, "old")?)?;
        Ok(Exchange { old, new: decimal(required(members, "new")?)? })
    })
}

/// `[{"timestamp", "verdict"}]`, each by the timestamp of the reading that ends the step.
pub(crate) fn verdicts(value: &RawValue) -> Result<BTreeMap<Timestamp, Verdict>, Fault> {
    list(value, |members| {
        let text = string(required(members, "verdict")?)?;
        Verdict::parse(&text).ok_or_else(|| Fault::NotVerdict(excerpt(&text)))
    })
}

fn list<T>(
    value: &RawValue,
    read: impl Fn(&mut Members<'_>) -> Result<T, Fault>,
) -> Result<BTreeMap<Timestamp, T>, Fault> {
    let entries: Vec<&RawValue> = serde_json::from_str(value.get())
        .map_err(|_| WrongKind::of(value, "an array of objects"))?;
    if entries.len() > MAX_JUDGEMENTS {
        return Err(Fault::TooMany);
    }
    let mut all = BTreeMap::new();
    for (place, entry) in entries.into_iter().enumerate() {
        let at = |fault| Fault::Entry { place, fault: Box::new(fault) };
        let (timestamp, judgement) = judgement(entry, &read).map_err(at)?;
        if all.insert(timestamp, judgement).is_some() {
            return Err(Fault::Twice(timestamp));
        }
    }
    Ok(all)
}

fn judgement<T>(
    entry: &RawValue,
    read: impl Fn(&mut Members<'_>) -> Result<T, Fault>,
) -> Result<(Timestamp, T), Fault> {
    if Kind::of(entry) != Kind::Object {
        return Err(WrongKind::of(entry, "an object").into());
    }
    let mut members = Members::parse(entry.get(), 4)?;
    let at = timestamp(required(&mut members, "timestamp")?)?;
    let judgement = read(&mut members)?;
    match members.into_iter().next() {
        Some((name, _)) => Err(Fault::Unknown(excerpt(&name))),
        None => Ok((at, judgement)),
    }
}

/// A timestamp that is not relative, as a text or an epoch number.
pub(crate) fn timestamp(value: &RawValue) -> Result<Timestamp, Fault> {
    let text = if Kind::of(value) == Kind::Number { value.get().into() } else { string(value)? };
    Ok(Timestamp::parse_absolute(&text)?)
}

fn required<'a>(members: &mut Members<'a>, name: &'static str) -> Result<&'a RawValue, Fault> {
    members.take_non_null(name).ok_or(Fault::Missing(name))
}
