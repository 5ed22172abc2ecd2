//! Which columns of a CSV are what, and a row's readings by it. Opens no file.

use std::collections::{BTreeSet, HashMap};
use std::str::FromStr;

use anyhow::{Context as _, bail, ensure};
use chrono::{DateTime, FixedOffset, NaiveDateTime, SecondsFormat, TimeZone as _};
use csv::StringRecord;
use rust_decimal::Decimal;
use shared::domain::{DeviceId, Instant, MetricName, Number, RoomId, excerpt};

/// Which columns are what.
#[derive(Debug, Clone, Default)]
pub(crate) struct Columns {
    /// When.
    pub(crate) timestamp: TimestampColumn,
    /// Who and what.
    pub(crate) shape: Shape,
}

/// The column of the instants.
#[derive(Debug, Clone)]
pub(crate) struct TimestampColumn {
    /// Its name.
    pub(crate) name: String,
    /// How they are written; as the API takes them without it.
    pub(crate) format: Option<String>,
    /// Where on earth, if they do not say so themselves.
    pub(crate) offset: Option<FixedOffset>,
}

impl Default for TimestampColumn {
    fn default() -> Self {
        Self { name: "timestamp".to_owned(), format: None, offset: None }
    }
}

/// How a file is laid out.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    /// One reading a row.
    Long {
        /// The device of all rows, or the column that names it.
        device: Device,
        /// The column of the rooms; none: `room`, where there is one.
        room: Option<String>,
        /// The metrics; every other column without any.
        metrics: Vec<Metric>,
    },
    /// Several readings a row, one a device.
    Wide(Vec<WideDevice>),
}

/// Whose readings the rows of a long file are.
#[derive(Debug, Clone)]
pub(crate) enum Device {
    Column(String),
    Fixed(DeviceId),
}

/// One device of a wide file.
#[derive(Debug, Clone)]
pub(crate) struct WideDevice {
    device: DeviceId,
    room: Option<RoomId>,
    metrics: Vec<Metric>,
}

/// A metric and what it is made of.
#[derive(Debug, Clone)]
pub(crate) struct Metric {
    name: MetricName,
    source: Source,
}

/// What a value is made of: columns added up, times a factor, over this row or all rows so far.
#[derive(Debug, Clone, PartialEq)]
struct Source {
    columns: Vec<String>,
    factor: Option<Decimal>,
    total: bool,
}

impl Default for Shape {
    fn default() -> Self {
        let device = Device::Column("device_id".to_owned());
        Self::Long { device, room: None, metrics: Vec::new() }
    }
}

impl Shape {
    /// A long file's shape.
    pub(super) fn long(
        device_id: Option<&str>,
        device: &str,
        room: Option<&str>,
        metrics: &[String],
    ) -> anyhow::Result<Self> {
        let device = match device_id {
            Some(id) => {
                Device::Fixed(id.parse().map_err(|why| anyhow::anyhow!("--device-id {why}"))?)
            }
            None => Device::Column(device.to_owned()),
        };
        let metrics: Vec<Metric> =
            metrics.iter().map(|metric| metric.parse()).collect::<anyhow::Result<_>>()?;
        distinct(&metrics).context("--metric")?;
        // One total over the rows of several devices would be nobody's.
        if let (Device::Column(_), Some(total)) = (&device, metrics.iter().find(|m| m.source.total))
        {
            bail!("--metric {}: total() is of one device; add --device-id", total.name);
        }
        Ok(Self::Long { device, room: room.map(str::to_owned), metrics })
    }

    /// A wide file's shape.
    pub(crate) fn wide(maps: &[impl AsRef<str>]) -> anyhow::Result<Self> {
        let devices: Vec<WideDevice> =
            maps.iter().map(|map| map.as_ref().parse()).collect::<anyhow::Result<_>>()?;
        // Two readings of one device at one instant are one only within a request; at its edge the
        // second would replace the first.
        let mut seen = BTreeSet::new();
        for WideDevice { device, .. } in &devices {
            let text = "is mapped twice; put all its metrics into one --map";
            ensure!(seen.insert(device), "--map: the device \"{device}\" {text}");
        }
        Ok(Self::Wide(devices))
    }
}

