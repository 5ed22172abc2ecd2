//! Computes differences, rates and sums of successive values. Aggregates nothing.

use crate::aggregate::Sample;
use crate::function::Transform;
use crate::value::{Value, float};

/// Transforms values, given in the order of the answer. Missing values are skipped.
pub(crate) fn transformed(
    transform: Transform,
    samples: &[Sample],
    is_descending: bool,
) -> Vec<Sample> {
    let values = samples.iter().filter_map(|sample| {
        let value = sample.value.as_ref()?;
        Some((sample.at, value.number()?, matches!(value, Value::Integer(_))))
    });

    match transform {
        Transform::Difference { is_non_negative } => {
            steps(values, |[a, b], _, is_whole| number(b - a, is_whole), is_non_negative)
        }
        Transform::Derivative { unit, is_non_negative } => {
            let rate = |[a, b]: [f64; 2], elapsed: i64, _| {
                let elapsed = if is_descending { -elapsed } else { elapsed };
                Value::Float((b - a) / (float(elapsed) / float(unit)))
            };
            steps(values, rate, is_non_negative)
        }
        Transform::Elapsed(unit) => {
            let times: Vec<i64> = values.map(|(at, ..)| at).collect();
            let elapsed = times.windows(2).map(|pair| Sample {
                at: pair[1],
                value: Some(Value::Integer(pair[1].saturating_sub(pair[0]) / unit)),
                row: None,
            });
            elapsed.collect()
        }
        Transform::CumulativeSum => {
            let mut sum = 0.0;
            let summed = values.map(|(at, value, is_whole)| {
                sum += value;
                Sample { at, value: Some(number(sum, is_whole)), row: None }
            });
            summed.collect()
        }
        Transform::MovingAverage(length) => {
            let values: Vec<_> = values.collect();
            let averages = values.windows(length.min(values.len() + 1)).map(|window| {
                let sum: f64 = window.iter().map(|(_, value, _)| value).sum();
                let count = float(i64::try_from(window.len()).unwrap_or(i64::MAX));
                let at = window[window.len() - 1].0;
                Sample { at, value: Some(Value::Float(sum / count)), row: None }
            });
            averages.collect()
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "it is made of whole numbers")]
fn number(value: f64, is_whole: bool) -> Value {
    if is_whole { Value::Integer(value as i64) } else { Value::Float(value) }
}

/// Applies `step` to each value and its predecessor. Of several values of the same time, the first counts.
fn steps(
    values: impl Iterator<Item = (i64, f64, bool)>,
    step: impl Fn([f64; 2], i64, bool) -> Value,
    is_non_negative: bool,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut before: Option<(i64, f64)> = None;
    for (at, value, is_whole) in values {
        if let Some((earlier, known)) = before {
            if earlier == at {
                continue;
            }
            let made = step([known, value], at - earlier, is_whole);
            if !is_non_negative || made.number().is_some_and(|number| number >= 0.0) {
                samples.push(Sample { at, value: Some(made), row: None });
            }
        }
        before = Some((at, value));
    }
    samples
}
