//! The parameters of a request for a series, and the metrics that it is about. Reads no table.

use api::{Format, Params, Problem};
use chrono::TimeDelta;
use domain::{
    Aggregate, CalendarUnit, Device, LocalDate, MAX_KNOWN_METRICS, MetricName, MetricRule,
    TimeRange, Timestamp, Zone,
};
use series::{Grid, MAX_ROWS};

use crate::answer::sheet::metrics_of;
use crate::ports::Store;
use crate::readings::ranges::timestamp;
use crate::shared_state::Call;

/// The devices that a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueryScope {
    /// The device that the request's path names.
    Device,
    /// The devices of the room that the path names.
    Room,
    /// The devices of the home that the path names.
    Home,
    /// All devices.
    All,
}

impl QueryScope {
    /// Whether readings count only if they name a room of the question.
    pub(crate) const fn is_of_rooms(self) -> bool {
        matches!(self, Self::Room | Self::Home)
    }
}

/// The grouping of devices into rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grouping {
    /// All devices share one row.
    Together,
    /// Each device has a row.
    Apart,
    /// The devices of each room share a row.
    ByRoom,
}

/// An end of a range.
#[derive(Debug, Clone, Copy)]
enum RangeEnd {
    At(Timestamp),
    /// The begin of a date in the time zone of the rows.
    BeginOf(LocalDate),
}

impl RangeEnd {
    fn read(params: &Params, name: &str, now: Timestamp) -> Result<Option<Self>, Problem> {
        let Some(text) = timestamp(params, name) else { return Ok(None) };
        if let Ok(date) = text.parse() {
            return Ok(Some(Self::BeginOf(date)));
        }
        let at = Timestamp::parse(&text, now).map_err(|why| Problem::field(name, why))?;
        Ok(Some(Self::At(at)))
    }

    fn at(self, zone: Zone) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::BeginOf(date) => zone.midnight(date),
        }
    }
}

/// The range of a request without `from`.
#[derive(Debug, Clone, Copy)]
enum UsualRange {
    /// 24 hours before the end.
    Hours24,
    /// The local month of the end.
    Month,
}

/// The parameters of `series` and `energy`.
#[derive(Debug)]
pub(crate) struct SeriesRequest {
    pub(crate) format: Format,
    /// The requested metrics; `None` stands for all.
    pub(crate) metrics: Option<Vec<MetricName>>,
    /// The requested functions; `None` stands for the usual functions of each metric.
    functions: Option<Vec<Aggregate>>,
    /// The unit of the rows; `None` stands for one total.
    pub(crate) unit: Option<CalendarUnit>,
    zone: Option<Zone>,
    from: Option<RangeEnd>,
    to: Option<RangeEnd>,
    /// The begin of a range without `from`.
    usual: UsualRange,
    now: Timestamp,
    pub(crate) grouping: Grouping,
    pub(crate) has_events: bool,
}

impl SeriesRequest {
    /// Reads the parameters.
    pub(crate) fn parse(call: &Call<'_, impl Store>) -> Result<Self, Problem> {
        let (params, now) = (&call.params, call.session.now);
        let functions = params.words("fn")?;
        let functions =
            functions.map(|words| words.into_iter().filter_map(Aggregate::parse).collect());

        let grouping = match (params.flag("devices"), params.flag("rooms")) {
            (true, true) => {
                let message =
                    "asks for a row of each room, and devices for a row of each device; give one";
                return Err(Problem::field("rooms", message));
            }
            (true, false) => Grouping::Apart,
            (false, true) => Grouping::ByRoom,
            (false, false) => Grouping::Together,
        };

        Ok(Self {
            format: params.format(call.request),
            metrics: params.metrics("metric")?,
            functions,
            unit: params.parse("every")?,
            zone: params.parse("tz")?,
            from: RangeEnd::read(params, "from", now)?,
            to: RangeEnd::read(params, "to", now)?,
            usual: UsualRange::Hours24,
            now,
            grouping,
            has_events: params.flag("events"),
        })
    }

    /// The functions of a metric: the requested ones, else the usual ones of its kind.
    pub(crate) fn functions_of(&self, rule: &MetricRule) -> &[Aggregate] {
        self.functions.as_deref().unwrap_or_else(|| Aggregate::usual(rule))
    }

