//! Methods for tests, in words of the domain. They ask for troubles, read stored items of a kind, and delete expired
//! items. They call no port.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::{Device, Reading, Timestamp};

use super::MemoryDb;
use super::troubles::{Slow, Trouble, Troubles, WaitingTrouble};
use crate::item::{self, Decode};
use crate::keys::{ALERT_STATES, ALERT_TOLD, ALERT_WAITING, Key};
use crate::{
    Action, AlertKey, ItemKey, LoggedMessage, Permission, ReadingKey, RollupKey, RoomVisit,
    StoreError, StoredAlertState, StoredReading, StoredRollup, Target, WaitingMessage,
};

impl MemoryDb {
    /// Makes one request fail, after `after` matching requests that pass.
    pub fn fail(
        &self,
        hits: impl Fn(Permission) -> bool + Send + 'static,
        after: usize,
        error: StoreError,
    ) {
        self.trouble(hits, after, Trouble::Fail(error));
    }

    /// Makes one request panic, after `after` matching requests that pass.
    pub fn panic(
        &self,
        hits: impl Fn(Permission) -> bool + Send + 'static,
        after: usize,
        text: &str,
    ) {
        self.trouble(hits, after, Trouble::Panic(text.to_owned()));
    }

    fn trouble(
        &self,
        hits: impl Fn(Permission) -> bool + Send + 'static,
        after: usize,
        trouble: Trouble,
    ) {
        self.state().troubles.waiting.push(WaitingTrouble { hits: Box::new(hits), after, trouble });
    }

    /// Slows down each query that `hits` matches, by this time for each visited item.
    pub fn slow_down(&self, hits: impl Fn(Permission) -> bool + Send + 'static, time: Duration) {
        self.state().troubles.slow.push(Slow { hits: Box::new(hits), time });
    }

    /// Throttles all requests for which `hits` returns true, until the caller's patience has ended. Batches of writes
    /// pass.
    pub fn throttle(&self, hits: impl Fn(Action, &str) -> bool + Send + 'static) {
        self.state().troubles.throttled.push(Box::new(hits));
    }

    /// In the next [`put_all`](crate::db::Db::put_all), the items at these positions are not stored.
    pub fn leave_not_stored(&self, positions: &[usize]) {
        self.state().troubles.not_stored = positions.to_vec();
    }

    /// Ends all troubles.
    pub fn end_troubles(&self) {
        self.state().troubles = Troubles::default();
    }

    /// Makes the next requests fail, each with one of these errors.
    pub fn fail_with(&self, errors: impl IntoIterator<Item = StoreError>) {
        self.fail_after(0, errors);
    }

    /// Makes requests fail, each with one of these errors, after a number of requests that pass.
    pub fn fail_after(&self, requests: usize, errors: impl IntoIterator<Item = StoreError>) {
        errors.into_iter().for_each(|error| self.fail(|_| true, requests, error));
    }

    /// Makes the next writes fail, each with one of these errors. Writes of readings pass.
    pub fn fail_registry_writes_with(&self, errors: impl IntoIterator<Item = StoreError>) {
        errors.into_iter().for_each(|error| self.fail(writes_registry, 0, error));
    }

    /// Makes a request panic with this text, after a number of requests that pass.
    pub fn panic_after(&self, requests: usize, text: &str) {
        self.panic(|_| true, requests, text);
    }

    /// The numbers of requests to the table so far.
    pub fn calls(&self) -> Calls {
        Calls {
            reads: self.count(is_read),
            registry_writes: self.count(writes_registry),
            puts: self.count(|asked| asked.1 == Target::Readings && !is_read(asked)),
        }
    }

    /// Every reading, by time.
    pub fn readings(&self) -> Vec<Reading> {
        let mut readings: Vec<Reading> = self.stored(|key| matches!(key, Key::Reading(..)));
        readings.sort_by_key(ReadingKey::of);
        readings
    }

    /// Every device.
    pub fn all_devices(&self) -> Vec<Device> {
        self.stored(|key| matches!(key, Key::Device(..)))
    }

    /// Every rollup.
    pub fn rollups(&self) -> Vec<StoredRollup> {
        self.stored(|key| matches!(key, Key::Rollup(..)))
    }

    /// All devices that were seen in rooms, by the items in the rooms' partitions.
    pub fn all_seen(&self) -> Vec<RoomVisit> {
        self.stored(|key| matches!(key, Key::SeenIn(..)))
    }

    /// All messages of the log, oldest first.
    pub fn all_told(&self) -> Vec<LoggedMessage> {
        self.stored_in(ALERT_TOLD)
    }

    /// All waiting messages, whether or not they may be sent now.
    pub fn all_waiting(&self) -> Vec<WaitingMessage> {
        self.stored_in(ALERT_WAITING)
    }

    /// All states of alerts.
    pub fn all_alert_states(&self) -> Vec<StoredAlertState> {
        self.stored_in(ALERT_STATES)
    }

    /// The state of a rule on a subject.
    pub fn stored_alert_state(&self, key: &AlertKey) -> Option<StoredAlertState> {
        let key = ItemKey::of(&Key::AlertState(key.clone()));
        self.state().items.get(&key).cloned().map(read)
    }

    /// Deletes a rollup, as `DynamoDB` does some time after it has expired.
    pub fn delete_rollup(&self, key: &RollupKey) {
        let key = ItemKey::of(&Key::Rollup(key.device.clone(), key.bucket));
        self.state().items.remove(&key);
    }

    /// The decoded items whose keys meet a condition.
    fn stored<T: Decode>(&self, is_asked: impl Fn(&Key) -> bool) -> Vec<T> {
        let is_asked = |item: &&item::Item| {
            let ItemKey { pk, sk } = ItemKey::of_item(item);
            Key::parse(&pk, &sk).is_some_and(|key| is_asked(&key))
        };
        let state = self.state();
        state.items.all().filter(is_asked).map(|item| read(item.clone())).collect()
    }

    /// The decoded items of a partition.
    fn stored_in<T: Decode>(&self, partition: &str) -> Vec<T> {
        let state = self.state();
        let found = state.items.partition(partition).into_iter().flat_map(BTreeMap::values);
        found.map(|item| read(item.clone())).collect()
    }

    /// Deletes expired readings, and no other expired items.
    pub fn delete_expired_readings(&self, now: Timestamp) {
        let readings = self.stored::<StoredReading>(|key| matches!(key, Key::Reading(..)));
        let has_expired = |stored: &&StoredReading| stored.expires.is_some_and(|at| at <= now);
        for StoredReading { reading, .. } in readings.iter().filter(has_expired) {
            let key = ItemKey::of(&Key::Reading(reading.device.clone(), reading.at));
            self.state().items.remove(&key);
        }
    }
}

/// The numbers of requests to the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// Reads of any items.
    pub reads: usize,
    /// Writes of any items except readings.
    pub registry_writes: usize,
    /// Writes of readings. A request counts once, however many readings it has.
    pub puts: usize,
}

fn is_read((action, _): Permission) -> bool {
    matches!(action, Action::GetItem | Action::BatchGetItem | Action::Query)
}

fn writes_registry(asked: Permission) -> bool {
    !is_read(asked) && asked.1 != Target::Readings
}

fn read<T: Decode>(item: item::Item) -> T {
    item::read(item).expect("a test that damages an item asks for no list of its kind")
}
