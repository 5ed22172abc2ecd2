//! The formats in which readings are sent: one file each, from bytes to drafts. Knows no sender and no clock.

pub(crate) mod draft;
pub(crate) mod json;
#[cfg(test)]
mod line_invariants;
pub(crate) mod line_protocol;
pub(crate) mod moment;
pub(crate) mod payload;
mod query;
mod remo;
mod shelly;
mod switchbot;
mod tasmota;
#[cfg(test)]
mod tests;
pub(crate) mod vocabulary;
mod zigbee2mqtt;

use api::{Problem, ProblemKind, is_ndjson};
use domain::Timestamp;
use serde_json::Value;

use draft::Entry;
use payload::{Payload, Unknown};

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// A JSON document, or lines of JSON that no type announces.
    Json,
    /// One JSON object a line.
    Ndjson,
    /// A device's own payload.
    Payload(PayloadFormat),
}

/// A format that devices, their scripts or their makers' clouds send by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PayloadFormat {
    /// Tasmota's telemetry.
    Tasmota,
    /// Shelly's status.
    Shelly,
    /// A message of Zigbee2MQTT.
    Zigbee2Mqtt,
    /// A report of SwitchBot's cloud.
    SwitchBot,
    /// An answer of Nature Remo's cloud.
    Remo,
    /// The parameters of an address, by the names of metrics.
    Quick,
    /// The parameters of an address that a Shelly's action calls.
    ShellyAction,
}

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
    /// Whether the readings are in an address, and not in a body.
    pub(crate) const fn is_address(self) -> bool {
        matches!(self, Self::Quick | Self::ShellyAction)
    }

    /// Whether a time may be local, without an offset.
    pub(crate) const fn has_local_times(self) -> bool {
        matches!(self, Self::Tasmota | Self::Zigbee2Mqtt)
    }

    /// The payloads of a body or of the query of an address; none where it has no numbers.
    pub(crate) fn read(self, body: &[u8], arrived: Timestamp) -> Result<Vec<Payload>, Problem> {
        let (name, read) = match self {
            Self::Quick => return query::quick(body),
            Self::ShellyAction => return query::shelly(body),
            Self::Tasmota => ("Tasmota's", tasmota::read(&tree(body)?)),
            Self::Shelly => ("Shelly's", shelly::read(&tree(body)?)),
            Self::Zigbee2Mqtt => ("Zigbee2MQTT's", zigbee2mqtt::read(&tree(body)?)),
            Self::SwitchBot => ("SwitchBot's", switchbot::read(&tree(body)?)),
            Self::Remo => ("Nature Remo's", remo::read(&tree(body)?, arrived)),
        };
        read.map_err(|Unknown(expected)| {
            let detail = format!("The payload is not {name}; looked for {expected}.");
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
