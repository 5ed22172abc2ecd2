//! The names of devices and rooms in messages, and the units of their metrics. Writes no text.

use std::collections::{BTreeMap, BTreeSet};

use alerts::{AlertSubject, Rule, Watch};
use domain::{Device, DeviceId, Label, RoomId, Unit};
use table::{FindRegistry, Session, WaitingMessage};

/// The registered devices and rooms that messages are about.
#[derive(Debug, Default)]
pub(crate) struct RegisteredNames {
    devices: BTreeMap<DeviceId, Device>,
    rooms: BTreeMap<RoomId, Option<Label>>,
}

impl RegisteredNames {
    /// Looks up the subjects of messages. A subject that cannot be read is called by its id, so that no message waits
    /// for a name.
    pub(crate) async fn of(
        session: Session<'_, impl FindRegistry>,
        messages: &[WaitingMessage],
    ) -> Self {
        let (mut devices, mut rooms) = (BTreeSet::new(), BTreeSet::new());
        for message in messages {
            match &message.logged.alert.subject {
                AlertSubject::Device(id) => drop(devices.insert(id.clone())),
                AlertSubject::Room(id) => drop(rooms.insert(id.clone())),
            }
        }

        let devices: Vec<DeviceId> = devices.into_iter().collect();
        let rooms: Vec<RoomId> = rooms.into_iter().collect();

        let mut found = Self::default();
        if !devices.is_empty()
            && let Ok(listing) = session.find_devices(&devices).await
        {
            found.devices =
                listing.found.into_iter().map(|device| (device.id().clone(), device)).collect();
        }

        if !rooms.is_empty()
            && let Ok(listing) = session.find_rooms(&rooms).await
        {
            found.rooms = listing.found.into_iter().map(|room| (room.id, room.name)).collect();
        }
        found
    }

    /// The name of a subject, or its id if it has no name.
    pub(crate) fn name<'a>(&'a self, subject: &'a AlertSubject) -> &'a str {
        match subject {
            AlertSubject::Device(id) => {
                let name = self.devices.get(id).and_then(Device::name);
                name.map_or(id.as_str(), Label::as_str)
            }
            AlertSubject::Room(id) => {
                let name = self.rooms.get(id).and_then(Option::as_ref);
                name.map_or(id.as_str(), Label::as_str)
            }
        }
    }

    /// The unit of the metric that a rule watches.
    pub(crate) fn unit(&self, subject: &AlertSubject, rule: &Rule) -> Option<&Unit> {
        let (AlertSubject::Device(id), Watch::Metric { metric, .. }) = (subject, &rule.watch)
        else {
            return None;
        };
        self.devices.get(id)?.metrics().get(metric)?.unit.as_ref()
    }
}
