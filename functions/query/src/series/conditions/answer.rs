//! Episodes as the API shows them. Reads nothing.

use std::collections::BTreeMap;

use api::{Problem, Response};
use domain::{Basis, Decimal, DeviceId, Episode, Exact, MetricName, Timestamp};
use serde::Serialize;
use series::conditions::Explanation;
use series::{OutOfMeans, RollupLag};

use super::request::ConditionsRequest;
use crate::answer::row::Entries;
use crate::registry::presence::RoomsLack;
use crate::series::answer::write::respond;

pub(crate) struct ConditionsAnswer<'a> {
    pub(crate) request: &'a ConditionsRequest,
    pub(crate) devices: Vec<&'a DeviceId>,
    pub(crate) episodes: &'a [(&'a DeviceId, Episode)],
    /// Metrics that do not describe the room and are left out, each with the device.
    pub(crate) left_out: Vec<OutOfMeans<'a>>,
    /// The lag of the rollups.
    pub(crate) lag: Option<RollupLag>,
    /// Why devices may be missing from the answer.
    pub(crate) rooms_lack: Option<RoomsLack>,
}

/// The members beside the episodes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ConditionsSummary<'a> {
    from: Timestamp,
    to: Timestamp,
    conditions: BTreeMap<&'a MetricName, String>,
    basis: Basis,
    devices: &'a [&'a DeviceId],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: &'a [OutOfMeans<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    rollups_lack: Option<&'a RollupLag>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rooms_lack: Option<RoomsLack>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<Explanation>,
}

impl ConditionsAnswer<'_> {
    /// The response in the requested form.
    pub(crate) fn respond(&self, explain: Option<Explanation>) -> Result<Response, Problem> {
        let request = self.request;
        let names = request.search.names();
        let rows = self.episodes.iter().map(|found| EpisodeRow::of(found, &names));
        let conditions = request.search.conditions.iter();

        let about = ConditionsSummary {
            from: request.search.range.from(),
            to: request.search.range.to(),
            conditions: conditions
                .map(|condition| (&condition.metric, condition.interval.to_string()))
                .collect(),
            basis: request.basis(),
            devices: &self.devices,
            left_out: &self.left_out,
            rollups_lack: self.lag.as_ref(),
            rooms_lack: self.rooms_lack,
            explain,
        };

        respond(request.format, || columns(&names), rows, &about)
    }
}

/// The columns that every episode has.
const OWN_COLUMNS: [&str; 5] = ["device_id", "from", "to", "minutes", "basis"];

fn columns(names: &[MetricName]) -> Vec<String> {
    let extremes = names.iter().flat_map(|name| ["min", "max"].map(|of| format!("{name}.{of}")));
    OWN_COLUMNS.into_iter().map(ToOwned::to_owned).chain(extremes).collect()
}

/// An episode of a device.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub(crate) struct EpisodeRow<'a> {
    device_id: &'a DeviceId,
    from: Timestamp,
    to: Timestamp,
    minutes: Exact,
    basis: Basis,
    /// The metrics, in the order of the request.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<MetricName, ShownExtremes>"))]
    extremes: Entries<&'a MetricName, ShownExtremes<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
struct ShownExtremes<'a> {
    min: &'a Decimal,
    max: &'a Decimal,
}

impl<'a> EpisodeRow<'a> {
    fn of((device_id, episode): &'a (&'a DeviceId, Episode), names: &'a [MetricName]) -> Self {
        let (from, to) = (episode.range.from(), episode.range.to());
        let millis = Exact::from(to.since(from).num_milliseconds());
        let extremes = names.iter().map(|name| {
            let domain::Extremes { min, max } = &episode.extremes[name];
            (name, ShownExtremes { min, max })
        });

        Self {
            device_id,
            from,
            to,
            minutes: millis.rounded_quotient(&Exact::from(60_000_i64)).expect("not zero"),
            basis: episode.basis,
            extremes: Entries(extremes.collect()),
        }
    }
}
