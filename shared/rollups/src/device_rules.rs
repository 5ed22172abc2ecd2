//! The part of a device that its rollups are folded by. Reads no registry.

use domain::{Device, DeviceId, FoldRules, FoldSettings};
use table::{Indexing, StoredRollup};

use crate::Registered;

/// A device, and the rules by which its readings are folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceRules {
    /// The device.
    pub id: DeviceId,
    /// The rules.
    pub rules: FoldRules,
    /// The settings that the rules come from.
    pub settings: FoldSettings,
    /// What the index by conditions is to have of the rollups.
    pub indexing: Indexing,
}

impl DeviceRules {
    /// The rules for a device of the registry.
    pub fn of(device: &Device) -> Self {
        Self {
            id: device.id().clone(),
            rules: FoldRules::of(device),
            settings: device.fold_settings().clone(),
            indexing: Indexing::Off,
        }
    }

    /// The device that they are of.
    pub const fn registered(&self) -> Registered<'_> {
        Registered { device: &self.id, settings: self.settings.number }
    }

    /// Whether a change of the settings since the fold concerns a rollup.
    pub fn is_outdated(&self, stored: &StoredRollup) -> bool {
        self.settings.concerns(stored.settings, stored.range)
    }

    /// The same rules, with what the index by conditions is to have. It must be read before the rollups are.
    #[must_use]
    pub fn indexed(self, indexing: &Indexing) -> Self {
        Self { indexing: indexing.clone(), ..self }
    }
}
