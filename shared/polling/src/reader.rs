//! Reads a JSON answer into a payload for ingest, or into rows of metrics by JSON pointers. Knows no maker and no
//! clock.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use domain::text_id::id_of;
use domain::{AboutMetric, Decimal, DeviceId, MetricName, Timestamp};
use serde::Serialize;
use serde_json::Value;

use crate::asking::Asking;
use crate::placeholder::Values;
use crate::pointer::{MetricPointer, Pointer, RowFill};
use crate::portion::{Portion, READINGS};

/// The maximum number of rows in an answer.
const MAX_ROWS: usize = 10_000;
/// Rows farther ahead of the clock are dropped, because a forecast is no reading. Prices are kept.
const MAX_AHEAD: TimeDelta = TimeDelta::minutes(2);
/// The longest time between rows for which a row is repeated. If both neighbours are farther away, a row lasts a
/// quarter of an hour.
const LONGEST_ROW: TimeDelta = TimeDelta::hours(1);
/// The maximum number of refusals that are reported.
const MAX_REFUSED: usize = 20;
/// The formats whose values have their own times. Values of other formats are stored at the time of the request.
const TIMED_FORMATS: [&str; 1] = ["remo"];

impl Pointer {
    fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        value.pointer(self.place()).filter(|found| !found.is_null())
    }

    /// The value at the pointer, which the answer must have. Errors show pointers, and no text of the answer.
    fn needed<'a>(&self, value: &'a Value) -> Result<&'a Value, String> {
        self.of(value).ok_or_else(|| format!("nothing is at {:?} of the answer", self.place()))
    }
}

/// The readings in an answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReadAnswer {
    /// The readings, in the form that ingest takes.
    pub portions: Vec<Portion>,
    /// The rows and values that were refused, and why.
    pub refused: Vec<String>,
}

/// A row of an answer.
struct AnswerRow {
    device: Option<DeviceId>,
    at: Option<Timestamp>,
    metrics: BTreeMap<MetricName, Decimal>,
}

/// The circumstances in which an answer is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadContext<'a> {
    /// The index of the request among the requests of its source.
    pub(crate) request: usize,
    /// The device of rows and payloads without a device id.
    pub(crate) device: &'a DeviceId,
    /// The values for the placeholders in a device id.
    pub(crate) members: &'a Values,
    pub(crate) now: Timestamp,
}

impl Asking {
    /// Reads an answer.
    pub(crate) fn read_answer(
        &self,
        answer: &Value,
        context: ReadContext<'_>,
    ) -> Result<ReadAnswer, String> {
        let reader = TableReader { asking: self, context, refused: Vec::new() };
        let Some(format) = &self.format else { return reader.read(answer) };

        let device = reader
            .device_of(answer)
            .map_err(|_| "the device is not at its place in the answer".to_owned())?;
        let device = device.unwrap_or_else(|| context.device.clone());

        let Some(payload) = self.payload(answer)? else { return Ok(ReadAnswer::default()) };
        let rows = match &payload {
            Value::Array(readings) if format == READINGS => {
                readings.iter().map(Value::to_string).collect()
            }
            payload => vec![payload.to_string()],
        };

        let portion = Portion {
            key: context.request.to_string(),
            format: format.clone(),
            device: Some(device),
            rows,
            is_timed: TIMED_FORMATS.contains(&format.as_str()),
            ..Portion::default()
        };
        Ok(ReadAnswer { portions: vec![portion], refused: Vec::new() })
    }

    /// The part of an answer that is a payload; `None` if no row has the required value.
    fn payload(&self, answer: &Value) -> Result<Option<Value>, String> {
        let mut part = match &self.at {
            Some(at) => at.needed(answer)?.clone(),
            None => answer.clone(),
        };
        let Some(only) = &self.only else { return Ok(Some(part)) };

        let place = self.at.as_ref().map_or("", Pointer::place);
        let rows = part.as_array_mut().ok_or_else(|| no_array(place))?;
        rows.retain(|row| only.of(row).is_some());
        Ok((!rows.is_empty()).then_some(part))
    }
}

