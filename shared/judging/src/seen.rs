//! What a judgement of episodes sees of a device or a room. Judges nothing.

use alerts::{Observation, Start, Subject, Watch};
use chrono::TimeDelta;
use domain::{MetricRule, TimeRange, Timestamp};
use series::Failure;
use table::{Invocation, StoredRule};

use crate::judging::Judging;
use crate::observed::{observations, without_zeros};
use crate::ports::Store;
use crate::room_mean::{self, ROOM_SILENCE};

/// What a judgement sees of its subject from a start on.
pub(crate) struct Seen {
    /// In order of time.
    pub(crate) readings: Vec<Observation>,
    /// After how long without a reading it counts as silent.
    pub(crate) silent_after: TimeDelta,
    /// A time up to now whose silence nobody can tell yet.
    pub(crate) overdue: Option<TimeRange>,
}

impl Seen {
    const fn of(readings: Vec<Observation>, silent_after: TimeDelta) -> Self {
        Self { readings, silent_after, overdue: None }
    }
}

impl Judging {
    /// What a fold of a rule on a subject needs from its start on.
    pub(crate) async fn see(
        &self,
        store: &impl Store,
        (rule, subject): (&StoredRule, &Subject),
        start: &Start,
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Seen, Failure> {
        let metric = match &rule.rule.watch {
            Watch::Metric { metric, .. } => Some(metric),
            _ => None,
        };
        let device = match (subject, metric) {
            (Subject::Device(device), _) => device,
            (Subject::Room(_), None) => {
                return Ok(Seen::of(Vec::new(), ROOM_SILENCE));
            }
            (Subject::Room(room), Some(metric)) => {
                let devices = self.devices(store, now, invocation).await?;
                let horizon = self.rollups.horizon(store, now, invocation).await?;
                let of = (room, metric);
                let readings =
                    room_mean::observations(store, of, &devices, &horizon, start, now, invocation);
                let overdue = room_mean::overdue(room, metric, &devices, &horizon, now);
                return Ok(Seen { overdue, ..Seen::of(readings.await?, ROOM_SILENCE) });
            }
        };
        let silent_after = match &rule.rule.watch {
            Watch::Silence { after: Some(after) } => *after,
            _ => self.limits.of(store, device, now, invocation).await?,
        };
        let readings = observations(store, device, metric, start, now, invocation).await?;
        let may_take_no_part =
            |it: &Observation| it.value.as_ref().is_some_and(|it| !it.is_positive());
        if !readings.iter().any(may_take_no_part) {
            return Ok(Seen::of(readings, silent_after));
        }
        let device = self.device_alone(store, device, now, invocation).await?;
        let rule = metric.and_then(|it| device.as_ref()?.metrics().get(it)).map(MetricRule::of);
        Ok(Seen::of(without_zeros(readings, rule.as_ref()), silent_after))
    }
}
