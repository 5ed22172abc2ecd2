//! The home's time zone: the one that the rollups keep. Changes none.

use chrono::TimeDelta;
use domain::Zone;
use runtime::registry::PLACE_AGE_FACTOR;
use table::{ReadRollupState, Remembered, Session, StoreError, StoreResult};

use crate::settings::Settings;

/// The zone, read from the table when it is first needed, and again when it has grown old.
///
/// Only a payload with local times needs it, so most instances never read it.
#[derive(Debug)]
pub(crate) struct HomeZone {
    /// The zone by which a new table's rollups begin.
    first: Zone,
    max_age: TimeDelta,
    read: Remembered<Zone>,
}

impl HomeZone {
    /// Knows no zone yet.
    pub(crate) fn new(settings: Settings) -> Self {
        let max_age = settings.registry_max_age.saturating_mul(PLACE_AGE_FACTOR);
        let max_age = TimeDelta::from_std(max_age).unwrap_or(TimeDelta::MAX);
        Self { first: settings.time_zone, max_age, read: Remembered::default() }
    }

    /// The time zone of the rollups. If there are no rollups yet, the configured one.
    pub(crate) async fn get(
        &self,
        session: Session<'_, impl ReadRollupState>,
    ) -> StoreResult<Zone> {
        if let Some(zone) = self.read.get(session.now, |_| self.max_age) {
            return Ok(*zone);
        }
        let state = match session.rollup_state().await {
            // The rollup function says so each minute. No reading waits for it.
            Err(StoreError::Unreadable(_)) => None,
            state => state?,
        };
        let Some(state) = state else { return Ok(self.first) };
        // A name that a newer release of the zone database stored.
        let zone = state.zone.parse().unwrap_or(self.first);
        Ok(*self.read.keep(zone, session.now))
    }
}
