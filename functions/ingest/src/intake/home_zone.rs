//! The home's time zone: the one that the rollups keep. Changes none.

use std::sync::Mutex;
use std::time::Duration;

use domain::{Timestamp, Zone};
use runtime::clock::Clock;
use runtime::registry::PLACE_AGE_FACTOR;
use table::{Invocation, ReadRollupState, StoreResult};

use crate::settings::Settings;

/// The zone, read from the table when it is first needed, and again when it has grown old.
///
/// Only a payload with local times needs it, so most instances never read it.
#[derive(Debug)]
pub(crate) struct HomeZone<C> {
    /// The zone by which a new table's rollups begin.
    first: Zone,
    max_age: Duration,
    clock: C,
    read: Mutex<Option<(Timestamp, Zone)>>,
}

impl<C: Clock> HomeZone<C> {
    /// Knows no zone yet.
    pub(crate) fn new(settings: Settings, clock: C) -> Self {
        let max_age = settings.registry_max_age.saturating_mul(PLACE_AGE_FACTOR);
        Self { first: settings.time_zone, max_age, clock, read: Mutex::default() }
    }

    /// The time zone of the rollups. If there are no rollups yet, the configured one.
    pub(crate) async fn get(
        &self,
        store: &impl ReadRollupState,
        invocation: &Invocation,
    ) -> StoreResult<Zone> {
        let now = self.clock.now();
        let read = *self.read.lock().expect("nothing panics while it holds the zone");
        if let Some((at, zone)) = read
            && now.since(at).to_std().is_ok_and(|age| age < self.max_age)
        {
            return Ok(zone);
        }
        let Some(state) = store.rollup_state(invocation).await? else { return Ok(self.first) };
        // A name that a newer release of the zone database stored.
        let zone = state.zone.parse().unwrap_or(self.first);
        *self.read.lock().expect("nothing panics while it holds the zone") = Some((now, zone));
        Ok(zone)
    }
}