/// Reads the rows of an answer.
struct TableReader<'a> {
    asking: &'a Asking,
    context: ReadContext<'a>,
    /// The rows and values that were refused, and why.
    refused: Vec<String>,
}

impl TableReader<'_> {
    fn read(mut self, answer: &Value) -> Result<ReadAnswer, String> {
        let Asking { time, each, metrics, fill, .. } = self.asking;
        let mut rows = match time {
            Some(time) if each.is_none() && time.of(answer).is_some_and(Value::is_array) => {
                self.columns(answer, time)?
            }
            _ => self.elements(answer)?,
        };
        if rows.len() > MAX_ROWS {
            return Err(format!(
                "the answer has {} rows; at most {MAX_ROWS} are taken",
                rows.len()
            ));
        }

        // A request that is only tested may have no metrics yet.
        if metrics.is_empty() {
            return Ok(ReadAnswer::default());
        }

        let has_number = rows.iter().any(|row| !row.metrics.is_empty());
        if !has_number && !rows.is_empty() && self.refused.is_empty() {
            let first = metrics.values().next().map_or("", |pointer| pointer.at().place());
            return Err(format!(
                "no metric has a number in the answer; the first is looked for at {first:?}; a test without metrics \
                 lists the numbers"
            ));
        }

        if *fill == Some(RowFill::Quarter) {
            rows = repeated(rows);
        }

        let latest = self.context.now.saturating_add(MAX_AHEAD);
        rows.retain(|row| {
            let is_price = row.metrics.keys().all(MetricName::is_price);
            !row.metrics.is_empty() && (is_price || row.at.is_none_or(|at| at <= latest))
        });
        Ok(ReadAnswer { portions: self.portions(rows), refused: self.refused })
    }

    /// The rows of the array at `each`. Without `each`, the answer is the only row.
    fn elements(&mut self, answer: &Value) -> Result<Vec<AnswerRow>, String> {
        let Asking { each, only, time, .. } = self.asking;
        let rows = match each {
            Some(each) => {
                let found = each.needed(answer)?.as_array();
                found.ok_or_else(|| no_array(each.place()))?.as_slice()
            }
            None => std::slice::from_ref(answer),
        };

        let mut read = Vec::new();
        for (position, row) in rows.iter().enumerate() {
            if only.as_ref().is_some_and(|only| only.of(row).is_none()) {
                continue;
            }
            let time = time.as_ref().map(|time| time.needed(row)).transpose()?;
            read.extend(self.row(position, row, time, &|pointer| pointer.of(row)));
        }

        Ok(read)
    }

    /// The rows of a table whose columns are arrays.
    fn columns(&mut self, answer: &Value, time: &Pointer) -> Result<Vec<AnswerRow>, String> {
        let times = time.of(answer).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for at in self.asking.metrics.values().map(MetricPointer::at) {
            let Some(column) = at.of(answer) else { continue };
            let column = column.as_array().ok_or_else(|| no_array(at.place()))?;
            if column.len() != times.len() {
                let (place, values, times) = (at.place(), column.len(), times.len());
                return Err(format!(
                    "{place:?} of the answer has {values} elements and the times have {times}"
                ));
            }
        }

        let mut read = Vec::new();
        for (position, time) in times.iter().enumerate() {
            let value = |pointer: &Pointer| {
                pointer.of(answer)?.get(position).filter(|found| !found.is_null())
            };
            read.extend(self.row(position, answer, Some(time), &value));
        }
        Ok(read)
    }

    /// Reads one row; `value` finds the values of the row's metrics. `None` if the time or the device is unreadable.
    fn row<'v>(
        &mut self,
        position: usize,
        row: &Value,
        time: Option<&Value>,
        value: &dyn Fn(&Pointer) -> Option<&'v Value>,
    ) -> Option<AnswerRow> {
        let at = time.map(time_of).transpose();
        let place = self.asking.time.as_ref().map_or("", |time| time.place());
        let at = at.map_err(|why| self.refuse(position, place, &why)).ok()?;
        let device =
            self.device_of(row).map_err(|why| self.refuse(position, "device", &why)).ok()?;

        let mut metrics = BTreeMap::new();
        for (name, pointer) in &self.asking.metrics {
            match value(pointer.at()).map(|value| number(value, pointer.times())) {
                Some(Ok(number)) => drop(metrics.insert(name.clone(), number)),
                Some(Err(why)) => self.refuse(position, pointer.at().place(), &why),
                None => {}
            }
        }

        Some(AnswerRow { device, at, metrics })
    }

    fn refuse(&mut self, position: usize, place: &str, why: &str) {
        if self.refused.len() < MAX_REFUSED {
            self.refused.push(format!("row {position}: {place:?} {why}"));
        }
    }

    /// The device that a row names; `None` if the source itself is the device.
    fn device_of(&self, row: &Value) -> Result<Option<DeviceId>, String> {
        let Some(device) = &self.asking.device else { return Ok(None) };
        let name = if device.as_str().starts_with('/') {
            match row.pointer(device.as_str()) {
                Some(Value::String(name)) => name.clone(),
                Some(Value::Number(number)) => number.to_string(),
                _ => return Err("is not at its place".to_owned()),
            }
        } else {
            device.fill_as(self.context.members, str::to_lowercase)?
        };
        id_of(&name).map(|(id, _)| Some(id)).map_err(|why| why.to_string())
    }

    /// Groups rows by day, so that an unchanged day is not stored again. Rows without times are one group.
    fn portions(&self, rows: Vec<AnswerRow>) -> Vec<Portion> {
        let ReadContext { request, device, .. } = self.context;
        let mut by_key: BTreeMap<String, (bool, Vec<String>)> = BTreeMap::new();
        for row in rows {
            let day = row.at.map(|at| at.to_string()[..10].to_owned());
            let key = day.as_ref().map_or(request.to_string(), |day| format!("{request}/{day}"));
            let (is_timed, texts) = by_key.entry(key).or_default();
            *is_timed = day.is_some();
            texts.push(row.text(device));
        }

        let metrics = self.asking.metrics.iter();
        let mut about: BTreeMap<_, _> =
            metrics.map(|(name, pointer)| (name.clone(), pointer.about())).collect();
        about.retain(|_, about| *about != AboutMetric::default());
        let portions = by_key.into_iter().map(|(key, (is_timed, rows))| Portion {
            key,
            format: READINGS.to_owned(),
            about: about.clone(),
            rows,
            is_timed,
            ..Portion::default()
        });
        portions.collect()
    }
}

