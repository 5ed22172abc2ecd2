//! The condition of a query: its range of time, and what it demands of tags and fields. Reads nothing.

use std::borrow::Cow;

use chrono::{DateTime, NaiveDate, NaiveDateTime, TimeZone as _};
use domain::{Timestamp, Zone};

use super::ast::{Cast, Expression, Operator};
use super::duration::{MILLISECOND, SECOND};
use super::error::QueryError;

/// Bounds are held between 1938 and 2198, so that no arithmetic with intervals leaves the range of numbers.
const EARLIEST: i64 = -1_000_000_000_000_000_000;
const LATEST: i64 = 7_200_000_000_000_000_000;

/// The range of time of a query, in nanoseconds since 1970, both ends inside; `None` is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Range {
    pub(super) from: Option<i64>,
    pub(super) to: Option<i64>,
}

impl Range {
    fn narrow(&mut self, from: Option<i64>, to: Option<i64>) {
        self.from = self.from.max(from);
        self.to = match (self.to, to) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

/// Takes the comparisons with `time` out of a condition; the rest is what demands something of points.
///
/// As InfluxDB has it, the bounds hold together even where `OR` stands between them.
pub(super) fn split(
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
                if is_time(left) {
                    self.bound(*operator, right)?;
                } else if is_time(right) {
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
                    _ => "it is no comparison".to_owned(),
                };
                Err(QueryError::new(format!("invalid condition expression: {text}")))
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

    /// A comparison with a time. Bounds are cut to milliseconds, as the times of points are.
    fn bound(&mut self, operator: Operator, with: &Expression) -> Result<(), QueryError> {
        let at = self.constant(with)?;
        let at = match at {
            Constant::Time(at) | Constant::Duration(at) | Constant::Whole(at) => at,
            Constant::Text(text) => {
                read_time(&text, self.zone).ok_or_else(|| incompatible(&Expression::Text(text)))?
            }
        };
        let at = at.clamp(EARLIEST, LATEST);
        let at = at - at.rem_euclid(MILLISECOND);
        let (from, to) = match operator {
            Operator::Greater => (Some(at + 1), None),
            Operator::GreaterOrEqual => (Some(at), None),
            Operator::Less => (None, Some(at - 1)),
            Operator::LessOrEqual => (None, Some(at)),
            Operator::Equal => (Some(at), Some(at)),
            other => {
                let message = format!("invalid time comparison operator: {}", other.as_str());
                return Err(QueryError::new(message));
            }
        };
        self.range.narrow(from, to);
        Ok(())
    }

    fn constant(&self, of: &Expression) -> Result<Constant, QueryError> {
        match of {
            Expression::Integer(number) => Ok(Constant::Whole(*number)),
            #[expect(clippy::cast_possible_truncation, reason = "nanoseconds, as InfluxDB has it")]
            Expression::Number(number) => Ok(Constant::Whole(*number as i64)),
            Expression::Duration(length) => Ok(Constant::Duration(*length)),
            Expression::Text(text) => Ok(Constant::Text(text.clone())),
            Expression::Group(inside) => self.constant(inside),
            Expression::Call { name, arguments } if name == "now" && arguments.is_empty() => {
                Ok(Constant::Time(nanoseconds(self.now)))
            }
            Expression::Binary { operator, sides } => {
                let [left, right] = &**sides;
                let (left, right) = (self.constant(left)?, self.constant(right)?);
                self.sum(*operator, left, right).ok_or_else(|| incompatible(of))
            }
            other => Err(incompatible(other)),
        }
    }

    fn sum(&self, operator: Operator, left: Constant, right: Constant) -> Option<Constant> {
        let resolved = |it: Constant| match it {
            Constant::Text(text) => read_time(&text, self.zone).map(Constant::Time),
            other => Some(other),
        };
        let (left, right) = (resolved(left)?, resolved(right)?);
        let (a, b) = (left.nanoseconds()?, right.nanoseconds()?);
        let number = match operator {
            Operator::Add => a.checked_add(b),
            Operator::Subtract => a.checked_sub(b),
            Operator::Multiply => a.checked_mul(b),
            Operator::Divide => a.checked_div(b),
            _ => None,
        }?;
        let has_time = [&left, &right].iter().any(|it| matches!(it, Constant::Time(_)));
        Some(if has_time { Constant::Time(number) } else { Constant::Duration(number) })
    }
}

/// A value that a time is compared with.
enum Constant {
    Time(i64),
    Duration(i64),
    Whole(i64),
    Text(String),
}

impl Constant {
    const fn nanoseconds(&self) -> Option<i64> {
        match self {
            Self::Time(number) | Self::Duration(number) | Self::Whole(number) => Some(*number),
            Self::Text(_) => None,
        }
    }
}

fn incompatible(with: &Expression) -> QueryError {
    let kind = kind_of(with);
    QueryError::new(format!("invalid operation: time and {kind} are not compatible"))
}

/// The kind of an expression as InfluxDB's messages name it.
pub(super) const fn kind_of(of: &Expression) -> &'static str {
    match of {
        Expression::Reference { .. } => "*influxql.VarRef",
        Expression::Number(_) => "*influxql.NumberLiteral",
        Expression::Integer(_) => "*influxql.IntegerLiteral",
        Expression::Text(_) => "*influxql.StringLiteral",
        Expression::Boolean(_) => "*influxql.BooleanLiteral",
        Expression::Duration(_) => "*influxql.DurationLiteral",
        Expression::Pattern(_) => "*influxql.RegexLiteral",
        Expression::Wildcard(_) => "*influxql.Wildcard",
        Expression::Call { .. } => "*influxql.Call",
        Expression::Binary { .. } | Expression::All(_) | Expression::Any(_) => {
            "*influxql.BinaryExpr"
        }
        Expression::Group(_) => "*influxql.ParenExpr",
    }
}

fn is_time(side: &Expression) -> bool {
    matches!(side, Expression::Reference { name, .. } if name.eq_ignore_ascii_case("time"))
}

/// A timestamp in nanoseconds since 1970.
pub(super) const fn nanoseconds(at: Timestamp) -> i64 {
    at.as_millis().saturating_mul(MILLISECOND)
}

/// Reads a time; without an offset it is one of the zone's clock.
fn read_time(text: &str, zone: Option<Zone>) -> Option<i64> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return time.timestamp_nanos_opt();
    }
    let times = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f"];
    let time = times.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
    let date = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0);
    let utc = chrono::Utc.from_utc_datetime(&time.or_else(date)?);
    let shown = utc.timestamp_nanos_opt()?;
    let ahead = |at: i64| zone.map_or(0, |zone| zone.offset(at.div_euclid(SECOND)) * SECOND);
    // The offset that held a little earlier tells on which side of a change the text lies.
    let guess = shown - ahead(shown);
    Some(shown - ahead(guess))
}