fn distinct(metrics: &[Metric]) -> anyhow::Result<()> {
    let mut seen = BTreeSet::new();
    match metrics.iter().find(|metric| !seen.insert(&metric.name)) {
        Some(twice) => bail!("the metric \"{}\" stands twice", twice.name),
        None => Ok(()),
    }
}

impl FromStr for WideDevice {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let parse = || {
            let (who, metrics) = text.split_once('=').map_or((text, ""), |(head, _)| {
                let colon = head.rfind(':').unwrap_or(head.len());
                (&text[..colon], text.get(colon + 1..).unwrap_or_default())
            });
            ensure!(!metrics.is_empty(), "expected DEVICE@ROOM:metric=COLUMN,...");
            let (device, room) = match who.split_once('@') {
                Some((device, room)) => {
                    (device, Some(room.parse().map_err(|why| anyhow::anyhow!("the room {why}"))?))
                }
                None => (who, None),
            };
            let device = device.parse().map_err(|why| anyhow::anyhow!("the device id {why}"))?;
            let metrics = metrics.split(',').map(str::parse).collect::<anyhow::Result<Vec<_>>>()?;
            distinct(&metrics)?;
            Ok(Self { device, room, metrics })
        };
        parse().with_context(|| format!("--map {text:?}"))
    }
}

impl FromStr for Metric {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (name, source) =
            text.split_once('=').with_context(|| format!("{text:?}: expected NAME=COLUMN"))?;
        let name = name.trim().parse().map_err(|why| anyhow::anyhow!("{why}"))?;
        Ok(Self { name, source: source.parse()? })
    }
}

impl FromStr for Source {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (sum, factor) = match text.rsplit_once('*') {
            Some((sum, factor)) => {
                let factor = factor.trim().parse();
                (sum, Some(factor.with_context(|| format!("{text:?}: the factor is no number"))?))
            }
            None => (text, None),
        };
        let inner = sum.trim().strip_prefix("total(").and_then(|rest| rest.strip_suffix(')'));
        let columns: Vec<String> =
            inner.unwrap_or(sum).split('+').map(|column| column.trim().to_owned()).collect();
        ensure!(columns.iter().all(|column| !column.is_empty()), "{text:?}: a column has no name");
        Ok(Self { columns, factor, total: inner.is_some() })
    }
}

