//! Counts the changes of a device's settings that affect rollups, and says which time each change concerns.

use std::collections::BTreeMap;

use super::{Deletion, TimeRange, Timestamp, metric_rule::MetricRule, metric_settings::MetricInfo};
use crate::MetricName;

/// The number of changes whose timestamps are kept. An older change counts as if it concerned all timestamps.
const MAX_CHANGES: usize = 16;

/// The number of changes of a device's settings, and the timestamps that each of the newest changes concerns.
///
/// Every change of a setting by which readings are folded adds 1. A rollup stores the number with which it was folded.
/// A rollup with a smaller number never replaces a rollup with a greater number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoldSettings {
    /// The number of changes so far.
    pub number: u64,
    /// The timestamps that each of the newest changes concerns, by the number of the change.
    pub changes: BTreeMap<u64, Extent>,
}

/// The timestamps that a change of settings concerns, including both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The first timestamp.
    pub first: Timestamp,
    /// The last timestamp.
    pub last: Timestamp,
}

impl Extent {
    /// All timestamps.
    pub const ALL: Self = Self { first: Timestamp::MIN, last: Timestamp::MAX };

    /// No timestamp.
    const NONE: Self = Self { first: Timestamp::MAX, last: Timestamp::MIN };

    fn join(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}

impl FoldSettings {
    /// The settings of a device that is registered again after a deletion. Their number is above all numbers of the
    /// deleted device, so nobody confuses the two. Rollups that the new device already has are not folded again.
    pub fn after(deletion: &Deletion) -> Self {
        let number = deletion.settings + 1;
        Self { number, changes: [(number, Extent::NONE)].into() }
    }

    /// Records a change that concerns `extent`.
    pub(crate) fn note(&mut self, extent: Extent) {
        self.number += 1;
        self.changes.insert(self.number, extent);
        while self.changes.len() > MAX_CHANGES {
            self.changes.pop_first();
        }
    }

    /// Whether a change after the number `done` concerns a range.
    pub fn concerns(&self, done: u64, range: TimeRange) -> bool {
        let changed = self.changed_since(done);
        changed.is_some_and(|extent| extent.first < range.to() && range.from() <= extent.last)
    }

    /// The first and the last timestamp that changes after the number `done` concern; `None` without such a change.
    pub fn changed_since(&self, done: u64) -> Option<Extent> {
        if done >= self.number {
            return None;
        }
        let newer = self.changes.range(done + 1..);
        if newer.clone().count() as u64 == self.number - done {
            newer.map(|(_, extent)| *extent).reduce(Extent::join)
        } else {
            Some(Extent::ALL)
        }
    }
}

/// The timestamps that a change of metrics concerns; `None` if the change affects no fold.
pub(crate) fn extent_of_change(
    before: &BTreeMap<MetricName, MetricInfo>,
    after: &BTreeMap<MetricName, MetricInfo>,
) -> Option<Extent> {
    let info = |of: &BTreeMap<MetricName, MetricInfo>, name: &MetricName| {
        of.get(name).cloned().unwrap_or_else(|| name.into())
    };
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    names
        .filter_map(|name| extent_of_metric(&info(before, name), &info(after, name)))
        .reduce(Extent::join)
}

/// The timestamps that a change of one metric concerns; `None` if the change does not affect the fold.
fn extent_of_metric(old: &MetricInfo, new: &MetricInfo) -> Option<Extent> {
    if MetricRule::of(old) == MetricRule::of(new) {
        return None;
    }
    if MetricRule::of(&without_judgements(old)) != MetricRule::of(&without_judgements(new)) {
        return Some(Extent::ALL);
    }

    let exchanges = differing(&old.exchanges, &new.exchanges);
    let changed = exchanges.chain(differing(&old.verdicts, &new.verdicts));
    changed.map(|at| Extent { first: at, last: at }).reduce(Extent::join)
}

/// The settings that concern all timestamps.
fn without_judgements(info: &MetricInfo) -> MetricInfo {
    MetricInfo { exchanges: BTreeMap::new(), verdicts: BTreeMap::new(), ..info.clone() }
}

/// The keys whose values differ between the two maps.
fn differing<'a, T: PartialEq>(
    old: &'a BTreeMap<Timestamp, T>,
    new: &'a BTreeMap<Timestamp, T>,
) -> impl Iterator<Item = Timestamp> + 'a {
    old.keys().chain(new.keys()).filter(|at| old.get(at) != new.get(at)).copied()
}
