//! Delivers the answers of a source to the function ingest. Stores nothing itself.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::{AboutMetric, DeviceId, Label, MetricName, PolledSourceId, RoomId, Timestamp};
use polling::{PolledSource, Portion, SourceRoom};
use runtime::clock::{Clock, Deadline};
use serde::Serialize;

use crate::reply::Delivered;
use crate::{Fetching, Store};

/// The maximum number of readings in one delivery.
const MAX_READINGS: usize = 500;

/// The source and the run to which deliveries belong. A test has a run too.
#[derive(Debug, Clone)]
pub(crate) struct Delivering<'a> {
    pub(crate) id: &'a PolledSourceId,
    pub(crate) source: &'a PolledSource,
    /// The id of the run, unique within the source.
    pub(crate) run: String,
    /// The beginning of the run. It is the time of readings that have no time of their own.
    pub(crate) at: Timestamp,
    /// Whether ingest only checks the readings and stores nothing.
    pub(crate) is_dry: bool,
    pub(crate) deadline: Deadline,
}

/// The event by which ingest gets readings. Ingest has a type of its own for this event.
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
    own: bool,
    dry: bool,
    data: String,
}

impl<S: Store, C: Clock> Fetching<S, C> {
    /// Delivers a portion. The error says in words why the portion is not stored, or only in part.
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
                own: portion.is_own,
                dry: to.is_dry,
                data: STANDARD.encode(body),
            };
            let event = serde_json::to_string(&event).expect("texts and numbers");
            all.add(self.invoke_ingest(event, to.deadline).await?);
        }

        Ok(all)
    }

    /// Invokes ingest, with a second attempt after a failure. An event that arrives twice is stored once.
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
