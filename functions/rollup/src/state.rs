//! Reads the state of the rollups, or creates it. Sweeps nothing.

use std::sync::atomic::Ordering;

use domain::{QuarterHour, SWEEP_GROUPS, Timestamp, Zone};
use rollups::newest_sealable_end;
use runtime::clock::Clock;
use runtime::telemetry::WideEvent;
use runtime::work_queue::WorkQueue;
use table::{InsertOutcome, RollupState, Session, StoreError, StoreResult, UnreadableItem};

use crate::bucket_folding::BucketFolding;
use crate::ports::Store;

/// The stored state, and its time zone.
#[derive(Debug)]
pub(crate) struct ZonedRollupState {
    pub(crate) stored: RollupState,
    pub(crate) zone: Zone,
}

/// The warning that the time zone in the settings differs from the zone of the stored days.
#[derive(Debug, thiserror::Error)]
#[error(
    "the setting is {setting}, the stored days are of {stored}, which stays; change it with `roomtide rollups rebuild --time-zone`"
)]
struct OtherZone {
    setting: Zone,
    stored: Zone,
}

/// The error for a damaged state. Its time zone is lost, so no program may replace the state by itself.
#[derive(Debug, thiserror::Error)]
#[error(
    "the state of the rollups is damaged; delete the item, and rollups begin anew within a minute; `roomtide rollups rebuild` then makes the rollups of earlier time"
)]
struct DamagedState(#[source] UnreadableItem);

/// Turns the error for a damaged state into an error that says what to do. Returns any other error unchanged.
fn named_if_damaged(error: StoreError) -> StoreError {
    match error {
        StoreError::Unreadable(item) => StoreError::Refused(DamagedState(item).into()),
        other => other,
    }
}

impl<S: Store, W: WorkQueue, C: Clock> BucketFolding<S, W, C> {
    /// Reads the state, or creates it. The state must exist before any reading is left to the sweep, because the first
    /// sweep begins at the time at which the state was created.
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
        // Runs once, before the first rollup: an instance works either with the conditions index or without it. Without
        // the index, records that the stored schema is not complete.
        if !self.has_state.load(Ordering::Relaxed) {
            session.distrust_conditions().await?;
        }

        self.has_state.store(true, Ordering::Relaxed);
        let zone = stored.zone.parse().map_err(|error| {
            // A program with a newer time zone database stored this zone. Days cannot be computed in an unknown zone.
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

    /// Creates the state, which begins with the newest quarter. If there are earlier readings, the rollups of that time
    /// are incomplete.
    async fn begin(&self, session: Session<'_, S>) -> StoreResult<RollupState> {
        let sealed = newest_sealable_end(self.clock.now());
        let devices = session.device_page(None, 1).await?.listing;
        let is_new = devices.found.is_empty() && devices.unreadable.is_empty();
        let state = RollupState {
            zone: self.settings.zone.name().to_owned(),
            since: if is_new { Timestamp::MIN } else { QuarterHour::of(sealed).next().start() },
            sealed: [sealed; SWEEP_GROUPS],
            queue: None,
        };

        match session.begin_rollups(&state).await? {
            InsertOutcome::Inserted => Ok(state),
            InsertOutcome::Exists(known) => Ok(known),
        }
    }
}
