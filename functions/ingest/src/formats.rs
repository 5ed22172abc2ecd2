//! The formats in which readings are sent: one file each, from bytes to drafts. Knows no sender and no clock.

mod chirpstack;
mod conversion;
pub(crate) mod draft;
pub(crate) mod json;
#[cfg(test)]
mod line_invariants;
pub(crate) mod line_protocol;
mod lorawan;
pub(crate) mod moment;
pub(crate) mod payload;
mod query;
mod remo;
mod scale;
mod shelly;
mod switchbot;
mod tasmota;
#[cfg(test)]
mod tests;
mod things_stack;
mod units;
pub(crate) mod vocabulary;
mod zigbee2mqtt;

use api::endpoints::Operation;
use api::{Problem, ProblemKind, is_ndjson};
use domain::Timestamp;
use serde_json::Value;

use draft::Entry;
use payload::{Payload, Unknown};

/// A format.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Format {
    /// A JSON document, or lines of JSON that no type announces.
    Json,
    /// One JSON object a line.
    Ndjson,
    /// A device's own payload.
    Payload(&'static PayloadFormat),
}

/// A format in which devices, their scripts or their makers' clouds send or answer.
#[derive(Debug)]
pub(crate) struct PayloadFormat {
    /// The name of the endpoint that takes it.
    pub(crate) operation: &'static str,
    /// Whose it is, in a refusal.
    owner: &'static str,
    read: Read,
    /// Whether a time may be local, without an offset.
    pub(crate) has_local_times: bool,
    /// The level of a topic that names the format, and how the rest names the device.
    topic: Option<(&'static str, DeviceOf)>,
}

/// The device that the rest of a topic names; `None` if its messages have no readings.
type DeviceOf = fn(&str) -> Option<&str>;

/// Where readings are, and what reads them.
#[derive(Debug)]
enum Read {
    /// In a body of JSON; the timestamp is that of its arrival.
    Tree(fn(&Value, Timestamp) -> Result<Vec<Payload>, Unknown>),
    /// In the parameters of an address.
    Address(fn(&[u8]) -> Result<Vec<Payload>, Problem>),
}

/// The formats of payloads: a row each.
static PAYLOADS: [PayloadFormat; 9] = [
    PayloadFormat {
        operation: "PostTasmota",
        owner: "Tasmota's",
        read: Read::Tree(|tree, _| tasmota::read(tree)),
        has_local_times: true,
        topic: Some(("tasmota", tasmota::device_of)),
    },
    PayloadFormat {
        operation: "PostShelly",
        owner: "Shelly's",
        read: Read::Tree(|tree, _| shelly::read(tree)),
        has_local_times: false,
        topic: Some(("shelly", shelly::device_of)),
    },
    PayloadFormat {
        operation: "PostZigbee2Mqtt",
        owner: "Zigbee2MQTT's",
        read: Read::Tree(|tree, _| zigbee2mqtt::read(tree)),
        has_local_times: true,
        topic: Some(("zigbee2mqtt", zigbee2mqtt::device_of)),
    },
    PayloadFormat {
        operation: "PostSwitchBot",
        owner: "SwitchBot's",
        read: Read::Tree(|tree, _| switchbot::read(tree)),
        has_local_times: false,
        topic: None,
    },
    PayloadFormat {
        operation: "PostRemo",
        owner: "Nature Remo's",
        read: Read::Tree(remo::read),
        has_local_times: false,
        topic: None,
    },
    PayloadFormat {
        operation: "PostThingsStack",
        owner: "The Things Stack's",
        read: Read::Tree(|tree, _| things_stack::read(tree)),
        has_local_times: false,
        topic: Some(("ttn", things_stack::device_of)),
    },
    PayloadFormat {
        operation: "PostChirpStack",
        owner: "ChirpStack's",
        read: Read::Tree(|tree, _| chirpstack::read(tree)),
        has_local_times: false,
        topic: Some(("chirpstack", chirpstack::device_of)),
    },
    PayloadFormat {
        operation: "QuickReading",
        owner: "",
        read: Read::Address(query::quick),
        has_local_times: false,
        topic: None,
    },
    PayloadFormat {
        operation: "ShellyReading",
        owner: "",
        read: Read::Address(query::shelly),
        has_local_times: false,
        topic: None,
    },
];

/// The largest payload of a device: as much as IoT Core hands on. Read as a tree it takes up to 16 times that.
const MAX_PAYLOAD: usize = 128 << 10;

impl Format {
    /// The format of a body with that `Content-Type`.
    pub(crate) fn of(content_type: &str) -> Self {
        if is_ndjson(content_type) { Self::Ndjson } else { Self::Json }
    }

    /// The entries of a body. A bad entry does not take the others down; a body that cannot be taken
    /// apart is refused whole.
    pub(crate) fn read(self, body: &[u8]) -> Result<Vec<Entry>, Problem> {
        match self {
            Self::Json => json::document_or_lines(body),
            Self::Ndjson => json::lines(body),
            Self::Payload(_) => unreachable!("payloads are read by their own way"),
        }
    }
}

impl PayloadFormat {
    /// The format that an endpoint takes; `None` if it takes readings as the API names them.
    pub(crate) fn of_operation(operation: Operation) -> Option<&'static Self> {
        let name = operation.name();
        PAYLOADS.iter().find(|format| format.operation == name)
    }

    /// The format that a level of a topic names, and how the rest names the device.
    pub(crate) fn of_topic(level: &str) -> Option<(&'static Self, DeviceOf)> {
        let of = |format: &'static Self| {
            let topic = format.topic.filter(|(name, _)| *name == level);
            topic.map(|(_, device_of)| device_of)
        };
        PAYLOADS.iter().find_map(|format| Some((format, of(format)?)))
    }

    /// The levels of topics that name a format.
    pub(crate) fn topics() -> impl Iterator<Item = &'static str> {
        PAYLOADS.iter().filter_map(|format| Some(format.topic?.0))
    }

    /// Whether the readings are in an address, and not in a body.
    pub(crate) const fn is_address(&self) -> bool {
        matches!(self.read, Read::Address(_))
    }

    /// The payloads of a body or of the query of an address; there are none if it has no numbers.
    pub(crate) fn read(&self, body: &[u8], arrived: Timestamp) -> Result<Vec<Payload>, Problem> {
        let read = match self.read {
            Read::Address(read) => return read(body),
            Read::Tree(read) => read(&tree(body)?, arrived),
        };
        read.map_err(|Unknown(expected)| {
            let detail = format!("The payload is not {}; looked for {expected}.", self.owner);
            Problem::new(ProblemKind::BadRequest, detail)
        })
    }
}

/// The tree of a device's payload.
fn tree(body: &[u8]) -> Result<Value, Problem> {
    if body.len() > MAX_PAYLOAD {
        let detail = format!(
            "The payload is {} bytes long; at most {MAX_PAYLOAD} are taken of a device.",
            body.len()
        );
        return Err(Problem::new(ProblemKind::TooLarge, detail));
    }
    let tree = serde_json::from_slice(body);
    tree.or_else(|error| payload::tree_of_any_numbers(body).ok_or(error)).map_err(|error| {
        let detail = format!("The payload is not JSON: {error}.");
        Problem::new(ProblemKind::BadRequest, detail)
    })
}
