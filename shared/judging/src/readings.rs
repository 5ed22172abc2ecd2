//! Reads the readings of a device or a room by which episodes are judged. Judges nothing.

use alerts::{AlertSubject, JudgedReadings, Observation, Rule, Start};
use chrono::TimeDelta;
use domain::{DeviceId, MetricRule};

use crate::Result;
use crate::judging::JudgingSession;
use crate::observed::without_zeros;
use crate::ports::Store;
use crate::room_mean::RoomMean;
use crate::rule_on_subject::RuleOnSubject;

impl<S: Store> JudgingSession<'_, S> {
    /// The readings from `start` on that the fold of a rule on a subject needs. After `silent_after` without a reading
    /// the subject counts as silent.
    pub(crate) async fn readings(
        &self,
        on_subject: RuleOnSubject<'_>,
        start: &Start,
        silent_after: TimeDelta,
    ) -> Result<JudgedReadings> {
        let rule = &on_subject.rule.definition;
        let metric = rule.watch.metric();

        let mut pauses = self.pauses(on_subject.rules).await?.to_vec();
        let readings = match (&on_subject.key.subject, metric) {
            (AlertSubject::Device(device), _) => {
                self.readings_of_device(device, rule, start).await?
            }
            (AlertSubject::Room(room), Some(metric)) => {
                let devices = self.devices().await?;
                let horizon = self.horizon().await?;
                let mean = RoomMean::of(room, metric, &devices, &horizon);
                let means = self.means_since(&mean, rule, start).await?;
                // Counts as a pause, because it is not known yet whether the room was silent in this time.
                pauses.extend(means.overdue(self.table.now));
                means.values
            }
            (AlertSubject::Room(_), None) => Vec::new(),
        };

        Ok(JudgedReadings { readings, silent_after, pauses, has_left: on_subject.has_left })
    }

    async fn readings_of_device(
        &self,
        device: &DeviceId,
        rule: &Rule,
        start: &Start,
    ) -> Result<Vec<Observation>> {
        let readings = self.observations(device, rule, start).await?;
        // Only a value of 0 or less may not belong to a counter. Without such a value the device need not be read.
        let may_not_count = |reading: &Observation| {
            reading.value.as_ref().is_some_and(|value| !value.is_positive())
        };
        if !readings.iter().any(may_not_count) {
            return Ok(readings);
        }
        let device = self.device_alone(device).await?;
        let metric = rule.watch.metric().and_then(|metric| device.as_ref()?.metrics().get(metric));
        Ok(without_zeros(readings, metric.map(MetricRule::of).as_ref()))
    }
}
