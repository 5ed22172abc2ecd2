//! The functions of InfluxQL: aggregates of a window's points, transformations of successive values, and calls of both.
//! Functions of single numbers are in `math`.

use std::ops::RangeInclusive;

use domain::Aggregate;

use crate::ast::Expression;
use crate::duration::SECOND;
use crate::error::{QueryError, refuse};
use crate::value::float;
use crate::windows::TimeWindows;

/// An aggregate of the points of a window. `Distinct`, `Top` and `Bottom` may give several values, the others give one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum PointAggregate {
    Count,
    Sum,
    Mean,
    Min,
    Max,
    First,
    Last,
    Spread,
    Median,
    Stddev,
    Percentile(f64),
    /// The area under the values, for a unit of time in nanoseconds.
    Integral(i64),
    Mode,
    CountDistinct,
    Distinct,
    /// This number of the largest values.
    Top(usize),
    /// This number of the smallest values.
    Bottom(usize),
}

/// A function that transforms successive values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Transform {
    Difference {
        is_non_negative: bool,
    },
    /// The rate per unit of time; the unit is in nanoseconds.
    Derivative {
        unit: i64,
        is_non_negative: bool,
    },
    CumulativeSum,
    MovingAverage(usize),
    /// The elapsed time, in whole units of this many nanoseconds.
    Elapsed(i64),
}

/// An aggregate of a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AggregateCall {
    pub(crate) aggregate: PointAggregate,
    pub(crate) field: String,
    /// `top` and `bottom` take one point for each set of values of these tags or fields.
    pub(crate) by: Vec<String>,
}

/// A call of a function.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FunctionCall {
    PointAggregate(AggregateCall),
    /// Transformations of windows' values, the innermost first.
    OfWindows(Vec<Transform>, AggregateCall),
    /// A transformation of a field's points.
    OfPoints(Transform, String),
}

/// Functions of InfluxDB that Roomtide does not support, in addition to the exponential functions.
const ABSENT: &str = "\
    chande_momentum_oscillator histogram holt_winters holt_winters_with_fit \
    kaufmans_adaptive_moving_average kaufmans_efficiency_ratio relative_strength_index sample";

/// The error of a call of an unknown or unsupported function.
pub(crate) fn unknown(name: &str) -> QueryError {
    if ABSENT.split(' ').any(|absent| absent == name) || name.contains("exponential") {
        return QueryError::unsupported(format_args!("{name}()"));
    }
    QueryError::new(format!("undefined function {}()", domain::excerpt(name)))
}

impl PointAggregate {
    /// The numbers of arguments that an aggregate may have; `None` if no aggregate has the name.
    pub(crate) fn arguments(name: &str) -> Option<RangeInclusive<usize>> {
        match name {
            "count" | "sum" | "mean" | "min" | "max" | "first" | "last" | "spread" | "median"
            | "stddev" | "mode" | "distinct" => Some(1..=1),
            "percentile" => Some(2..=2),
            "top" | "bottom" => Some(2..=usize::MAX),
            "integral" => Some(1..=2),
            _ => None,
        }
    }

    /// The aggregate of this name. The number of arguments was checked before.
    pub(crate) fn of(name: &str, arguments: &[Expression]) -> Result<Self, QueryError> {
        Ok(match name {
            "count" => Self::Count,
            "sum" => Self::Sum,
            "mean" => Self::Mean,
            "min" => Self::Min,
            "max" => Self::Max,
            "first" => Self::First,
            "last" => Self::Last,
            "spread" => Self::Spread,
            "median" => Self::Median,
            "stddev" => Self::Stddev,
            "mode" => Self::Mode,
            "distinct" => Self::Distinct,
            "top" => Self::Top(number_of(name, arguments)?),
            "bottom" => Self::Bottom(number_of(name, arguments)?),
            "percentile" => match &arguments[1] {
                Expression::Number(percent) => Self::Percentile(*percent),
                Expression::Integer(percent) => Self::Percentile(float(*percent)),
                _ => refuse!("expected float argument in percentile()"),
            },
            "integral" => Self::Integral(match arguments.get(1) {
                None => SECOND,
                unit => unit_of(name, unit, None)?,
            }),
            other => return Err(unknown(other)),
        })
    }

    /// Whether the aggregate selects points, rather than computing a value.
    pub(crate) const fn is_selector(self) -> bool {
        matches!(self, Self::First | Self::Last | Self::Min | Self::Max | Self::Percentile(_))
            || self.is_of_many()
    }

    /// Whether the aggregate selects several points, each with its own time.
    pub(crate) const fn is_of_many(self) -> bool {
        matches!(self, Self::Top(_) | Self::Bottom(_))
    }

    /// Whether windows without a value are left out even if `fill` asks for them.
    pub(crate) const fn is_never_filled(self) -> bool {
        matches!(self, Self::Integral(_) | Self::Distinct) || self.is_of_many()
    }

    /// Whether the aggregate takes texts. Only tags of a subquery are texts.
    pub(crate) const fn takes_texts(self) -> bool {
        self.is_count() || matches!(self, Self::Distinct | Self::Mode | Self::First | Self::Last)
    }

