//! Writes all rows of an answer in JSON, NDJSON or CSV. These answers have no pages. Knows no endpoint.

use api::response::{MAX_CARRIED, carried_bytes};
use api::{Format, Problem, ProblemKind, Response};
use serde::Serialize;

use crate::answer::lack::with_lack;
use crate::answer::row::cells;
use crate::answer::sheet::record;

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
    Ok(match format {
        Format::Json => response,
        Format::Csv | Format::Ndjson => with_lack(response, about),
    })
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
