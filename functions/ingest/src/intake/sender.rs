//! The sender of readings. Only this file decides for which devices a sender may write.

use domain::{DeviceId, WritableDevices};
use runtime::authentication::Grant;

use crate::formats::draft::{Fault, Refusal};

/// The sender of a request or a message.
#[derive(Debug, Clone)]
pub(crate) enum RequestSender<'a> {
    /// A sender who may write for every device.
    Anyone,
    /// A device that publishes by MQTT and is named by the topic. The device may write for itself and its parts.
    Topic(DeviceId),
    /// The function `fetching`, which may write for every device. Readings that name no device belong to the source's
    /// device.
    Fetching(Option<&'a DeviceId>),
    /// The holder of a token for these devices and their parts.
    Holder(&'a WritableDevices),
}

impl<'a> RequestSender<'a> {
    /// The sender of a request with the grant.
    pub(crate) fn of(grant: &'a Grant) -> Self {
        grant.writing().map_or(Self::Anyone, |scope| Self::Holder(&scope.devices))
    }

    /// The device that the reading names; without a name, the sender's only device. A device of another sender is
    /// refused.
    pub(crate) fn device(&self, named: Option<DeviceId>) -> Result<DeviceId, Refusal> {
        let device = named.or_else(|| self.only_device().cloned());
        let device = device.ok_or_else(|| Refusal::of("device_id", Fault::Missing))?;
        if self.may_write(&device) {
            Ok(device)
        } else {
            Err(Refusal::of("device_id", Fault::Foreign(device)))
        }
    }

    /// The device of readings without a name: the device of a source, or the only device that the sender may write for,
    /// not counting its parts.
    pub(crate) fn only_device(&self) -> Option<&DeviceId> {
        match self {
            Self::Topic(device) => Some(device),
            Self::Fetching(device) => *device,
            Self::Holder(WritableDevices::Only(devices)) => {
                devices.first().filter(|_| devices.len() == 1)
            }
            Self::Anyone | Self::Holder(_) => None,
        }
    }

    /// Whether the sender may write for a device. Rules of alerts watch the states of sources, so no device and no
    /// holder of a write token writes these.
    pub(crate) fn may_write(&self, device: &DeviceId) -> bool {
        match self {
            Self::Anyone | Self::Fetching(_) => true,
            Self::Topic(own) => device.is_part_of(own) && !device.is_of_source(),
            Self::Holder(devices) => devices.permit(device) && !device.is_of_source(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::device;

    #[test]
    fn a_known_sender_cannot_speak_for_another_and_need_not_name_itself() {
        let one = WritableDevices::Only([device("d")].into());
        let two = WritableDevices::Only([device("d"), device("e")].into());
        for (sender, unnamed, foreign) in [
            (RequestSender::Anyone, None, false),
            (RequestSender::Fetching(None), None, false),
            (RequestSender::Fetching(Some(&device("d"))), Some("d"), false),
            (RequestSender::Topic(device("d")), Some("d"), true),
            (RequestSender::Holder(&one), Some("d"), true),
            (RequestSender::Holder(&two), None, false),
        ] {
            assert_eq!(sender.device(None).ok(), unnamed.map(device), "{sender:?}");
            for own in ["d", "d:part", "d:part:1"] {
                assert_eq!(sender.device(Some(device(own))).ok(), Some(device(own)));
            }
            let is_anyone = matches!(sender, RequestSender::Anyone | RequestSender::Fetching(_));
            assert_eq!(sender.device(Some(device("dd"))).is_ok(), is_anyone, "no part of d");
            let other = sender.device(Some(device("e")));
            assert_eq!(other.as_ref().is_err_and(Refusal::is_foreign), foreign, "{sender:?}");
        }
        let (all, state) = (WritableDevices::Any, device("source:remo"));
        for (sender, is_taken) in [
            (RequestSender::Anyone, true),
            (RequestSender::Fetching(None), true),
            (RequestSender::Holder(&all), false),
            (RequestSender::Topic(state.clone()), false),
        ] {
            assert_eq!(sender.device(Some(state.clone())).is_ok(), is_taken, "{sender:?}");
        }
        assert!(
            RequestSender::Topic(state).device(None).is_err(),
            "a device that is called like a source"
        );

        let refusal =
            RequestSender::Topic(device("d")).device(Some(device("e"))).expect_err("another's");
        assert_eq!(refusal.to_string(), "device_id is \"e\", which is not the sender's");
    }
}
