//! Changes of readings and of settings that the rollups of an answer may not have yet. Reads no rollup.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::{DeviceId, TimeRange, Timestamp};
use rollups::RollupDelay;
use serde::Serialize;
use table::{DeviceGroups, LateChanges, ReadLateChanges, Session, StoreResult};

use super::horizon::Horizon;

/// Changes of readings that were made after their time was rolled up. They are read before any rollup. A change that is
/// announced after this read is not named.
#[derive(Debug)]
pub struct UnfoldedChanges {
    late: LateChanges,
    quarters: Option<u64>,
    rollup_delay: RollupDelay,
    outdated: Arc<AtomicUsize>,
    now: Timestamp,
}

impl UnfoldedChanges {
    /// The read units of [`read`](Self::read): one small item, read consistently.
    pub const READ_UNITS: f64 = 1.0;

    /// Reads the late changes from the table.
    pub async fn read(
        session: Session<'_, impl ReadLateChanges>,
        horizon: &Horizon,
    ) -> StoreResult<Self> {
        let (quarters, rollup_delay) = (horizon.waiting_quarters(), horizon.rollup_delay());
        let (late, outdated) = (session.late_changes().await?, horizon.outdated().clone());
        Ok(Self { late, quarters, rollup_delay, outdated, now: session.now })
    }

    /// The lag of the rollups of a range, for one device or for all. `None` if no lag is known. Call this after the
    /// rollups are read: only then is it known how many are outdated.
    pub fn lag_of(&self, range: TimeRange, device: Option<&DeviceId>) -> Option<RollupLag> {
        let groups = device.map_or(DeviceGroups::ALL, DeviceGroups::of);
        let changes_since = self.rollup_delay.lacking_since(&self.late, range, groups, self.now);
        let quarters = self.quarters;
        let outdated = Some(self.outdated.load(Ordering::Relaxed)).filter(|rollups| *rollups > 0);
        let has_lag = changes_since.is_some() || quarters.is_some() || outdated.is_some();
        has_lag.then_some(RollupLag { changes_since, quarters, outdated })
    }

    /// The instant before which every stored change is folded, of all devices and all times.
    pub fn folded_until(&self) -> Timestamp {
        self.rollup_delay.folded_until(&self.late, self.now)
    }

    /// The late changes as the table had them.
    pub const fn late(&self) -> &LateChanges {
        &self.late
    }
}

/// The changes of past time that the rollups may lack. Shown for as long as the rollups may lag.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RollupsLack"))]
pub struct RollupLag {
    /// Changes that were made to past readings since this time may be missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes_since: Option<Timestamp>,
    /// The number of quarters of an hour that could not be folded and are tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    quarters: Option<u64>,
    /// The number of rollups that were folded with older settings of the device. They are folded again within minutes.
    /// Those that readings have replaced, for up to 31 days, are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    outdated: Option<usize>,
}

impl RollupLag {
    /// The lag as a sentence.
    pub fn text(&self) -> String {
        let changes =
            self.changes_since.map(|since| format!("changes of past readings since {since}"));
        let quarters = self.quarters.map(|number| format!("{number} quarters of an hour"));
        let outdated =
            self.outdated.map(|number| format!("a change of settings in {number} rollups"));
        let lacks: Vec<String> = changes.into_iter().chain(quarters).chain(outdated).collect();
        format!("rollups lag; they may lack {}", lacks.join(" and "))
    }
}
