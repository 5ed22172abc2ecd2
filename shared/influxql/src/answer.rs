//! Writes the results of a query: JSON in one piece or in chunks, or CSV. Decides no result.

use chrono::{DateTime, FixedOffset, SecondsFormat};
use domain::Zone;

use crate::duration::{MILLISECOND, SECOND};
use crate::value::{Value, json_text};

/// The result of a statement.
#[derive(Debug)]
pub enum Outcome {
    /// Its series.
    Done {
        /// The series, in the order of the answer.
        series: Vec<OutSeries>,
        /// What the reader of the answer has to know of it.
        warning: Option<String>,
    },
    /// Why there is no result.
    Error(String),
}

impl From<Vec<OutSeries>> for Outcome {
    fn from(series: Vec<OutSeries>) -> Self {
        Self::Done { series, warning: None }
    }
}

/// A series of a result.
#[derive(Debug, Default)]
pub struct OutSeries {
    pub(crate) name: Option<String>,
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<OutValue>>,
    /// The zone in which its times are written.
    pub(crate) zone: Option<Zone>,
}

/// A value of a series.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OutValue {
    /// Nanoseconds since 1970.
    Time(i64),
    Value(Value),
    Null,
}

impl From<Option<Value>> for OutValue {
    fn from(value: Option<Value>) -> Self {
        value.map_or(Self::Null, Self::Value)
    }
}

impl From<&str> for OutValue {
    fn from(text: &str) -> Self {
        Self::Value(Value::Text(text.to_owned()))
    }
}

/// How times are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Epoch {
    /// RFC 3339, in the zone of the query.
    Text,
    /// A number of units of so many nanoseconds.
    Units(i64),
}

impl Epoch {
    /// Reads the parameter `epoch`; a unit that is not known is nanoseconds.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            "" => Self::Text,
            "u" | "µ" => Self::Units(1_000),
            "ms" => Self::Units(MILLISECOND),
            "s" => Self::Units(SECOND),
            "m" => Self::Units(60 * SECOND),
            "h" => Self::Units(3_600 * SECOND),
            _ => Self::Units(1),
        }
    }

    fn write(self, at: i64, zone: Option<Zone>, to: &mut String) {
        match self {
            Self::Units(unit) => to.push_str(&(at / unit).to_string()),
            Self::Text => {
                let ahead = zone.map_or(0, |zone| zone.offset(at.div_euclid(SECOND)));
                let ahead = i32::try_from(ahead).ok().and_then(FixedOffset::east_opt);
                let ahead = ahead.expect("an offset is shorter than a day");
                let time = DateTime::from_timestamp_nanos(at).with_timezone(&ahead);
                let text = time.to_rfc3339_opts(SecondsFormat::AutoSi, true);
                to.push_str(&json_text(&shortened(&text)));
            }
        }
    }
}

