//! The parameters of a search for devices, its result and its plan. Finds nothing.

use std::borrow::Cow;
use std::fmt::Display;

use api::{Params, Problem, ProblemKind};
use domain::{
    AttributeName, Device, RoomId, SearchCondition, SearchConditionError, Subject, Timestamp,
    duration, excerpt,
};
use serde::Serialize;
use table::MAX_CACHED_ENTRIES;

use super::newest::NewestValues;

/// The maximum number of conditions in one request.
const MAX_CONDITIONS: usize = 16;

/// The parameters of a search for devices.
#[derive(Debug)]
pub(crate) struct Search {
    pub(super) room: Option<RoomId>,
    pub(super) conditions: Vec<SearchCondition>,
    pub(super) silent_since: Option<Timestamp>,
    pub(super) is_explained: bool,
}

/// The devices of a page, and how they were found.
pub(crate) struct FoundPage<'a> {
    /// The devices of the page, each with its position in the order of all devices.
    pub(crate) devices: Vec<(Cow<'a, Device>, String)>,
    /// The position after which there may be more devices.
    pub(crate) rest: Option<String>,
    /// The plan by which the devices were found, if the request asks for the plan.
    pub(crate) plan: Option<SearchPlan>,
    /// Whether there was a condition on newest values. If so, the answer may change with every reading.
    pub(crate) is_of_readings: bool,
}

/// How devices are found and what that costs; only with `explain`.
#[derive(Debug, Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Plan", deny_unknown_fields)
)]
pub(crate) struct SearchPlan {
    /// `registry`: searched in the function's memory; `index`: by the attribute index.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["registry", "index"])))]
    pub(super) source: &'static str,
    /// The condition whose index entries are read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) driver: Option<String>,
    /// The number of devices whose newest values were read.
    pub(super) newest_values: usize,
    pub(super) estimated_read_units: f64,
    pub(super) consumed_read_units: f64,
}

impl FoundPage<'_> {
    /// The devices of a page in the order of their ids.
    pub(crate) fn by_id(devices: Vec<Device>, has_more: bool) -> Self {
        let rest = devices.last().filter(|_| has_more).map(|last| last.id().to_string());
        let place = |device: Device| {
            let place = device.id().to_string();
            (Cow::Owned(device), place)
        };
        let devices = devices.into_iter().map(place).collect();
        Self { devices, rest, plan: None, is_of_readings: false }
    }
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

    /// Whether the search has no condition other than a room.
    pub(crate) fn is_unconditional(&self) -> bool {
        self.conditions.is_empty() && self.silent_since.is_none()
    }

    /// Splits the conditions: first those on names, kinds, tags and attributes, then those on newest values. A name is
    /// an attribute if any device has such an attribute, else a metric.
    pub(super) fn parts(
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

    pub(super) fn is_in_room(&self, device: &Device) -> bool {
        self.room.is_none() || device.place().room() == self.room.as_ref()
    }
}

fn refused<E: Display>(field: &str) -> impl FnOnce(E) -> Problem {
    move |why| Problem::field(field, why)
}

/// A device is silent if its newest reading is before this timestamp.
fn silent_since(text: &str, now: Timestamp) -> Result<Timestamp, Problem> {
    let wrong =
        || format!("is {:?}; expected an age such as 90s, 15m, 2h, 7d or 1w", excerpt(text));
    let age = duration::parse(text, "smhdw").ok_or_else(|| Problem::field("silent", wrong()))?;
    Ok(now.saturating_add(-age))
}

/// 422: the answer would cost too much.
pub(super) fn unanswerable(detail: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::Unanswerable, detail.into())
}

/// 422: neither memory nor the index holds the answer.
pub(super) fn not_indexed() -> Problem {
    unanswerable(format!(
        "There are more than {MAX_CACHED_ENTRIES} devices, and the index of attributes does not hold them all: \
         set AttributeIndex to on, and run roomtide reindex."
    ))
}
