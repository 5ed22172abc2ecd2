//! Turns the rows of a CSV into readings. Opens no file, resolves no ambiguous time.

use std::collections::HashMap;
use std::str::FromStr as _;

use anyhow::{Context as _, ensure};
use csv::StringRecord;
use domain::{MetricName, excerpt};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::columns::{Columns, DeviceCell, Shape, Sum, ValueColumn, WideDevice};
use super::number::DecimalMark;
use super::timestamp::{self, Moment, RowInterval, Zone};
use crate::refusals::Refusal;

/// The value of a metric in a row without an amount.
pub const NO_AMOUNT: &str = "null";

/// The columns of a file, by their indices.
pub struct RowReader {
    header: Vec<String>,
    timestamp: usize,
    format: Option<String>,
    zone: Option<Zone>,
    interval: RowInterval,
    mark: DecimalMark,
    devices: Vec<BoundDevice>,
}

/// A row whose timestamp may still be ambiguous. A draft without metrics is not stored; it only shows the order of the
/// timestamps.
#[derive(Debug)]
pub struct Draft {
    /// The name of the timestamp's column.
    pub column: String,
    /// The timestamp, which may be ambiguous.
    pub at: Moment,
    /// The interval that begins at the timestamp.
    pub interval: RowInterval,
    /// The row, without its time.
    pub row: CsvRow,
    /// Whether some values are amounts. Two rows with equal amounts are different rows.
    pub has_amounts: bool,
}

impl Draft {
    /// Makes the row with the resolved timestamp; `None` if the draft has no metric.
    pub fn resolved(self, at: domain::Timestamp) -> Option<CsvRow> {
        let at = self.interval.end(at);
        Some(CsvRow { at, ..self.row }).filter(|row| !row.metrics.is_empty())
    }
}

/// A row of one device whose values are still texts: some may be amounts, which are added up in order of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsvRow {
    /// The line number in the file.
    pub line: u64,
    /// The time of the values.
    pub at: domain::Timestamp,
    /// The device's id.
    pub device: String,
    /// The room's id; empty without a room.
    pub room: String,
    /// The names and values of the metrics.
    pub metrics: Vec<(String, String)>,
}

impl CsvRow {
    /// Returns the value of a metric.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.metrics.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Replaces the value of a metric that the row has, or removes the metric.
    pub fn set(&mut self, name: &str, new: Option<&str>) {
        self.metrics.retain(|(known, _)| known != name || new.is_some());
        let value = self.metrics.iter_mut().find(|(known, _)| known == name);
        if let (Some((_, value)), Some(new)) = (value, new) {
            new.clone_into(value);
        }
    }

