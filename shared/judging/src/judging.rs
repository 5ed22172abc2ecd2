//! What one process knows that judges: rules, channels, devices, limits of silence. Judges nothing itself.

use std::sync::Arc;

use chrono::TimeDelta;
use domain::{Device, DeviceId, Timestamp};
use rollups::Following;
use series::KnownState;
use table::{Invocation, StoreResult};

use crate::demand::Peaks;
use crate::devices::Devices;
use crate::known::Known;
use crate::next_questions::NextQuestions;
use crate::ports::Store;
use crate::rules::{MAX_UNMARKED, Rules};
use crate::sealed_progress::SealedProgress;
use crate::silence::SilenceLimits;

/// How long rules and channels are used.
const MAX_AGE: TimeDelta = TimeDelta::minutes(1);

/// Judges the rules of alerts. One process has one; it is shared by reference.
#[derive(Debug)]
pub struct Judging {
    rules: Known<Rules>,
    devices: Known<Devices>,
    pub(crate) limits: SilenceLimits,
    pub(crate) rollups: KnownState,
    pub(crate) peaks: Peaks,
    pub(crate) questions: NextQuestions,
    pub(crate) sealed: SealedProgress,
}

impl Default for Judging {
    fn default() -> Self {
        Self::new()
    }
}

impl Judging {
    /// Knows nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            rules: Known::default(),
            devices: Known::default(),
            limits: SilenceLimits::default(),
            rollups: KnownState::new(Following::default()),
            peaks: Peaks::default(),
            questions: NextQuestions::default(),
            sealed: SealedProgress::default(),
        }
    }

    /// The rules and channels, at most a minute old.
    pub async fn rules(
        &self,
        store: &impl Store,
        now: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<Arc<Rules>> {
        match self.rules.get(now, |_| MAX_AGE) {
            Some(known) => Ok(known),
            None => self.refresh(store, now, invocation).await,
        }
    }

    /// The rules and channels as they are this moment.
    pub async fn refresh(
        &self,
        store: &impl Store,
        now: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<Arc<Rules>> {
        // With an older one, a pause of the system since then could be missing.
        let before = self.rules.get(now, |_| MAX_UNMARKED);
        let read = Rules::read(store, before.as_deref(), now, invocation).await?;
        Ok(self.rules.keep(read, now))
    }

    /// The devices, at most as many minutes old as there are thousands of them.
    pub async fn devices(
        &self,
        store: &impl Store,
        now: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<Arc<Devices>> {
        match self.devices.get(now, Devices::max_age) {
            Some(known) => Ok(known),
            None => Ok(self.devices.keep(Devices::read(store, invocation).await?, now)),
        }
    }

    /// One device: it may be newer than the list.
    pub async fn device(
        &self,
        store: &impl Store,
        id: &DeviceId,
        now: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<Option<Device>> {
        self.devices(store, now, invocation).await?;
        self.device_alone(store, id, now, invocation).await
    }

    /// One device, without a read of all: from the list where it is known.
    pub(crate) async fn device_alone(
        &self,
        store: &impl Store,
        id: &DeviceId,
        now: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<Option<Device>> {
        let known = self.devices.get(now, Devices::max_age);
        if let Some(known) = known.as_ref().and_then(|it| it.get(id)) {
            return Ok(Some(known.clone()));
        }
        let found = store.find_devices(std::slice::from_ref(id), invocation).await?.found;
        Ok(found.into_iter().next())
    }

    /// After how long without a reading a device counts as silent, by its last seven days.
    pub async fn silence_limit(
        &self,
        store: &impl Store,
        id: &DeviceId,
        now: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<TimeDelta> {
        self.limits.of(store, id, now, invocation).await
    }
}
