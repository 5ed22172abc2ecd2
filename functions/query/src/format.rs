//! How rows are written: JSON, NDJSON or, by `sheet.rs`, CSV. Knows no endpoint.

use api::preferences::weighted;
use api::response::{MAX_CARRIED, carried_bytes};
use api::{Params, Problem, Request, Response, is_ndjson};
use domain::{Decimal, MetricName, excerpt};
use serde::Serialize;
use serde_json::json;

use crate::sheet::{Cell, Columns, Sheet};

/// What the end of a page takes at the most: the cursor, and the names around it.
pub(crate) const TAIL: usize = 1_000;

/// One entry of a list.
pub(crate) trait Row: Serialize {
    /// What stands in the columns of CSV that all rows of its kind have.
    fn cells(&self) -> Vec<Cell>;
    /// Its metrics: in CSV each has a column, which is empty for a row without it.
    fn values(&self) -> impl Iterator<Item = (&MetricName, &Decimal)>;
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Csv,
    Ndjson,
}

impl Format {
    /// The form asked for by `?format=`, else by `Accept`, else JSON.
    pub(crate) fn of(request: &Request, params: &Params) -> Result<Self, Problem> {
        let accepted = request.header("accept").unwrap_or_default();
        match params.get("format") {
            Some("json" | "application/json") => Ok(Self::Json),
            Some("csv" | "text/csv") => Ok(Self::Csv),
            Some("ndjson" | "application/x-ndjson") => Ok(Self::Ndjson),
            Some(text) => {
                let message = format!("is {:?}; expected json, csv or ndjson", excerpt(text));
                Err(Problem::field("format", message))
            }
            None => Ok(Self::accepted(accepted)),
        }
    }

    /// The form that a client likes best of those that there are; JSON where it names none.
    fn accepted(header: &str) -> Self {
        let mut best = (0.0, Self::Json);
        for (media, weight) in weighted(header) {
            let form = match media.as_str() {
                "application/json" | "application/*" | "*/*" => Self::Json,
                "text/csv" => Self::Csv,
                media if is_ndjson(media) => Self::Ndjson,
                _ => continue,
            };
            if weight > best.0 {
                best = (weight, form);
            }
        }
        best.1
    }

    const fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Ndjson => "application/x-ndjson",
        }
    }

    /// The rows in JSON or NDJSON, and how many of them fit.
    fn objects(self, rows: &[impl Row]) -> (Vec<u8>, usize) {
        let is_list = self == Self::Json;
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
    fn table(rows: &[impl Row], columns: Columns) -> (Vec<u8>, usize) {
        let mut sheet = Sheet::new(columns);
        let written = rows.iter().take_while(|row| sheet.add(*row)).count();
        (sheet.write(&rows[..written]), written)
    }

    /// What stands behind the rows.
    fn tail(self, cursor: Option<&str>) -> String {
        if self != Self::Json {
            return String::new();
        }
        let more = json!({"has_more": cursor.is_some(), "next_cursor": cursor}).to_string();
        format!("],{}\n", &more[1..])
    }

    /// A page of rows, with the address of the next one in a `Link` header.
    ///
    /// The page ends before the row with which Lambda would refuse the answer; it has at least one.
    /// `rest` is the cursor behind all rows, where there is more behind them; `behind` is the one
    /// behind a row.
    pub(crate) fn page<R: Row>(
        self,
        call: (&Request, &Params),
        rows: &[R],
        columns: impl FnOnce() -> Columns,
        rest: Option<String>,
        behind: impl FnOnce(usize) -> String,
    ) -> Response {
        let (mut body, written) = match self {
            Self::Csv => Self::table(rows, columns()),
            Self::Json | Self::Ndjson => self.objects(rows),
        };
        let cursor = if written < rows.len() { Some(behind(written - 1)) } else { rest };
        body.extend(self.tail(cursor.as_deref()).into_bytes());
        let response = Response::new(200, self.content_type(), body);
        let (request, params) = call;
        match cursor {
            Some(cursor) => {
                response.with("link", format!("<{}>; rel=\"next\"", params.next(request, &cursor)))
            }
            None => response,
        }
    }
}
