//! Remembers which readings are stored of a request that was not stored as a whole. The same request, sent again, then
//! stores only the rest and gets further each time. Holds hashes, no readings.
//!
//! Without this memory, a batch that needs more units than one attempt has would never be stored completely. Skipped
//! readings are reported as `accepted_before`, because somebody may have deleted them since.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use domain::{Reading, Timestamp};

use crate::intake::submission::StoreOptions;
use crate::readings::PlacedReadings;

/// How long such a request is remembered, so that the sender may send it again.
const REMEMBERED: TimeDelta = TimeDelta::minutes(2);
/// The largest number of remembered readings. With more, all requests except the current one are forgotten.
const MAX_REMEMBERED: usize = 50_000;

/// The unfinished requests, each with the readings that it has stored.
#[derive(Debug, Default)]
pub(crate) struct RetryMemory {
    hasher: RandomState,
    unfinished: Mutex<HashMap<RequestHash, StoredKeys>>,
}

/// The hash of the readings of a request, as they were sent, and of its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RequestHash(u64);

/// The stored readings of a request, as hashes of device and timestamp.
#[derive(Debug)]
struct StoredKeys {
    keys: HashSet<u64>,
    /// The time until which the keys count.
    until: Timestamp,
}

impl RetryMemory {
    /// Identifies a request by its readings and all its options: with `rooms=given`, the same readings have other
    /// rooms.
    pub(crate) fn hash_of(&self, readings: &[Reading], options: StoreOptions) -> RequestHash {
        RequestHash(self.hasher.hash_one((readings, options)))
    }

    fn key(&self, reading: &Reading) -> u64 {
        self.hasher.hash_one((&reading.device, reading.at))
    }

    fn unfinished(&self) -> MutexGuard<'_, HashMap<RequestHash, StoredKeys>> {
        self.unfinished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns the readings that an earlier attempt of the request has stored. The memory keeps their keys.
    pub(crate) fn split_off_stored(
        &self,
        request: RequestHash,
        readings: &mut PlacedReadings,
        now: Timestamp,
    ) -> PlacedReadings {
        let mut unfinished = self.unfinished();
        unfinished.retain(|_, stored| stored.until > now);
        match unfinished.get(&request) {
            Some(stored) => readings.split_off(|reading| stored.keys.contains(&self.key(reading))),
            None => PlacedReadings::default(),
        }
    }

    /// Removes the keys that this request has tried to write from the memory of other requests: their values may now be
    /// overwritten.
    pub(crate) fn forget_in_other_requests(&self, request: RequestHash, tried: &[Reading]) {
        let tried: HashSet<u64> = tried.iter().map(|reading| self.key(reading)).collect();
        let mut unfinished = self.unfinished();
        for (_, stored) in unfinished.iter_mut().filter(|(other, _)| **other != request) {
            stored.keys.retain(|key| !tried.contains(key));
        }
    }

    /// Forgets a request that is stored as a whole. If it is sent again, it is another write.
    pub(crate) fn forget(&self, request: RequestHash) {
        self.unfinished().remove(&request);
    }

