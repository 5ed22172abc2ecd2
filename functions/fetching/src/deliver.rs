//! Hands what a source answered to the function ingest. Stores nothing itself.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::{AboutMetric, DeviceId, Label, MetricName, PolledSourceId, RoomId, Timestamp};
use polling::{PolledSource, Portion, SourceRoom};
use runtime::clock::{Clock, Deadline};
use serde::Serialize;

use crate::reply::Delivered;
use crate::{Fetching, Store};

/// The most readings of one delivery.
const MAX_READINGS: usize = 500;

/// Where the deliveries of a run or of a test come from.
#[derive(Debug, Clone)]
pub(crate) struct Delivering<'a> {
    pub(crate) id: &'a PolledSourceId,
    pub(crate) source: &'a PolledSource,
    /// Tells the run from others of the source.
    pub(crate) run: String,
    /// When the run began: the time of readings without a time.
    pub(crate) at: Timestamp,
    /// Whether nothing is to be stored.
    pub(crate) is_dry: bool,
    pub(crate) deadline: Deadline,
}

/// An event of ingest, as its own type reads it.
#[derive(Serialize)]
struct FetchedEvent<'a> {
    source: &'static str,
    of: &'a PolledSourceId,
    run: String,
    timestamp: i64,
    format: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<&'a DeviceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    room: Option<RoomId>,
    rooms: &'a BTreeMap<DeviceId, Option<SourceRoom>>,
    names: BTreeMap<&'a DeviceId, Label>,
    about: &'a BTreeMap<MetricName, AboutMetric>,
    dry: bool,
    data: String,
}

impl<S: Store, C: Clock> Fetching<S, C> {
    /// Delivers a portion. An error says in words why it is not stored, or not all of it.
    pub(crate) async fn deliver(
        &self,
        portion: &Portion,
        to: &Delivering<'_>,
    ) -> Result<Delivered, String> {
        let names = portion.names.iter();
        let names = names.filter_map(|(id, name)| Some((id, name.parse::<Label>().ok()?)));
        let names: BTreeMap<_, _> = names.collect();

        let mut all = Delivered::default();
        for (part, body) in portion.bodies(MAX_READINGS).into_iter().enumerate() {
            let event = FetchedEvent {
                source: "roomtide.fetching",
                of: to.id,
                run: format!("{}-{}-{part}", to.run, portion.key),
                timestamp: to.at.as_millis(),
                format: &portion.format,
                device: portion.device.as_ref(),
                room: to.source.room(to.id),
                rooms: &to.source.rooms,
                names: names.clone(),
                about: &portion.about,
                dry: to.is_dry,
                data: STANDARD.encode(body),
            };
            let event = serde_json::to_string(&event).expect("texts and numbers");
            all.add(self.invoke_ingest(event, to.deadline).await?);
        }
        Ok(all)
    }

    /// Invokes ingest, once more where that fails: the same event stores nothing twice.
    async fn invoke_ingest(&self, event: String, deadline: Deadline) -> Result<Delivered, String> {
        let ingest = &self.outside.ingest;
        let answer = match ingest.invoke(event.clone(), deadline).await {
            Ok(answer) => Ok(answer),
            Err(_) => ingest.invoke(event, deadline).await,
        };
        let answer = answer.map_err(|why| format!("the readings are not stored: {why}"))?;
        serde_json::from_str(&answer).map_err(|why| format!("ingest answers something else: {why}"))
    }
}
