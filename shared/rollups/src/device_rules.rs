//! The part of a device that its rollups are folded by. Reads no registry.

use domain::{Device, DeviceId, FoldRules};
use table::Indexing;

/// A device, and the rules by which its readings are folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceRules {
    /// The device.
    pub id: DeviceId,
    /// The rules.
    pub rules: FoldRules,
    /// The number of the settings that the rules come from.
    pub settings: u64,
    /// What the index by conditions is to have of the rollups.
    pub indexing: Indexing,
}

impl DeviceRules {
    /// The rules for a device of the registry.
    #[must_use]
    pub fn of(device: &Device) -> Self {
        Self {
            id: device.id().clone(),
            rules: FoldRules::of(device),
            settings: device.fold_settings().number,
            indexing: Indexing::Off,
        }
    }

    /// The rules for a device that the registry does not know.
    #[must_use]
    pub fn of_unknown(id: DeviceId) -> Self {
        Self { id, rules: FoldRules::default(), settings: 0, indexing: Indexing::Off }
    }

    /// The same rules, with what the index by conditions is to have. It must be read before the rollups are.
    #[must_use]
    pub fn indexed(self, indexing: &Indexing) -> Self {
        Self { indexing: indexing.clone(), ..self }
    }
}
