//! The part of a device that its rollups are folded by. Reads no registry.

use domain::{Device, DeviceId, FoldRules, FoldSettings};
use table::{Indexing, StoredRollup};

use crate::Registered;

/// A device, and the rules by which its readings are folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceRules {
    /// The id of the device.
    pub id: DeviceId,
    /// The rules.
    pub rules: FoldRules,
    /// The settings from which the rules follow.
    pub settings: FoldSettings,
    /// The schema by which rollups are put into the conditions index.
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

    /// The device, and the number of its settings.
    pub const fn registered(&self) -> Registered<'_> {
        Registered { device: &self.id, settings: self.settings.number }
    }

    /// Whether the settings have changed since the fold of a rollup, in a way that concerns this rollup.
    pub fn is_outdated(&self, stored: &StoredRollup) -> bool {
        self.settings.concerns(stored.settings, stored.range)
    }

    /// The same rules with `indexing` for the conditions index. `indexing` must be read before the rollups.
    #[must_use]
    pub fn indexed(self, indexing: &Indexing) -> Self {
        Self { indexing: indexing.clone(), ..self }
    }
}
