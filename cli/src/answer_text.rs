//! Turns parts of a JSON answer into text for people. Knows no endpoint.

use serde_json::Value;

/// The rows of an answer with a list.
pub(crate) fn list(answer: &Value) -> &[Value] {
    answer["data"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The elements of an array member; empty if the member is missing.
pub(crate) fn elements<'a>(answer: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    answer[name].as_array().into_iter().flatten()
}

/// The strings of an array member.
pub(crate) fn texts<'a>(answer: &'a Value, name: &str) -> impl Iterator<Item = &'a str> {
    elements(answer, name).filter_map(Value::as_str)
}

/// A string member; empty if the member is missing.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// A value as text, without JSON's quotes.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// Aligns the cells of rows in columns.
pub(crate) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |n: usize| rows.iter().map(|row| row[n].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..N).map(width).collect();
    rows.iter().fold(String::new(), |lines, row| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{lines}{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    })
}
