//! Changes that the rollups of an answer may lack: of readings that were written before the question, and of settings.
//! Reads no rollup.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::{DeviceId, TimeRange, Timestamp};
use rollups::Following;
use serde::Serialize;
use table::{DeviceGroups, LateChanges, ReadLateChanges, Session, StoreResult};

use super::horizon::Horizon;

/// What is known of late changes, from before any rollup is read: what is stored later may be missing.
#[derive(Debug)]
pub struct UnfoldedChanges {
    late: LateChanges,
    quarters: Option<u64>,
    following: Following,
    outdated: Arc<AtomicUsize>,
    now: Timestamp,
}

impl UnfoldedChanges {
    /// What [`read`](Self::read) costs: one small item, consistently.
    pub const READ_UNITS: f64 = 1.0;

    /// Asks the table, as it is this moment.
    pub async fn read(
        session: Session<'_, impl ReadLateChanges>,
        horizon: &Horizon,
    ) -> StoreResult<Self> {
        let (quarters, following) = (horizon.waiting_quarters(), horizon.following());
        let (late, outdated) = (session.late_changes().await?, horizon.outdated().clone());
        Ok(Self { late, quarters, following, outdated, now: session.now })
    }

    /// What the rollups of a range may lack: of one device, or else of any. `None` where nothing is known to be
    /// missing. Call it after the rollups are read: that counts the outdated ones.
    pub fn of(&self, range: TimeRange, device: Option<&DeviceId>) -> Option<RollupLag> {
        let groups = device.map_or(DeviceGroups::ALL, DeviceGroups::of);
        let changes_since = self.following.lacking_since(&self.late, range, groups, self.now);
        let quarters = self.quarters;
        let outdated = Some(self.outdated.load(Ordering::Relaxed)).filter(|rollups| *rollups > 0);
        let has_lag = changes_since.is_some() || quarters.is_some() || outdated.is_some();
        has_lag.then_some(RollupLag { changes_since, quarters, outdated })
    }

    /// The instant up to which all changes are folded, of whatever time and device.
    pub fn folded_until(&self) -> Timestamp {
        self.following.folded_until(&self.late, self.now)
    }

    /// What is known of late changes.
    pub const fn late(&self) -> &LateChanges {
        &self.late
    }
}

/// What the rollups of past time may lack, from the first moment and while they may be behind.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RollupsLack"))]
pub struct RollupLag {
    /// Changes of past readings since then.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes_since: Option<Timestamp>,
    /// The number of quarters of an hour that could not be folded and are tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    quarters: Option<u64>,
    /// The number of rollups that were folded before somebody changed the device's settings, and are folded again within
    /// minutes. Up to 31 days are made from readings instead and not counted.
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
        format!("rollups are behind; they may lack {}", lacks.join(" and "))
    }
}
