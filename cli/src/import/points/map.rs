//! The map of series: which series are imported, as which device, into which room. A dry run writes it as CSV and a
//! person edits it. Reads no source.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use domain::DeviceId;
use serde::{Deserialize, Serialize};

use crate::import::patterns::Unmet;
use crate::output::counted;
use crate::settings_file;
use history::csv::separator;
use history::notes::Notes;
use history::point::{DEVICE_TAG, Point, ROOM_TAG, Way, escaped};

/// The maximum number of rows that an error names.
const MAX_NAMED: usize = 10;

/// A row: a series, its default target, and the target that the person wants instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::import) struct Row {
    pub(in crate::import) series: String,
    /// `yes` or `no`.
    pub(in crate::import) import: String,
    /// The wanted device; if empty, the device in `becomes`.
    pub(in crate::import) device: String,
    /// The wanted room; if empty, the room in `becomes`.
    pub(in crate::import) room: String,
    #[serde(skip_deserializing)]
    pub(in crate::import) points: u64,
    #[serde(skip_deserializing)]
    pub(in crate::import) first: String,
    #[serde(skip_deserializing)]
    pub(in crate::import) last: String,
    #[serde(skip_deserializing)]
    pub(in crate::import) becomes: String,
}

/// A person's choice for a series.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SeriesChoice {
    is_imported: bool,
    device: Option<DeviceId>,
    room: Option<String>,
}

/// The rows of a file, by series. The debugging text identifies an import.
#[derive(Debug, Clone, Default)]
pub(in crate::import) struct SeriesMap {
    rows: BTreeMap<String, SeriesChoice>,
    unmet: Unmet,
}

/// Writes a map file.
pub(in crate::import) fn write(path: &Path, rows: impl Iterator<Item = Row>) -> anyhow::Result<()> {
    let context = || format!("cannot write {}", path.display());
    let mut writer = csv::Writer::from_path(path).with_context(context)?;
    for row in rows {
        writer.serialize(row).with_context(context)?;
    }
    writer.flush().with_context(context)
}

impl SeriesMap {
    /// Reads a file, with the separator that a spreadsheet gave it.
    pub(in crate::import) fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let text = settings_file::content(path).context("--map")?;
        let separator = separator(text.lines().next().unwrap_or_default().as_bytes());
        let mut reader =
            csv::ReaderBuilder::new().delimiter(separator).from_reader(text.as_bytes());

        let mut rows = BTreeMap::new();
        // The header is row 1.
        for (row, number) in reader.deserialize::<Row>().zip(2..) {
            let added = row.map_err(anyhow::Error::from).and_then(|row| {
                let choice = SeriesChoice::of(&row)?;
                ensure!(rows.insert(row.series, choice).is_none(), "the series stands twice");
                Ok(())
            });
            added.with_context(|| format!("--map: {shown}, row {number}"))?;
        }

