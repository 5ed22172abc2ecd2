//! Rules, channels, devices and silence limits as one judging process remembers them. Judges nothing itself.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use domain::{CalendarUnit, Device, DeviceId, RuleId, Timestamp};
use rollups::RollupDelay;
use series::{Horizon, RollupStateCache};
use table::{
    BoundedMemory, Invocation, LEAST_PAUSE, MAX_CACHED_ENTRIES, Remembered, Session, StoreError,
    StoreResult, StoredRule,
};

use crate::devices::ListedDevices;
use crate::peaks::Peak;
use crate::ports::Store;
use crate::progress::TaskProgress;
use crate::rules::AlertRules;
use crate::throttled::RequestThrottle;

/// How long rules and channels are used before they are read again, if nobody says otherwise.
const MAX_AGE: TimeDelta = TimeDelta::minutes(1);

/// How long a silence limit that was learned from a device's history is used.
pub(crate) const LEARNED_AGE: TimeDelta = TimeDelta::hours(6);
/// How long the rules that an unfinished recheck has judged are remembered.
const RECHECKED_AGE: TimeDelta = TimeDelta::hours(1);
/// The greatest age of a device list while the table throttles a newer one.
const MAX_LAST_LIST: TimeDelta = TimeDelta::minutes(15);
/// The largest number of devices that one memory holds. If there would be more, all are forgotten.
const MAX_REMEMBERED: usize = 20_000;

/// No judgement begins if less time is left, because it would not end in time.
const LEAST_TIME: Duration = Duration::from_secs(1);

/// The memory of a process for judging. Each process has one memory, shared by reference.
#[derive(Debug)]
pub struct Judging {
    /// How long rules and channels are used before they are read again.
    max_age: TimeDelta,
    rules: Remembered<AlertRules>,
    devices: Remembered<ListedDevices>,
    pub(crate) throttles: Throttles,
    /// How long each device may send nothing before it counts as silent.
    pub(crate) silence_limits: BoundedMemory<DeviceId, TimeDelta>,
    pub(crate) rollups: RollupStateCache,
    pub(crate) peaks: BoundedMemory<(DeviceId, CalendarUnit), Peak>,
    pub(crate) progress: TaskProgress,
    /// The rules that an unfinished recheck of a device has judged, by the device and the recheck's random `touch`.
    pub(crate) rechecked: BoundedMemory<(DeviceId, u64), BTreeSet<RuleId>>,
}

/// The kinds of requests that are made at most once a minute while the table throttles them.
#[derive(Debug, Default)]
pub(crate) struct Throttles {
    rules: RequestThrottle,
    device_list: RequestThrottle,
    device: RequestThrottle,
    rule: RequestThrottle,
    /// Deletes an obsolete state.
    pub(crate) deletion: RequestThrottle,
    /// Stores rechecks of single devices in place of a rule's recheck.
    pub(crate) own_rechecks: RequestThrottle,
    /// Reads the states by which a batch is skipped or judged.
    pub(crate) states: RequestThrottle,
    /// Reads the state of the rollups, from which silence limits are learned.
    pub(crate) rollup_state: RequestThrottle,
}

impl Default for Judging {
    fn default() -> Self {
        Self {
            max_age: MAX_AGE,
            rules: Remembered::default(),
            devices: Remembered::default(),
            throttles: Throttles::default(),
            silence_limits: BoundedMemory::new(MAX_REMEMBERED, LEARNED_AGE),
            rollups: RollupStateCache::new(RollupDelay::default()),
            peaks: BoundedMemory::new(MAX_REMEMBERED, LEARNED_AGE),
            progress: TaskProgress::default(),
            rechecked: BoundedMemory::new(MAX_REMEMBERED, RECHECKED_AGE),
        }
    }
}

impl Judging {
    /// Reads rules and channels again once they are older than `max_age`, which is at most a minute.
    #[must_use]
    pub fn with_rules_of(self, max_age: TimeDelta) -> Self {
        Self { max_age: max_age.min(MAX_AGE), ..self }
    }
}

impl Judging {
    /// One call of judging.
    pub const fn session<'a, S>(&'a self, table: Session<'a, S>) -> JudgingSession<'a, S> {
        JudgingSession { judging: self, table }
    }
}

/// One call of judging: reads, judges and stores.
#[derive(Debug)]
pub struct JudgingSession<'a, S> {
    pub(crate) judging: &'a Judging,
    /// The table, the time that is left, and the timestamp that counts as now.
    pub table: Session<'a, S>,
}

impl<S> JudgingSession<'_, S> {
    /// The same call, limited to a part of its time.
    pub const fn within<'a>(&'a self, invocation: &'a Invocation) -> JudgingSession<'a, S> {
        JudgingSession { judging: self.judging, table: self.table.within(invocation) }
    }

    /// Whether there is time for one more judgement.
    pub fn has_time(&self) -> bool {
        self.table.invocation.remaining() >= LEAST_TIME
    }
}

