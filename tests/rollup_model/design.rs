//! The wrong designs that were thought of, each as a table that does something else than it is asked.
//! Ours does what it is asked.

use domain::{DeviceId, QuarterHour, TimeRange};
use table::memory::MemoryStore;
use table::{
    Expected, Invocation, PutRollups as _, ReadRollups as _, ReadStoredReadings as _, StoreResult,
    StoredReading, StoredRollup,
};

/// A design of the rollups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Design {
    /// Recompute and compare-and-swap.
    Ours,
    /// Each fold is added to what is there.
    Add,
    /// Each fold is put, whatever is there.
    BlindPut,
    /// A fold that is what is there is not put.
    SkipUnchanged,
    /// A quarter is swept when it ends, and a batch of the stream does not see that it was.
    NoGrace,
    /// A rollup of nothing is deleted.
    DeleteEmptied,
    /// A rollup of nothing is deleted, and a put expects no rollup or the version, in one condition.
    JointCondition,
    /// A fold with older settings may replace one with newer settings.
    NoSettings,
    /// A rollup is folded again whether or not its readings have begun to expire.
    IgnoreExpiry,
    /// No mark ever moves back, and a batch of the stream does not see a mark that is ahead.
    OnlyForward,
    /// A rollup has its share of the step to the first reading of the next quarter.
    StoredShare,
}

impl Design {
    /// Whether a batch of the stream does not see the marks.
    pub(super) const fn hides_marks(self) -> bool {
        matches!(self, Self::NoGrace | Self::OnlyForward)
    }

    /// Puts a rollup as the design does.
    pub(super) async fn put(
        self,
        memory: &MemoryStore,
        stored: &StoredRollup,
        expected: Expected,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let known = memory.rollup(&stored.key, invocation).await?;
        let now = known.as_ref().map_or(Expected::Absent, |it| Expected::Version(it.version));
        let mut put = stored.clone();
        let mut expected = expected;
        match self {
            Self::Ours
            | Self::NoGrace
            | Self::IgnoreExpiry
            | Self::OnlyForward
            | Self::StoredShare => {}
            Self::Add => {
                if let Some(known) = &known {
                    put.rollup = known.rollup.clone();
                    put.rollup.append(&stored.rollup, &domain::FoldRules::default());
                }
            }
            Self::BlindPut => expected = now,
            Self::SkipUnchanged => {
                if known.is_some_and(|it| it.rollup == put.rollup && it.settings == put.settings) {
                    return Ok(true);
                }
            }
            Self::DeleteEmptied | Self::JointCondition => {
                if self == Self::JointCondition && known.is_none() {
                    expected = Expected::Absent;
                }
                if expected == now && put.rollup.is_empty() {
                    memory.delete_rollup(&put.key);
                    return Ok(true);
                }
            }
            Self::NoSettings => {
                put.settings = known.map_or(0, |it| it.settings).max(put.settings);
            }
        }
        memory.put_rollup(&put, expected, invocation).await
    }

    /// A rollup as the design shows it to who reads it.
    pub(super) fn shown(self, mut rollup: StoredRollup) -> StoredRollup {
        if self == Self::NoSettings {
            rollup.settings = 0;
        }
        if self == Self::IgnoreExpiry {
            rollup.raw_until = None;
        }
        rollup
    }

    /// The readings that the design folds into a range.
    pub(super) async fn readings(
        self,
        memory: &MemoryStore,
        device: &DeviceId,
        range: TimeRange,
        invocation: &Invocation,
    ) -> StoreResult<Vec<StoredReading>> {
        if self != Self::StoredShare {
            return memory.stored_readings(device, range, invocation).await;
        }
        let behind = range.to().saturating_add(QuarterHour::LENGTH);
        let wider = TimeRange::new(range.from(), behind).expect("it is wider");
        let all = memory.stored_readings(device, wider, invocation).await?;
        let mut readings: Vec<StoredReading> = Vec::new();
        for (n, reading) in all.iter().enumerate() {
            let quarter = QuarterHour::of(reading.reading.at);
            if !range.contains(reading.reading.at) {
                break;
            }
            readings.push(reading.clone());
            let next =
                all.get(n + 1).filter(|next| QuarterHour::of(next.reading.at) == quarter.next());
            if let Some(mut next) = next.cloned() {
                // As if it were the last reading of its quarter, so that the step to it counts.
                next.reading.at = quarter.range().last();
                readings.push(next);
            }
        }
        Ok(readings)
    }
}
