//! How rows are written: JSON, CSV or NDJSON. Knows no endpoint.

use serde::Serialize;
use shared::domain::{Number, excerpt};
use shared::http::{Params, Problem, Request, Response};

/// Lambda answers at most 6 MB, a third less when it is base64. A page ends before.
///
/// Source: <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
pub(crate) const MOST_BYTES: usize = 4 << 20;

/// One entry of a list.
pub(crate) trait Row: Serialize {
    /// What stands in a CSV column, the `place`-th, empty where there is nothing.
    fn cell(&self, place: usize, column: &str) -> Cell;
}

/// One cell of CSV.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell(String);

impl Cell {
    /// Nothing.
    pub(crate) const EMPTY: Self = Self(String::new());

    /// A number, as it is: its `-` is a sign.
    pub(crate) fn number(number: &Number) -> Self {
        Self(number.to_string())
    }

    /// A text. One that a spreadsheet would run as a formula is escaped with a leading `'`.
    ///
    /// Source: <https://owasp.org/www-community/attacks/CSV_Injection>
    pub(crate) fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self(if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
            format!("'{text}")
        } else {
            text
        })
    }
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
        for media in header.to_ascii_lowercase().split(',') {
            let mut parts = media.split(';').map(str::trim);
            let form = match parts.next().unwrap_or_default() {
                "text/csv" => Self::Csv,
                "application/x-ndjson" => Self::Ndjson,
                "application/json" | "application/*" | "*/*" => Self::Json,
                _ => continue,
            };
            let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok());
            let weight: f32 = weight.unwrap_or(1.0);
            if weight > best.0 {
                best = (weight, form);
            }
        }
        best.1
    }
}

#[derive(Serialize)]
struct List<'a, R> {
    data: &'a [R],
    has_more: bool,
    next_cursor: Option<&'a str>,
}

/// A page of rows, with the address of the next one in a `Link` header.
pub(crate) fn page<R: Row>(
    request: &Request,
    params: &Params,
    rows: &[R],
    columns: &[String],
    cursor: Option<&str>,
) -> Result<Response, Problem> {
    let response = match Format::of(request, params)? {
        Format::Json => Response::json(
            200,
            &List { data: rows, has_more: cursor.is_some(), next_cursor: cursor },
        ),
        Format::Csv => Response::new(200, "text/csv; charset=utf-8", csv(rows, columns)),
        Format::Ndjson => {
            let mut body = Vec::new();
            for row in rows {
                serde_json::to_writer(&mut body, row).expect("our own types have string keys");
                body.push(b'\n');
            }
            Response::new(200, "application/x-ndjson", body)
        }
    };
    Ok(match cursor {
        Some(cursor) => {
            response.with("link", format!("<{}>; rel=\"next\"", params.next(request, cursor)))
        }
        None => response,
    })
}

fn csv<R: Row>(rows: &[R], columns: &[String]) -> Vec<u8> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(columns).expect("writing to memory does not fail");
    for row in rows {
        let cells = columns.iter().enumerate().map(|(place, column)| row.cell(place, column));
        csv.write_record(cells.map(|Cell(text)| text)).expect("every row has the same columns");
    }
    csv.into_inner().expect("writing to memory does not fail")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_run_as_a_formula_and_numbers_stay_numbers() {
        for (text, cell) in [
            ("=HYPERLINK(\"x\")", "'=HYPERLINK(\"x\")"),
            ("+1", "'+1"),
            ("-meter", "'-meter"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "'\r=1"),
            ("a=b", "a=b"),
            ("'quoted", "'quoted"),
            ("", ""),
        ] {
            assert_eq!(Cell::text(text), Cell(cell.to_owned()));
        }
        let below_zero = Number::parse("-5.5").expect("a number");
        assert_eq!(Cell::number(&below_zero), Cell("-5.5".to_owned()));
    }
}