impl<S: Store> JudgingSession<'_, S> {
    /// The rules and channels, as they were read at most a minute ago. Older rules are not used even if the table
    /// throttles the read, because a batch that is judged without a new rule is not judged again.
    pub async fn rules(&self) -> StoreResult<Arc<AlertRules>> {
        let judging = self.judging;
        if let Some(rules) = judging.rules.get(self.table.now, |_| judging.max_age) {
            return Ok(rules);
        }
        let throttle = &judging.throttles.rules;
        throttle
            .unless_throttled(self.table, async |table| {
                judging.session(table).rules_read_now().await
            })
            .await
    }

    /// The rules and channels, read now.
    pub async fn rules_read_now(&self) -> StoreResult<Arc<AlertRules>> {
        // If the pauses cannot be read, the pauses of these rules are used. Older rules may lack the last pause.
        let before = self.judging.rules.get(self.table.now, |_| LEAST_PAUSE);
        let read = self.read_rules(before.as_deref()).await?;
        Ok(self.judging.rules.keep(read, self.table.now))
    }

    /// The remembered rules and channels, if they were read at most `max_age` ago. Reads nothing.
    pub fn last_rules(&self, max_age: TimeDelta) -> Option<Arc<AlertRules>> {
        self.judging.rules.get(self.table.now, |_| max_age)
    }

    /// A rule, read from the table now.
    pub(crate) async fn stored_rule(&self, id: &RuleId) -> StoreResult<Option<StoredRule>> {
        let throttle = &self.judging.throttles.rule;
        throttle.unless_throttled(self.table, async |table| table.alert_rule(id).await).await
    }

    /// The devices. Their list is read again after one minute for each thousand of its devices. While the table
    /// throttles this read, it is tried once a minute, and the last list is used up to an age of a quarter of an hour.
    pub async fn devices(&self) -> StoreResult<Arc<ListedDevices>> {
        match self.devices_read_after(Timestamp::MIN).await {
            Err(error) if error.is_retryable() => self.last_devices().ok_or(error),
            read => read,
        }
    }

    /// The devices. If their list cannot be read, no devices and the reason: rules that name a device need no list.
    pub(crate) async fn devices_if_read(&self) -> (Arc<ListedDevices>, Option<StoreError>) {
        match self.devices().await {
            Ok(devices) => (devices, None),
            Err(error) => (Arc::default(), Some(error)),
        }
    }

    fn last_devices(&self) -> Option<Arc<ListedDevices>> {
        self.judging.devices.get(self.table.now, |_| MAX_LAST_LIST)
    }

    /// The devices, read after `at`. If there are too many devices for memory, the list is empty and is not read again.
    pub(crate) async fn devices_read_after(
        &self,
        at: Timestamp,
    ) -> StoreResult<Arc<ListedDevices>> {
        let (judging, now) = (self.judging, self.table.now);
        let max_age = |devices: &ListedDevices| {
            let age = devices.max_age();
            if devices.is_whole() { age.min(now.since(at)) } else { age }
        };
        if let Some(devices) = judging.devices.get(now, max_age) {
            return Ok(devices);
        }

        let throttle = &judging.throttles.device_list;
        let read = async |table: Session<'_, S>| table.device_page(None, MAX_CACHED_ENTRIES).await;
        let page = throttle.unless_throttled(self.table, read).await?;
        let devices = (!page.has_more).then(|| ListedDevices::all(page.listing.found));
        Ok(judging.devices.keep(devices.unwrap_or_default(), now))
    }

    /// A device, even if it is newer than the list of devices or if the list cannot be read.
    pub(crate) async fn device(&self, id: &DeviceId) -> StoreResult<Option<Device>> {
        // Renews the remembered list, from which `device_alone` takes the device.
        drop(self.devices().await);
        self.device_alone(id).await
    }

    /// A device from the remembered list, or else as it is now. The list is not read again.
    pub(crate) async fn device_alone(&self, id: &DeviceId) -> StoreResult<Option<Device>> {
        let listed = self.judging.devices.get(self.table.now, ListedDevices::max_age);
        match listed.as_ref().and_then(|devices| devices.get(id)) {
            Some(device) => Ok(Some(device.clone())),
            None => self.device_now(id).await,
        }
    }

    /// A device as it is now, because it may have just come into a group. While the table throttles the read, a list up
    /// to a quarter of an hour old is used.
    pub(crate) async fn device_now(&self, id: &DeviceId) -> StoreResult<Option<Device>> {
        match self.stored_device(id).await {
            Err(error) if error.is_retryable() => {
                let last = self.last_devices();
                last.and_then(|devices| devices.get(id).cloned()).map(Some).ok_or(error)
            }
            read => read,
        }
    }

    /// A device, read from the table now.
    pub(crate) async fn stored_device(&self, id: &DeviceId) -> StoreResult<Option<Device>> {
        Ok(self.stored_devices(std::slice::from_ref(id)).await?.pop())
    }

    /// Devices, read from the table now.
    pub(crate) async fn stored_devices(&self, ids: &[DeviceId]) -> StoreResult<Vec<Device>> {
        let throttle = &self.judging.throttles.device;
        let found =
            throttle.unless_throttled(self.table, async |table| table.find_devices(ids).await);
        Ok(found.await?.found)
    }

    /// How far the rollups reach, as it was read at most a minute ago.
    pub(crate) async fn horizon(&self) -> StoreResult<Horizon> {
        self.judging.rollups.horizon(self.table).await
    }
}
