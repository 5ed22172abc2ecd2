//! What a judgement of episodes sees of a device or a room. Judges nothing.

use alerts::{Observation, Start, Subject, Watch};
use chrono::TimeDelta;
use domain::{MetricRule, Timestamp};
use series::Failure;
use table::{Invocation, StoredRule};

use crate::judging::Judging;
use crate::observed::{observations, without_zeros};
use crate::ports::Store;
use crate::room_mean;

/// After how long a mean of a room says nothing any more: its quarters are sealed some half an hour behind.
const ROOM_SILENCE: TimeDelta = TimeDelta::hours(1);

/// What a judgement sees of its subject from a start on.
pub(crate) struct Seen {
    /// In order of time.
    pub(crate) readings: Vec<Observation>,
    /// After how long without a reading it counts as silent.
    pub(crate) silent_after: TimeDelta,
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
                return Ok(Seen { readings: Vec::new(), silent_after: ROOM_SILENCE });
            }
            (Subject::Room(room), Some(metric)) => {
                let devices = self.devices(store, now, invocation).await?;
                let horizon = self.rollups.horizon(store, now, invocation).await?;
                let of = (room, metric);
                let readings =
                    room_mean::observations(store, of, &devices, &horizon, start, now, invocation);
                return Ok(Seen { readings: readings.await?, silent_after: ROOM_SILENCE });
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
            return Ok(Seen { readings, silent_after });
        }
        let device = self.device_alone(store, device, now, invocation).await?;
        let rule = metric.and_then(|it| device.as_ref()?.metrics().get(it)).map(MetricRule::of);
        Ok(Seen { readings: without_zeros(readings, rule.as_ref()), silent_after })
    }
}
