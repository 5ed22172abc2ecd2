//! Emoncms' feeds: the directory of its data, or its backup. Sends nothing.
//!
//! A feed becomes the line that emonHub's writer for InfluxDB makes of an input: the feed's name is the measurement,
//! its node is a tag, and the value is the field `value`. So a node is a device, and each of its feeds a metric.
//!
//! Source: <https://github.com/openenergymonitor/emonhub/blob/master/src/interfacers/EmonHubInfluxInterfacer.py>

mod dump;
mod engine;
mod feeds;
mod files;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::ensure;

use super::{Notes, Point, Source, Units, Way, escaped, escaped_measurement};
use engine::Engine;
use feeds::{Described, Feeds};
use files::Files;

pub(in crate::import) use files::is_of;

/// The units of energy. A feed with such a unit is a total if it has more than one value a day.
const ENERGIES: [&str; 3] = ["Wh", "kWh", "MWh"];
/// A day in seconds.
const DAY: i64 = 86_400;
/// A second in nanoseconds.
const SECOND: i64 = 1_000_000_000;

/// Opens the feeds in a directory.
pub(in crate::import) fn open_directory(path: &Path) -> anyhow::Result<Source> {
    source(Files::in_directory(path)?, path)
}

/// Opens the feeds in a backup, or in any other archive of feeds.
pub(in crate::import) fn open_archive(
    reader: impl std::io::Read,
    path: &Path,
) -> anyhow::Result<Source> {
    source(Files::in_archive(reader, path)?, path)
}

fn source(mut files: Files, path: &Path) -> anyhow::Result<Source> {
    ensure!(
        !files.is_empty(),
        "{} has no feed of Emoncms: no phpfina/N.meta with N.dat, and no phptimeseries/feed_N.MYD",
        path.display()
    );
    let (notes, units) = (Notes::default(), Units::default());
    let described = Feeds::of(&files)?;
    notes.say(format!("feeds        {} of Emoncms", files.ids().len()));
    if described.is_empty() {
        notes.say(
            "names        there is no feed/list.json and no emoncms.sql, so a feed is called by its number"
                .to_owned(),
        );
    }
    for id in described.ids().filter(|id| !files.ids().contains(id)) {
        let engine = described.of_id(id).engine_name();
        notes.leave_out(&format!("feeds without a file here, {engine}"));
    }
    for id in files.of_two_engines() {
        keep_one_engine(&mut files, id, &described.of_id(id), &notes);
    }
    let mut series = BTreeSet::new();
    let mut feeds = Vec::new();
    for id in files.ids() {
        let feed = Feed::new(id, &described.of_id(id), &mut series);
        match Engine::open(&files, id) {
            Ok(Some(engine)) => {
                if let Some(unit) = &feed.unit {
                    let is_energy = ENERGIES.contains(&&**unit);
                    let is_total = is_energy && engine.interval().is_none_or(|it| it < DAY);
                    units.know(feed.series(), unit, is_total);
                }
                feeds.push(feed);
            }
            Ok(None) => notes.leave_out("feeds without a value"),
            Err(why) => notes.refuse(0, format!("{}: {why:#}", feed.title)),
        }
    }
    let kept = notes.clone();
    // Only one feed is open at a time: there may be more feeds than files that a process may open.
    let points = feeds.into_iter().flat_map(move |feed| {
        let notes = kept.clone();
        let values: Box<dyn Iterator<Item = _> + Send> = match Engine::open(&files, feed.id) {
            Ok(engine) => Box::new(engine.into_iter().flatten()),
            Err(error) => Box::new(std::iter::once(Err(error))),
        };
        values.filter_map(move |value| feed.point(value, &notes))
    });
    Ok(Source { points: Box::new(points), notes, units })
}

/// Keeps only the files of a feed's current engine. Emoncms leaves the files of the earlier engine when a feed gets
/// another one.
fn keep_one_engine(files: &mut Files, id: u64, described: &Described, notes: &Notes) {
    let own = described.is_of_fina();
    let is_of_fina = own.unwrap_or(false);
    files.forget(id, !is_of_fina);
    let (kept, left) =
        if is_of_fina { ("PHPFina", "PHPTimeSeries") } else { ("PHPTimeSeries", "PHPFina") };
    let why = match own {
        Some(_) => format!("whose engine is {kept}"),
        None => format!("which is in {kept}, too, and nothing tells its engine"),
    };
    notes.leave_out(&format!("files of {left} of feed {id}, {why}"));
}

/// A feed with the texts of its lines.
struct Feed {
    id: u64,
    /// The name by which a person finds the feed.
    title: String,
    measurement: String,
    tags: String,
    unit: Option<String>,
}

impl Feed {
    /// Names a feed. Several users may have feeds with the same name and node; the later ones get their number as a
    /// tag.
    fn new(id: u64, described: &Described, known: &mut BTreeSet<(String, String)>) -> Self {
        let Described { name, node, unit, .. } = described;
        let name = name.clone().unwrap_or_else(|| format!("feed_{id}"));
        let mut tags: Vec<String> =
            node.iter().map(|node| format!("node={}", escaped(node))).collect();
        if !known.insert((name.clone(), tags.concat())) {
            tags.insert(0, format!("feed={id}"));
        }
        Self {
            id,
            title: format!("feed {id} ({name})"),
            measurement: escaped_measurement(&name),
            tags: tags.join(","),
            unit: unit.clone(),
        }
    }

    fn series(&self) -> String {
        self.at(0, String::new()).series()
    }

    fn at(&self, seconds: i64, value: String) -> Point {
        Point {
            measurement: self.measurement.clone(),
            tags: self.tags.clone(),
            fields: vec![("value".to_owned(), value)],
            nanos: seconds * SECOND,
            line: 0,
            way: Way::Plain,
            hour: None,
        }
    }

    /// Returns the point of a value, with the shortest digits that identify the 32-bit float. NaN is a gap.
    fn point(
        &self,
        value: anyhow::Result<engine::Value>,
        notes: &Notes,
    ) -> Option<anyhow::Result<Point>> {
        match value {
            Ok(engine::Value::Measured(_, value)) if value.is_nan() => {
                notes.leave_out("gaps of feeds");
            }
            Ok(engine::Value::Measured(_, value)) if value.is_infinite() => {
                notes.leave_out("values of feeds that are not finite");
            }
            Ok(engine::Value::Measured(seconds, value)) => {
                return Some(Ok(self.at(seconds, value.to_string())));
            }
            Ok(engine::Value::Cut(why)) => notes.refuse(0, format!("{}: {why}", self.title)),
            Err(error) => return Some(Err(error.context(self.title.clone()))),
        }
        None
    }
}

#[cfg(test)]
mod tests;
