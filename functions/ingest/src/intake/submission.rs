//! Submissions: the unparsed readings of a request or a message, with sender, size and format.

use std::borrow::Cow;

use api::endpoints::Endpoint;
use api::{Params, Problem, Request, inflate};
use domain::text_id::id_of;
use domain::{DeviceId, IdError, Label, RoomId, Timestamp};
use runtime::authentication::Grant;
use sha2::{Digest as _, Sha256};

use crate::event::{FetchedMessage, MqttMessage, TopicMessage};
use crate::formats::{MAX_PAYLOAD, PayloadReader, ReadingFormat};
use crate::intake::sender::RequestSender;
use crate::intake::topic::{self, Topic};

/// The largest fetched body, in bytes: clouds send all devices of an account at once.
pub(crate) const MAX_FETCHED: usize = 512 << 10;

/// The unparsed readings of a request or a message.
#[derive(Debug)]
pub(crate) struct Submission<'a> {
    pub(crate) sender: RequestSender<'a>,
    pub(crate) format: ReadingFormat,
    /// The body, decompressed. Its size is within the limits.
    pub(crate) body: Cow<'a, [u8]>,
    /// The largest payload of a device's own format, in bytes. The limit is checked when the payload is read.
    pub(crate) max_payload: usize,
    /// When the gateway or the broker took the request or the message.
    pub(crate) arrived: Timestamp,
    /// An id that tells apart two arrivals of a device in one millisecond, such as the gateway's id of a request or the
    /// digest of an MQTT payload. A repeated event has the same id.
    pub(crate) arrival_id: String,
    pub(crate) options: StoreOptions,
    /// The facts that the address or the topic adds to the body.
    pub(crate) hints: AddressHints,
    /// The message of a source, if the readings were fetched.
    pub(crate) fetched: Option<&'a FetchedMessage>,
}

/// Facts that the address or the topic adds to a device's own payload. Device and time replace those of the payload;
/// the name is used only if the payload has no name.
#[derive(Debug, Clone, Default)]
pub(crate) struct AddressHints {
    pub(crate) device: Option<DeviceId>,
    /// The device's name as it was sent, if the id was made from it and differs.
    pub(crate) name: Option<Label>,
    pub(crate) room: Option<RoomId>,
    pub(crate) time: Option<Timestamp>,
}

/// How the readings of a request are written.
#[derive(Debug, Clone, Copy, Default, Hash)]
pub(crate) struct StoreOptions {
    /// Whether a reading with a timestamp is merged into the stored reading of its device and timestamp. Otherwise it
    /// replaces the stored reading.
    pub(crate) merge: bool,
    /// Whether readings keep their room as sent, or stay without a room, because the registry does not know where a
    /// device was in the past. Otherwise [`fill_in_rooms`](crate::completion::fill_in_rooms) gives them rooms.
    pub(crate) keeps_rooms: bool,
    /// Whether nothing is stored if any reading is refused. If the table fails midway, a part may still be stored.
    pub(crate) all_or_nothing: bool,
}

impl<'a> Submission<'a> {
    /// The submission of an HTTP request. `now` is the time of arrival if the event has no time.
    pub(crate) fn of_request(
        endpoint: &'static Endpoint,
        request: &'a Request,
        params: &Params,
        grant: &'a Grant,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let random = || format!("{:032x}", fastrand::u128(..));
        let payload = PayloadReader::of(endpoint);
        let time = params.get("time").map(Timestamp::parse_absolute).transpose();
        let named = params.get("device").map(named_device).transpose();
        let (device, name) = named.map_err(|why| Problem::field("device", why))?.unzip();

        Ok(Self {
            sender: RequestSender::of(grant),
            format: match payload {
                Some(payload) => ReadingFormat::Payload(payload),
                None => ReadingFormat::of(request.header("content-type").unwrap_or_default()),
            },
            body: match payload {
                Some(payload) if payload.is_address() => request.raw_query.as_bytes().into(),
                _ => request.json_body()?,
            },
            arrived: request.arrived.unwrap_or(now),
            arrival_id: request.arrival.clone().unwrap_or_else(random),
            options: StoreOptions {
                // A payload may contain only changed values, so two payloads of one second may complete each other.
                merge: payload.is_some() || params.flag("merge"),
                keeps_rooms: params.get("rooms") == Some("given"),
                all_or_nothing: false,
            },
            hints: AddressHints {
                device,
                // There is a name only if the address names the device by name and not by id.
                name: name.flatten(),
                room: params.parse("room")?,
                time: time.map_err(|why| Problem::field("time", why))?,
            },
            max_payload: MAX_PAYLOAD,
            fetched: None,
        })
    }

    /// The submission of an MQTT message in JSON, for which the rule of IoT Core names the device.
    pub(crate) fn of_message(message: &'a MqttMessage) -> Result<Self, Problem> {
        let device: Result<DeviceId, _> = message.device_id.parse();
        let device = device.map_err(|why| Problem::field("device_id", why))?;

        Ok(Self {
            sender: RequestSender::Topic(device),
            format: ReadingFormat::Json,
            body: inflate(&message.payload)?,
            max_payload: MAX_PAYLOAD,
            arrived: arrival(message.timestamp)?,
            arrival_id: digest(&message.payload),
            options: StoreOptions::default(),
            hints: AddressHints::default(),
            fetched: None,
        })
    }

    /// The submission of an MQTT message whose topic names its format, or `None` if the topic carries no
    /// readings.
    pub(crate) fn of_topic_message(message: &'a TopicMessage) -> Result<Option<Self>, Problem> {
        let Some(Topic { reader, device, name }) = topic::read(&message.topic)? else {
            return Ok(None);
        };

        Ok(Some(Self {
            sender: RequestSender::Topic(device.clone()),
            format: ReadingFormat::Payload(reader),
            body: inflate(&message.payload)?,
            max_payload: MAX_PAYLOAD,
            arrived: arrival(message.timestamp)?,
            arrival_id: digest(&message.payload),
            options: StoreOptions { merge: true, ..StoreOptions::default() },
            hints: AddressHints { device: Some(device), name, ..AddressHints::default() },
            fetched: None,
        }))
    }

    /// The submission of a fetched body.
    pub(crate) fn of_fetched(message: &'a FetchedMessage) -> Result<Self, Problem> {
        let FetchedMessage { of, run, .. } = message;
        Ok(Self {
            sender: RequestSender::Fetching(message.device.as_ref()),
            format: ReadingFormat::of_fetched(&message.format)?,
            body: message.payload.as_slice().into(),
            max_payload: MAX_FETCHED,
            arrived: arrival(message.timestamp)?,
            arrival_id: format!("{of} {run}"),
            options: StoreOptions { merge: true, ..StoreOptions::default() },
            hints: AddressHints::default(),
            fetched: Some(message),
        })
    }
}

/// The device that an address names, by id or by name. A name is turned into an id, as in a topic.
fn named_device(text: &str) -> Result<(DeviceId, Option<Label>), IdError> {
    text.parse().map(|id| (id, None)).or_else(|_| id_of(text))
}

/// When a message arrived.
fn arrival(millis: i64) -> Result<Timestamp, Problem> {
    Timestamp::from_millis(millis).map_err(|why| Problem::field("timestamp", why))
}

/// The hash of a payload, as text.
fn digest(payload: &[u8]) -> String {
    let digest = Sha256::digest(payload);
    digest[..16].iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}
