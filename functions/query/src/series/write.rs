//! Writes rows in JSON, NDJSON or CSV, whole: such answers have no pages. Knows no endpoint.

use api::response::{MAX_CARRIED, carried_bytes};
use api::{Format, Problem, ProblemKind, Response};
use serde::Serialize;
use serde_json::Value;

use crate::answer::row::Cell;
use crate::answer::sheet::record;

/// One row.
pub(crate) trait Line: Serialize {
    /// Its cells in CSV, one for each column.
    fn cells(&self) -> Vec<Cell>;
}

/// The header that names what an answer of rows alone does not say.
const LACK: &str = "x-rows-lack";
/// The members beside the rows in JSON that say what these lack.
const LACKING: [&str; 5] = ["rollups_lack", "rooms_lack", "without_room", "left_out", "unsure"];

/// The rows; in JSON with what is to be said of them, which is an object of at least one member.
pub(crate) fn respond(
    format: Format,
    columns: impl FnOnce() -> Vec<String>,
    rows: &[impl Line],
    about: &impl Serialize,
) -> Result<Response, Problem> {
    let mut body = Vec::new();
    match format {
        Format::Csv => {
            body.extend(record(columns()));
            rows.iter().for_each(|row| body.extend(record(row.cells())));
        }
        Format::Ndjson => {
            for row in rows {
                body.extend(json(row));
                body.push(b'\n');
            }
        }
        Format::Json => {
            body.extend_from_slice(br#"{"data":"#);
            body.extend(json(&rows));
            body.push(b',');
            body.extend_from_slice(&json(about)[1..]);
            body.push(b'\n');
        }
    }
    if carried_bytes(&body) > MAX_CARRIED {
        let detail = format!(
            "The answer has {} bytes, more than the {MAX_CARRIED} that one answer holds. Narrow from \
             and to, or ask for fewer metrics, functions or devices, or a longer unit.",
            body.len()
        );
        return Err(Problem::new(ProblemKind::Unanswerable, detail));
    }
    let response = Response::new(200, format.content_type(), body);
    let lacking = match format {
        Format::Json => Vec::new(),
        Format::Csv | Format::Ndjson => lacking(about),
    };
    Ok(if lacking.is_empty() { response } else { response.with(LACK, lacking.join(", ")) })
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("our own types have string keys")
}

fn lacking(about: &impl Serialize) -> Vec<&'static str> {
    let about = serde_json::to_value(about).expect("our own types have string keys");
    let is_said = |name: &&str| match &about[*name] {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    LACKING.into_iter().filter(is_said).collect()
}