impl AnswerRow {
    /// The row as JSON for `POST /readings`.
    fn text(&self, source: &DeviceId) -> String {
        #[derive(Serialize)]
        struct RowBody<'a> {
            device_id: &'a DeviceId,
            #[serde(skip_serializing_if = "Option::is_none")]
            timestamp: Option<Timestamp>,
            #[serde(flatten)]
            metrics: &'a BTreeMap<MetricName, Decimal>,
        }
        let device_id = self.device.as_ref().unwrap_or(source);
        let reading = RowBody { device_id, timestamp: self.at, metrics: &self.metrics };
        serde_json::to_string(&reading).expect("texts and numbers")
    }
}

/// Repeats each row every quarter of an hour, for the time to its nearer neighbour. A neighbour beyond [`LONGEST_ROW`]
/// does not count, so that gaps stay gaps.
fn repeated(rows: Vec<AnswerRow>) -> Vec<AnswerRow> {
    const QUARTER: TimeDelta = TimeDelta::minutes(15);
    let times: Vec<_> = rows.iter().map(|row| row.at).collect();
    let between = |from: usize, to: usize| {
        let (from, to) = ((*times.get(from)?)?, (*times.get(to)?)?);
        Some(to.since(from)).filter(|length| (QUARTER..=LONGEST_ROW).contains(length))
    };

    let mut all = Vec::new();
    for (position, row) in rows.into_iter().enumerate() {
        let before = position.checked_sub(1).and_then(|before| between(before, position));
        let lengths = [before, between(position, position + 1)];
        let length = lengths.into_iter().flatten().min().unwrap_or(QUARTER);
        let repeats = length.num_minutes() / QUARTER.num_minutes();
        for quarter in 0..repeats {
            let shift = QUARTER * i32::try_from(quarter).unwrap_or_default();
            all.push(AnswerRow {
                device: row.device.clone(),
                at: row.at.map(|at| at.saturating_add(shift)),
                metrics: row.metrics.clone(),
            });
        }
    }

    all
}

