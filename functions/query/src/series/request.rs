//! The parameters of a request for a series, and the metrics that it is about. Reads no table.

use api::{Format, Params, Problem, Request};
use domain::{
    Aggregate, CalendarUnit, Device, MAX_KNOWN_METRICS, MetricName, TimeRange, Timestamp, Zone,
};
use series::{Grid, MAX_ROWS};

use crate::answer::sheet::metrics_of;
use crate::readings::ranges::time_range;

/// The path that a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueryScope {
    /// The device of the path.
    Device,
    /// The room of the path.
    Room,
    /// The rooms of the home of the path.
    Home,
    /// All devices.
    All,
}

impl QueryScope {
    /// Whether readings count only if they name a room of the question.
    pub(super) const fn is_of_rooms(self) -> bool {
        matches!(self, Self::Room | Self::Home)
    }
}

/// Which rows a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grouping {
    /// The devices together.
    Together,
    /// Each device apart.
    Apart,
    /// The devices of each room together.
    ByRoom,
}

/// The parameters of `series` and `energy`.
#[derive(Debug)]
pub(crate) struct SeriesRequest {
    pub(crate) format: Format,
    /// The metrics asked for; `None` are all.
    pub(crate) metrics: Option<Vec<MetricName>>,
    /// The functions asked for; `None` are the usual ones of each metric.
    pub(crate) functions: Option<Vec<Aggregate>>,
    /// The unit of the rows; `None` asks for one total.
    pub(crate) unit: Option<CalendarUnit>,
    zone: Option<Zone>,
    range: TimeRange,
    pub(super) grouping: Grouping,
    pub(crate) has_events: bool,
}

impl SeriesRequest {
    /// Reads the parameters.
    pub(crate) fn parse(
        request: &Request,
        params: &Params,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let functions = params.words("fn")?;
        let functions =
            functions.map(|words| words.into_iter().filter_map(Aggregate::parse).collect());
        let grouping = match (params.flag("devices"), params.flag("rooms")) {
            (true, true) => {
                let message =
                    "asks for rows of rooms, and devices for rows of devices; give one of them";
                return Err(Problem::field("rooms", message));
            }
            (true, false) => Grouping::Apart,
            (false, true) => Grouping::ByRoom,
            (false, false) => Grouping::Together,
        };

        Ok(Self {
            format: params.format(request),
            metrics: params.metrics("metric")?,
            functions,
            unit: params.parse("every")?,
            zone: params.parse("tz")?,
            range: time_range(params, now)?,
            grouping,
            has_events: params.flag("events"),
        })
    }

    /// Whether the rows of each device are asked for, apart.
    pub(super) fn is_apart(&self) -> bool {
        self.grouping == Grouping::Apart
    }

    /// Whether devices have every metric that is asked for; without a name, whether there are devices.
    pub(super) fn has_all_metrics(&self, devices: &[&Device]) -> bool {
        match &self.metrics {
            Some(names) => metric_names(Some(names), devices).is_ok(),
            None => !devices.is_empty(),
        }
    }

    /// The only metric that is asked for, if one is.
    pub(crate) fn only_metric(&self) -> Result<Option<&MetricName>, Problem> {
        match self.metrics.as_deref() {
            None => Ok(None),
            Some([name]) => Ok(Some(name)),
            Some(names) => {
                let message = format!("names {} metrics; energy comes from one", names.len());
                Err(Problem::field("metric", message))
            }
        }
    }

    /// The time zone of the rows: the home's, unless another one is asked for.
    pub(crate) fn zone(&self, home: Zone) -> Zone {
        self.zone.unwrap_or(home)
    }

    /// The rows: the range is widened to the unit's edges.
    pub(crate) fn grid(&self, zone: Zone) -> Result<Grid, Problem> {
        let Some(unit) = self.unit else { return Ok(Grid::total(self.range)) };
        Grid::of(unit, self.range, zone).ok_or_else(|| {
            let message = format!(
                "makes more than {MAX_ROWS} rows; narrow from and to, or choose a longer unit"
            );
            Problem::field("every", message)
        })
    }
}

/// The metrics that are asked for, if the devices have them; without a name, all of theirs.
pub(super) fn metric_names(
    asked: Option<&[MetricName]>,
    devices: &[&Device],
) -> Result<Vec<MetricName>, Problem> {
    let Some(names) = asked else { return Ok(metrics_of(devices.iter().copied())) };
    let is_missing =
        |name: &&MetricName| !devices.iter().any(|device| device.metrics().contains_key(*name));
    let Some(name) = names.iter().find(is_missing) else { return Ok(names.to_vec()) };

    let is_full = |device: &&Device| device.metrics().len() >= MAX_KNOWN_METRICS;
    let message = match devices.iter().copied().find(is_full) {
        Some(device) => format!(
            "{name} is not among the {MAX_KNOWN_METRICS} metrics of {}; no more are kept of a device",
            device.id()
        ),
        None => format!("{name} has not been sent; {}", sent(devices)),
    };
    Err(Problem::field("metric", message))
}

/// The metrics that devices have sent, as a sentence.
pub(super) fn sent(devices: &[&Device]) -> String {
    let names = metrics_of(devices.iter().copied());
    let names: Vec<&str> = names.iter().map(MetricName::as_str).take(20).collect();
    match names[..] {
        [] => "no metric has been sent".to_owned(),
        _ => format!("the metrics sent are {}", names.join(", ")),
    }
}
