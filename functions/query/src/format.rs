//! How rows are written: JSON, CSV or NDJSON. Knows no endpoint.

use serde::Serialize;
use serde_json::json;
use shared::domain::{Number, excerpt};
use shared::http::preferences::weighted;
use shared::http::response::{MAX_CARRIED, carried_bytes};
use shared::http::{Params, Problem, Request, Response, is_ndjson};

/// How many bytes the column names of CSV may take: they are repeated on every page.
const MAX_HEADER: usize = 1_000_000;
/// What the end of a page takes at the most: the cursor, and the names around it.
const TAIL: usize = 1_000;

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

    /// What stands before the rows.
    fn head(self, columns: &[String]) -> Result<Vec<u8>, Problem> {
        match self {
            Self::Json => Ok(br#"{"data":["#.to_vec()),
            Self::Ndjson => Ok(Vec::new()),
            Self::Csv if columns.iter().map(|name| name.len() + 1).sum::<usize>() > MAX_HEADER => {
                let message = format!("csv has {} columns here, too many; use json", columns.len());
                Err(Problem::field("format", message))
            }
            Self::Csv => Ok(record(columns)),
        }
    }

    fn row<R: Row>(self, row: &R, columns: &[String], is_first: bool) -> Vec<u8> {
        let json = |mut text: Vec<u8>| {
            serde_json::to_writer(&mut text, row).expect("our own types have string keys");
            text
        };
        match self {
            Self::Json if is_first => json(Vec::new()),
            Self::Json => json(b",".to_vec()),
            Self::Ndjson => {
                let mut line = json(Vec::new());
                line.push(b'\n');
                line
            }
            Self::Csv => {
                let cells =
                    columns.iter().enumerate().map(|(place, column)| row.cell(place, column));
                record(cells.map(|Cell(text)| text))
            }
        }
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
        columns: impl FnOnce() -> Vec<String>,
        rest: Option<String>,
        behind: impl FnOnce(usize) -> String,
    ) -> Result<Response, Problem> {
        let columns = if self == Self::Csv { columns() } else { Vec::new() };
        let mut body = self.head(&columns)?;
        let mut carried = carried_bytes(&body) + TAIL;
        let mut written = 0;
        for row in rows {
            let text = self.row(row, &columns, written == 0);
            carried += carried_bytes(&text);
            if carried > MAX_CARRIED && written > 0 {
                break;
            }
            body.extend(text);
            written += 1;
        }
        let cursor = if written < rows.len() { Some(behind(written - 1)) } else { rest };
        body.extend(self.tail(cursor.as_deref()).into_bytes());
        let response = Response::new(200, self.content_type(), body);
        let (request, params) = call;
        Ok(match cursor {
            Some(cursor) => {
                response.with("link", format!("<{}>; rel=\"next\"", params.next(request, &cursor)))
            }
            None => response,
        })
    }
}

/// One line of CSV.
fn record(cells: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Vec<u8> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(cells).expect("writing to memory does not fail");
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
