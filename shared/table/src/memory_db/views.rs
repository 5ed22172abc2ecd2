//! Methods for tests, in words of the domain: they ask for troubles, read stored items of a kind, and delete expired
//! items. Calls no port.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::{Device, Reading, Timestamp};

use super::MemoryDb;
use super::troubles::{Slow, Trouble, Troubles, Waiting};
use crate::item::{self, Decode};
use crate::keys::{ALERT_STATES, ALERT_TOLD, ALERT_WAITING, Key};
use crate::{
    Action, AlertKey, ItemKey, Permission, ReadingKey, RollupKey, RoomVisit, StoreError,
    StoredAlertState, StoredReading, StoredRollup, Target, ToldMessage, WaitingMessage,
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

    /// Makes one request panic, after `after` matching requests that do not.
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
        self.state().troubles.waiting.push(Waiting { hits: Box::new(hits), after, trouble });
    }

    /// Slows down each query that `hits` matches, by this time for each visited item.
    pub fn slow_down(&self, hits: impl Fn(Permission) -> bool + Send + 'static, time: Duration) {
        self.state().troubles.slow.push(Slow { hits: Box::new(hits), time });
    }

    /// Throttles all requests with an action on a partition that `hits` matches, until the callers' patience is over.
    /// Batches of writes pass.
    pub fn throttle(&self, hits: impl Fn(Action, &str) -> bool + Send + 'static) {
        self.state().troubles.throttled.push(Box::new(hits));
    }

    /// Makes the next [`put_all`](crate::db::Db::put_all) not store the items at these positions.
    pub fn leave_not_stored(&self, positions: &[usize]) {
        self.state().troubles.not_stored = positions.to_vec();
    }

    /// Ends all failures, panics and slowness.
    pub fn end_troubles(&self) {
        self.state().troubles = Troubles::default();
    }

    /// Lets the next requests fail with these errors, one each.
    pub fn fail_with(&self, errors: impl IntoIterator<Item = StoreError>) {
        self.fail_after(0, errors);
    }

    /// Lets requests fail with these errors, one each, after a number of requests that pass.
    pub fn fail_after(&self, requests: usize, errors: impl IntoIterator<Item = StoreError>) {
        errors.into_iter().for_each(|error| self.fail(|_| true, requests, error));
    }

    /// Lets the next writes of anything but readings fail with these errors, one each.
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

    /// All notes of devices that were seen in rooms.
    pub fn all_seen(&self) -> Vec<RoomVisit> {
        self.stored(|key| matches!(key, Key::SeenIn(..)))
    }

    /// All messages of the log, oldest first.
    pub fn all_told(&self) -> Vec<ToldMessage> {
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

    /// Deletes a rollup, as `DynamoDB` does after its expiry.
    pub fn delete_rollup(&self, key: &RollupKey) {
        let key = ItemKey::of(&Key::Rollup(key.device.clone(), key.bucket));
        self.state().items.remove(&key);
    }

    /// The decoded items whose keys are of a kind.
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
    /// Reads of anything.
    pub reads: usize,
    /// Writes of anything but readings.
    pub registry_writes: usize,
    /// Writes of readings, any number at once.
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
