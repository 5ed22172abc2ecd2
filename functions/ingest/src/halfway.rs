//! What requests have stored that the table's capacity let in by half: when the same request comes again, only its other
//! half is stored, so that each attempt gets further. Holds hashes, no readings.
//!
//! A batch that needs more than the units of an attempt would otherwise be begun from its start for ever. A request that
//! comes again is one with the one before: what somebody deletes between two attempts was deleted after the write. Any
//! other request is stored as it is.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use domain::{Reading, Timestamp};

/// How long a sender may wait before it sends a request again.
const REMEMBERED: TimeDelta = TimeDelta::minutes(2);
/// The number of readings that are remembered. Beyond it, all others are forgotten.
const MAX_REMEMBERED: usize = 50_000;

/// The refused requests, and what they have stored.
#[derive(Debug, Default)]
pub(crate) struct Halfway {
    hasher: RandomState,
    refused: Mutex<HashMap<RequestHash, Stored>>,
}

/// What a request asks to be stored, before rooms are filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RequestHash(u64);

/// Where the readings are, by their hashes.
#[derive(Debug)]
struct Stored {
    keys: HashSet<u64>,
    /// Until when they count.
    until: Timestamp,
}

impl Halfway {
    pub(crate) fn request(&self, readings: &[Reading], is_merged: bool) -> RequestHash {
        RequestHash(self.hasher.hash_one((readings, is_merged)))
    }

    fn key(&self, reading: &Reading) -> u64 {
        self.hasher.hash_one((&reading.device, reading.at))
    }

    fn refused(&self) -> MutexGuard<'_, HashMap<RequestHash, Stored>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The places of those of the request's readings that no earlier attempt has stored.
    pub(crate) fn left(
        &self,
        request: RequestHash,
        readings: &[Reading],
        now: Timestamp,
    ) -> Vec<usize> {
        let mut refused = self.refused();
        refused.retain(|_, stored| stored.until > now);
        let stored = refused.get(&request);
        let is_left =
            |reading| stored.is_none_or(|stored| !stored.keys.contains(&self.key(reading)));
        (0..readings.len()).filter(|place| is_left(&readings[*place])).collect()
    }

    /// Forgets what others have stored where these readings are now.
    pub(crate) fn overwrite<'a>(
        &self,
        request: RequestHash,
        written: impl Iterator<Item = &'a Reading>,
    ) {
        let mut refused = self.refused();
        if refused.keys().all(|other| *other == request) {
            return;
        }
        for key in written.map(|it| self.key(it)) {
            for (other, stored) in refused.iter_mut() {
                if *other != request {
                    stored.keys.remove(&key);
                }
            }
        }
    }

    /// Remembers what a refused request has stored.
    pub(crate) fn keep<'a>(
        &self,
        request: RequestHash,
        written: impl Iterator<Item = &'a Reading>,
        now: Timestamp,
    ) {
        let keys: Vec<u64> = written.map(|it| self.key(it)).collect();
        let mut refused = self.refused();
        let remembered: usize = refused.values().map(|it| it.keys.len()).sum();
        if remembered + keys.len() > MAX_REMEMBERED {
            refused.retain(|other, _| *other == request);
        }
        let stored =
            refused.entry(request).or_insert_with(|| Stored { keys: HashSet::new(), until: now });
        stored.keys.extend(keys);
        stored.until = now.saturating_add(REMEMBERED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_768_147_200_000 + seconds * 1000).expect("a timestamp")
    }

    fn reading(n: i64, value: &str) -> Reading {
        table::given::reading("d", at(n), None, &[("t", value)])
    }

    #[test]
    fn what_is_stored_is_left_out_when_the_same_request_comes_again_for_a_while() {
        let halfway = Halfway::default();
        let all: Vec<_> = (0..4).map(|n| reading(n, "1")).collect();
        let request = halfway.request(&all, false);
        assert_eq!(halfway.left(request, &all, at(0)), [0, 1, 2, 3]);
        halfway.keep(request, all[1..3].iter(), at(0));
        assert_eq!(halfway.left(request, &all, at(1)), [0, 3]);
        assert_eq!(halfway.left(request, &all, at(119)), [0, 3]);
        assert_eq!(halfway.left(request, &all, at(120)), [0, 1, 2, 3]);
    }

    #[test]
    fn any_other_request_is_stored_as_it_is() {
        let halfway = Halfway::default();
        let all: Vec<_> = (0..4).map(|n| reading(n, "1")).collect();
        halfway.keep(halfway.request(&all, false), all.iter(), at(0));
        let corrected: Vec<_> = (0..4).map(|n| reading(n, "2")).collect();
        for (readings, is_merged) in [(&all[..], true), (&all[1..2], false), (&corrected, false)] {
            let request = halfway.request(readings, is_merged);
            assert_eq!(halfway.left(request, readings, at(1)).len(), readings.len());
        }
    }

    #[test]
    fn what_another_request_overwrites_is_stored_again() {
        let halfway = Halfway::default();
        let all: Vec<_> = (0..4).map(|n| reading(n, "1")).collect();
        let request = halfway.request(&all, false);
        halfway.keep(request, all.iter(), at(0));
        let other = [reading(2, "2")];
        halfway.overwrite(halfway.request(&other, false), other.iter());
        assert_eq!(halfway.left(request, &all, at(1)), [2]);
        halfway.overwrite(request, all.iter());
        assert_eq!(halfway.left(request, &all, at(1)), [2], "its own are no others");
    }

    #[test]
    fn each_request_is_remembered_for_its_own_time() {
        let halfway = Halfway::default();
        let some = |n| [reading(n, "1"), reading(n + 1, "1")];
        for n in [0, 100] {
            halfway.keep(halfway.request(&some(n), false), some(n)[..1].iter(), at(n));
        }
        let left = |n, now| halfway.left(halfway.request(&some(n), false), &some(n), at(now)).len();
        assert_eq!((left(0, 110), left(100, 110)), (1, 1));
        assert_eq!((left(0, 130), left(100, 130)), (2, 1));
    }

    #[test]
    fn memory_is_bounded() {
        let halfway = Halfway::default();
        let many: Vec<_> = (0..40_000).map(|n| reading(n, "1")).collect();
        let more: Vec<_> = (40_000..60_000).map(|n| reading(n, "1")).collect();
        let [first, second] = [&many, &more].map(|it| halfway.request(it, false));
        halfway.keep(first, many.iter(), at(0));
        halfway.keep(second, more.iter(), at(0));
        assert!(halfway.left(second, &more, at(0)).is_empty());
        assert_eq!(halfway.left(first, &many, at(0)).len(), 40_000);
    }
}
