//! The replies of InfluxDB's APIs to line protocol. Decides nothing about a line.

use std::borrow::Cow;

use api::{Dialect, FieldError, Problem, ProblemKind, Response};
use serde_json::{Value, json};

use super::StoreReport;
use crate::readings::line_points::LinePoints;

/// The largest number of refused lines that a reply describes.
const MAX_NAMED: usize = 100;
/// The largest number of characters of a line in a reply.
const MAX_LINE: usize = 200;

/// The lines of a request, and the report on them.
#[derive(Debug)]
pub(crate) struct WrittenLines<'a> {
    pub(crate) points: LinePoints<'a>,
    pub(crate) report: StoreReport,
}

/// The reply to line protocol: 204 if all lines are stored, 400 if some are refused, 503 if some could not be stored.
/// If some lines are refused and others could not be stored, the status is 503, so that the client sends the lines
/// again.
pub(crate) fn respond(dialect: Dialect, written: &WrittenLines<'_>) -> Response {
    let WrittenLines { points, report } = written;
    let response = if let Some(cause) = &report.cause {
        not_stored(dialect, points, report, cause)
    } else if report.rejected.is_empty() {
        dialect.dressed(Response { status: 204, headers: Vec::new(), body: Vec::new() })
    } else {
        partial(dialect, points, report)
    };

    let counted = [
        ("x-roomtide-skipped", "strings", points.strings),
        ("x-roomtide-merged", "points", points.merged),
        ("x-roomtide-accepted-before", "lines", report.accepted_before),
    ];
    counted
        .into_iter()
        .filter(|(.., count)| *count > 0)
        .fold(response, |response, (name, of, count)| {
            response.with(name, format_args!("{of}={count}"))
        })
}

/// 400: nothing is stored, because a line is refused and the client wants all lines or none.
pub(crate) fn refuse_all(
    dialect: Dialect,
    points: &LinePoints<'_>,
    first: &FieldError,
) -> Response {
    match dialect {
        Dialect::V3 => {
            let body =
                json!({"error": "line protocol parsing error", "data": datum(points, first)});
            dialect.dressed(Response::json(400, &body))
        }
        _ => dialect.error(400, "invalid", &sentence(points, first)),
    }
}

/// 400: some lines are refused, and are named. All other lines are stored.
fn partial(dialect: Dialect, points: &LinePoints<'_>, report: &StoreReport) -> Response {
    let named = &report.rejected[..report.rejected.len().min(MAX_NAMED)];
    let others = report.rejected.len() - named.len();
    if dialect == Dialect::V3 {
        let mut data: Vec<Value> = named.iter().map(|refusal| datum(points, refusal)).collect();
        if others > 0 {
            data.push(json!({"error_message": format!("and {others} more")}));
        }
        let error = "partial write of line protocol occurred";
        return dialect.dressed(Response::json(400, &json!({"error": error, "data": data})));
    }

    let mut sentences: Vec<String> =
        named.iter().map(|refusal| sentence(points, refusal)).collect();
    if others > 0 {
        sentences.push(format!("and {others} more"));
    }

    let text = sentences.join("\n");
    let message = match report.accepted + report.accepted_before {
        0 => text,
        _ => format!("partial write: {text} dropped={}", report.rejected.len()),
    };
    dialect.error(400, "invalid", &message)
}

fn not_stored(
    dialect: Dialect,
    points: &LinePoints<'_>,
    report: &StoreReport,
    cause: &table::StoreError,
) -> Response {
    let numbers = report.not_stored.iter().take(MAX_NAMED).map(|n| points.lines[*n].0.to_string());
    let numbers: Vec<_> = numbers.collect();
    let more = if report.not_stored.len() > MAX_NAMED { ", ..." } else { "" };
    let detail = format!(
        "{cause}; {} of {} lines are not stored, send them again: {}{more}",
        report.not_stored.len(),
        points.lines.len(),
        numbers.join(", ")
    );
    dialect.respond(&Problem::new(ProblemKind::Unavailable, detail))
}

fn datum(points: &LinePoints<'_>, refusal: &FieldError) -> Value {
    let (number, line) = line(points, refusal);
    json!({"error_message": why(refusal), "line_number": number, "original_line": line})
}

fn sentence(points: &LinePoints<'_>, refusal: &FieldError) -> String {
    let verb = if refusal.field.is_some() { "write" } else { "parse" };
    let (_, line) = line(points, refusal);
    format!("unable to {verb} '{line}': {}", why(refusal))
}

fn why(refusal: &FieldError) -> Cow<'_, str> {
    match refusal.field.as_deref() {
        None | Some("") => Cow::from(&refusal.message),
        Some(field) => format!("{field} {}", refusal.message).into(),
    }
}

/// The number and the text of the line that is refused.
fn line(points: &LinePoints<'_>, refusal: &FieldError) -> (usize, String) {
    let (number, text) = points.lines[refusal.index.unwrap_or_default()];
    let text = String::from_utf8_lossy(text);
    let mut shown: String = text.chars().take(MAX_LINE).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    (number, shown)
}
