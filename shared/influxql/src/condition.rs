//! The condition of a query: its bounds on time, and its comparisons of tags and fields. Reads nothing.

use std::borrow::Cow;
use std::collections::BTreeSet;

use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, SecondsFormat, TimeZone as _};
use domain::{Timestamp, Zone};

use crate::ast::{Cast, Expression, Operator};
use crate::duration::{MILLISECOND, SECOND};
use crate::error::{QueryError, refuse};
use crate::value::{Value, float};

/// Bounds are limited to the years 1938 to 2198, so that the difference of two bounds fits into 64 bits of nanoseconds.
const EARLIEST: i64 = -1_000_000_000_000_000_000;
const LATEST: i64 = 7_200_000_000_000_000_000;

/// The time range of a query, in nanoseconds since 1970, both ends inclusive; `None`: no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Range {
    pub(crate) from: Option<i64>,
    pub(crate) to: Option<i64>,
}

impl Range {
    /// Cuts the range to other bounds.
    pub(crate) fn narrow(&mut self, from: Option<i64>, to: Option<i64>) {
        self.from = self.from.max(from);
        self.to = match (self.to, to) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

/// Splits a condition into the range of its comparisons with `time`, and the rest.
///
/// As in InfluxDB, all bounds apply together, even if `OR` stands between them.
pub(crate) fn split(
    condition: Option<&Expression>,
    zone: Option<Zone>,
    now: Timestamp,
) -> Result<(Range, Option<Expression>), QueryError> {
    let mut range = Range::default();
    let Some(condition) = condition else { return Ok((range, None)) };
    let rest = Splitting { range: &mut range, zone, now }.rest(condition)?;
    Ok((range, rest))
}

struct Splitting<'a> {
    range: &'a mut Range,
    zone: Option<Zone>,
    now: Timestamp,
}

impl Splitting<'_> {
    fn rest(&mut self, condition: &Expression) -> Result<Option<Expression>, QueryError> {
        match condition {
            Expression::All(parts) => self.parts(parts, Expression::All),
            Expression::Any(parts) => self.parts(parts, Expression::Any),
            Expression::Group(inside) => self.rest(inside),
            Expression::Boolean(_) => Ok(Some(condition.clone())),
            Expression::Binary { operator, sides } if !operator.is_arithmetic() => {
                let [left, right] = &**sides;
                if left.is_time() {
                    self.bound(*operator, right)?;
                } else if right.is_time() {
                    self.bound(operator.flipped(), left)?;
                } else {
                    return Ok(Some(condition.clone()));
                }

                Ok(None)
            }
            other => {
                let text = match other {
                    Expression::Reference { name, .. } => name.clone(),
                    Expression::Call { name, .. } => format!("{name}()"),
                    _ => "it is not a comparison".to_owned(),
                };
                refuse!("invalid condition expression: {text}")
            }
        }
    }

    fn parts(
        &mut self,
        parts: &[Expression],
        joined: fn(Vec<Expression>) -> Expression,
    ) -> Result<Option<Expression>, QueryError> {
        let rests: Result<Vec<_>, _> = parts.iter().map(|part| self.rest(part)).collect();
        let mut rests: Vec<Expression> = rests?.into_iter().flatten().collect();
        match rests.len() {
            0 | 1 => Ok(rests.pop()),
            _ => Ok(Some(joined(rests))),
        }
    }

    /// Narrows the range by a comparison with `time`. Bounds are cut to milliseconds, like the times of points.
    fn bound(&mut self, operator: Operator, with: &Expression) -> Result<(), QueryError> {
        let at = match self.constant(with)? {
            Constant::Time(at) => {
                self.ensure_in_range(at, with)?;
                at
            }
            Constant::Duration(at) | Constant::Whole(at) => at,
            Constant::Text => return Err(incompatible(with)),
        };

        let at = at.clamp(EARLIEST.into(), LATEST.into());
        let at = i64::try_from(at).expect("it lies between two of them");
        let at = at - at.rem_euclid(MILLISECOND);

        let (from, to) = match operator {
            Operator::Greater => (Some(at + 1), None),
            Operator::GreaterOrEqual => (Some(at), None),
            Operator::Less => (None, Some(at - 1)),
            Operator::LessOrEqual => (None, Some(at)),
            Operator::Equal => (Some(at), Some(at)),
            other => refuse!("invalid time comparison operator: {}", other.as_str()),
        };
        self.range.narrow(from, to);
        Ok(())
    }

    /// Refuses a time beyond InfluxDB's range of nanoseconds.
    fn ensure_in_range(&self, at: i128, with: &Expression) -> Result<(), QueryError> {
        let way = if at >= i64::MAX.into() {
            "overflows"
        } else if at <= i128::from(i64::MIN) + 2 {
            "underflows"
        } else {
            return Ok(());
        };
        // A time beyond the calendar has no text.
        let text = self.local_text(at).ok_or_else(|| incompatible(with))?;
        Err(QueryError::new(format!("time {text} {way} time literal")))
    }