impl Columns {
    /// The columns found in a header row.
    pub(super) fn bind(&self, header: &StringRecord) -> anyhow::Result<Rows> {
        let mut places = HashMap::new();
        for (place, name) in header.iter().enumerate() {
            let name = name.trim_start_matches('\u{feff}');
            ensure!(places.insert(name, place).is_none(), "there are two columns {name:?}");
        }
        let find = |name: &str| {
            let names = || header.iter().map(excerpt).collect::<Vec<_>>().join(", ");
            let place = places.get(name.trim()).copied();
            place.with_context(|| format!("there is no column {name:?}; there are: {}", names()))
        };
        let bind_metric = |metric: &Metric| {
            let columns = metric.source.columns.iter().map(|name| find(name));
            Ok(Bound {
                name: metric.name.clone(),
                columns: columns.collect::<anyhow::Result<_>>()?,
                factor: metric.source.factor,
                total: metric.source.total.then_some(Decimal::ZERO),
            })
        };
        let timestamp = find(&self.timestamp.name)?;
        let devices = match &self.shape {
            Shape::Wide(devices) => devices
                .iter()
                .map(|wide| {
                    Ok(BoundDevice {
                        device: Cell::Fixed(wide.device.to_string()),
                        room: wide.room.as_ref().map(|room| Cell::Fixed(room.to_string())),
                        metrics: wide
                            .metrics
                            .iter()
                            .map(bind_metric)
                            .collect::<anyhow::Result<_>>()?,
                    })
                })
                .collect::<anyhow::Result<_>>()?,
            Shape::Long { device, room, metrics } => {
                let device = match device {
                    Device::Column(name) => Cell::Column(find(name)?),
                    Device::Fixed(id) => Cell::Fixed(id.to_string()),
                };
                let room = match room {
                    Some(name) => Some(find(name)?),
                    None => places.get("room").copied(),
                };
                let room = room.map(Cell::Column);
                let metrics: Vec<Bound> = if metrics.is_empty() {
                    let taken = |place: usize| {
                        place == timestamp
                            || matches!(device, Cell::Column(column) if column == place)
                            || matches!(room, Some(Cell::Column(column)) if column == place)
                    };
                    let others = header.iter().enumerate().filter(|(place, _)| !taken(*place));
                    others
                        .map(|(place, name)| {
                            let name =
                                name.parse().map_err(|why| anyhow::anyhow!("the column {why}"))?;
                            Ok(Bound { name, columns: vec![place], factor: None, total: None })
                        })
                        .collect::<anyhow::Result<_>>()?
                } else {
                    metrics.iter().map(bind_metric).collect::<anyhow::Result<_>>()?
                };
                ensure!(!metrics.is_empty(), "there is no column of a metric");
                vec![BoundDevice { device, room, metrics }]
            }
        };
        Ok(Rows { timestamp: (timestamp, self.timestamp.clone()), devices })
    }
}

/// Columns by their places, and the totals so far.
pub(super) struct Rows {
    timestamp: (usize, TimestampColumn),
    devices: Vec<BoundDevice>,
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
    fn of<'a>(&'a self, row: &'a StringRecord) -> &'a str {
        match self {
            Self::Column(place) => &row[*place],
            Self::Fixed(text) => text,
        }
    }
}

struct Bound {
    name: MetricName,
    columns: Vec<usize>,
    factor: Option<Decimal>,
    total: Option<Decimal>,
}

impl Bound {
    /// The value of a row; none where one of its cells is empty.
    fn value(&mut self, row: &StringRecord) -> anyhow::Result<Option<String>> {
        if self.columns.iter().any(|place| row[*place].is_empty()) {
            return Ok(None);
        }
        // A plain column keeps its digits, all 38 of them; only arithmetic needs a decimal.
        if let ([place], None, None) = (self.columns.as_slice(), self.factor, self.total) {
            let text = &row[*place];
            Number::parse(text).with_context(|| format!("{}: {:?}", self.name, excerpt(text)))?;
            return Ok(Some(text.to_owned()));
        }
        let too_large = || format!("{}: the result is too large, over 28 digits", self.name);
        let mut sum = Decimal::ZERO;
        for place in &self.columns {
            let text = &row[*place];
            let number = Decimal::from_str(text).or_else(|_| Decimal::from_scientific(text));
            let number = number.with_context(|| format!("{}: {:?}", self.name, excerpt(text)))?;
            sum = sum.checked_add(number).with_context(too_large)?;
        }
        if let Some(total) = &mut self.total {
            *total = total.checked_add(sum).with_context(too_large)?;
            sum = *total;
        }
        let value = sum.checked_mul(self.factor.unwrap_or(Decimal::ONE)).with_context(too_large)?;
        Ok(Some(value.normalize().to_string()))
    }
}

