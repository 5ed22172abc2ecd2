//! Finds devices by what they are called, by their attributes and by their newest values. Edits nothing.
//!
//! While the function keeps all devices in memory it looks there; of a larger registry it asks the index of
//! attributes. Both plans give the same devices, in an order of their own.

mod index;
mod newest;
mod registry;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::Display;
use std::time::Duration;

use api::{Params, Problem, ProblemKind};
use chrono::TimeDelta;
use domain::{
    AttributeName, Device, RoomId, SearchCondition, SearchConditionError, Subject, Timestamp,
    excerpt,
};
use runtime::clock::{Clock, Deadline};
use runtime::http::Call;
use runtime::registry::{CachedRegistry, Snapshot};
use runtime::telemetry::{Telemetry, WideEvent};
use serde::Serialize;
use table::{
    FindRegistry, Invocation, MAX_CACHED_ENTRIES, MarkIndexed, QueryReadings, ReadRollups,
    SearchDevices,
};

use crate::pagination::ListRequest;
use newest::NewestValues;

/// The time limit for what is noted of the index at cold start.
const COLD_START: Duration = Duration::from_secs(5);
/// The number of conditions of one request.
const MAX_CONDITIONS: usize = 16;

/// The devices that a request asks for.
#[derive(Debug)]
pub(crate) struct Search {
    room: Option<RoomId>,
    conditions: Vec<SearchCondition>,
    silent_since: Option<Timestamp>,
    is_explained: bool,
}

/// The devices of a page, and how they were found.
pub(crate) struct Found<'a> {
    /// At most as many as the page holds, each with its place in the order of all.
    pub(crate) devices: Vec<(Cow<'a, Device>, String)>,
    /// The place behind which there may be more.
    pub(crate) rest: Option<String>,
    /// How they were found, if that is asked for.
    pub(crate) plan: Option<Plan>,
    /// Whether newest values decided, which change with every reading.
    pub(crate) is_of_readings: bool,
}

/// How devices are found and what that costs.
#[derive(Debug, Serialize)]
pub(crate) struct Plan {
    source: &'static str,
    /// The condition whose entries of the index are read.
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<String>,
    /// The number of devices whose newest values were read.
    newest_values: usize,
    estimated_read_units: f64,
    consumed_read_units: f64,
}

impl Search {
    /// Reads the parameters.
    pub(crate) fn of(params: &Params, now: Timestamp) -> Result<Self, Problem> {
        let mut conditions = Vec::new();
        for subject in [Subject::Name, Subject::Kind, Subject::Tag] {
            for text in params.each(subject.as_str()) {
                let condition = SearchCondition::like(subject.clone(), text);
                conditions.push(condition.map_err(refused(subject.as_str()))?);
            }
        }
        for text in params.each("where") {
            let condition =
                text.parse().map_err(|why: SearchConditionError| refused("where")(why))?;
            conditions.push(condition);
        }
        if conditions.len() > MAX_CONDITIONS {
            let message = format!("the conditions are more than {MAX_CONDITIONS}");
            return Err(Problem::field("where", message));
        }
        Ok(Self {
            room: params.parse("room")?,
            conditions,
            silent_since: params.get("silent").map(|text| silent_since(text, now)).transpose()?,
            is_explained: params.flag("explain"),
        })
    }

    /// The room in which the devices are.
    pub(crate) const fn room(&self) -> Option<&RoomId> {
        self.room.as_ref()
    }

    /// Whether no device is left out but for its room.
    pub(crate) fn is_unconditional(&self) -> bool {
        self.conditions.is_empty() && self.silent_since.is_none()
    }

    /// The conditions on what a device is found by, and those on its newest values. A name that any device has
    /// as an attribute is that of an attribute, else it is that of a metric.
    fn parts(
        &self,
        is_attribute: impl Fn(&AttributeName) -> bool,
    ) -> (Vec<&SearchCondition>, NewestValues<'_>) {
        let mut own = Vec::new();
        let mut newest = NewestValues { metrics: Vec::new(), silent_since: self.silent_since };
        for condition in &self.conditions {
            let metric = condition.attribute().filter(|name| !is_attribute(name));
            match metric.and_then(|name| name.as_str().parse().ok()) {
                Some(metric) => newest.metrics.push((metric, condition)),
                None => own.push(condition),
            }
        }
        (own, newest)
    }

    fn is_in_room(&self, device: &Device) -> bool {
        self.room.is_none() || device.place.room() == self.room.as_ref()
    }
}

fn refused<E: Display>(field: &str) -> impl FnOnce(E) -> Problem {
    move |why| Problem::field(field, why.to_string())
}

/// The timestamp before which the newest reading of a silent device lies.
fn silent_since(text: &str, now: Timestamp) -> Result<Timestamp, Problem> {
    let age = || {
        let unit = text.char_indices().last()?;
        let seconds = match unit.1 {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            'w' => 604_800,
            _ => return None,
        };
        let digits = &text[..unit.0];
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number: i64 = digits.parse().ok().filter(|_| is_number)?;
        TimeDelta::try_seconds(number.checked_mul(seconds)?)
    };
    let wrong =
        || format!("is {:?}; expected an age such as 90s, 15m, 2h, 7d or 1w", excerpt(text));
    let age = age().ok_or_else(|| Problem::field("silent", wrong()))?;
    Ok(now.saturating_add(-age))
}

/// The devices of the page that `list` asks for.
pub(crate) async fn find<'a>(
    search: &Search,
    snapshot: &'a Snapshot,
    store: &(impl QueryReadings + ReadRollups + SearchDevices + FindRegistry),
    list: &ListRequest,
    call: &mut Call<'_>,
) -> Result<Found<'a>, Problem> {
    if snapshot.has_all_devices {
        Box::pin(registry::find(search, snapshot, store, list, call)).await
    } else {
        Box::pin(index::find(search, store, list, call)).await
    }
}

/// Notes that the index of attributes is complete while no device has anything to be found by, so that a table that
/// has had the index since then needs no `roomtide reindex`. Where that fails the next cold start tries again.
pub(crate) async fn mark_indexed(
    registry: &CachedRegistry<impl Clock>,
    store: &impl MarkIndexed,
    clock: &impl Clock,
    telemetry: &Telemetry,
) {
    let has_none = |device: &Device| device.search_entries().is_empty();
    let is_due = |it: &Snapshot| it.has_all_devices && it.devices.values().all(has_none);
    if !registry.current().is_some_and(|it| is_due(&it)) {
        return;
    }
    let invocation = Invocation::until(Deadline::after(COLD_START));
    if let Err(error) = store.mark_indexed(clock.now(), &invocation).await {
        let mut log = WideEvent::begin("query.mark_indexed");
        log.warn("search.error", &error);
        log.emit(&invocation, telemetry, clock);
    }
}

/// 422: the answer would cost too much.
fn unanswerable(detail: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::Unanswerable, detail.into())
}

/// 422: neither memory nor the index holds the answer.
fn not_indexed() -> Problem {
    unanswerable(format!(
        "There are more than {MAX_CACHED_ENTRIES} devices, and the index of attributes does not hold them all: \
         set AttributeIndex to on, and run roomtide reindex."
    ))
}
