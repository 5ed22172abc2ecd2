//! What people call the subjects of messages, and the units of their metrics. Writes no text.

use std::collections::{BTreeMap, BTreeSet};

use alerts::{Rule, Subject, Watch};
use domain::{Device, DeviceId, Label, RoomId, Unit};
use table::{FindRegistry, Invocation, WaitingMessage};

/// The devices and rooms that messages are about, as far as they are registered.
#[derive(Debug, Default)]
pub(crate) struct Registered {
    devices: BTreeMap<DeviceId, Device>,
    rooms: BTreeMap<RoomId, Option<Label>>,
}

impl Registered {
    /// Looks the subjects of messages up. What cannot be read is called by its id: no message waits for a name.
    pub(crate) async fn of(
        store: &impl FindRegistry,
        messages: &[WaitingMessage],
        invocation: &Invocation,
    ) -> Self {
        let (mut devices, mut rooms) = (BTreeSet::new(), BTreeSet::new());
        for message in messages {
            match &message.told.alert.subject {
                Subject::Device(id) => drop(devices.insert(id.clone())),
                Subject::Room(id) => drop(rooms.insert(id.clone())),
            }
        }
        let (devices, rooms): (Vec<_>, Vec<_>) =
            (devices.into_iter().collect(), rooms.into_iter().collect());
        let mut found = Self::default();
        if !devices.is_empty()
            && let Ok(listing) = store.find_devices(&devices, invocation).await
        {
            found.devices = listing.found.into_iter().map(|it| (it.id().clone(), it)).collect();
        }
        if !rooms.is_empty()
            && let Ok(listing) = store.find_rooms(&rooms, invocation).await
        {
            found.rooms = listing.found.into_iter().map(|it| (it.id, it.name)).collect();
        }
        found
    }

    /// The name of a subject; its id if nobody has named it.
    pub(crate) fn name<'a>(&'a self, subject: &'a Subject) -> &'a str {
        match subject {
            Subject::Device(id) => {
                let name = self.devices.get(id).and_then(Device::name);
                name.map_or(id.as_str(), Label::as_str)
            }
            Subject::Room(id) => {
                let name = self.rooms.get(id).and_then(Option::as_ref);
                name.map_or(id.as_str(), Label::as_str)
            }
        }
    }

    /// The unit of what a rule watches.
    pub(crate) fn unit(&self, subject: &Subject, rule: &Rule) -> Option<&Unit> {
        let (Subject::Device(id), Watch::Metric { metric, .. }) = (subject, &rule.watch) else {
            return None;
        };
        self.devices.get(id)?.metrics().get(metric)?.unit.as_ref()
    }
}
