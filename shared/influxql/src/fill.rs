//! `fill`: the values of windows without points. Computes no other value.

use crate::aggregate::TimedValue;
use crate::ast::Fill;
use crate::compile::CheckedSelect;
use crate::value::{Value, float};
use crate::windows::TimeWindows;

/// Adds samples for windows in which a call has no sample. Samples and windows are in the order of the answer. At a
/// clock change, the time of a sample may be before its window, and is kept.
pub(crate) fn filled(
    query: &CheckedSelect,
    interval: TimeWindows,
    windows: impl Iterator<Item = i64>,
    samples: Vec<TimedValue>,
    is_count: bool,
) -> Vec<TimedValue> {
    if samples.is_empty() {
        return samples;
    }

    let is_zero = is_count && query.fill == Fill::Null;
    let fill = if is_zero { Fill::Number(0.0) } else { query.fill };
    let is_whole = is_count || are_whole(&samples);

    let mut rest = samples.into_iter().peekable();
    let mut before: Option<TimedValue> = None;
    let mut all = Vec::new();
    for window in windows {
        let is_reached = |at: i64| if query.is_descending { at >= window } else { at <= window };
        if let Some(sample) = rest.next_if(|sample| is_reached(sample.at)) {
            before = Some(sample.clone());
            all.push(sample);
            continue;
        }

        let value = match fill {
            Fill::None | Fill::Null => None,
            Fill::Number(number) => Some(of_kind(number, is_whole)),
            Fill::Previous => before.as_ref().and_then(|sample| sample.value.clone()),
            Fill::Linear => between(before.as_ref(), rest.peek(), window, interval.length)
                .map(|number| of_kind(number, is_whole)),
        };
        all.push(TimedValue { at: window, value, row: None });
    }

    all.extend(rest);
    all
}

/// Whether all values are whole numbers.
pub(crate) fn are_whole(samples: &[TimedValue]) -> bool {
    let mut values = samples.iter().filter_map(|sample| sample.value.as_ref()).peekable();
    values.peek().is_some() && values.all(|value| matches!(value, Value::Integer(_)))
}

/// The value of a window that is filled with a number: whole if the other values are whole, else a float.
#[expect(clippy::cast_possible_truncation, reason = "whole numbers are filled with whole ones")]
pub(crate) fn of_kind(number: f64, is_whole: bool) -> Value {
    if is_whole { Value::Integer(number as i64) } else { Value::Float(number) }
}

/// The value on the line between two samples.
fn between(
    before: Option<&TimedValue>,
    behind: Option<&TimedValue>,
    at: i64,
    length: i64,
) -> Option<f64> {
    let (before, behind) = (before?, behind?);
    let (from, to) = (before.value.as_ref()?.number()?, behind.value.as_ref()?.number()?);
    let window = |at: i64| at / length;
    let (first, last) = (window(before.at), window(behind.at));
    let slope = (to - from) / float(last - first);
    Some(slope * float(window(at) - first) + from)
}