        ensure!(!rows.is_empty(), "--map: {shown} has no series, so nothing would be imported");
        Ok(Self { unmet: Unmet::of(rows.keys().cloned()), rows })
    }

    /// Notes that the source has the series of a point.
    pub(in crate::import) fn meet(&self, point: &Point) {
        if self.rows.is_empty() {
            return;
        }
        self.unmet.meet(&point.series());
    }

    /// Names the rows whose series the source did not have; `None` if there are none. Called after all of the source
    /// was read.
    pub(in crate::import) fn not_met(&self) -> Option<String> {
        let unknown = self.unmet.quoted();
        let more = unknown.len().saturating_sub(MAX_NAMED);
        let names = &unknown[..unknown.len() - more];
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!unknown.is_empty()).then(|| {
            let count = counted(unknown.len() as u64, "row");
            format!(
                "map          {count} of series that the source does not have: {}{more}",
                names.join(", ")
            )
        })
    }

    /// Returns the point with its wanted device and room. Returns `None` and counts the point if it is not wanted.
    pub(in crate::import) fn apply(
        &self,
        mut point: Point,
        notes: &Notes,
    ) -> anyhow::Result<Option<Point>> {
        if self.rows.is_empty() {
            return Ok(Some(point));
        }

        let series = point.series();
        let Some(SeriesChoice { is_imported, device, room }) = self.rows.get(&series) else {
            notes.leave_out("points of series that are not in the map");
            return Ok(None);
        };
        if !is_imported {
            notes.leave_out("points of series that the map leaves out");
            return Ok(None);
        }

        let room = room.as_ref().map(|room| format!("={},", escaped(room)));
        if let Some(entity) = point.entity() {
            // The class and the unit are known only while the point belongs to the entity.
            if let Some(device) = device {
                let Some((domain, object)) = device.as_str().split_once('.') else {
                    bail!(
                        "--map: {series}: {device} is not an entity of Home Assistant, such as {entity}"
                    );
                };
                if point.measurement == entity {
                    point.measurement = device.to_string();
                }
                point.tags = format!("domain={domain},entity_id={object}");
            }
            if let Some(room) = room {
                let tags = point.tags.split(',').filter(|tag| !is_room(tag));
                let tags: Vec<&str> = tags.collect();
                point.tags = format!("{ROOM_TAG}{room}{}", tags.join(","));
                point.way = Way::Entity;
            }
        } else if let Some(device) = device {
            let room = room.map(|room| format!("{ROOM_TAG}{room}")).unwrap_or_default();
            // The series' own tags stay, so that two series of one device remain two: a metric of both is refused.
            let own = point.tags.split(',').filter(|tag| !tag.is_empty() && !is_room(tag));
            let own: String = own.map(|tag| format!(",{tag}")).collect();
            point.tags = format!("{room}{DEVICE_TAG}={device}{own}");
            point.way = Way::Device;
        } else if room.is_some() {
            bail!(
                "--map: {series}: a room needs a device beside it, because the tags of both are written"
            );
        }

        Ok(Some(point))
    }
}

/// Whether a tag is the room's.
fn is_room(tag: &str) -> bool {
    tag.strip_prefix(ROOM_TAG).is_some_and(|rest| rest.starts_with('='))
}

impl SeriesChoice {
    fn of(row: &Row) -> anyhow::Result<Self> {
        let is_imported = match row.import.trim().to_ascii_lowercase().as_str() {
            "yes" | "" => true,
            "no" => false,
            other => bail!("import is {other:?}; expected yes or no"),
        };

        let filled = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let device = filled(&row.device).map(|text| text.parse::<DeviceId>()).transpose();
        let device = device.map_err(|why| anyhow::anyhow!("the device {why}"))?;
        let plain = device.as_ref().is_none_or(|device| {
            device.as_str().chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        });

        ensure!(plain, "the device has more than letters, digits, '-', '_' and '.'");
        Ok(Self { is_imported, device, room: filled(&row.room) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> anyhow::Result<SeriesMap> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            file.path(),
            format!("series,import,device,room,points,first,last,becomes\n{text}"),
        )
        .unwrap();
        SeriesMap::read(file.path())
    }

    fn applied(map: &SeriesMap, measurement: &str, tags: &str) -> Option<(String, Way)> {
        let (measurement, tags) = (measurement.to_owned(), tags.to_owned());
        let point = Point {
            measurement,
            tags,
            fields: Vec::new(),
            nanos: 0,
            line: 0,
            way: Way::Plain,
            hour: None,
        };
        map.apply(point, &Notes::default()).unwrap().map(|point| (point.series(), point.way))
    }

    #[test]
    fn series_are_left_out_renamed_and_put_into_rooms() {
        let map = map("\"cpu,host=pi\",yes,server,Cellar room,3,,,x\n\"mem,host=pi\",no,,,3,,,x\n\
             \"°C,domain=sensor,entity_id=a\",,sensor.b,Hall,1,,,x\n\"binary_sensor.d,domain=binary_sensor,entity_id=d\",yes,binary_sensor.door,,1,,,x\n")
            .unwrap();
        let is = |series: &str, way| Some((series.to_owned(), way));
        assert_eq!(
            applied(&map, "cpu", "host=pi"),
            is("cpu,area=Cellar\\ room,roomtide_device=server,host=pi", Way::Device)
        );
        assert_eq!(applied(&map, "mem", "host=pi"), None);
        assert_eq!(
            applied(&map, "°C", "domain=sensor,entity_id=a"),
            is("°C,area=Hall,domain=sensor,entity_id=b", Way::Entity)
        );
        let door = applied(&map, "binary_sensor.d", "domain=binary_sensor,entity_id=d");
        assert_eq!(door, is("binary_sensor.door,domain=binary_sensor,entity_id=door", Way::Plain));
        assert_eq!(applied(&map, "disk", "host=pi"), None, "not in the file");
        let unmapped = applied(&SeriesMap::default(), "disk", "host=pi");
        assert_eq!(unmapped, is("disk,host=pi", Way::Plain), "without a file");
    }

    #[test]
    fn a_map_without_a_series_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for text in ["", "series,import,device,room\n"] {
            std::fs::write(&file, text).unwrap();
            let error = SeriesMap::read(file.path()).unwrap_err().to_string();
            assert!(error.contains("has no series"), "{error}");
        }
    }