/// What a condition says about points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Yes,
    No,
    /// It depends on what is not known yet.
    Unknown,
}

impl From<bool> for Verdict {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

/// A value that a condition compares.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operand<'a> {
    Number(f64),
    Text(Cow<'a, str>),
    Boolean(bool),
    /// A field that the point lacks.
    Missing,
    /// A value that is not known yet.
    Unknown,
}

/// Tells whether a condition holds; `look_up` gives the value of a name.
pub(super) fn holds<'a>(
    condition: &'a Expression,
    look_up: &impl Fn(&str, Option<Cast>) -> Operand<'a>,
) -> Verdict {
    match condition {
        Expression::All(parts) => {
            let mut verdict = Verdict::Yes;
            for part in parts {
                match holds(part, look_up) {
                    Verdict::No => return Verdict::No,
                    Verdict::Unknown => verdict = Verdict::Unknown,
                    Verdict::Yes => {}
                }
            }
            verdict
        }
        Expression::Any(parts) => {
            let mut verdict = Verdict::No;
            for part in parts {
                match holds(part, look_up) {
                    Verdict::Yes => return Verdict::Yes,
                    Verdict::Unknown => verdict = Verdict::Unknown,
                    Verdict::No => {}
                }
            }
            verdict
        }
        Expression::Group(inside) => holds(inside, look_up),
        Expression::Boolean(value) => (*value).into(),
        Expression::Binary { operator, sides } => {
            let [left, right] = &**sides;
            let left = operand(left, look_up);
            if let Expression::Pattern(pattern) = right {
                return match left {
                    Operand::Unknown => Verdict::Unknown,
                    Operand::Text(text) => {
                        (pattern.is_in(&text) == (*operator == Operator::Matches)).into()
                    }
                    _ => Verdict::No,
                };
            }
            compared(*operator, &left, &operand(right, look_up))
        }
        _ => Verdict::No,
    }
}

fn compared(operator: Operator, left: &Operand<'_>, right: &Operand<'_>) -> Verdict {
    let ordering = match (left, right) {
        (Operand::Unknown, _) | (_, Operand::Unknown) => return Verdict::Unknown,
        (Operand::Number(a), Operand::Number(b)) => a.partial_cmp(b),
        (Operand::Text(a), Operand::Text(b)) => match operator {
            Operator::Equal | Operator::NotEqual => Some(a.cmp(b)),
            _ => None,
        },
        (Operand::Boolean(a), Operand::Boolean(b)) => Some(a.cmp(b)),
        _ => None,
    };
    let Some(ordering) = ordering else { return Verdict::No };
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
        Expression::Integer(number) => Operand::Number(super::value::float(*number)),
        Expression::Text(text) => Operand::Text(text.into()),
        Expression::Boolean(value) => Operand::Boolean(*value),
        Expression::Group(inside) => operand(inside, look_up),
        Expression::Binary { operator, sides } if operator.is_arithmetic() => {
            let [left, right] = &**sides;
            match (operand(left, look_up), operand(right, look_up)) {
                (Operand::Unknown, _) | (_, Operand::Unknown) => Operand::Unknown,
                (Operand::Number(a), Operand::Number(b)) => {
                    use super::value::Value;
                    let sides = [&Value::Float(a), &Value::Float(b)];
                    let computed = Value::computed(*operator, sides);
                    computed.and_then(|it| it.number()).map_or(Operand::Missing, Operand::Number)
                }
                _ => Operand::Missing,
            }
        }
        _ => Operand::Missing,
    }
}

/// The names that a condition compares.
pub(super) fn names(condition: &Expression) -> Vec<(&str, Option<Cast>)> {
    match condition {
        Expression::Reference { name, cast } => vec![(name, *cast)],
        Expression::All(parts) | Expression::Any(parts) => parts.iter().flat_map(names).collect(),
        Expression::Group(inside) => names(inside),
        Expression::Binary { sides, .. } => sides.iter().flat_map(names).collect(),
        _ => Vec::new(),
    }
}
