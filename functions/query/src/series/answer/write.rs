//! Writes all rows of an answer in JSON, NDJSON or CSV. These answers have no pages. Knows no endpoint.

use std::iter;

use api::response::{MAX_CARRIED, carried_bytes};
use api::{Format, Problem, ProblemKind, Response};
use serde::Serialize;
use serde_json::Value;

use crate::answer::row::cells;
use crate::answer::sheet::record;

/// The header of an answer in NDJSON or CSV that names what the rows lack.
const LACK: &str = "x-rows-lack";
/// The members of a JSON answer, next to its rows, that name the missing data of the rows.
const LACKING: [&str; 7] = [
    "rollups_lack",
    "rooms_lack",
    "without_room",
    "left_out",
    "moved_meters",
    "unsure",
    "incomplete",
];

/// Makes the response from rows. In JSON it also has the members of `about`, an object that is not empty.
///
/// Fails at the first row that makes the answer too large, before any further row is made.
pub(crate) fn respond(
    format: Format,
    columns: impl FnOnce() -> Vec<String>,
    rows: impl Iterator<Item = impl Serialize>,
    about: &impl Serialize,
) -> Result<Response, Problem> {
    let columns = if format == Format::Csv { columns() } else { Vec::new() };
    let mut body = match format {
        Format::Csv => record(&columns),
        Format::Ndjson => Vec::new(),
        Format::Json => br#"{"data":["#.to_vec(),
    };

    for (n, row) in rows.enumerate() {
        match format {
            Format::Csv => body.extend(record(cells(&row, &columns))),
            Format::Ndjson => body.extend([json(&row), b"\n".to_vec()].concat()),
            Format::Json => {
                body.extend_from_slice(if n > 0 { b"," } else { b"" });
                body.extend(json(&row));
            }
        }
        if body.len() > MAX_CARRIED {
            return Err(too_large());
        }
    }

    if format == Format::Json {
        body.extend_from_slice(b"],");
        // The `{` of `about` is left out: the members of `about` continue the object that begins with `data`.
        body.extend_from_slice(&json(about)[1..]);
        body.push(b'\n');
    }

    if carried_bytes(&body) > MAX_CARRIED {
        return Err(too_large());
    }

    let response = Response::new(200, format.content_type(), body);
    let lacking = match format {
        Format::Json => Vec::new(),
        Format::Csv | Format::Ndjson => lacking(about),
    };
    Ok(if lacking.is_empty() { response } else { response.with(LACK, lacking.join(", ")) })
}

fn too_large() -> Problem {
    let detail = format!(
        "The answer has more than the {MAX_CARRIED} bytes that one answer holds. Narrow from and to, or ask for \
         fewer metrics, functions or devices, or a longer unit."
    );
    Problem::new(ProblemKind::Unanswerable, detail)
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("our own types have string keys")
}

/// The names of the members of `LACKING` that an answer, or a room of the answer, has.
fn lacking(about: &impl Serialize) -> Vec<&'static str> {
    let about = serde_json::to_value(about).expect("our own types have string keys");
    let rooms = about["rooms"].as_array().into_iter().flatten();
    let parts: Vec<&Value> = iter::once(&about).chain(rooms).collect();

    let is_said = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    let is_in_any = |name: &&str| parts.iter().any(|part| is_said(&part[*name]));
    LACKING.into_iter().filter(is_in_any).collect()
}
