//! Lines of line protocol become readings: points of one device and millisecond united, the bad ones named.
//! Reads and writes no table.

use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry as Slot};
use std::hash::{Hash as _, Hasher as _};

use api::{FieldError, MAX_READINGS, Problem, ProblemKind};
use chrono::TimeDelta;
use domain::{DeviceId, MetricName, Reading, RoomId, Timestamp};
use table::ReadingKey;

use crate::formats::draft::Fault;
use crate::formats::line_protocol::mapping::{self, MappingError, Point, Rules};
use crate::formats::line_protocol::{Line, LineError, MAX_FIELDS, Numbered, Precision, lines};
use crate::intake::sender::Sender;
use crate::intake::times::Times;
use crate::readings::Assembled;

/// How far ahead of its arrival a point may lie: forecasts are written too.
const MAX_AHEAD: TimeDelta = TimeDelta::days(14);
/// Nanoseconds of a millisecond.
const MILLISECOND: i128 = 1_000_000;

/// How a request's lines are read.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    pub(crate) precision: Precision,
    pub(crate) rules: Rules,
    pub(crate) sender: Sender<'a>,
    pub(crate) times: Times,
}

/// The lines of a request, read.
#[derive(Debug, Default)]
pub(crate) struct Points<'a> {
    /// The readings; what is refused has the place of its line in [`lines`](Self::lines).
    pub(crate) assembled: Assembled,
    /// The number and the text of each line.
    pub(crate) lines: Vec<(usize, &'a [u8])>,
    /// The number of strings, which are not kept.
    pub(crate) strings: usize,
    /// The number of points that were united with one of another instant of the same millisecond.
    pub(crate) merged: usize,
    sources: HashMap<ReadingKey, (usize, Vec<FieldSource>)>,
}

/// Where a metric of a reading comes from.
#[derive(Debug)]
struct FieldSource {
    metric: MetricName,
    /// The name of the field, which may be another with the same metric: `usageIdle`, `usage_idle`.
    field: String,
    series: u64,
    nanos: i128,
}

/// The reasons for which a line, or a part of it, is refused.
#[derive(Debug, thiserror::Error)]
enum LineFault {
    #[error(transparent)]
    Line(#[from] LineError),
    #[error(transparent)]
    Mapping(#[from] MappingError),
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error("{} is not a device of the token's", .0.as_str())]
    Foreign(DeviceId),
    #[error("{number} is {at} in {precision}; add precision={meant}")]
    Precision { number: i64, at: String, precision: &'static str, meant: &'static str },
    #[error("timestamp {0} is outside of the years 1970 to 9999")]
    Timestamp(i64),
    #[error(
        "{metric} of {device} at this time is another line's, of other tags or of another field; write what tells them apart"
    )]
    SharedMetric { device: DeviceId, metric: MetricName },
    #[error("{device} has more than {MAX_FIELDS} metrics at this time")]
    TooManyMetrics { device: DeviceId },
}

impl Reader<'_> {
    /// The points of a body.
    pub(crate) fn read<'b>(&self, body: &'b [u8]) -> Result<Points<'b>, Problem> {
        let mut points = Points::default();
        for Numbered { number, text, line } in lines(body) {
            if points.lines.len() == MAX_READINGS {
                let detail = format!("more than {MAX_READINGS} lines; send fewer at a time");
                return Err(Problem::new(ProblemKind::TooLarge, detail));
            }
            let place = points.lines.len();
            points.lines.push((number, text));
            let added =
                line.map_err(LineFault::from).and_then(|line| self.add(&line, place, &mut points));
            if let Err(fault) = added {
                points.refuse(place, &fault);
            }
        }
        Ok(points)
    }

    fn add(&self, line: &Line<'_>, place: usize, points: &mut Points<'_>) -> Result<(), LineFault> {
        let mapped = mapping::map(line, &self.rules)?;
        let (nanos, at) = self.time(line.timestamp)?;
        points.strings += mapped.strings;
        for why in &mapped.refused {
            points.refuse(place, &LineFault::Mapping(why.clone()));
        }
        let series = series(line);
        let room = mapped.room.as_ref().map(|(id, _)| id);
        for point in &mapped.points {
            if !self.sender.may_write(&point.device) {
                points.assembled.is_foreign = true;
                points.refuse(place, &LineFault::Foreign(point.device.clone()));
                continue;
            }
            match points.unite(point, room, (nanos, at), series, place) {
                Ok(n) => points.assembled.timed.readings[n].say(mapped.about(point), room),
                Err(fault) => points.refuse(place, &fault),
            }
        }
        Ok(())
    }

    /// The instant of a line, in nanoseconds, and its millisecond.
    fn time(&self, timestamp: Option<i64>) -> Result<(i128, Timestamp), LineFault> {
        let Some(number) = timestamp else {
            let at = self.times.arrived;
            return Ok((i128::from(at.as_millis()) * MILLISECOND, at));
        };
        let read = |precision: Precision| {
            let nanos = precision.nanos(number);
            let millis = i64::try_from(nanos.div_euclid(MILLISECOND)).ok()?;
            Some((nanos, Timestamp::from_millis(millis).ok()?))
        };
        let allowed = |(_, at): &(i128, Timestamp)| self.times.fault(*at, MAX_AHEAD);
        let instant = read(self.precision);
        if let Some(instant) = instant.filter(|instant| allowed(instant).is_ok()) {
            return Ok(instant);
        }
        let meant = Precision::ALL
            .into_iter()
            .find(|other| read(*other).is_some_and(|at| allowed(&at).is_ok()));
        let precision = self.precision.of(number).name();
        Err(match (instant, meant) {
            (Some((_, at)), Some(meant)) => {
                LineFault::Precision { number, at: at.to_string(), precision, meant: meant.name() }
            }
            (None, Some(meant)) => {
                let at = "outside of the years 1970 to 9999".to_owned();
                LineFault::Precision { number, at, precision, meant: meant.name() }
            }
            (Some(instant), None) => allowed(&instant).expect_err("it is not allowed").into(),
            (None, None) => LineFault::Timestamp(number),
        })
    }
}

