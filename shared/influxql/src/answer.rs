//! The answer to a query: results with their series, written as InfluxDB's JSON. Decides no result.

use std::collections::BTreeMap;

use chrono::{DateTime, FixedOffset, SecondsFormat};
use domain::Zone;
use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};

use crate::duration::{MILLISECOND, SECOND};
use crate::value::Value;

/// The result of a statement.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum StatementResult {
    /// The statement was run.
    Done {
        /// The series, in the order of the answer.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        series: Vec<OutSeries>,
        /// The warnings about the series.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        messages: Vec<QueryMessage>,
    },
    /// The statement failed.
    Failed {
        /// The reason.
        error: String,
    },
}

/// A warning about a result.
#[derive(Debug, Serialize)]
pub struct QueryMessage {
    level: &'static str,
    text: String,
}

impl StatementResult {
    /// A result with a warning, if there is one.
    pub fn with_warning(series: Vec<OutSeries>, warning: Option<String>) -> Self {
        let message = warning.map(|text| QueryMessage { level: "warning", text });
        Self::Done { series, messages: message.into_iter().collect() }
    }

    /// A failure instead of a result.
    pub fn failed(error: impl Into<String>) -> Self {
        Self::Failed { error: error.into() }
    }
}

impl From<Vec<OutSeries>> for StatementResult {
    fn from(series: Vec<OutSeries>) -> Self {
        Self::with_warning(series, None)
    }
}

/// A series of a result.
#[derive(Debug, Default, Serialize)]
pub struct OutSeries {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) columns: Vec<String>,
    /// A value for each column of each row.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) values: Vec<Vec<Option<Value>>>,
}

/// How times are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Epoch {
    /// RFC 3339, in the zone of the query.
    Text,
    /// An integer: the time in units of this many nanoseconds.
    Units(i64),
}

impl Epoch {
    /// Reads the parameter `epoch`; an unknown unit means nanoseconds.
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

    /// A time as a value of the answer: a text in the zone of the query, or an integer.
    pub(crate) fn value(self, at: i64, zone: Option<Zone>) -> Value {
        let Self::Units(unit) = self else { return Value::Text(time_text(at, zone)) };
        Value::Integer(at / unit)
    }
}

/// A time by RFC 3339, without zeros at the end of its fraction.
fn time_text(at: i64, zone: Option<Zone>) -> String {
    let ahead = zone.map_or(0, |zone| zone.offset(at.div_euclid(SECOND)));
    let ahead = i32::try_from(ahead).ok().and_then(FixedOffset::east_opt);
    let ahead = ahead.expect("an offset is shorter than a day");
    let time = DateTime::from_timestamp_nanos(at).with_timezone(&ahead);

    let text = time.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    let Some(point) = text.find('.') else { return text };
    let digits = text[point + 1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    let (fraction, rest) = text[point..].split_at(digits + 1);
    format!("{}{}{rest}", &text[..point], fraction.trim_end_matches('0').trim_end_matches('.'))
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerForm {
    /// How times are written.
    pub epoch: Epoch,
    /// Whether JSON is indented.
    pub is_pretty: bool,
}

/// The members of an answer.
#[derive(Serialize)]
struct Document<'a> {
    results: Vec<NumberedResult<'a>>,
}

/// A result, with the index of its statement in the query.
#[derive(Serialize)]
struct NumberedResult<'a> {
    statement_id: usize,
    #[serde(flatten)]
    outcome: &'a StatementResult,
}

impl AnswerForm {
    /// Writes the results.
    pub fn write(self, outcomes: &[StatementResult]) -> Vec<u8> {
        let numbered = outcomes.iter().enumerate();
        let results =
            numbered.map(|(statement_id, outcome)| NumberedResult { statement_id, outcome });
        self.json(&Document { results: results.collect() })
    }

    /// Writes a failure of the whole query.
    pub fn error(self, message: impl Into<String>) -> Vec<u8> {
        self.json(&StatementResult::failed(message))
    }

    fn json(self, document: &impl Serialize) -> Vec<u8> {
        let mut text = Vec::new();
        let written = if self.is_pretty {
            let indented = PrettyFormatter::with_indent(b"    ");
            document.serialize(&mut Serializer::with_formatter(&mut text, indented))
        } else {
            document.serialize(&mut Serializer::new(&mut text))
        };
        written.expect("an answer is JSON");

        text.push(b'\n');
        text
    }
}