    /// Whether the aggregate counts points, so that without points it is 0.
    pub(crate) const fn is_count(self) -> bool {
        matches!(self, Self::Count | Self::CountDistinct)
    }

    /// The value of a rollup that is the aggregate; two values stand for their difference. `None` if rollups cannot
    /// give the aggregate.
    pub(crate) const fn in_rollups(self) -> Option<&'static [Aggregate]> {
        Some(match self {
            Self::Count => &[Aggregate::Count],
            Self::Sum => &[Aggregate::Sum],
            Self::Mean => &[Aggregate::Mean],
            Self::Min => &[Aggregate::Min],
            Self::Max => &[Aggregate::Max],
            Self::First => &[Aggregate::First],
            Self::Last => &[Aggregate::Last],
            Self::Spread => &[Aggregate::Max, Aggregate::Min],
            _ => return None,
        })
    }
}

impl Transform {
    /// The numbers of arguments that a transformation may have; `None` if no transformation has the name.
    pub(crate) fn arguments(name: &str) -> Option<RangeInclusive<usize>> {
        match name {
            "difference" | "non_negative_difference" | "cumulative_sum" => Some(1..=1),
            "derivative" | "non_negative_derivative" | "elapsed" => Some(1..=2),
            "moving_average" => Some(2..=2),
            _ => None,
        }
    }

    /// The transformation of this name. The number of arguments was checked before.
    pub(crate) fn of(
        name: &str,
        arguments: &[Expression],
        interval: Option<TimeWindows>,
    ) -> Result<Self, QueryError> {
        let is_non_negative = name.starts_with("non_negative_");

        Ok(match name {
            "difference" | "non_negative_difference" => Self::Difference { is_non_negative },
            "derivative" | "non_negative_derivative" => {
                let unit = unit_of(name, arguments.get(1), interval)?;
                Self::Derivative { unit, is_non_negative }
            }
            "cumulative_sum" => Self::CumulativeSum,
            "elapsed" => Self::Elapsed(match arguments.get(1) {
                None => 1,
                unit => unit_of(name, unit, None)?,
            }),
            "moving_average" => match &arguments[1] {
                Expression::Integer(number) if *number > 1 => {
                    Self::MovingAverage(usize::try_from(*number).unwrap_or(usize::MAX))
                }
                Expression::Integer(number) => {
                    refuse!("moving_average window must be greater than 1, got {number}")
                }
                other => {
                    let kind = other.kind();
                    refuse!("second argument for moving_average must be an integer, got {kind}");
                }
            },
            other => return Err(unknown(other)),
        })
    }

    /// Whether the transformation needs one window more, before the first window.
    pub(crate) const fn looks_back(self) -> bool {
        !matches!(self, Self::CumulativeSum)
    }
}

impl FunctionCall {
    /// The field to which the function is applied.
    pub(crate) fn field(&self) -> &str {
        match self {
            Self::PointAggregate(call) | Self::OfWindows(_, call) => &call.field,
            Self::OfPoints(_, field) => field,
        }
    }

    pub(crate) const fn aggregate(&self) -> Option<PointAggregate> {
        match self {
            Self::PointAggregate(call) | Self::OfWindows(_, call) => Some(call.aggregate),
            Self::OfPoints(..) => None,
        }
    }

    /// How many windows before the first window the call needs.
    pub(crate) fn looks_back(&self) -> i64 {
        let Self::OfWindows(transforms, _) = self else { return 0 };
        transforms.iter().map(|transform| i64::from(transform.looks_back())).sum()
    }
}

/// The number of points that `top` or `bottom` takes.
fn number_of(name: &str, arguments: &[Expression]) -> Result<usize, QueryError> {
    match arguments.last() {
        Some(Expression::Integer(number)) if *number > 0 => {
            Ok(usize::try_from(*number).unwrap_or(usize::MAX))
        }
        Some(Expression::Integer(number)) => {
            refuse!("limit ({number}) in {name} function must be at least 1")
        }
        other => {
            let found = match other {
                Some(Expression::Text(text)) => format!("'{}'", domain::excerpt(text)),
                Some(Expression::Number(number)) => format!("{number:.3}"),
                other => other.map_or("nothing", Expression::kind).to_owned(),
            };
            refuse!("expected integer as last argument in {name}(), found {found}")
        }
    }
}

/// The duration of an argument in nanoseconds. Without the argument, the length of the windows, else a second.
fn unit_of(
    name: &str,
    argument: Option<&Expression>,
    interval: Option<TimeWindows>,
) -> Result<i64, QueryError> {
    match argument {
        None => Ok(interval.map_or(SECOND, |interval| interval.length)),
        Some(Expression::Duration(length)) if *length > 0 => Ok(*length),
        Some(Expression::Duration(_)) => refuse!("duration argument must be positive"),
        Some(other) => {
            let kind = other.kind();
            refuse!("second argument to {name} must be a duration, got {kind}")
        }
    }
}
