//! Marks: announcements that past readings may change; rollups follow later. Reads no clock and folds nothing.

use chrono::TimeDelta;
use domain::{DeviceId, SWEEP_GROUPS, TimeRange, Timestamp, sweep_group};

/// Groups of devices. A mark names groups and no devices, so that its size is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use]
pub struct DeviceGroups(u16);

impl DeviceGroups {
    /// All groups.
    pub const ALL: Self = Self((1 << SWEEP_GROUPS) - 1);

    /// The group of one device.
    pub fn of(device: &DeviceId) -> Self {
        Self(1 << sweep_group(device))
    }

    /// The union of these groups and `others`.
    pub const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether these groups include all `others`.
    pub const fn contain(self, others: Self) -> bool {
        self.0 | others.0 == self.0
    }

    /// Whether these groups include any of the `others`.
    pub const fn meet(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    /// The groups as the bits of a number.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Decodes the bits that [`bits`](Self::bits) gives.
    pub fn from_bits(bits: u16) -> Option<Self> {
        Some(Self(bits)).filter(|groups| Self::ALL.contain(*groups))
    }
}

/// The announcement that readings of a past range may be stored, changed or deleted until an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateMark {
    /// The range in which the readings' timestamps are.
    pub range: TimeRange,
    /// The groups of the readings' devices.
    pub groups: DeviceGroups,
    /// The instant until which the announcement holds.
    pub until: Timestamp,
}

impl LateMark {
    /// Whether the mark announces everything that another mark announces.
    pub fn covers(&self, other: &Self) -> bool {
        self.range.from() <= other.range.from()
            && self.range.to() >= other.range.to()
            && self.groups.contain(other.groups)
            && self.until >= other.until
    }

    /// Whether the mark is about some time of a range and some of these groups.
    pub fn concerns(&self, range: TimeRange, groups: DeviceGroups) -> bool {
        self.range.from() < range.to() && range.from() < self.range.to() && self.groups.meet(groups)
    }

    /// One mark that announces everything that both marks announce.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let from = self.range.from().min(other.range.from());
        let range = TimeRange::new(from, self.range.to().max(other.range.to()));
        Self {
            range: range.expect("it holds both"),
            groups: self.groups.with(other.groups),
            until: self.until.max(other.until),
        }
    }
}

/// Changes of past readings that were written long ago and are not folded yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// When the oldest of these changes was written.
    pub since: Timestamp,
    /// When the backlog was stored.
    pub at: Timestamp,
}

/// The marks and the backlog of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LateChanges {
    /// The number of times that the marks were stored.
    pub version: u64,
    /// The marks, sorted by the instant at which they end.
    pub marks: Vec<LateMark>,
    /// The backlog that was stored last.
    pub backlog: Option<Backlog>,
}

/// The largest number of marks of a table. This many marks fit into a KB, and a write of a KB costs one unit.
const MAX_MARKS: usize = 12;
/// How long a mark is kept after its end. Answers need a mark for at most 7.5 minutes after its end, if changes are
/// gathered for at most 5 minutes.
const KEPT: TimeDelta = TimeDelta::minutes(10);

impl LateChanges {
    /// The marks with a new one, without outdated marks and marks that the new one covers. If there are too many, the
    /// two that end first become one mark, so that no announcement is lost.
    pub fn marks_with(&self, new: LateMark, now: Timestamp) -> Vec<LateMark> {
        let is_kept = |mark: &&LateMark| mark.until.saturating_add(KEPT) > now && !new.covers(mark);
        let mut marks: Vec<LateMark> = self.marks.iter().filter(is_kept).copied().collect();
        marks.push(new);
        marks.sort_by_key(|mark| mark.until);

        while marks.len() > MAX_MARKS {
            marks[1] = marks[0].with(&marks[1]);
            marks.remove(0);
        }
        marks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::{self, at_second};

    fn mark(from: i64, to: i64, device: &str, until: i64) -> LateMark {
        LateMark {
            range: given::range(at_second(from), at_second(to)),
            groups: DeviceGroups::of(&given::device(device)),
            until: at_second(until),
        }
    }

    #[test]
    fn groups_are_sets() {
        let groups: Vec<DeviceGroups> =
            ["a", "b", "c"].map(|id| DeviceGroups::of(&given::device(id))).to_vec();
        let [a, b, c] = groups[..] else { panic!("three") };
        assert!(a != b && b != c, "{groups:?}");
        let both = a.with(b);
        assert!(both.contain(a) && both.meet(b) && !both.meet(c) && !a.contain(both));
        assert_eq!(DeviceGroups::from_bits(both.bits()), Some(both));
        assert_eq!(DeviceGroups::from_bits(1 << SWEEP_GROUPS), None);
        assert!(DeviceGroups::ALL.contain(c));
    }

    /// Whatever is marked in whatever order, what a mark says is said until nobody asks any more.
    #[test]
    fn no_mark_that_counts_is_lost_and_there_are_few() {
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..200 {
            let mut stored = LateChanges::default();
            let mut all = Vec::new();
            for second in 0..120 {
                if rng.bool() {
                    let from = rng.i64(-10_000..0);
                    let device = ["a", "b", "c"][rng.usize(..3)];
                    let until = second + rng.i64(-30..30);
                    let new = mark(from, from + rng.i64(1..500), device, until);
                    all.push(new);
                    stored.marks = stored.marks_with(new, at_second(second));
                }
                assert!(stored.marks.len() <= MAX_MARKS);
                let is_said = |it: &LateMark| stored.marks.iter().any(|known| known.covers(it));
                assert!(all.iter().all(is_said), "{all:?} {:?}", stored.marks);
            }
        }
    }

    #[test]
    fn a_mark_is_forgotten_when_no_answer_tells_of_it() {
        let stored = LateChanges { marks: vec![mark(0, 1, "a", 0)], ..LateChanges::default() };
        let new = mark(5, 6, "a", 610);
        assert_eq!(stored.marks_with(new, at_second(599)).len(), 2);
        assert_eq!(stored.marks_with(new, at_second(600)), [new]);
    }
}
