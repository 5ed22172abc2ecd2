//! Stores rechecks (orders to judge a device's alerts again) for devices whose folded quarters break a rule. Rechecks
//! find breaches that the stream's batches have missed. Judges nothing.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use domain::{Device, DeviceId, QuarterHour, Rollup, TimeRange, Timestamp, sweep_group};
use judging::Breaches;
use runtime::clock::Clock;
use runtime::work_queue::WorkQueue;
use table::{Rechecked, Session, StoreError, StoreResult};

use crate::bucket_folding::{BucketFolding, NotDone};
use crate::log::Done;
use crate::ports::Store;
use crate::run::ScheduledRun;

/// Quarters that ended longer ago need no rechecks, even if a sweep is very late.
const MAX_AGE: TimeDelta = TimeDelta::days(1);
/// The number of devices that are read at once, and of rechecks that are stored at once.
const PAGE: usize = 100;

/// The rechecks that could not be stored.
#[derive(Default)]
pub(crate) struct UnnotedRechecks {
    /// The groups of the rechecks' devices.
    pub(crate) groups: BTreeSet<usize>,
    /// Why the first recheck could not be stored.
    pub(crate) cause: Option<StoreError>,
}

/// The rechecks that the folded quarters of a range need.
#[derive(Default)]
pub(crate) struct Rechecks {
    breaches: Option<Breaches>,
    /// Quarters that break a rule, provided that the rule is about the device.
    found: BTreeMap<DeviceId, BTreeMap<QuarterHour, Rollup>>,
    /// Devices whose quarters are left to the queue, each with the first quarter. Work of the queue stores no rechecks.
    unfolded: BTreeMap<DeviceId, Timestamp>,
}

impl UnnotedRechecks {
    fn add<'a>(&mut self, devices: impl Iterator<Item = &'a DeviceId>, error: StoreError) {
        self.groups.extend(devices.map(sweep_group));
        self.cause.get_or_insert(error);
    }
}

impl Rechecks {
    /// Adds the quarters of a device whose rollups were stored.
    pub(crate) fn add(&mut self, device: &DeviceId, mut put: BTreeMap<QuarterHour, Rollup>) {
        let Some(breaches) = &self.breaches else { return };
        put.retain(|_, rollup| breaches.may_have(device, rollup));
        if !put.is_empty() {
            self.found.insert(device.clone(), put);
        }
    }

    /// Adds a device whose quarters are left to the queue, beginning at `from`.
    pub(crate) fn add_unfolded(&mut self, device: DeviceId, from: Timestamp) {
        self.unfolded.insert(device, from);
    }
}

impl<S: Store, W: WorkQueue, C: Clock> BucketFolding<S, W, C> {
    /// Begins the rechecks of a range. There are no rechecks for a range long ago, or without a rule.
    pub(crate) async fn rechecks_of(
        &self,
        range: TimeRange,
        run: &mut ScheduledRun<'_, S>,
    ) -> Result<Rechecks, NotDone> {
        let now = self.clock.now();
        if range.to() < now.saturating_add(-MAX_AGE) {
            return Ok(Rechecks::default());
        }
        let rules = self.alert_rules.rules(run.session.at(now)).await;
        let rules = none_if_refused(rules, &mut run.done)?;
        let breaches = rules.filter(|rules| !rules.is_empty());
        Ok(Rechecks { breaches, ..Rechecks::default() })
    }

    /// Reads devices from the registry, and stores a recheck for each device whose quarters break a rule or are left to
    /// the queue. Returns the groups of devices whose rechecks could not be stored: their quarters have to be swept
    /// again.
    pub(crate) async fn note_rechecks(
        &self,
        rechecks: Rechecks,
        run: &mut ScheduledRun<'_, S>,
    ) -> UnnotedRechecks {
        let mut unnoted = UnnotedRechecks::default();
        let Rechecks { breaches: Some(breaches), found, unfolded } = rechecks else {
            return unnoted;
        };

        let part = run.noting.invocation.with_quarter_patience();
        let noting = run.noting.within(&part);
        let first_breach = |device: &Device| {
            let mut quarters = found.get(device.id()).into_iter().flatten();
            let breach = quarters.find(|(_, rollup)| breaches.has(device, rollup));
            let start = breach.map(|(quarter, _)| quarter.start());
            start.or_else(|| unfolded.get(device.id()).copied())
        };

        let ids: BTreeSet<DeviceId> = found.keys().chain(unfolded.keys()).cloned().collect();
        for ids in Vec::from_iter(ids).chunks(PAGE) {
            match none_if_refused(noting.find_devices(ids).await, &mut run.done) {
                Ok(Some(listing)) => {
                    let touched = |device| Some((device, first_breach(device)?));
                    let touched: Vec<_> = listing.found.iter().filter_map(touched).collect();
                    note_touched(noting, &touched, &mut run.done, &mut unnoted).await;
                }
                Ok(None) => {}
                Err(error) => unnoted.add(ids.iter(), error),
            }
        }

        unnoted
    }
}

/// Stores a recheck of each device, from the given time on.
async fn note_touched(
    noting: Session<'_, impl Store>,
    touched: &[(&Device, Timestamp)],
    done: &mut Done,
    unnoted: &mut UnnotedRechecks,
) {
    let rechecks: Vec<(Rechecked, Timestamp)> =
        touched.iter().map(|(device, since)| (device.id().clone().into(), *since)).collect();
    let noted = noting.note_rechecks(&rechecks).await;
    done.rechecks += touched.len() - noted.not_stored.len();
    if let Err(error) = none_if_refused(noted.cause.map_or(Ok(()), Err), done) {
        let left = noted.not_stored.iter().map(|position| touched[*position].0.id());
        unnoted.add(left, error);
    }
}

/// Returns `None` in place of an error that no retry mends, such as a missing permission or a damaged item, because
/// rollups are folded all the same. Notes the error for the log.
fn none_if_refused<T>(result: StoreResult<T>, done: &mut Done) -> StoreResult<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_retryable() => Err(error),
        Err(error) => {
            done.rechecks_refused = Some(error);
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_holds_up_no_rollup_and_is_told() {
        let mut done = Done::default();
        let refused = || Err::<(), _>(StoreError::Refused("not permitted".into()));
        assert!(matches!(none_if_refused(refused(), &mut done), Ok(None)));
        assert!(matches!(done.rechecks_refused, Some(StoreError::Refused(_))));

        let mut done = Done::default();
        let throttled = Err::<(), _>(StoreError::Throttled("for now".into()));
        assert!(none_if_refused(throttled, &mut done).is_err());
        assert!(done.rechecks_refused.is_none(), "it comes again");
    }
}
