//! The home's time zone, as stored by the rollup function. Changes no zone.

use chrono::TimeDelta;
use domain::Zone;
use runtime::registry::PLACE_AGE_FACTOR;
use table::{ReadRollupState, Remembered, Session, StoreError, StoreResult};

use crate::settings::Settings;

/// The home's time zone, read from the table on first use, and again when the remembered zone is too old.
///
/// Only payloads with local times need the zone, so most instances never read it.
#[derive(Debug)]
pub(crate) struct HomeZone {
    /// The configured zone, with which the rollups of a new table begin.
    first: Zone,
    max_age: TimeDelta,
    read: Remembered<Zone>,
}

impl HomeZone {
    /// Remembers no zone yet.
    pub(crate) fn new(settings: Settings) -> Self {
        let max_age = settings.registry_max_age.saturating_mul(PLACE_AGE_FACTOR);
        let max_age = TimeDelta::from_std(max_age).unwrap_or(TimeDelta::MAX);
        Self { first: settings.time_zone, max_age, read: Remembered::default() }
    }

    /// The time zone of the rollups; the configured zone if there are no rollups yet.
    pub(crate) async fn get(
        &self,
        session: Session<'_, impl ReadRollupState>,
    ) -> StoreResult<Zone> {
        if let Some(zone) = self.read.get(session.now, |_| self.max_age) {
            return Ok(*zone);
        }

        let state = match session.rollup_state().await {
            // Readings are stored even if the state is unreadable. The rollup function logs this each minute.
            Err(StoreError::Unreadable(_)) => None,
            state => state?,
        };
        let Some(state) = state else { return Ok(self.first) };
        // The stored name may be unknown here: a newer release of the zone database may have stored it.
        let zone = state.zone.parse().unwrap_or(self.first);
        Ok(*self.read.keep(zone, session.now))
    }
}