    /// Whether a metric needs the nearest readings before and after the range. Increases of counters and means of power
    /// over time need them.
    pub(crate) fn needs_neighbours(&self, rule: &MetricRule) -> bool {
        match rule {
            MetricRule::Gauge => false,
            MetricRule::Counter(_) => self.functions_of(rule).contains(&Aggregate::Increase),
            MetricRule::Power(_) => self.functions_of(rule).contains(&Aggregate::TimeMean),
        }
    }

    /// Whether the request asks for rows of each device.
    pub(crate) fn is_apart(&self) -> bool {
        self.grouping == Grouping::Apart
    }

    /// Whether the devices together have every requested metric. If no metric is requested, whether there is a device.
    pub(crate) fn has_all_metrics(&self, devices: &[&Device]) -> bool {
        match &self.metrics {
            Some(names) => metric_names(Some(names), devices).is_ok(),
            None => !devices.is_empty(),
        }
    }

    /// The only requested metric, if any. Several metrics are refused.
    pub(crate) fn only_metric(&self) -> Result<Option<&MetricName>, Problem> {
        match self.metrics.as_deref() {
            None => Ok(None),
            Some([name]) => Ok(Some(name)),
            Some(names) => {
                let message = format!("names {} metrics; energy is computed from one", names.len());
                Err(Problem::field("metric", message))
            }
        }
    }

    /// The time zone of the rows: the requested one, else the home's.
    pub(crate) fn zone(&self, home: Zone) -> Zone {
        self.zone.unwrap_or(home)
    }

    /// Takes a time zone in place of the home's, unless the request asks for one.
    pub(crate) fn prefer_zone(&mut self, zone: Option<Zone>) {
        self.zone = self.zone.or(zone);
    }

    /// The same request, whose range begins with the local month if it has no `from`.
    pub(crate) fn of_month(self) -> Self {
        Self { usual: UsualRange::Month, ..self }
    }

    /// The requested range; its dates are days of `zone`.
    fn range(&self, zone: Zone) -> Result<TimeRange, Problem> {
        let to = match self.to {
            Some(to) => to.at(zone),
            None => self.now.saturating_add(TimeDelta::milliseconds(1)),
        };

        let from = match (self.from, self.usual) {
            (Some(from), _) => from.at(zone),
            (None, UsualRange::Hours24) => to.saturating_add(-TimeDelta::hours(24)),
            (None, UsualRange::Month) => {
                let last = to.saturating_add(TimeDelta::milliseconds(-1));
                CalendarUnit::Month.bucket_of(last, zone).from()
            }
        };

        TimeRange::new(from, to).map_err(|why| Problem::field("from", why))
    }

    /// The rows. The range is widened to whole units.
    pub(crate) fn grid(&self, zone: Zone) -> Result<Grid, Problem> {
        let range = self.range(zone)?;
        let Some(unit) = self.unit else { return Ok(Grid::total(range)) };
        Grid::of(unit, range, zone).ok_or_else(|| {
            let message = format!(
                "makes more than {MAX_ROWS} rows; narrow from and to, or choose a longer unit"
            );
            Problem::field("every", message)
        })
    }
}

/// The requested metrics, if the devices have them. If the request names no metric, all metrics of the devices.
pub(crate) fn metric_names(
    requested: Option<&[MetricName]>,
    devices: &[&Device],
) -> Result<Vec<MetricName>, Problem> {
    let Some(names) = requested else { return Ok(metrics_of(devices.iter().copied())) };
    let is_missing =
        |name: &&MetricName| !devices.iter().any(|device| device.metrics().contains_key(*name));
    let Some(name) = names.iter().find(is_missing) else { return Ok(names.to_vec()) };

    let is_full = |device: &&Device| device.metrics().len() >= MAX_KNOWN_METRICS;
    let message = match devices.iter().copied().find(is_full) {
        Some(device) => format!(
            "{name} is not among the {MAX_KNOWN_METRICS} metrics of {}; a device has no more of them",
            device.id()
        ),
        None => format!("{name} has not been sent; {}", sent(devices)),
    };
    Err(Problem::field("metric", message))
}

/// The metrics that devices have sent, as a clause of a message.
pub(crate) fn sent(devices: &[&Device]) -> String {
    let names = metrics_of(devices.iter().copied());
    let names: Vec<&str> = names.iter().map(MetricName::as_str).take(20).collect();
    match names[..] {
        [] => "no metric has been sent".to_owned(),
        _ => format!("the metrics sent are {}", names.join(", ")),
    }
}