    /// Writes the row as the JSON of a reading.
    pub fn json(&self) -> String {
        let quoted = |text: &str| Value::from(text).to_string();
        let mut json =
            format!(r#"{{"timestamp":"{}","device_id":{}"#, self.at, quoted(&self.device));

        if !self.room.is_empty() {
            json.extend([r#","room":"#, &quoted(&self.room)]);
        }
        for (name, value) in &self.metrics {
            json.extend([",\"", name, "\":", value]);
        }

        json.push('}');
        json
    }
}

struct BoundDevice {
    device: Cell,
    room: Option<Cell>,
    metrics: Vec<Bound>,
}

enum Cell {
    Column(usize),
    Fixed(String),
}

impl Cell {
    /// Returns the id in a row. Roomtide's own CSV escapes a text that a spreadsheet would run as a formula with a
    /// leading `'`; no id begins with that character.
    fn of<'a>(&'a self, row: &'a StringRecord) -> &'a str {
        match self {
            Self::Column(place) => row[*place].strip_prefix('\'').unwrap_or(&row[*place]),
            Self::Fixed(text) => text,
        }
    }
}

struct Bound {
    name: MetricName,
    columns: Vec<usize>,
    factor: Option<Decimal>,
    /// Whether the value is an amount, which is added up later.
    is_amount: bool,
}

/// The columns of a header row.
struct HeaderColumns<'h> {
    header: &'h StringRecord,
    /// The index of each column.
    indices: HashMap<&'h str, usize>,
    /// The option that names the columns of metrics.
    metric_option: &'static str,
}

impl<'h> HeaderColumns<'h> {
    fn of(header: &'h StringRecord, shape: &Shape) -> anyhow::Result<Self> {
        let mut indices = HashMap::new();
        for (index, name) in header.iter().enumerate() {
            ensure!(indices.insert(name, index).is_none(), "there are two columns {name:?}");
        }

        let is_wide = matches!(shape, Shape::Wide(_));
        let metric_option = if is_wide { "--map" } else { "--metric NAME=COLUMN" };
        Ok(Self { header, indices, metric_option })
    }

    /// Returns the index of a column; `option` names it on the command line.
    fn find(&self, name: &str, option: &str) -> anyhow::Result<usize> {
        let index = self.indices.get(name.trim()).copied();
        index.with_context(|| {
            let names = self.header.iter().map(excerpt).collect::<Vec<_>>().join(", ");
            format!("there is no column {name:?}; there are: {names}; name it with {option}")
        })
    }

    /// The indices of the columns of a sum. If the text of the whole sum is the name of a column, that column alone is
    /// meant.
    fn columns_of_sum(&self, sum: &str) -> anyhow::Result<Vec<usize>> {
        if let Some(column) = self.indices.get(sum) {
            return Ok(vec![*column]);
        }

        let (names, option) = (sum.split('+'), self.metric_option);
        let has_names = names.clone().all(|name| !name.trim().is_empty());
        ensure!(has_names, "{option}: {sum:?}: a column has no name");
        names.map(|name| self.find(name, option)).collect()
    }

    fn metrics(&self, metrics: &[ValueColumn]) -> anyhow::Result<Vec<Bound>> {
        let bind = |metric: &ValueColumn| {
            let name = metric.name.clone();
            if let Some(column) = self.indices.get(&*metric.source).filter(|_| !metric.is_total()) {
                return Ok(Bound { name, columns: vec![*column], factor: None, is_amount: false });
            }

            let Sum { columns, factor, total } =
                metric.source.parse().context(self.metric_option)?;
            let columns = self.columns_of_sum(&columns)?;
            Ok(Bound { name, columns, factor, is_amount: total })
        };
        metrics.iter().map(bind).collect()
    }

    /// A device of a wide file.
    fn of_wide(&self, wide: &WideDevice) -> anyhow::Result<BoundDevice> {
        Ok(BoundDevice {
            device: Cell::Fixed(wide.device.to_string()),
            room: wide.room.as_ref().map(|room| Cell::Fixed(room.to_string())),
            metrics: self.metrics(&wide.metrics)?,
        })
    }

    /// The device of a long file. Without `metrics`, all other columns are metrics.
    fn of_long(
        &self,
        device: &DeviceCell,
        room: Option<&str>,
        metrics: &[ValueColumn],
        timestamp: usize,
    ) -> anyhow::Result<BoundDevice> {
        const DEVICE_OPTION: &str = "--device COLUMN, or the one device with --device-id ID";
        let device = match device {
            DeviceCell::Column(name) => Cell::Column(self.find(name, DEVICE_OPTION)?),
            DeviceCell::Fixed(id) => Cell::Fixed(id.to_string()),
        };
        let room = match room {
            Some(name) => Some(self.find(name, "--room COLUMN")?),
            None => self.indices.get("room").copied(),
        };
        let room = room.map(Cell::Column);

        let metrics = if metrics.is_empty() {
            let taken = |index: usize| {
                let is = |cell: &Cell| matches!(cell, Cell::Column(at) if *at == index);
                index == timestamp || is(&device) || room.as_ref().is_some_and(is)
            };
            others(self.header, taken)?
        } else {
            self.metrics(metrics)?
        };
        ensure!(!metrics.is_empty(), "there is no column of a metric");
        Ok(BoundDevice { device, room, metrics })
    }
}

impl RowReader {
    /// Finds the columns of a header row; `separator` is the file's.
    pub fn new(columns: &Columns, header: &StringRecord, separator: u8) -> anyhow::Result<Self> {
        let found = HeaderColumns::of(header, &columns.shape)?;
        let timestamp = found.find(&columns.timestamp.name, "--timestamp COLUMN")?;
        let devices = match &columns.shape {
            Shape::Wide(devices) => {
                devices.iter().map(|wide| found.of_wide(wide)).collect::<anyhow::Result<_>>()?
            }
            Shape::Long { device, room, metrics } => {
                vec![found.of_long(device, room.as_deref(), metrics, timestamp)?]
            }
        };

        Ok(Self {
            header: header.iter().map(excerpt).collect(),
            timestamp,
            format: columns.timestamp.format.clone(),
            zone: columns.timestamp.zone,
            interval: columns.timestamp.interval,
            mark: match (columns.decimal_comma, separator) {
                (true, _) => DecimalMark::Comma,
                (false, b';') => DecimalMark::Detected(None),
                (false, _) => DecimalMark::Point,
            },
            devices,
        })
    }

    /// Reads a row: one draft per device, and the refusals.
    ///
    /// A bad timestamp refuses the row; a bad cell refuses only itself.
    pub fn read(
        &mut self,
        line: u64,
        row: &StringRecord,
        drafts: &mut Vec<Draft>,
        refusals: &mut Vec<Refusal>,
    ) {
        let Self { header, timestamp, format, zone, interval, mark, devices } = self;
        let mut refuse = |reason: String| refusals.push(Refusal { line, reason });
        let column = &header[*timestamp];
        let at = match timestamp::read(&row[*timestamp], format.as_deref(), *zone) {
            Ok(at) => at,
            Err(why) => return refuse(format!("{column}: {why}")),
        };

        for BoundDevice { device, room, metrics } in devices {
            let mut values = Vec::with_capacity(metrics.len());
            for metric in &*metrics {
                match metric.value(row, mark, header) {
                    Ok(Some(value)) => values.push((metric.name.to_string(), value)),
                    Ok(None) => {}
                    Err(why) => refuse(why),
                }
            }

            let row = CsvRow {
                line,
                at: domain::Timestamp::MIN,
                device: device.of(row).to_owned(),
                room: room.as_ref().map_or("", |room| room.of(row)).to_owned(),
                metrics: values,
            };

            drafts.push(Draft {
                column: column.clone(),
                at,
                interval: *interval,
                row,
                has_amounts: metrics.iter().any(|metric| metric.is_amount),
            });
        }
    }
}

/// Makes a metric of every remaining column, with the column's name.
fn others(header: &StringRecord, taken: impl Fn(usize) -> bool) -> anyhow::Result<Vec<Bound>> {
    let others = header.iter().enumerate().filter(|(place, _)| !taken(*place));
    others
        .map(|(place, name)| {
            ensure!(
                !name.is_empty(),
                "column {} has no name; name the columns of the metrics with --metric NAME=COLUMN",
                place + 1
            );
            let name = name.parse().map_err(|why| {
                anyhow::anyhow!(
                    "the column {why}; name the columns of the metrics, such as \
                     --metric temperature={name:?}"
                )
            })?;

            let columns = vec![place];
            Ok(Bound { name, columns, factor: None, is_amount: false })
        })
        .collect()
}

impl Bound {
    /// Returns the value of a row; `None` if no cell has a measurement. A sum is refused if only some of its cells have
    /// one; in a sum of amounts, empty cells are skipped.
    fn value(
        &self,
        row: &StringRecord,
        mark: &mut DecimalMark,
        header: &[String],
    ) -> Result<Option<String>, String> {
        let (mut numbers, mut empty) = (Vec::with_capacity(self.columns.len()), None);
        for place in &self.columns {
            match mark.read(&row[*place]) {
                Ok(Some(number)) => numbers.push(number),
                Ok(None) => empty = Some(&header[*place]),
                Err(why) => return Err(format!("{}: {why}", header[*place])),
            }
        }

        if numbers.is_empty() {
            return Ok(self.is_amount.then(|| NO_AMOUNT.to_owned()));
        }
        if let Some(column) = empty.filter(|_| !self.is_amount) {
            return Err(format!("{}: {column} is empty, so there is no sum", self.name));
        }

        // A single column keeps all its digits, up to 38; arithmetic keeps 28.
        if let ([number], None, false) = (numbers.as_slice(), self.factor, self.is_amount) {
            return Ok(Some(number.to_string()));
        }

        let too_large = || format!("{}: the result is too large, over 28 digits", self.name);
        let mut sum = Decimal::ZERO;
        for number in &numbers {
            sum =
                decimal(number).and_then(|number| sum.checked_add(number)).ok_or_else(too_large)?;
        }

        let value = sum.checked_mul(self.factor.unwrap_or(Decimal::ONE)).ok_or_else(too_large)?;
        let shown = value.normalize().to_string();

        if self.is_amount && value < Decimal::ZERO {
            return Err(format!(
                "{}: the amount {shown} is below zero, and a fall of the counter would count as a reset; take it off \
                 other rows, or give what is fed in a column of its own",
                self.name
            ));
        }

        Ok(Some(shown))
    }
}

fn decimal(number: &domain::Decimal) -> Option<Decimal> {
    let text = number.as_str();
    Decimal::from_str(text).or_else(|_| Decimal::from_scientific(text)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::columns::TimestampColumn;

    use domain::given::at_millis;

    fn wide(maps: &[&str]) -> Columns {
        let timestamp = TimestampColumn {
            name: "date".to_owned(),
            format: Some("%Y/%m/%d %H:%M".to_owned()),
            zone: Some("+01:00".parse().unwrap()),
            interval: RowInterval::default(),
        };
        Columns { timestamp, shape: Shape::wide(maps).unwrap(), decimal_comma: false }
    }

    /// Returns the readings of the rows after the header, and the refusals.
    fn read(columns: &Columns, rows: &[&[&str]]) -> anyhow::Result<(Vec<String>, Vec<String>)> {
        let mut bound = RowReader::new(columns, &StringRecord::from(rows[0].to_vec()), b',')?;
        let (mut drafts, mut refusals) = (Vec::new(), Vec::new());
        for (row, line) in rows[1..].iter().zip(2..) {
            bound.read(line, &StringRecord::from(row.to_vec()), &mut drafts, &mut refusals);
        }
        let json = |draft: Draft| match draft.at {
            Moment::At(at) => draft.resolved(at).map(|row| row.json()),
            Moment::Repeated { .. } => panic!("{draft:?}"),
        };
        let refusals = refusals.iter().map(Refusal::to_string).collect();
        Ok((drafts.into_iter().filter_map(json).collect(), refusals))
    }

    /// Meters name their registers so.
    #[test]
    fn a_column_of_exactly_that_name_is_no_sum() {
        let columns =
            wide(&["d:p=1.8.0+,n=L1+L2,x=A*2,s=A+1.8.0+*2,k=1.8.0+*0.5,m=L1+L2*2,t=total(L1+L2)"]);
        let header = ["date", "A", "1.8.0+", "L1+L2", "A*2", "A+1.8.0+*2"];
        let row = ["2016/1/11 17:00", "1", "2", "3", "4", "5"];
        let (readings, _) = read(&columns, &[&header, &row]).unwrap();
        let expected = r#""p":2,"n":3,"x":4,"s":5,"k":1,"m":6,"t":3"#;
        assert!(readings[0].contains(expected), "{readings:?}");

        let missing = read(&wide(&["d:p=2.8.0+"]), &[&header, &row]).unwrap_err();
        let missing = format!("{missing:#}");
        assert!(missing.contains("--map") && missing.contains("\"2.8.0+\""), "{missing}");
    }

    #[test]
    fn a_sum_with_an_empty_cell_is_refused_and_one_of_empty_cells_is_none() {
        let columns = wide(&["d:p=A+B"]);
        let rows: [&[&str]; 4] = [
            &["date", "A", "B"],
            &["2016/1/11 17:00", "1", "2"],
            &["2016/1/11 17:10", "1", ""],
            &["2016/1/11 17:20", "", ""],
        ];
        let (readings, refusals) = read(&columns, &rows).unwrap();
        assert_eq!(readings.len(), 1);
        let [refusal] = &refusals[..] else { panic!("{refusals:?}") };
        assert!(refusal.contains("p: B is empty, so there is no sum"), "{refusal}");
    }

    #[test]
    fn a_wide_row_is_a_reading_a_device() {
        let columns = wide(&[
            "t1@kitchen:temperature=T1,humidity=RH_1",
            "meter:current_w=A+L*6,cumulative_kwh_p=total(A+L)*0.001",
        ]);
        let header = ["date", "A", "L", "T1", "RH_1"];
        let rows: [&[&str]; 3] = [
            &header,
            &["2016/1/11 17:00", "60", "30", "19.890", "47.59666667"],
            &["2016/1/11 17:10", "0.1", "0.2", "", ".5"],
        ];
        assert_eq!(
            read(&columns, &rows).unwrap().0,
            [
                r#"{"timestamp":"2016-01-11T16:00:00.000Z","device_id":"t1","room":"kitchen","temperature":19.89,"humidity":47.59666667}"#,
                r#"{"timestamp":"2016-01-11T16:00:00.000Z","device_id":"meter","current_w":540,"cumulative_kwh_p":0.09}"#,
                r#"{"timestamp":"2016-01-11T16:10:00.000Z","device_id":"t1","room":"kitchen","humidity":0.5}"#,
                r#"{"timestamp":"2016-01-11T16:10:00.000Z","device_id":"meter","current_w":1.8,"cumulative_kwh_p":0.0003}"#,
            ]
        );
    }

    #[test]
    fn an_interval_s_values_are_those_of_its_end() {
        let mut columns = wide(&["m:cumulative_kwh_p=total(A)", "t:temperature=A"]);
        columns.timestamp.interval = "15m".parse().unwrap();
        let rows: [&[&str]; 3] =
            [&["date", "A"], &["2016/1/11 17:00", "0.5"], &["2016/1/11 17:15", "2"]];
        let of = |at: &str, rest: &str| {
            format!("{{\"timestamp\":\"2016-01-11T16:{at}:00.000Z\",{rest}}}")
        };
        assert_eq!(
            read(&columns, &rows).unwrap().0,
            [
                of("15", r#""device_id":"m","cumulative_kwh_p":0.5"#),
                of("15", r#""device_id":"t","temperature":0.5"#),
                of("30", r#""device_id":"m","cumulative_kwh_p":2"#),
                of("30", r#""device_id":"t","temperature":2"#),
            ]
        );
    }

    #[test]
    fn a_bad_cell_is_refused_by_its_column_and_the_others_go_on() {
        let columns = wide(&["d:t=T1,h=T2", "e:t=T2"]);
        let rows: [&[&str]; 4] = [
            &["date", "T1", "T2"],
            &["2016/1/11 17:00", "warm", "5"],
            &["yesterday", "1", "2"],
            &["2016/1/11 17:20", "unavailable", "unknown"],
        ];
        let (readings, refusals) = read(&columns, &rows).unwrap();
        assert_eq!(
            readings,
            [
                r#"{"timestamp":"2016-01-11T16:00:00.000Z","device_id":"d","h":5}"#,
                r#"{"timestamp":"2016-01-11T16:00:00.000Z","device_id":"e","t":5}"#,
            ]
        );
        assert_eq!(
            refusals,
            [
                "line 2: T1: \"warm\" is not a number",
                "line 3: date: \"yesterday\" is not of the form \"%Y/%m/%d %H:%M\"",
            ]
        );
    }

    #[test]
    fn an_amount_below_zero_is_refused_unless_its_factor_turns_it() {
        let columns = wide(&["m:k=total(A),fed_in=total(A)*-1"]);
        let rows: [&[&str]; 2] = [&["date", "A"], &["2016/1/11 17:00", "-1.5"]];
        let (readings, refusals) = read(&columns, &rows).unwrap();
        let expected = r#"{"timestamp":"2016-01-11T16:00:00.000Z","device_id":"m","fed_in":1.5}"#;
        assert_eq!(readings, [expected]);
        assert!(
            refusals[0].starts_with("line 2: k: the amount -1.5 is below zero"),
            "{refusals:?}"
        );
        assert_eq!(refusals.len(), 1);
    }

    #[test]
    fn columns_that_are_asked_for_must_be_there() {
        let error =
            |columns: &Columns, header: &[&str]| read(columns, &[header]).unwrap_err().to_string();
        let missing = error(&wide(&["d:t=T2"]), &["date", "T1"]);
        assert!(missing.contains("no column \"T2\"; there are: date, T1"), "{missing}");
        assert!(missing.ends_with("--map"), "{missing}");
        let long = |room| Columns {
            shape: Shape::long(None, "device_id", room, &[]).unwrap(),
            ..Columns::default()
        };
        let header = ["timestamp", "device_id", "t"];
        assert!(read(&long(None), &[&header]).is_ok());
        assert!(error(&long(Some("where")), &header).contains("no column \"where\""));
        for (header, option) in [
            (["Zeit", "device_id", "t"], "--timestamp COLUMN"),
            (["timestamp", "Ort", "t"], "--device-id ID"),
        ] {
            let error = error(&long(None), &header);
            assert!(error.ends_with(option), "{error}");
        }
        let upper = error(&long(None), &["timestamp", "device_id", "Temp °C"]);
        assert!(upper.contains("--metric temperature=\"Temp °C\""), "{upper}");
    }

    #[test]
    fn an_escaped_id_is_the_id() {
        let rows: [&[&str]; 2] =
            [&["timestamp", "device_id", "room", "t"], &["1768147200", "'-m", "'-r", "-5"]];
        let (readings, _) = read(&Columns::default(), &rows).unwrap();
        let at = at_millis(0);
        let expected = format!(r#"{{"timestamp":"{at}","device_id":"-m","room":"-r","t":-5}}"#);
        assert_eq!(readings, [expected]);
    }

    #[test]
    fn arithmetic_that_overflows_is_refused() {
        let largest = Decimal::MAX.to_string();
        let row: &[&str] = &["2016/1/11 17:00", &largest];
        let header: &[&str] = &["date", "A"];
        for map in ["d:t=A+A", "d:t=A*2"] {
            let (_, refusals) = read(&wide(&[map]), &[header, row]).unwrap();
            assert!(refusals[0].contains("t: the result is too large"), "{map}: {refusals:?}");
        }
    }
}
