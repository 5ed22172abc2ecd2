//! The part of a device that its rollups are folded by. Reads no registry.

use domain::{Device, DeviceId, FoldRules};

/// A device, and the rules by which its readings are folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceRules {
    /// The device.
    pub id: DeviceId,
    /// The rules.
    pub rules: FoldRules,
    /// The number of the settings that the rules come from.
    pub settings: u64,
}

impl DeviceRules {
    /// The rules for a device of the registry.
    #[must_use]
    pub fn of(device: &Device) -> Self {
        Self {
            id: device.id.clone(),
            rules: FoldRules::of(device),
            settings: device.fold_settings.number,
        }
    }

    /// The rules for a device that the registry does not know.
    #[must_use]
    pub fn of_unknown(id: DeviceId) -> Self {
        Self { id, rules: FoldRules::default(), settings: 0 }
    }
}
