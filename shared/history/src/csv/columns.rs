//! The meaning of a CSV's columns, from the command line. Reads no row.

use std::collections::BTreeSet;
use std::str::FromStr;

use anyhow::{Context as _, bail, ensure};
use domain::{DeviceId, MetricName, RoomId};
use rust_decimal::Decimal;

use super::timestamp::{RowInterval, Zone};

/// The meaning of the columns of a CSV.
#[derive(Debug, Clone, Default)]
pub struct Columns {
    /// The column of the timestamps.
    pub timestamp: TimestampColumn,
    /// The columns of devices, rooms and metrics.
    pub shape: Shape,
    /// Whether the decimal mark is a comma; if not, the separator decides.
    pub decimal_comma: bool,
}

/// The column of the timestamps, and how to read it.
#[derive(Debug, Clone)]
pub struct TimestampColumn {
    /// The name of the column.
    pub name: String,
    /// The format of the timestamps; if absent, the formats that the API accepts.
    pub format: Option<String>,
    /// The time zone of local times; if absent, local times are refused.
    pub zone: Option<Zone>,
    /// The length of the interval that begins at the timestamp, if values belong to the interval's end.
    pub interval: RowInterval,
}

impl Default for TimestampColumn {
    fn default() -> Self {
        Self {
            name: "timestamp".to_owned(),
            format: None,
            zone: None,
            interval: RowInterval::default(),
        }
    }
}

/// The layout of a file.
#[derive(Debug, Clone)]
pub enum Shape {
    /// One reading per row.
    Long {
        /// The device of all rows, or the column that names it.
        device: DeviceCell,
        /// The column of the rooms; if absent, the column `room` if the file has one.
        room: Option<String>,
        /// The metrics; if empty, every other column is a metric.
        metrics: Vec<ValueColumn>,
    },
    /// Several readings per row, one per device.
    Wide(Vec<WideDevice>),
}

/// The device of the rows in a long file.
#[derive(Debug, Clone)]
pub enum DeviceCell {
    /// The column that names it.
    Column(String),
    /// The device of all rows.
    Fixed(DeviceId),
}

/// A device of a wide file, with its columns.
#[derive(Debug, Clone)]
pub struct WideDevice {
    pub(crate) device: DeviceId,
    pub(crate) room: Option<RoomId>,
    pub(crate) metrics: Vec<ValueColumn>,
}

/// A metric and the source of its value, such as `kwh=total(A+B)*0.001`.
#[derive(Debug, Clone)]
pub struct ValueColumn {
    pub(crate) name: MetricName,
    /// A sum of columns, or the name of one column, which may have `+` and `*` in it. Only the header row tells them
    /// apart.
    pub(crate) source: String,
}

/// The source of a value: a sum of columns, times a factor. A total adds up the columns of all rows so far.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sum {
    /// The name of a column, or several with `+` between them.
    pub(crate) columns: String,
    pub(crate) factor: Option<Decimal>,
    pub(crate) total: bool,
}

/// The beginning of a source that is a total.
const TOTAL: &str = "total(";

impl Default for Shape {
    fn default() -> Self {
        let device = DeviceCell::Column("device_id".to_owned());
        Self::Long { device, room: None, metrics: Vec::new() }
    }
}

impl Shape {
    /// Makes the shape of a long file.
    pub fn long(
        device_id: Option<&str>,
        device: &str,
        room: Option<&str>,
        metrics: &[String],
    ) -> anyhow::Result<Self> {
        let device = match device_id {
            Some(id) => {
                DeviceCell::Fixed(id.parse().map_err(|why| anyhow::anyhow!("--device-id {why}"))?)
            }
            None => DeviceCell::Column(device.to_owned()),
        };

        let metrics: Vec<ValueColumn> =
            metrics.iter().map(|metric| metric.parse()).collect::<anyhow::Result<_>>()?;
        distinct(&metrics).context("--metric")?;

        // A total over rows of several devices would belong to no device.
        let total = metrics.iter().find(|metric| metric.is_total());
        if let (DeviceCell::Column(_), Some(total)) = (&device, total) {
            bail!("--metric {}: total() is of one device; add --device-id", total.name);
        }
        Ok(Self::Long { device, room: room.map(str::to_owned), metrics })
    }