    /// Remembers the readings that an unfinished request has stored.
    pub(crate) fn keep(&self, request: RequestHash, stored: &[Reading], now: Timestamp) {
        let keys: Vec<u64> = stored.iter().map(|reading| self.key(reading)).collect();
        let mut unfinished = self.unfinished();
        let remembered: usize = unfinished.values().map(|stored| stored.keys.len()).sum();
        if remembered + keys.len() > MAX_REMEMBERED {
            unfinished.retain(|other, _| *other == request);
        }

        let stored = unfinished
            .entry(request)
            .or_insert_with(|| StoredKeys { keys: HashSet::new(), until: now });
        stored.keys.extend(keys);
        stored.until = now.saturating_add(REMEMBERED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::at_second;

    const REPLACING: StoreOptions =
        StoreOptions { merge: false, keeps_rooms: false, all_or_nothing: false };

    fn reading(n: i64, value: &str) -> Reading {
        table::given::reading("d", at_second(n), None, &[("t", value)])
    }

    /// The indices of the readings that are written when the request is sent again.
    fn written(
        memory: &RetryMemory,
        request: RequestHash,
        readings: &[Reading],
        now: i64,
    ) -> Vec<usize> {
        let origins = (0..readings.len()).map(|index| vec![index]).collect();
        let mut placed = PlacedReadings { readings: readings.to_vec(), origins };
        memory.split_off_stored(request, &mut placed, at_second(now));
        placed.origins.concat()
    }

    #[test]
    fn what_is_stored_is_left_out_when_the_same_request_comes_again_for_a_while() {
        let memory = RetryMemory::default();
        let all: Vec<_> = (0..4).map(|n| reading(n, "1")).collect();
        let request = memory.hash_of(&all, REPLACING);
        assert_eq!(written(&memory, request, &all, 0), [0, 1, 2, 3]);
        memory.keep(request, &all[1..3], at_second(0));
        assert_eq!(written(&memory, request, &all, 1), [0, 3]);
        assert_eq!(written(&memory, request, &all, 119), [0, 3]);
        assert_eq!(written(&memory, request, &all, 120), [0, 1, 2, 3]);
    }

    #[test]
    fn any_other_request_is_stored_as_it_is() {
        let memory = RetryMemory::default();
        let all: Vec<_> = (0..4).map(|n| reading(n, "1")).collect();
        memory.keep(memory.hash_of(&all, REPLACING), &all, at_second(0));
        let corrected: Vec<_> = (0..4).map(|n| reading(n, "2")).collect();
        let merging = StoreOptions { merge: true, ..REPLACING };
        let with_rooms = StoreOptions { keeps_rooms: true, ..REPLACING };
        for (readings, options) in [
            (&all[..], merging),
            (&all, with_rooms),
            (&all[1..2], REPLACING),
            (&corrected, REPLACING),
        ] {
            let request = memory.hash_of(readings, options);
            assert_eq!(written(&memory, request, readings, 1).len(), readings.len());
        }
    }

    #[test]
    fn what_another_request_overwrites_is_stored_again() {
        let memory = RetryMemory::default();
        let all: Vec<_> = (0..4).map(|n| reading(n, "1")).collect();
        let request = memory.hash_of(&all, REPLACING);
        memory.keep(request, &all, at_second(0));
        let other = [reading(2, "2")];
        memory.forget_in_other_requests(memory.hash_of(&other, REPLACING), &other);
        assert_eq!(written(&memory, request, &all, 1), [2]);
        memory.forget_in_other_requests(request, &all);
        assert_eq!(written(&memory, request, &all, 1), [2], "its own are no others");
    }

    #[test]
    fn each_request_is_remembered_for_its_own_time() {
        let memory = RetryMemory::default();
        let some = |n| [reading(n, "1"), reading(n + 1, "1")];
        for n in [0, 100] {
            memory.keep(memory.hash_of(&some(n), REPLACING), &some(n)[..1], at_second(n));
        }
        let left =
            |n, now| written(&memory, memory.hash_of(&some(n), REPLACING), &some(n), now).len();
        assert_eq!((left(0, 110), left(100, 110)), (1, 1));
        assert_eq!((left(0, 130), left(100, 130)), (2, 1));
    }

    #[test]
    fn memory_is_bounded() {
        let memory = RetryMemory::default();
        let many: Vec<_> = (0..40_000).map(|n| reading(n, "1")).collect();
        let more: Vec<_> = (40_000..60_000).map(|n| reading(n, "1")).collect();
        let [first, second] = [&many, &more].map(|readings| memory.hash_of(readings, REPLACING));
        memory.keep(first, &many, at_second(0));
        memory.keep(second, &more, at_second(0));
        assert!(written(&memory, second, &more, 0).is_empty());
        assert_eq!(written(&memory, first, &many, 0).len(), 40_000);
    }
}
