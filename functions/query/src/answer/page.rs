//! Writes a page of rows in JSON, NDJSON or, by `sheet.rs`, CSV. Knows no endpoint.

use api::response::{MAX_CARRIED, carried_bytes};
use api::{Format, Params, Request, Response};
use serde_json::{Map, Value, json};

use crate::answer::lack::with_lack;
use crate::answer::row::{Row, TAIL};
use crate::answer::sheet::{FixedColumns, Sheet};

/// A page of rows that a request asks for.
pub(crate) struct RowPage<'a> {
    pub(crate) format: Format,
    pub(crate) request: &'a Request,
    pub(crate) params: &'a Params,
    /// Members beside the rows of a JSON answer, such as the plan. Other formats have a header for a lack of rows.
    pub(crate) members: Map<String, Value>,
}

impl<'a> RowPage<'a> {
    /// A page without further members.
    pub(crate) fn of(format: Format, request: &'a Request, params: &'a Params) -> Self {
        Self { format, request, params, members: Map::new() }
    }

    /// Writes rows, with the address of the next page in a `Link` header.
    ///
    /// The page ends before the answer gets too large for Lambda, but has at least one row. `rest` is the cursor after
    /// the last row, if the list goes on; `cursor_after` makes the cursor after one row.
    pub(crate) fn write<R: Row>(
        self,
        rows: &[R],
        columns: impl FnOnce() -> FixedColumns,
        rest: Option<String>,
        cursor_after: impl FnOnce(usize) -> String,
    ) -> Response {
        let Self { format, request, params, members } = self;
        let (mut body, written) = match format {
            Format::Csv => table(rows, columns()),
            Format::Json | Format::Ndjson => objects(format, rows),
        };
        let cursor = if written < rows.len() { Some(cursor_after(written - 1)) } else { rest };

        let response = match format {
            Format::Json => {
                body.extend(tail(cursor.as_deref(), &members).into_bytes());
                Response::new(200, format.content_type(), body)
            }
            Format::Csv | Format::Ndjson => {
                with_lack(Response::new(200, format.content_type(), body), &json!(members))
            }
        };
        match cursor {
            Some(cursor) => {
                let next = params.next(request, &cursor);
                response.with("link", format!("<{next}>; rel=\"next\""))
            }
            None => response,
        }
    }
}

/// The rows in JSON or NDJSON, and how many of them fit.
fn objects(format: Format, rows: &[impl Row]) -> (Vec<u8>, usize) {
    let is_list = format == Format::Json;
    let mut body = if is_list { br#"{"data":["#.to_vec() } else { Vec::new() };
    let mut carried = carried_bytes(&body) + TAIL;

    for (written, row) in rows.iter().enumerate() {
        let mut text = if is_list && written > 0 { b",".to_vec() } else { Vec::new() };
        serde_json::to_writer(&mut text, row).expect("our own types have string keys");
        if !is_list {
            text.push(b'\n');
        }
        carried += carried_bytes(&text);
        if carried > MAX_CARRIED && written > 0 {
            return (body, written);
        }
        body.extend(text);
    }

    (body, rows.len())
}

/// The rows in CSV, and how many of them fit.
fn table(rows: &[impl Row], columns: FixedColumns) -> (Vec<u8>, usize) {
    let mut sheet = Sheet::new(columns);
    let written = rows.iter().take_while(|row| sheet.add(*row)).count();
    (sheet.write(&rows[..written]), written)
}

/// The end of a JSON body, after the rows.
fn tail(cursor: Option<&str>, members: &Map<String, Value>) -> String {
    let mut more = members.clone();
    more.insert("has_more".to_owned(), json!(cursor.is_some()));
    more.insert("next_cursor".to_owned(), json!(cursor));
    format!("],{}\n", &json!(more).to_string()[1..])
}
