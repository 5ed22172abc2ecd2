//! The members of an object of JSON, read one after another. Knows no rule and no channel.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use chrono::TimeDelta;
use domain::{Decimal, duration, excerpt};
use serde_json::{Map, Value};

use crate::UNITS;

/// The member that is wrong, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct MemberError {
    /// The member.
    pub field: String,
    /// The reason, with what is allowed.
    pub why: String,
}

pub(crate) fn wrong(field: &str, why: impl fmt::Display) -> MemberError {
    MemberError { field: excerpt(field), why: why.to_string() }
}

/// The members that have not been read yet.
pub(crate) struct Members(Map<String, Value>);

impl Members {
    /// The members of an object; `what` is the field of the error.
    pub(crate) fn of(value: Value, what: &str) -> Result<Self, MemberError> {
        match value {
            Value::Object(members) => Ok(Self(members)),
            _ => Err(wrong(what, "must be an object")),
        }
    }

    /// Fails if a member was not read: nobody asked for it.
    pub(crate) fn none_left(&self, why: impl Fn() -> String) -> Result<(), MemberError> {
        self.0.keys().next().map_or(Ok(()), |unknown| Err(wrong(unknown, why())))
    }

    pub(crate) fn is(&self, field: &str, text: &str) -> bool {
        self.0.get(field).is_some_and(|value| value == text)
    }

    pub(crate) fn forget(&mut self, field: &str) {
        self.0.remove(field);
    }

    pub(crate) fn has(&self, field: &str) -> bool {
        self.0.contains_key(field)
    }

    pub(crate) fn take<T>(
        &mut self,
        field: &str,
        read: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Result<Option<T>, MemberError> {
        let value = self.0.remove(field).filter(|value| !value.is_null());
        value.map(|value| read(&value)).transpose().map_err(|why| wrong(field, why))
    }

    pub(crate) fn parsed<T: FromStr<Err: fmt::Display>>(
        &mut self,
        field: &str,
    ) -> Result<Option<T>, MemberError> {
        self.take(field, |value| string(value)?.parse().map_err(|why: T::Err| why.to_string()))
    }

    pub(crate) fn needed<T: FromStr<Err: fmt::Display>>(
        &mut self,
        field: &str,
    ) -> Result<T, MemberError> {
        self.parsed(field)?.ok_or_else(|| wrong(field, "is missing"))
    }

    pub(crate) fn number(&mut self, field: &str) -> Result<Option<Decimal>, MemberError> {
        self.take(field, number)
    }

    pub(crate) fn flag(&mut self, field: &str, default: bool) -> Result<bool, MemberError> {
        let flag = self
            .take(field, |value| value.as_bool().ok_or_else(|| "must be true or false".to_owned()));
        Ok(flag?.unwrap_or(default))
    }

    pub(crate) fn duration(
        &mut self,
        field: &str,
        bounds: RangeInclusive<TimeDelta>,
    ) -> Result<Option<TimeDelta>, MemberError> {
        self.take(field, |value| {
            let text = string(value)?;
            let read = duration::parse(text, UNITS).filter(|time| bounds.contains(time));
            let [least, most] =
                [bounds.start(), bounds.end()].map(|bound| duration::text(*bound, UNITS));
            let shown = excerpt(text);
            read.ok_or_else(|| {
                format!(
                    "is {shown:?}; expected a time from {least} to {most} such as 90s, 15m or 6h"
                )
            })
        })
    }

    pub(crate) fn one_of<T: Copy>(
        &mut self,
        field: &str,
        known: &[(&str, T)],
    ) -> Result<Option<T>, MemberError> {
        self.take(field, |value| choice(string(value)?, known))
    }
}

pub(crate) fn string(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| "must be a string".to_owned())
}

fn number(value: &Value) -> Result<Decimal, String> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        _ => return Err("must be a number".to_owned()),
    };
    Decimal::parse(&text).map_err(|why| why.to_string())
}

pub(crate) fn choice<T: Copy>(text: &str, known: &[(&str, T)]) -> Result<T, String> {
    let found = known.iter().find(|(name, _)| *name == text);
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let all = names.join(", ");
    found
        .map(|named| named.1)
        .ok_or_else(|| format!("is {:?}; expected one of {all}", excerpt(text)))
}

pub(crate) fn name_of<T: PartialEq>(known: &[(&'static str, T)], value: &T) -> &'static str {
    known.iter().find(|(_, named)| named == value).map_or("", |named| named.0)
}