    /// A time in the zone of the query, to the second; `None` if the time is beyond the calendar.
    fn local_text(&self, at: i128) -> Option<String> {
        let second = i64::try_from(at.div_euclid(SECOND.into())).ok()?;
        let utc = DateTime::from_timestamp(second, 0)?;
        let ahead = self.zone.map_or(0, |zone| zone.offset(second));
        let local = utc.with_timezone(&FixedOffset::east_opt(i32::try_from(ahead).ok()?)?);
        Some(local.to_rfc3339_opts(SecondsFormat::Secs, true))
    }

    fn constant(&self, of: &Expression) -> Result<Constant, QueryError> {
        match of {
            Expression::Integer(number) => Ok(Constant::Whole((*number).into())),
            #[expect(clippy::cast_possible_truncation, reason = "nanoseconds, as InfluxDB has it")]
            Expression::Number(number) => Ok(Constant::Whole((*number as i64).into())),
            Expression::Duration(length) => Ok(Constant::Duration((*length).into())),
            Expression::Text(text) if has_date(text) => read_time(text, self.zone)
                .map(Constant::Time)
                .ok_or_else(|| QueryError::new("invalid timestamp string")),
            Expression::Text(_) => Ok(Constant::Text),
            Expression::Group(inside) => self.constant(inside),
            Expression::Call { name, arguments } if name == "now" && arguments.is_empty() => {
                Ok(Constant::Time(nanoseconds(self.now).into()))
            }
            Expression::Binary { operator, sides } => {
                let [left, right] = &**sides;
                let (left, right) = (self.constant(left)?, self.constant(right)?);
                sum(*operator, &left, &right).ok_or_else(|| incompatible(of))
            }
            other => Err(incompatible(other)),
        }
    }
}

/// The result of an operator on two constants.
fn sum(operator: Operator, left: &Constant, right: &Constant) -> Option<Constant> {
    let (a, b) = (left.nanoseconds()?, right.nanoseconds()?);
    let number = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide => a.checked_div(b),
        _ => None,
    }?;
    let has_time = [left, right].iter().any(|side| matches!(side, Constant::Time(_)));
    Some(if has_time { Constant::Time(number) } else { Constant::Duration(number) })
}

/// A value to which a time is compared, in nanoseconds. It has 128 bits, because dates reach beyond 64 bits.
enum Constant {
    Time(i128),
    Duration(i128),
    Whole(i128),
    /// A text that is not a date.
    Text,
}

impl Constant {
    const fn nanoseconds(&self) -> Option<i128> {
        match self {
            Self::Time(number) | Self::Duration(number) | Self::Whole(number) => Some(*number),
            Self::Text => None,
        }
    }
}

fn incompatible(with: &Expression) -> QueryError {
    let kind = with.kind();
    QueryError::new(format!("invalid operation: time and {kind} are not compatible"))
}

/// A timestamp in nanoseconds since 1970.
pub(crate) const fn nanoseconds(at: Timestamp) -> i64 {
    at.as_millis().saturating_mul(MILLISECOND)
}

/// Whether a text begins with a date such as `2026-01-11`.
fn has_date(text: &str) -> bool {
    let is_of_date = |(n, byte): (usize, u8)| match n {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    text.len() >= 10 && text.bytes().take(10).enumerate().all(is_of_date)
}

/// Reads a time, in nanoseconds since 1970. A text without an offset means the zone's clock.
fn read_time(text: &str, zone: Option<Zone>) -> Option<i128> {
    let whole = |second: i64| i128::from(second) * i128::from(SECOND);
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(whole(time.timestamp()) + i128::from(time.timestamp_subsec_nanos()));
    }

    let times = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f"];
    let time = times.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
    let date = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0);
    let utc = chrono::Utc.from_utc_datetime(&time.or_else(date)?);
    let shown = utc.timestamp();
    let ahead = |second: i64| zone.map_or(0, |zone| zone.offset(second));
    // Near a clock change, the offset at the guessed time shows whether the old or the new offset applies.
    let guess = shown - ahead(shown);
    Some(whole(shown - ahead(guess)) + i128::from(utc.timestamp_subsec_nanos()))
}

/// Whether a condition holds for a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Yes,
    No,
    /// The condition depends on a value that is not known yet.
    Unknown,
}