    #[test]
    fn rows_that_the_source_does_not_have_are_named() {
        let map = map("\"cpu,host=pi\",,,,1,,,\nold,no,,,1,,,\n\"disk,host=\"\"x\"\"\",,,,1,,,\n")
            .unwrap();
        let asked = format!("{map:?}");
        let of = |measurement: &str, tags: &str| Point {
            measurement: measurement.to_owned(),
            tags: tags.to_owned(),
            fields: Vec::new(),
            nanos: 0,
            line: 0,
            way: Way::Plain,
            hour: None,
        };
        map.meet(&of("cpu", "host=pi"));
        map.clone().meet(&of("other", ""));
        let said = "map          2 rows of series that the source does not have: \"disk,host=\\\"x\\\"\", \"old\"";
        assert_eq!(map.not_met().unwrap(), said);
        map.meet(&of("old", ""));
        map.clone().meet(&of("disk", "host=\"x\""));
        assert_eq!(map.not_met(), None);
        assert_eq!(format!("{map:?}"), asked, "an import that goes on asks for the same");
    }

    #[test]
    fn a_spreadsheet_may_write_other_separators_and_empty_what_is_only_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let row = "\u{feff}series;import;device;room;points\r\n\"cpu,host=pi\";yes;server;;\r\n";
        std::fs::write(&file, row).unwrap();
        let map = SeriesMap::read(file.path()).unwrap();
        let expected = Some(("cpu,roomtide_device=server,host=pi".to_owned(), Way::Device));
        assert_eq!(applied(&map, "cpu", "host=pi"), expected);
    }

    #[test]
    fn a_bad_row_is_named() {
        for (row, expected) in [
            ("m,perhaps,,,1,,,", "expected yes or no"),
            ("m,yes,a#b,,1,,,", "the device contains"),
            ("m,yes,a:b,,1,,,", "more than letters"),
            ("m,yes,,,1,,,\nm,yes,,,1,,,", "row 3: the series stands twice"),
            ("m,yes", "row 2"),
        ] {
            let error = format!("{:#}", map(&format!("{row}\n")).unwrap_err());
            assert!(error.starts_with("--map: ") && error.contains(expected), "{error}");
        }
        let map = map("m,yes,,Hall,1,,,\n").unwrap();
        let point = Point {
            measurement: "m".to_owned(),
            tags: String::new(),
            fields: Vec::new(),
            nanos: 0,
            line: 0,
            way: Way::Plain,
            hour: None,
        };
        assert!(map.apply(point, &Notes::default()).is_err());
    }
}
