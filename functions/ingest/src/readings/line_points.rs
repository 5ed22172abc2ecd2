//! Turns lines of line protocol into readings: unites points of one device and millisecond, and names the bad lines.
//! Reads and writes no table.

use std::collections::hash_map::{DefaultHasher, Entry as Slot};
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash as _, Hasher as _};

use api::{FieldError, MAX_READINGS, Problem, ProblemKind};
use chrono::TimeDelta;
use domain::{Decimal, DeviceId, MAX_FIELDS, MetricName, Reading, RoomId, Timestamp};
use table::ReadingKey;

use crate::formats::draft::Fault;
use crate::formats::line_protocol::mapping::{self, MappedMetric, MappingError, MappingRules};
use crate::formats::line_protocol::{LineError, Numbered, Precision, ProtocolLine, lines};
use crate::intake::sender::RequestSender;
use crate::intake::times::Times;
use crate::readings::Assembled;

/// How far a point's timestamp may be after its arrival: forecasts are written, too.
const MAX_AHEAD: TimeDelta = TimeDelta::days(14);
/// The nanoseconds of a millisecond.
const MILLISECOND: i128 = 1_000_000;

/// Parses and maps the lines of a request.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    pub(crate) precision: Precision,
    pub(crate) rules: MappingRules,
    pub(crate) sender: RequestSender<'a>,
    pub(crate) times: Times,
}

/// The parsed lines of a request, as readings.
#[derive(Debug, Default)]
pub(crate) struct LinePoints<'a> {
    /// The readings and the refusals. A refusal has the index of its line in [`lines`](Self::lines).
    pub(crate) assembled: Assembled,
    /// The number and the text of each line.
    pub(crate) lines: Vec<(usize, &'a [u8])>,
    /// The number of string fields, which are not stored.
    pub(crate) strings: usize,
    /// The number of points that were united with a point of another instant in the same millisecond.
    pub(crate) merged: usize,
    sources: HashMap<ReadingKey, (usize, Vec<FieldSource>)>,
}

/// The origin of a reading's metric: its field, series and instant.
#[derive(Debug)]
struct FieldSource {
    metric: MetricName,
    /// The name of the field. Several fields may map to one metric: `usageIdle`, `usage_idle`.
    field: String,
    series: u64,
    nanos: i128,
}

/// The reason why a line, or a part of a line, is refused.
#[derive(Debug, thiserror::Error)]
enum LineFault {
    #[error(transparent)]
    Line(#[from] LineError),
    #[error(transparent)]
    Mapping(#[from] MappingError),
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error("the token may not write for the device {}", .0.as_str())]
    Foreign(DeviceId),
    #[error("{number} is {at} in {precision}; add precision={meant}")]
    Precision { number: i64, at: String, precision: &'static str, meant: &'static str },
    #[error("timestamp {0} is outside of the years 1970 to 9999")]
    Timestamp(i64),
    #[error(
        "{metric} of {device} at this time comes from another line too, with other tags or another field; send them as different devices or metrics"
    )]
    SharedMetric { device: DeviceId, metric: MetricName },
    #[error("{device} has more than {MAX_FIELDS} metrics at this time")]
    TooManyMetrics { device: DeviceId },
}

impl Reader<'_> {
    /// The points of a body.
    pub(crate) fn read<'b>(&self, body: &'b [u8]) -> Result<LinePoints<'b>, Problem> {
        let mut points = LinePoints::default();
        for Numbered { number, text, line } in lines(body) {
            if points.lines.len() == MAX_READINGS {
                let detail = format!("more than {MAX_READINGS} lines; send fewer at a time");
                return Err(Problem::new(ProblemKind::TooLarge, detail));
            }

            let index = points.lines.len();
            points.lines.push((number, text));
            let added =
                line.map_err(LineFault::from).and_then(|line| self.add(&line, index, &mut points));
            if let Err(fault) = added {
                points.refuse(index, &fault);
            }
        }
        Ok(points)
    }

    fn add(
        &self,
        line: &ProtocolLine<'_>,
        index: usize,
        points: &mut LinePoints<'_>,
    ) -> Result<(), LineFault> {
        let mapped = mapping::map(line, &self.rules)?;
        let time = self.time(line.timestamp)?;
        points.strings += mapped.strings;
        for why in &mapped.refused {
            points.refuse(index, &LineFault::Mapping(why.clone()));
        }

        let series = series(line);
        let room = mapped.room.as_ref().map(|(id, _)| id);
        for point in &mapped.points {
            if !self.sender.may_write(&point.device) {
                points.assembled.is_foreign = true;
                points.refuse(index, &LineFault::Foreign(point.device.clone()));
                continue;
            }
            let (device, fields) = (&point.device, &*point.metrics);
            let of_line = LinePoint { device, room, fields, time, series, line: index };
            match points.unite(&of_line) {
                Ok(n) => points.assembled.timed.readings[n].say(mapped.about(point), room),
                Err(fault) => points.refuse(index, &fault),
            }
        }

        Ok(())
    }

    /// The time of a point. If the time is not allowed, the error names a precision in which the number would be
    /// allowed.
    fn time(&self, timestamp: Option<i64>) -> Result<LineTime, LineFault> {
        let Some(number) = timestamp else {
            let at = self.times.arrived;
            return Ok(LineTime { nanos: i128::from(at.as_millis()) * MILLISECOND, at });
        };

        let time = self.allowed_time(number, self.precision);
        if time.is_ok() {
            return time;
        }

        let is_allowed_in = |other: &Precision| self.allowed_time(number, *other).is_ok();
        let Some(fitting) = Precision::ALL.into_iter().find(is_allowed_in) else { return time };
        let at = self.precision.time(number).map_or_else(
            || "outside of the years 1970 to 9999".to_owned(),
            |time| time.at.to_string(),
        );
        let precision = self.precision.of(number).name();
        Err(LineFault::Precision { number, at, precision, meant: fitting.name() })
    }

    fn allowed_time(&self, number: i64, precision: Precision) -> Result<LineTime, LineFault> {
        let time = precision.time(number).ok_or(LineFault::Timestamp(number))?;
        self.times.ensure_allowed(time.at, MAX_AHEAD)?;
        Ok(time)
    }
}

