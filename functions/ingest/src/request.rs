//! A request or a message before its readings are parsed: its sender, its size, its format.

use std::borrow::Cow;

use api::{Params, Problem, Request, inflate};
use domain::{DeviceId, Timestamp};
use runtime::authentication::Grant;
use sha2::{Digest as _, Sha256};

use crate::event::Message;
use crate::formats::Format;
use crate::sender::Sender;
use crate::store::Mode;

/// Readings on their way in, unread.
#[derive(Debug)]
pub(crate) struct Submission<'a> {
    pub(crate) sender: Sender<'a>,
    pub(crate) format: Format,
    /// The body, inflated; its size is within the limits.
    pub(crate) body: Cow<'a, [u8]>,
    /// When the gateway or the broker took it.
    pub(crate) arrived: Timestamp,
    /// Its identity among all submissions. A repeated event has the same one.
    pub(crate) arrival_id: String,
    pub(crate) mode: Mode,
}

impl<'a> Submission<'a> {
    /// The submission of an HTTP request; `now` is its arrival where the event does not say.
    pub(crate) fn of_request(
        request: &'a Request,
        params: &Params,
        grant: &'a Grant,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let random = || format!("{:032x}", fastrand::u128(..));
        Ok(Self {
            sender: Sender::of(grant),
            format: Format::of(request.header("content-type").unwrap_or_default()),
            body: request.json_body()?,
            arrived: request.arrived.unwrap_or(now),
            arrival_id: request.arrival.clone().unwrap_or_else(random),
            mode: Mode {
                merge: params.flag("merge"),
                rooms_given: params.get("rooms") == Some("given"),
            },
        })
    }

    /// The submission of an MQTT message.
    pub(crate) fn of_message(message: &'a Message) -> Result<Self, Problem> {
        let device: Result<DeviceId, _> = message.device_id.parse();
        let device = device.map_err(|why| Problem::field("device_id", why.to_string()))?;
        let arrived = Timestamp::from_millis(message.timestamp);
        Ok(Self {
            sender: Sender::Topic(device),
            format: Format::Json,
            body: inflate(&message.payload)?,
            arrived: arrived.map_err(|why| Problem::field("timestamp", why.to_string()))?,
            arrival_id: digest(&message.payload),
            mode: Mode::default(),
        })
    }
}

/// A text that two different payloads do not share.
fn digest(payload: &[u8]) -> String {
    let digest = Sha256::digest(payload);
    digest[..16].iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}