/// A time without zeros at the end of its fraction.
fn shortened(time: &str) -> String {
    let Some(point) = time.find('.') else { return time.to_owned() };
    let digits = time[point + 1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    let (fraction, rest) = time[point..].split_at(digits + 1);
    format!("{}{}{rest}", &time[..point], fraction.trim_end_matches('0').trim_end_matches('.'))
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// How times are written.
    pub epoch: Epoch,
    /// Whether JSON is indented.
    pub is_pretty: bool,
    /// Whether it is CSV in place of JSON.
    pub is_csv: bool,
    /// The rows of a chunk of JSON, where it comes in chunks.
    pub chunk: Option<usize>,
}

impl Form {
    /// The media type.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        if self.is_csv { "text/csv" } else { "application/json" }
    }

    /// Writes the results.
    #[must_use]
    pub fn write(self, results: &[Outcome]) -> String {
        if self.is_csv {
            return self.csv(results);
        }
        if let Some(rows) = self.chunk {
            return self.chunks(results, rows);
        }
        let mut body = String::from("{\"results\":[");
        let results = results.iter().enumerate();
        joined(results, &mut body, |(id, result), body| self.result(id, result, body));
        body.push_str("]}");
        self.finished(&body)
    }

    /// A failure of the whole query.
    #[must_use]
    pub fn error(self, message: &str) -> String {
        if self.is_csv {
            return format!("error\n\"{}\"\n", message.replace('"', "\"\""));
        }
        self.finished(&format!("{{\"error\":{}}}", json_text(message)))
    }

    fn finished(self, body: &str) -> String {
        if self.is_pretty { pretty(body) } else { format!("{body}\n") }
    }

    fn result(self, id: usize, result: &Outcome, to: &mut String) {
        to.push_str(&format!("{{\"statement_id\":{id}"));
        match result {
            Outcome::Error(message) => to.push_str(&format!(",\"error\":{}", json_text(message))),
            Outcome::Done { series, warning } => {
                if !series.is_empty() {
                    to.push_str(",\"series\":[");
                    joined(series, to, |it, to| self.series(it, &it.rows, false, to));
                    to.push(']');
                }
                to.push_str(&messages(warning.as_deref()));
            }
        }
        to.push('}');
    }

    fn series(self, series: &OutSeries, rows: &[Vec<OutValue>], is_partial: bool, to: &mut String) {
        to.push('{');
        if let Some(name) = &series.name {
            to.push_str(&format!("\"name\":{},", json_text(name)));
        }
        if !series.tags.is_empty() {
            to.push_str("\"tags\":{");
            joined(&series.tags, to, |(key, value), to| {
                to.push_str(&format!("{}:{}", json_text(key), json_text(value)));
            });
            to.push_str("},");
        }
        to.push_str("\"columns\":[");
        joined(&series.columns, to, |name, to| to.push_str(&json_text(name)));
        to.push(']');
        if !rows.is_empty() {
            to.push_str(",\"values\":[");
            joined(rows, to, |row, to| {
                to.push('[');
                joined(row, to, |value, to| match value {
                    OutValue::Time(at) => self.epoch.write(*at, series.zone, to),
                    OutValue::Value(value) => value.write_json(to),
                    OutValue::Null => to.push_str("null"),
                });
                to.push(']');
            });
            to.push(']');
        }
        to.push_str(if is_partial { ",\"partial\":true}" } else { "}" });
    }

    /// One document a chunk: a series, or a part of one.
    fn chunks(self, results: &[Outcome], most: usize) -> String {
        let mut body = String::new();
        for (id, result) in results.iter().enumerate() {
            let (series, warning) = match result {
                Outcome::Done { series, warning } if !series.is_empty() => (series, warning),
                other => {
                    let mut text = String::from("{\"results\":[");
                    self.result(id, other, &mut text);
                    text.push_str("]}");
                    body.push_str(&self.finished(&text));
                    continue;
                }
            };
            for (n, one) in series.iter().enumerate() {
                let parts: Vec<&[Vec<OutValue>]> = one.rows.chunks(most).collect();
                for (part, rows) in parts.iter().enumerate() {
                    let has_more_rows = part + 1 < parts.len();
                    let has_more = has_more_rows || n + 1 < series.len();
                    let mut text = format!("{{\"results\":[{{\"statement_id\":{id},\"series\":[");
                    self.series(one, rows, has_more_rows, &mut text);
                    text.push(']');
                    let is_first = n == 0 && part == 0;
                    text.push_str(&messages(warning.as_deref().filter(|_| is_first)));
                    text.push_str(if has_more { ",\"partial\":true}]}" } else { "}]}" });
                    body.push_str(&self.finished(&text));
                }
            }
        }
        body
    }

    fn csv(self, results: &[Outcome]) -> String {
        let mut body = String::new();
        let mut header: Option<Vec<String>> = None;
        for result in results {
            let series = match result {
                Outcome::Done { series, .. } => series,
                Outcome::Error(message) => {
                    body.push_str(&self.error(message));
                    continue;
                }
            };
            let mut is_first = true;
            for one in series {
                if is_first || header.as_ref() != Some(&one.columns) {
                    if header.is_some() {
                        body.push('\n');
                    }
                    let names = ["name", "tags"].into_iter().map(ToOwned::to_owned);
                    let names: Vec<String> = names.chain(one.columns.iter().cloned()).collect();
                    csv_row(&names, &mut body);
                    header = Some(one.columns.clone());
                    is_first = false;
                }
                let tags: Vec<String> =
                    one.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
                for row in &one.rows {
                    let mut cells = vec![one.name.clone().unwrap_or_default(), tags.join(",")];
                    cells.extend(row.iter().map(|value| self.csv_cell(value)));
                    csv_row(&cells, &mut body);
                }
            }
        }
        body
    }

    fn csv_cell(self, value: &OutValue) -> String {
        match (value, self.epoch) {
            (OutValue::Time(at), Epoch::Units(unit)) => (at / unit).to_string(),
            (OutValue::Time(at), Epoch::Text) => at.to_string(),
            (OutValue::Value(value), _) => value.plain(),
            (OutValue::Null, _) => String::new(),
        }
    }
}

/// The member of a result that warns.
fn messages(warning: Option<&str>) -> String {
    warning.map_or(String::new(), |text| {
        format!(",\"messages\":[{{\"level\":\"warning\",\"text\":{}}}]", json_text(text))
    })
}

fn csv_row(cells: &[String], to: &mut String) {
    joined(cells, to, |cell, to| {
        if cell.contains(['"', ',', '\n', '\r']) {
            to.push_str(&format!("\"{}\"", cell.replace('"', "\"\"")));
        } else {
            to.push_str(cell);
        }
    });
    to.push('\n');
}

/// Writes entries with commas between them.
fn joined<T>(
    entries: impl IntoIterator<Item = T>,
    to: &mut String,
    write: impl Fn(T, &mut String),
) {
    for (n, entry) in entries.into_iter().enumerate() {
        if n > 0 {
            to.push(',');
        }
        write(entry, to);
    }
}

/// Indents JSON by four blanks.
fn pretty(json: &str) -> String {
    let mut pretty = String::new();
    let mut depth = 0;
    let mut is_text = false;
    let mut chars = json.chars().peekable();
    let newline = |depth: usize| format!("\n{}", "    ".repeat(depth));
    while let Some(c) = chars.next() {
        match c {
            '"' => is_text = !is_text,
            '\\' if is_text => {
                pretty.push(c);
                pretty.extend(chars.next());
                continue;
            }
            '{' | '[' if !is_text => {
                depth += 1;
                pretty.push(c);
                pretty.push_str(&newline(depth));
                continue;
            }
            '}' | ']' if !is_text => {
                depth -= 1;
                pretty.push_str(&newline(depth));
            }
            ',' if !is_text => {
                pretty.push(c);
                pretty.push_str(&newline(depth));
                continue;
            }
            ':' if !is_text => {
                pretty.push_str(": ");
                continue;
            }
            _ => {}
        }
        pretty.push(c);
    }
    pretty.push('\n');
    pretty
}