impl From<bool> for Holds {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

/// A value that a condition compares.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operand<'a> {
    Number(f64),
    Text(Cow<'a, str>),
    Boolean(bool),
    /// A field that the point does not have.
    Missing,
    /// A value that is not known yet.
    Unknown,
}

/// Tells whether a condition holds; `look_up` gives the value of a name.
pub(crate) fn holds<'a>(
    condition: &'a Expression,
    look_up: &impl Fn(&str, Option<Cast>) -> Operand<'a>,
) -> Holds {
    match condition {
        Expression::All(parts) => joined(parts, Holds::No, Holds::Yes, look_up),
        Expression::Any(parts) => joined(parts, Holds::Yes, Holds::No, look_up),
        Expression::Group(inside) => holds(inside, look_up),
        Expression::Boolean(value) => (*value).into(),
        Expression::Binary { operator, sides } => {
            let [left, right] = &**sides;
            let left = operand(left, look_up);

            if let Expression::Pattern(pattern) = right {
                return match left {
                    Operand::Unknown => Holds::Unknown,
                    Operand::Text(text) => {
                        (pattern.is_in(&text) == (*operator == Operator::Matches)).into()
                    }
                    _ => Holds::No,
                };
            }
            compared(*operator, &left, &operand(right, look_up))
        }
        _ => Holds::No,
    }
}

/// The verdict on several parts: `decisive` if a part has this verdict, else `Unknown` if a part is unknown, else
/// `usual`.
fn joined<'a>(
    parts: &'a [Expression],
    decisive: Holds,
    usual: Holds,
    look_up: &impl Fn(&str, Option<Cast>) -> Operand<'a>,
) -> Holds {
    let mut verdict = usual;
    for part in parts {
        match holds(part, look_up) {
            Holds::Unknown => verdict = Holds::Unknown,
            found if found == decisive => return decisive,
            _ => {}
        }
    }
    verdict
}

/// Adds the texts to which a condition compares a tag; texts of other comparisons may be among them. Returns whether
/// all texts that were not added are the same to the condition.
pub(crate) fn add_compared(
    condition: &Expression,
    tag: &str,
    texts: &mut BTreeSet<String>,
) -> bool {
    match condition {
        Expression::All(parts) | Expression::Any(parts) => {
            parts.iter().all(|part| add_compared(part, tag, texts))
        }
        Expression::Group(inside) => add_compared(inside, tag, texts),
        Expression::Binary { sides, .. } => {
            let of_tag = matches!(&sides[0], Expression::Reference { name, .. } if name == tag);

            match &sides[1] {
                Expression::Pattern(pattern) if of_tag => {
                    pattern.texts().map(|found| texts.extend(found)).is_some()
                }
                _ => sides.iter().all(|side| add_compared(side, tag, texts)),
            }
        }
        Expression::Text(text) => {
            texts.insert(text.clone());
            true
        }
        _ => true,
    }
}

fn compared(operator: Operator, left: &Operand<'_>, right: &Operand<'_>) -> Holds {
    let ordering = match (left, right) {
        (Operand::Unknown, _) | (_, Operand::Unknown) => return Holds::Unknown,
        (Operand::Number(a), Operand::Number(b)) => a.partial_cmp(b),
        (Operand::Text(a), Operand::Text(b)) => match operator {
            Operator::Equal | Operator::NotEqual => Some(a.cmp(b)),
            _ => None,
        },
        (Operand::Boolean(a), Operand::Boolean(b)) => Some(a.cmp(b)),
        _ => None,
    };

    let Some(ordering) = ordering else { return Holds::No };
    let holds = match operator {
        Operator::Equal => ordering.is_eq(),
        Operator::NotEqual => ordering.is_ne(),
        Operator::Less => ordering.is_lt(),
        Operator::LessOrEqual => ordering.is_le(),
        Operator::Greater => ordering.is_gt(),
        Operator::GreaterOrEqual => ordering.is_ge(),
        _ => false,
    };
    holds.into()
}

fn operand<'a>(
    of: &'a Expression,
    look_up: &impl Fn(&str, Option<Cast>) -> Operand<'a>,
) -> Operand<'a> {
    match of {
        Expression::Reference { name, cast } => look_up(name, *cast),
        Expression::Number(number) => Operand::Number(*number),
        Expression::Integer(number) => Operand::Number(float(*number)),
        Expression::Text(text) => Operand::Text(text.into()),
        Expression::Boolean(value) => Operand::Boolean(*value),
        Expression::Group(inside) => operand(inside, look_up),
        Expression::Binary { operator, sides } if operator.is_arithmetic() => {
            let [left, right] = &**sides;
            match (operand(left, look_up), operand(right, look_up)) {
                (Operand::Unknown, _) | (_, Operand::Unknown) => Operand::Unknown,
                (Operand::Number(a), Operand::Number(b)) => {
                    let sides = [&Value::Float(a), &Value::Float(b)];
                    let number = Value::computed(*operator, sides).and_then(|value| value.number());
                    number.map_or(Operand::Missing, Operand::Number)
                }
                _ => Operand::Missing,
            }
        }
        _ => Operand::Missing,
    }
}

/// The names that a condition compares.
pub(crate) fn names(condition: &Expression) -> Vec<(&str, Option<Cast>)> {
    match condition {
        Expression::Reference { name, cast } => vec![(name, *cast)],
        Expression::All(parts) | Expression::Any(parts) => parts.iter().flat_map(names).collect(),
        Expression::Group(inside) => names(inside),
        Expression::Binary { sides, .. } => sides.iter().flat_map(names).collect(),
        _ => Vec::new(),
    }
}
