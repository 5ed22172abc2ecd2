//! A table in memory that deletes as the design says, and its stream.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use domain::{DeviceId, Reading, Timestamp};
use table::db::{ItemQuery, Write, WriteChange};
use table::item::attribute::{DELETED, ENDED, FOUND};
use table::item::{Attribute, Decode as _, Item};
use table::keys::Key;
use table::memory_db::MemoryDb;
use table::{Action, Target};

use crate::gate::rules::{Rules, changes, compares, key_of};
use crate::records::Stream;

/// A design of deletions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Design {
    /// A mark, a time without anything, and a tombstone.
    Ours,
    /// The device's item goes when the deletion ends.
    NoTombstone,
    /// The deletion ends as soon as nothing is found.
    NoQuiet,
    /// A device that is being deleted is registered by its next reading.
    IgnoredMark,
}

/// What all instances share beside the table.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) stream: Stream,
    /// Every reading that was stored, in order.
    pub(super) stored: Vec<Reading>,
    /// How many were stored before the newest look that found no reading of a device.
    looked: BTreeMap<DeviceId, usize>,
    /// How many were stored before the look after which the deletion of a device ended.
    pub(super) ended: BTreeMap<DeviceId, usize>,
}

/// A design, whose table notes what the judge and the stream need.
#[derive(Clone)]
pub(super) struct LoggedDesign {
    pub(super) design: Design,
    pub(super) log: Arc<Mutex<Log>>,
}

impl LoggedDesign {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().expect("no test panics while it holds the log")
    }
}

impl Rules for LoggedDesign {
    fn are_ours(&self) -> bool {
        self.design == Design::Ours
    }

    fn made(&self, mut write: Write, known: Option<Item>) -> Option<Write> {
        let is_end = changes(&write, ENDED);
        let is_put = matches!(write.change, WriteChange::Put(_));
        let is_deleted = known.is_some_and(|known| known.contains_key(DELETED));
        match self.design {
            Design::NoTombstone if is_end => write.change = WriteChange::Delete(write.key()),
            Design::NoQuiet if is_end => {
                write.conditions.retain(|condition| !compares(condition, FOUND));
            }
            Design::IgnoredMark if is_put && is_deleted => write.conditions.clear(),
            _ => {}
        }
        Some(write)
    }

    fn shown(&self, action: Action, mut found: Vec<Item>, _db: &MemoryDb) -> Vec<Item> {
        match (self.design, action) {
            (Design::NoQuiet, _) => {
                let never = Attribute::S(Timestamp::MIN.to_string());
                let marks = found.iter_mut().filter_map(|item| item.get_mut(FOUND));
                marks.for_each(|mark| mark.clone_from(&never));
            }
            (Design::IgnoredMark, Action::BatchGetItem | Action::Query) => {
                found.retain(|item| !item.contains_key(DELETED));
            }
            _ => {}
        }
        found
    }

    fn note(&self, action: Action, item: &Item) {
        match (action, key_of(item)) {
            (Action::BatchWriteItem, Some(Key::Reading(..))) => self.log().store(reading_of(item)),
            (Action::DeleteItem, Some(Key::Reading(..))) => {
                self.log().stream.remove(&reading_of(item));
            }
            // Without a tombstone the item goes when the deletion ends.
            (Action::DeleteItem, Some(Key::Device(id, _))) => self.log().end(id),
            (Action::UpdateItem, Some(Key::Device(id, _))) if item.contains_key(ENDED) => {
                self.log().end(id);
            }
            _ => {}
        }
    }

    /// A deletion looks at keys; whoever asks for readings wants their metrics too.
    fn note_nothing(&self, query: &ItemQuery) {
        let is_look = !query.only.is_empty();
        if is_look && Target::of_partition(&query.partition) == Target::Readings {
            let mut log = self.log();
            let stored = log.stored.len();
            log.looked.insert(query.partition.parse().expect("an id"), stored);
        }
    }
}

impl Log {
    fn store(&mut self, reading: Reading) {
        self.stream.store(&reading);
        self.stored.push(reading);
    }

    fn end(&mut self, id: DeviceId) {
        let looked = self.looked[&id];
        self.ended.insert(id, looked);
    }
}

fn reading_of(item: &Item) -> Reading {
    Reading::decode(item.clone()).expect("a reading")
}