impl Points<'_> {
    fn refuse(&mut self, place: usize, fault: &LineFault) {
        let message = fault.to_string();
        // A line that is read and cannot be stored is not one that cannot be read.
        let field = (!matches!(fault, LineFault::Line(_))).then(String::new);
        self.assembled.rejected.push(FieldError { index: Some(place), field, message });
    }

    /// Adds a point to the reading of its device and millisecond. Of one field the later instant wins, and of
    /// one instant the later line. Returns the place of the reading.
    fn unite(
        &mut self,
        point: &Point<'_>,
        room: Option<&RoomId>,
        (nanos, at): (i128, Timestamp),
        series: u64,
        place: usize,
    ) -> Result<usize, LineFault> {
        let timed = &mut self.assembled.timed;
        let key = ReadingKey { device: point.device.clone(), at };
        let of = |metric: &MetricName, field: &str| {
            let (metric, field) = (metric.clone(), field.to_owned());
            FieldSource { metric, field, series, nanos }
        };
        let metrics =
            point.metrics.iter().map(|(metric, value, _)| (metric.clone(), value.clone()));
        let new = |metrics| {
            Reading::stored(point.device.clone(), at, room.cloned(), metrics).map_err(Fault::from)
        };
        let slot = match self.sources.entry(key) {
            Slot::Vacant(slot) => {
                let sources = point.metrics.iter().map(|(metric, _, field)| of(metric, field));
                let sources = sources.collect();
                let n = timed.readings.len();
                slot.insert((n, sources));
                timed.readings.push(new(metrics.collect())?);
                timed.origins.push(vec![place]);
                return Ok(n);
            }
            Slot::Occupied(slot) => slot,
        };
        let (n, sources) = slot.into_mut();
        let known = |sources: &[FieldSource], metric: &MetricName| {
            sources.iter().position(|source| source.metric == *metric)
        };
        let mut added = 0;
        for (metric, _, field) in &point.metrics {
            match known(sources, metric) {
                Some(n) if sources[n].series != series || sources[n].field != *field => {
                    let device = point.device.clone();
                    return Err(LineFault::SharedMetric { device, metric: metric.clone() });
                }
                Some(_) => {}
                None => added += 1,
            }
        }
        if sources.len() + added > MAX_FIELDS {
            return Err(LineFault::TooManyMetrics { device: point.device.clone() });
        }
        let is_other_instant =
            sources.iter().any(|source| source.series == series && source.nanos != nanos);
        self.merged += usize::from(is_other_instant);
        let mut later = std::collections::BTreeMap::new();
        for ((metric, value), (.., field)) in metrics.zip(&point.metrics) {
            match known(sources, &metric) {
                Some(n) if sources[n].nanos > nanos => continue,
                Some(n) => sources[n].nanos = nanos,
                None => sources.push(of(&metric, field)),
            }
            later.insert(metric, value);
        }
        timed.origins[*n].push(place);
        if !later.is_empty() {
            timed.readings[*n].unite(new(later)?);
        }
        Ok(*n)
    }
}

/// What two lines of one series share, and two of different series almost surely do not.
fn series(line: &Line<'_>) -> u64 {
    let mut tags: Vec<_> =
        line.tags.iter().map(|(key, value)| (key.unescaped(), value.unescaped())).collect();
    tags.sort_unstable();
    let mut hasher = DefaultHasher::new();
    (line.measurement.unescaped(), tags).hash(&mut hasher);
    hasher.finish()
}
