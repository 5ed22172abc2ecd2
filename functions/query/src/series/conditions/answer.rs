//! Episodes as the API shows them. Reads nothing.

use std::collections::BTreeMap;

use api::{Problem, Response};
use domain::{DeviceId, Episode, Exact, MetricName, Timestamp};
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use series::conditions::Explanation;
use series::{NotCombined, RollupLag};

use super::request::ConditionsRequest;
use crate::answer::row::Cell;
use crate::registry::presence::RoomsLack;
use crate::series::write::{Line, respond};

/// An answer.
pub(crate) struct Answer<'a> {
    pub(crate) request: &'a ConditionsRequest,
    pub(crate) devices: Vec<&'a DeviceId>,
    pub(crate) episodes: &'a [(&'a DeviceId, Episode)],
    /// Metrics that are left out because they do not describe the room, each with its device.
    pub(crate) left_out: Vec<NotCombined<'a>>,
    /// What the rollups lack.
    pub(crate) lag: Option<RollupLag>,
    /// Why devices may be missing.
    pub(crate) rooms_lack: Option<RoomsLack>,
}

/// What is to be said of the episodes.
#[derive(Serialize)]
struct About<'a> {
    from: Timestamp,
    to: Timestamp,
    conditions: BTreeMap<&'a MetricName, String>,
    basis: &'static str,
    devices: &'a [&'a DeviceId],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: &'a [NotCombined<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    rollups_lack: Option<&'a RollupLag>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rooms_lack: Option<RoomsLack>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<Explanation>,
}

impl Answer<'_> {
    /// The answer in the form asked for.
    pub(crate) fn respond(&self, explain: Option<Explanation>) -> Result<Response, Problem> {
        let request = self.request;
        let names = request.search.names();
        let rows = self.episodes.iter().map(|found| Row { found, names: &names });
        let conditions = request.search.conditions.iter();
        let about = About {
            from: request.search.range.from(),
            to: request.search.range.to(),
            conditions: conditions
                .map(|condition| (&condition.metric, condition.interval.to_string()))
                .collect(),
            basis: request.basis().as_str(),
            devices: &self.devices,
            left_out: &self.left_out,
            rollups_lack: self.lag.as_ref(),
            rooms_lack: self.rooms_lack,
            explain,
        };
        respond(request.format, || columns(&names), rows, &about)
    }
}

/// The columns that an episode has whatever is asked.
const OWN_COLUMNS: [&str; 5] = ["device_id", "from", "to", "minutes", "basis"];

fn columns(names: &[MetricName]) -> Vec<String> {
    let extremes = names.iter().flat_map(|name| ["min", "max"].map(|of| format!("{name}.{of}")));
    OWN_COLUMNS.into_iter().map(ToOwned::to_owned).chain(extremes).collect()
}

struct Row<'a> {
    found: &'a (&'a DeviceId, Episode),
    /// The metrics, in the order of the request.
    names: &'a [MetricName],
}

#[derive(Serialize)]
struct Extremes<'a> {
    min: &'a domain::Decimal,
    max: &'a domain::Decimal,
}

impl Row<'_> {
    fn minutes(&self) -> Exact {
        let range = self.found.1.range;
        let millis = Exact::from(range.to().since(range.from()).num_milliseconds());
        millis.rounded_quotient(&Exact::from(60_000_i64)).expect("not zero")
    }
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (device, episode) = self.found;
        let mut row = serializer.serialize_map(None)?;
        row.serialize_entry("device_id", device)?;
        row.serialize_entry("from", &episode.range.from())?;
        row.serialize_entry("to", &episode.range.to())?;
        row.serialize_entry("minutes", &self.minutes())?;
        row.serialize_entry("basis", episode.basis.as_str())?;
        for name in self.names {
            let domain::Extremes { min, max } = &episode.extremes[name];
            row.serialize_entry(name, &Extremes { min, max })?;
        }
        row.end()
    }
}

impl Line for Row<'_> {
    fn cells(&self) -> Vec<Cell> {
        let (device, episode) = self.found;
        let mut cells = vec![
            Cell::text(device.as_str()),
            Cell::text(episode.range.from().to_string()),
            Cell::text(episode.range.to().to_string()),
            Cell::number(&self.minutes()),
            Cell::text(episode.basis.as_str()),
        ];
        for name in self.names {
            let domain::Extremes { min, max } = &episode.extremes[name];
            cells.extend([Cell::number(min), Cell::number(max)]);
        }
        cells
    }
}