impl Precision {
    /// The time of a number in this precision; `None` if it is outside of the years 1970 to 9999.
    fn time(self, number: i64) -> Option<LineTime> {
        let nanos = self.nanos(number);
        let millis = i64::try_from(nanos.div_euclid(MILLISECOND)).ok()?;
        Some(LineTime { nanos, at: Timestamp::from_millis(millis).ok()? })
    }
}

impl LinePoints<'_> {
    fn refuse(&mut self, index: usize, fault: &LineFault) {
        let message = fault.to_string();
        // The error has a `field` if the line was parsed but cannot be stored. An error of parsing has no `field`.
        let field = (!matches!(fault, LineFault::Line(_))).then(String::new);
        self.assembled.rejected.push(FieldError { index: Some(index), field, message });
    }

    /// Adds a point to the reading of its device and millisecond. Returns the index of the reading.
    ///
    /// If two points have the same field, the later instant wins; at the same instant, the later line.
    fn unite(&mut self, point: &LinePoint<'_>) -> Result<usize, LineFault> {
        let timed = &mut self.assembled.timed;
        let (index, sources) = match self.sources.entry(point.key()) {
            Slot::Occupied(slot) => slot.into_mut(),
            Slot::Vacant(slot) => {
                let index = timed.readings.len();
                let fields = point.fields.iter();
                let metrics = fields.clone().map(|field| (field.name.clone(), field.value.clone()));
                timed.readings.push(point.reading(metrics.collect())?);
                timed.origins.push(vec![point.line]);
                let sources = fields.map(|field| point.source(field));
                slot.insert((index, sources.collect()));
                return Ok(index);
            }
        };
        point.ensure_fits(sources)?;

        let is_other_instant = |source: &FieldSource| {
            source.series == point.series && source.nanos != point.time.nanos
        };
        self.merged += usize::from(sources.iter().any(is_other_instant));

        let mut later = BTreeMap::new();
        for field in point.fields {
            match position_of(&field.name, sources) {
                Some(known) if sources[known].nanos > point.time.nanos => continue,
                Some(known) => sources[known].nanos = point.time.nanos,
                None => sources.push(point.source(field)),
            }
            later.insert(field.name.clone(), field.value.clone());
        }

        timed.origins[*index].push(point.line);
        if !later.is_empty() {
            timed.readings[*index].merge_later(point.reading(later)?);
        }

        Ok(*index)
    }
}

/// A point of a line, to be united with others of its device and millisecond.
struct LinePoint<'a> {
    device: &'a DeviceId,
    room: Option<&'a RoomId>,
    fields: &'a [MappedMetric<'a>],
    time: LineTime,
    series: u64,
    /// The index of the line in the request.
    line: usize,
}

/// The instant of a line in nanoseconds, and the millisecond that contains it.
#[derive(Debug, Clone, Copy)]
struct LineTime {
    nanos: i128,
    at: Timestamp,
}

impl LinePoint<'_> {
    fn key(&self) -> ReadingKey {
        ReadingKey { device: self.device.clone(), at: self.time.at }
    }

    fn reading(&self, metrics: BTreeMap<MetricName, Decimal>) -> Result<Reading, Fault> {
        let reading =
            Reading::stored(self.device.clone(), self.time.at, self.room.cloned(), metrics);
        Ok(reading?)
    }

    fn source(&self, of: &MappedMetric<'_>) -> FieldSource {
        let (metric, field) = (of.name.clone(), of.field.to_string());
        FieldSource { metric, field, series: self.series, nanos: self.time.nanos }
    }

    /// Refuses a metric that another series or field has at this time. Also refuses too many metrics.
    fn ensure_fits(&self, sources: &[FieldSource]) -> Result<(), LineFault> {
        let mut added = 0;
        for field in self.fields {
            let Some(known) = position_of(&field.name, sources) else {
                added += 1;
                continue;
            };
            if sources[known].series != self.series || sources[known].field != field.field {
                let (device, metric) = (self.device.clone(), field.name.clone());
                return Err(LineFault::SharedMetric { device, metric });
            }
        }

        if sources.len() + added > MAX_FIELDS {
            return Err(LineFault::TooManyMetrics { device: self.device.clone() });
        }
        Ok(())
    }
}

fn position_of(metric: &MetricName, sources: &[FieldSource]) -> Option<usize> {
    sources.iter().position(|source| source.metric == *metric)
}

/// The hash of a line's measurement and tags, which identify its series.
fn series(line: &ProtocolLine<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (line.measurement.unescaped(), line.sorted_tags()).hash(&mut hasher);
    hasher.finish()
}