fn no_array(place: &str) -> String {
    format!("{place:?} of the answer is not an array")
}

fn time_of(value: &Value) -> Result<Timestamp, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Err("is not a timestamp".to_owned()),
    };
    Timestamp::parse_absolute(&text).map_err(|why| why.to_string())
}

fn number(value: &Value, times: Option<&Decimal>) -> Result<Decimal, String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return Err("is not a number".to_owned()),
    };
    let number = Decimal::parse(&text).map_err(|_| "is not a number".to_owned())?;
    match times {
        Some(factor) => number.checked_mul(factor).map_err(|why| why.to_string()),
        None => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use domain::given::{at, cases, device};
    use serde_json::json;

    use super::*;

    fn shown(asking: &str, answer: &str) -> Vec<String> {
        let mut members: Value = serde_json::from_str(asking).expect("an object");
        members["url"] = json!("https://example.org");
        let asking: Asking = serde_json::from_value(members).expect(asking);
        let (pump, members) = (device("pump"), Values::new());
        let now = at("2026-01-12T12:00:00Z");
        let context = ReadContext { request: 0, device: &pump, members: &members, now };
        match asking.read_answer(&serde_json::from_str(answer).expect("JSON"), context) {
            Ok(ReadAnswer { portions, refused }) => {
                let portions = portions.iter().map(|portion| {
                    let when = if portion.is_timed { "" } else { " each time" };
                    format!("{}{when}: {}", portion.key, portion.rows.join(" "))
                });
                let all: Vec<_> = portions.chain(refused).collect();
                if all.is_empty() { vec!["nothing".to_owned()] } else { all }
            }
            Err(why) => vec![why],
        }
    }

    #[test]
    fn an_answer_is_read_as_its_case_says() {
        for case in cases(include_str!("reader.txt")) {
            let (asking, answer) = case.given.split_once("} ").expect("a request and an answer");
            let shown = shown(&format!("{asking}}}"), answer);
            assert_eq!(shown.len(), case.expected.len(), "{case}: {shown:#?}");
            for (shown, expected) in shown.iter().zip(&case.expected) {
                assert!(shown.starts_with(expected), "{case}: {shown}");
            }
        }
    }

    #[test]
    fn the_first_row_of_a_power_that_holds_is_delivered_alone() {
        let row = |n: usize| format!("{{\"current_w\":{n}}}");
        let hold = AboutMetric { hold: Some(TimeDelta::minutes(30)), ..AboutMetric::default() };
        let metric: MetricName = "current_w".parse().expect("a name");
        let mut portion = Portion::of_reading("0", &json!({}));
        portion.rows = (0..5).map(row).collect();
        assert_eq!(portion.bodies(3).len(), 2);
        portion.about.insert(metric, hold);
        let bodies = portion.bodies(3);
        assert_eq!(bodies[0], r#"[{"current_w":0}]"#);
        assert_eq!(bodies.len(), 3);
    }

    #[test]
    fn an_answer_of_too_many_rows_is_refused() {
        let rows: Vec<_> = (0..=MAX_ROWS).map(|n| json!({"t": n})).collect();
        let shown = shown(r#"{"each": "", "metrics": {"t": "/t"}}"#, &json!(rows).to_string());
        assert_eq!(shown, ["the answer has 10001 rows; at most 10000 are taken"]);
    }
}
