//! Readings on their way in, unread: who sends them, in which format, and what the address says of them. Is made by
//! `request`.

use std::borrow::Cow;

use domain::{DeviceId, Label, RoomId, Timestamp};

use crate::formats::Format;
use crate::intake::options::StoreOptions;
use crate::intake::sender::Sender;

/// Readings on their way in, unread.
#[derive(Debug)]
pub(crate) struct Submission<'a> {
    pub(crate) sender: Sender<'a>,
    pub(crate) format: Format,
    /// The body, inflated; its size is within the limits.
    pub(crate) body: Cow<'a, [u8]>,
    /// When the gateway or the broker took it.
    pub(crate) arrived: Timestamp,
    /// Tells two arrivals of a device in one millisecond apart: the id that the gateway gives a request, or the digest of an
    /// MQTT payload. A repeated event has the same one.
    pub(crate) arrival_id: String,
    pub(crate) options: StoreOptions,
    /// What the address or the topic says beside the body.
    pub(crate) hints: AddressHints,
}

/// What the address or the topic of a device's own payload tells of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct AddressHints {
    pub(crate) device: Option<DeviceId>,
    /// The device's name, where its id is not that.
    pub(crate) name: Option<Label>,
    pub(crate) room: Option<RoomId>,
    pub(crate) time: Option<Timestamp>,
}