impl Rows {
    /// A row's readings as JSON, one a device that has at least one value.
    pub(super) fn readings(&mut self, row: &StringRecord) -> anyhow::Result<Vec<String>> {
        let at = instant(&row[self.timestamp.0], &self.timestamp.1)?;
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut readings = Vec::with_capacity(self.devices.len());
        for device in &mut self.devices {
            let mut metrics = String::new();
            for metric in &mut device.metrics {
                if let Some(value) = metric.value(row)? {
                    // JSON knows no leading plus or point.
                    let plain = value.starts_with(|c: char| c.is_ascii_digit() || c == '-');
                    let value = if plain { value } else { Number::parse(&value)?.to_string() };
                    metrics.extend([",\"", metric.name.as_str(), "\":", &value]);
                }
            }
            if metrics.is_empty() {
                continue;
            }
            let room =
                device.room.as_ref().map(|cell| cell.of(row)).filter(|room| !room.is_empty());
            let room = room.map(|room| format!(r#","room":{}"#, quoted(room))).unwrap_or_default();
            let id = quoted(device.device.of(row));
            readings.push(format!(
                r#"{{"timestamp":{},"device_id":{id}{room}{metrics}}}"#,
                quoted(&at)
            ));
        }
        Ok(readings)
    }
}

/// The instant as the API takes it.
fn instant(text: &str, column: &TimestampColumn) -> anyhow::Result<String> {
    let name = &column.name;
    let Some(format) = &column.format else {
        Instant::parse(text, Instant::MIN).with_context(|| name.clone())?;
        return Ok(text.to_owned());
    };
    let at = match column.offset {
        Some(offset) => {
            let local = NaiveDateTime::parse_from_str(text, format).with_context(|| {
                format!("{name}: {:?} is not of the form {format:?}", excerpt(text))
            })?;
            offset.from_local_datetime(&local).single().context("an offset leaves no doubt")?
        }
        None => match DateTime::parse_from_str(text, format) {
            Ok(at) => at,
            Err(_) if NaiveDateTime::parse_from_str(text, format).is_ok() => {
                bail!(
                    "{name}: {:?} has no offset from UTC; add --offset, such as +01:00",
                    excerpt(text)
                )
            }
            Err(error) => {
                return Err(error).with_context(|| {
                    format!("{name}: {:?} is not of the form {format:?}", excerpt(text))
                });
            }
        },
    };
    Ok(at.to_utc().to_rfc3339_opts(SecondsFormat::Millis, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide(maps: &[&str]) -> anyhow::Result<Columns> {
        let timestamp = TimestampColumn {
            name: "date".to_owned(),
            format: Some("%Y/%m/%d %H:%M".to_owned()),
            offset: FixedOffset::east_opt(3_600),
        };
        Ok(Columns { timestamp, shape: Shape::wide(maps)? })
    }

    fn read(columns: &Columns, rows: &[&[&str]]) -> anyhow::Result<Vec<String>> {
        let mut bound = columns.bind(&StringRecord::from(rows[0].to_vec()))?;
        let mut all = Vec::new();
        for row in &rows[1..] {
            all.extend(bound.readings(&StringRecord::from(row.to_vec()))?);
        }
        Ok(all)
    }

    #[test]
    fn a_wide_row_is_a_reading_a_device_and_totals_run_on() {
        let columns = wide(&[
            "t1@kitchen:temperature=T1,humidity=RH_1",
            "meter:current_w=A+L*6,cumulative_kwh_p=total(A+L)*0.001",
        ])
        .unwrap();
        let header = ["date", "A", "L", "T1", "RH_1"];
        let rows: [&[&str]; 3] = [
            &header,
            &["2016/1/11 17:00", "60", "30", "19.89", "47.59666667"],
            &["2016/1/11 17:10", "0.1", "0.2", "", ".5"],
        ];
        assert_eq!(
            read(&columns, &rows).unwrap(),
            [
                r#"{"timestamp":"2016-01-11T16:00:00.000Z","device_id":"t1","room":"kitchen","temperature":19.89,"humidity":47.59666667}"#,
                r#"{"timestamp":"2016-01-11T16:00:00.000Z","device_id":"meter","current_w":540,"cumulative_kwh_p":0.09}"#,
                r#"{"timestamp":"2016-01-11T16:10:00.000Z","device_id":"t1","room":"kitchen","humidity":0.5}"#,
                r#"{"timestamp":"2016-01-11T16:10:00.000Z","device_id":"meter","current_w":1.8,"cumulative_kwh_p":0.0903}"#,
            ]
        );
    }

    #[test]
    fn a_bad_mapping_is_named() {
        let error = |map: &str| format!("{:#}", wide(&[map]).unwrap_err());
        for (map, expected) in [
            ("kitchen", "expected DEVICE@ROOM:metric=COLUMN"),
            ("a#b:t=T1", "the device id holds '#'"),
            ("d@ROOM:t=T1", "the room \"ROOM\" is a reserved name"),
            ("d:pk=T1", "\"pk\" is a reserved name"),
            ("d:t=T1*x", "the factor is no number"),
            ("d:t=T1+", "a column has no name"),
            ("d:t=T1,t=T2", "the metric \"t\" stands twice"),
        ] {
            assert!(error(map).contains(expected), "{map}: {}", error(map));
        }
        let columns = wide(&["d:t=T2"]).unwrap();
        let missing = read(&columns, &[&["date", "T1"]]).unwrap_err().to_string();
        assert!(missing.contains("no column \"T2\"; there are: date, T1"), "{missing}");
        let twice = wide(&["d:t=T1", "d:h=T2"]).unwrap_err().to_string();
        assert!(twice.contains("\"d\" is mapped twice"), "{twice}");
    }

    #[test]
    fn a_column_of_rooms_that_is_asked_for_must_be_there() {
        let long = |room| Columns {
            timestamp: TimestampColumn::default(),
            shape: Shape::long(None, "device_id", room, &[]).unwrap(),
        };
        let header = StringRecord::from(vec!["timestamp", "device_id", "t"]);
        assert!(long(None).bind(&header).is_ok());
        let missing = long(Some("where")).bind(&header).err().unwrap().to_string();
        assert!(missing.contains("no column \"where\""), "{missing}");
    }

    #[test]
    fn a_total_is_of_one_device() {
        let metrics = ["energy=total(A)".to_owned()];
        let error = Shape::long(None, "device_id", None, &metrics).unwrap_err().to_string();
        assert!(error.contains("--device-id"), "{error}");
        assert!(Shape::long(Some("meter"), "device_id", None, &metrics).is_ok());
    }

    #[test]
    fn arithmetic_that_overflows_is_an_error() {
        let largest = Decimal::MAX.to_string();
        let rows: [&[&str]; 2] = [&["date", "A"], &["2016/1/11 17:00", &largest]];
        for map in ["d:t=A+A", "d:t=A*2"] {
            let error = read(&wide(&[map]).unwrap(), &rows).unwrap_err().to_string();
            assert!(error.contains("t: the result is too large"), "{map}: {error}");
        }
        let twice: [&[&str]; 3] = [rows[0], rows[1], rows[1]];
        assert!(read(&wide(&["d:t=total(A)"]).unwrap(), &twice).is_err());
    }

    #[test]
    fn device_ids_with_colons_can_be_mapped() {
        let device: WideDevice = "a4:cf:12@r:t=T1".parse().unwrap();
        assert_eq!(device.device.as_str(), "a4:cf:12");
    }

    #[test]
    fn local_times_need_an_offset() {
        let mut columns = wide(&["d:t=T1"]).unwrap();
        let rows: [&[&str]; 2] = [&["date", "T1"], &["2016/1/11 17:00", "1"]];
        columns.timestamp.offset = None;
        assert!(read(&columns, &rows).unwrap_err().to_string().contains("--offset"));
        let rows: [&[&str]; 2] = [&["date", "T1"], &["yesterday", "1"]];
        assert!(format!("{:#}", read(&columns, &rows).unwrap_err()).contains("is not of the form"));
    }
}
