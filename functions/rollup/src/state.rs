//! The state of the rollups: made if it is absent, and read as it is this moment. Sweeps nothing.

use std::sync::atomic::Ordering;

use domain::{QuarterHour, SWEEP_GROUPS, Timestamp, Zone};
use rollups::newest_sealable_edge;
use runtime::clock::Clock;
use runtime::telemetry::WideEvent;
use runtime::work_queue::WorkQueue;
use table::{InsertOutcome, RollupState, Session, StoreError, StoreResult, UnreadableItem};

use crate::bucket_folding::BucketFolding;
use crate::ports::Store;

/// The state, with its time zone.
#[derive(Debug)]
pub(crate) struct ZonedRollupState {
    pub(crate) stored: RollupState,
    pub(crate) zone: Zone,
}

/// The setting of the time zone is not the one of the stored days.
#[derive(Debug, thiserror::Error)]
#[error(
    "the setting is {setting}, the stored days are of {stored}, which stays; change it with `roomtide rollups rebuild --time-zone`"
)]
struct OtherZone {
    setting: Zone,
    stored: Zone,
}

/// Somebody damaged the state. Nobody knows its time zone, so no program may replace it by itself.
#[derive(Debug, thiserror::Error)]
#[error(
    "the state of the rollups is damaged; delete the item, and rollups begin anew within a minute; `roomtide rollups rebuild` then makes those of the time before"
)]
struct DamagedState(#[source] UnreadableItem);

/// What to do about a state that is damaged; any other error as it is.
fn named_if_damaged(error: StoreError) -> StoreError {
    match error {
        StoreError::Unreadable(item) => StoreError::Refused(DamagedState(item).into()),
        other => other,
    }
}

impl<S: Store, W: WorkQueue, C: Clock> BucketFolding<S, W, C> {
    /// Reads the state, or creates it. It must exist before a reading is left to the sweep: the sweep begins at its
    /// time.
    pub(crate) async fn state(
        &self,
        session: Session<'_, S>,
        log: &mut WideEvent,
    ) -> StoreResult<ZonedRollupState> {
        let known = session.rollup_state().await.map_err(named_if_damaged)?;
        let stored = match known {
            Some(stored) => stored,
            None => self.begin(session).await?,
        };
        // Once in an instance, before it puts any rollup: an instance has the index or has it not.
        if !self.has_state.load(Ordering::Relaxed) {
            session.distrust_conditions().await?;
        }

        self.has_state.store(true, Ordering::Relaxed);
        let zone = stored.zone.parse().map_err(|error| {
            // A program with a newer database of zones stored it: this one must not make up days.
            let what = format!("the time zone of the stored days is unknown here: {error}");
            StoreError::Refused(what.into())
        })?;
        if zone != self.settings.zone {
            let other = OtherZone { setting: self.settings.zone, stored: zone };
            log.warn("rollup.time_zone", &other);
            log.set("rollup.other_time_zone", 1);
        }

        Ok(ZonedRollupState { stored, zone })
    }

    /// Begins with the newest quarter: the readings before are complete in rollups only if there are none.
    async fn begin(&self, session: Session<'_, S>) -> StoreResult<RollupState> {
        let edge = newest_sealable_edge(self.clock.now());
        let devices = session.device_page(None, 1).await?.listing;
        let is_new = devices.found.is_empty() && devices.unreadable.is_empty();
        let state = RollupState {
            zone: self.settings.zone.name().to_owned(),
            since: if is_new { Timestamp::MIN } else { QuarterHour::of(edge).next().start() },
            sealed: [edge; SWEEP_GROUPS],
            queue: None,
        };
        match session.begin_rollups(&state).await? {
            InsertOutcome::Inserted => Ok(state),
            InsertOutcome::Exists(known) => Ok(known),
        }
    }
}
