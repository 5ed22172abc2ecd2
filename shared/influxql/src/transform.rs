//! Computes differences, rates and sums of successive values. Aggregates nothing.

use crate::aggregate::TimedValue;
use crate::function::Transform;
use crate::value::{Value, float};

/// A number at a time.
struct TimedNumber {
    at: i64,
    value: f64,
    is_whole: bool,
}

/// Transforms values, given in the order of the answer. Missing values are skipped.
pub(crate) fn transformed(
    transform: Transform,
    samples: &[TimedValue],
    is_descending: bool,
) -> Vec<TimedValue> {
    let values = samples.iter().filter_map(|sample| {
        let value = sample.value.as_ref()?;
        let is_whole = matches!(value, Value::Integer(_));
        Some(TimedNumber { at: sample.at, value: value.number()?, is_whole })
    });

    match transform {
        Transform::Difference { is_non_negative } => {
            let difference = |before: &TimedNumber, next: &TimedNumber| {
                number(next.value - before.value, next.is_whole)
            };
            steps(values, difference, is_non_negative)
        }
        Transform::Derivative { unit, is_non_negative } => {
            let rate = |before: &TimedNumber, next: &TimedNumber| {
                let elapsed = next.at - before.at;
                let elapsed = if is_descending { -elapsed } else { elapsed };
                Value::Float((next.value - before.value) / (float(elapsed) / float(unit)))
            };
            steps(values, rate, is_non_negative)
        }

        Transform::Elapsed(unit) => {
            let times: Vec<i64> = values.map(|number| number.at).collect();
            let elapsed = |pair: &[i64]| Value::Integer(pair[1].saturating_sub(pair[0]) / unit);
            times.windows(2).map(|pair| computed(pair[1], elapsed(pair))).collect()
        }
        Transform::CumulativeSum => {
            let mut sum = 0.0;
            let summed = values.map(|TimedNumber { at, value, is_whole }| {
                sum += value;
                computed(at, number(sum, is_whole))
            });
            summed.collect()
        }
        Transform::MovingAverage(length) => {
            let values: Vec<_> = values.collect();
            let averages = values.windows(length.min(values.len() + 1)).map(|window| {
                let sum: f64 = window.iter().map(|number| number.value).sum();
                let count = float(i64::try_from(window.len()).unwrap_or(i64::MAX));
                computed(window[window.len() - 1].at, Value::Float(sum / count))
            });
            averages.collect()
        }
    }
}

const fn computed(at: i64, value: Value) -> TimedValue {
    TimedValue { at, value: Some(value), row: None }
}

#[expect(clippy::cast_possible_truncation, reason = "it is made of whole numbers")]
fn number(value: f64, is_whole: bool) -> Value {
    if is_whole { Value::Integer(value as i64) } else { Value::Float(value) }
}

/// Applies `step` to each value and its predecessor. Of several values of the same time, the first counts.
fn steps(
    values: impl Iterator<Item = TimedNumber>,
    step: impl Fn(&TimedNumber, &TimedNumber) -> Value,
    is_non_negative: bool,
) -> Vec<TimedValue> {
    let mut samples = Vec::new();
    let mut before: Option<TimedNumber> = None;
    for next in values {
        if let Some(before) = &before {
            if before.at == next.at {
                continue;
            }

            let made = step(before, &next);
            if !is_non_negative || made.number().is_some_and(|number| number >= 0.0) {
                samples.push(computed(next.at, made));
            }
        }
        before = Some(next);
    }
    samples
}