    /// Returns the metrics that are totals, each with its device.
    pub fn totals(&self) -> Vec<(&DeviceId, &MetricName)> {
        let devices: Vec<(&DeviceId, &[ValueColumn])> = match self {
            Self::Long { device: DeviceCell::Fixed(id), metrics, .. } => vec![(id, metrics)],
            Self::Long { .. } => Vec::new(),
            Self::Wide(devices) => {
                devices.iter().map(|device| (&device.device, &*device.metrics)).collect()
            }
        };

        let totals = devices.into_iter().flat_map(|(id, metrics)| {
            metrics.iter().filter(|metric| metric.is_total()).map(move |metric| (id, &metric.name))
        });
        totals.collect()
    }

    /// Makes the shape of a wide file.
    pub fn wide(maps: &[impl AsRef<str>]) -> anyhow::Result<Self> {
        let devices: Vec<WideDevice> =
            maps.iter().map(|map| map.as_ref().parse()).collect::<anyhow::Result<_>>()?;

        // All metrics of a device in one row become one reading, so they need one room.
        let mut seen = BTreeSet::new();
        for WideDevice { device, .. } in &devices {
            let text = "is mapped twice; put all its metrics into one --map";
            ensure!(seen.insert(device), "--map: the device \"{device}\" {text}");
        }

        Ok(Self::Wide(devices))
    }
}

fn distinct(metrics: &[ValueColumn]) -> anyhow::Result<()> {
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

impl FromStr for ValueColumn {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (name, source) =
            text.split_once('=').with_context(|| format!("{text:?}: expected NAME=COLUMN"))?;
        let name = name.trim().parse().map_err(|why| anyhow::anyhow!("{why}"))?;
        Ok(Self { name, source: source.trim().to_owned() })
    }
}

impl ValueColumn {
    /// Returns whether the source is the total of all rows so far. No column has a name like that.
    pub(crate) fn is_total(&self) -> bool {
        self.source.starts_with(TOTAL)
    }
}

impl FromStr for Sum {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (sum, factor) = match text.rsplit_once('*') {
            Some((sum, factor)) => {
                let factor = Decimal::from_str_exact(factor.trim());
                (sum, Some(factor.with_context(|| format!("{text:?}: a factor is not a number"))?))
            }
            None => (text, None),
        };

        let inner = sum.trim().strip_prefix(TOTAL).and_then(|rest| rest.strip_suffix(')'));
        let columns = inner.unwrap_or(sum).trim().to_owned();
        Ok(Self { columns, factor, total: inner.is_some() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_mapping_is_named() {
        let error = |map: &str| format!("{:#}", Shape::wide(&[map]).unwrap_err());
        for (map, expected) in [
            ("kitchen", "expected DEVICE@ROOM:metric=COLUMN"),
            ("a#b:t=T1", "the device id contains '#'"),
            ("d@ROOM:t=T1", "the room \"ROOM\" is a reserved name"),
            ("d:pk=T1", "\"pk\" is a reserved name"),
            ("d:t=T1,t=T2", "the metric \"t\" stands twice"),
        ] {
            assert!(error(map).contains(expected), "{map}: {}", error(map));
        }
        let twice = Shape::wide(&["d:t=T1", "d:h=T2"]).unwrap_err().to_string();
        assert!(twice.contains("\"d\" is mapped twice"), "{twice}");
    }

    #[test]
    fn a_bad_sum_is_named() {
        for (sum, expected) in [
            ("T1*x", "a factor is not a number"),
            ("T1*0.00000000000000000000000000001", "a factor is not a number"),
        ] {
            let error = format!("{:#}", sum.parse::<Sum>().unwrap_err());
            assert!(error.contains(expected), "{sum}: {error}");
        }
    }

    #[test]
    fn a_total_is_of_one_device() {
        let metrics = ["energy=total(A)".to_owned()];
        let error = Shape::long(None, "device_id", None, &metrics).unwrap_err().to_string();
        assert!(error.contains("--device-id"), "{error}");
        assert!(Shape::long(Some("meter"), "device_id", None, &metrics).is_ok());
    }

    #[test]
    fn device_ids_with_colons_can_be_mapped() {
        let device: WideDevice = "a4:cf:12@r:t=T1".parse().unwrap();
        assert_eq!(device.device.as_str(), "a4:cf:12");
    }
}
