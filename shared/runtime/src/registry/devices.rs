//! The devices of the registry in memory, and how many each token has introduced. Reads no table.

use std::ops::Deref;

use domain::{Device, DeviceId};

use super::SharedMap;

/// Devices by id.
#[derive(Debug, Clone, Default)]
pub struct Devices {
    by_id: SharedMap<DeviceId, Device>,
    introduced: SharedMap<String, usize>,
}

impl Devices {
    /// The number of devices that each token has introduced. The key is as in
    /// [`introduced_by`](domain::Source::introduced_by).
    pub fn number_introduced_by(&self, token: &str) -> usize {
        self.introduced.get(token).copied().unwrap_or_default()
    }

    /// Inserts a device, or replaces the device of the same id.
    pub fn insert(&mut self, device: Device) {
        self.remove(device.id());
        if let Some(token) = &device.source().introduced_by {
            self.introduced.insert(token.clone(), self.number_introduced_by(token) + 1);
        }
        self.by_id.insert(device.id().clone(), device);
    }

    /// Removes a device.
    pub fn remove(&mut self, id: &DeviceId) {
        let Some(device) = self.by_id.get(id) else { return };
        if let Some(token) = device.source().introduced_by.clone() {
            match self.number_introduced_by(&token) {
                ..=1 => self.introduced.remove(&token),
                number => self.introduced.insert(token, number - 1),
            }
        }
        self.by_id.remove(id);
    }
}

impl Deref for Devices {
    type Target = SharedMap<DeviceId, Device>;

    fn deref(&self) -> &Self::Target {
        &self.by_id
    }
}

impl FromIterator<Device> for Devices {
    fn from_iter<I: IntoIterator<Item = Device>>(devices: I) -> Self {
        let mut all = Self::default();
        devices.into_iter().for_each(|device| all.insert(device));
        all
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use domain::given::{self, metric, number};
    use domain::{DeviceObservation, Reading, Timestamp};
    use proptest::prelude::*;

    use super::*;

    fn device(id: &DeviceId, introduced_by: Option<String>) -> Device {
        let metrics = [(metric("co2"), number("1"))];
        let any = Reading::stored(id.clone(), Timestamp::MIN, None, metrics.into());
        let seen = DeviceObservation::of(&any.expect("a reading"));
        let device = seen.new_device(id.clone(), |_| false);
        device.changed(|it| it.source.introduced_by = introduced_by).expect("a device")
    }

    proptest! {
        /// Each change is of one of eight devices: it is put as introduced by nobody or by one of three tokens, or
        /// taken away.
        #[test]
        fn the_devices_of_each_token_are_counted(changes in prop::collection::vec((0_u8..8, 0_u8..5), 0..60)) {
            let mut devices = Devices::default();
            let mut plain = BTreeMap::new();
            for (id, change) in changes {
                let id: DeviceId = given::device(&format!("d{id}"));
                if change == 4 {
                    devices.remove(&id);
                    plain.remove(&id);
                } else {
                    let token = (change > 0).then(|| format!("token {change}"));
                    devices.insert(device(&id, token.clone()));
                    plain.insert(id, token);
                }
            }
            for token in (1..4).map(|n| format!("token {n}")) {
                let expected = plain.values().filter(|it| it.as_ref() == Some(&token)).count();
                prop_assert_eq!(devices.number_introduced_by(&token), expected);
            }
            prop_assert!(devices.keys().eq(plain.keys()));
        }
    }
}
