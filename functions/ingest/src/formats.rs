//! The formats in which readings are sent. Each has a file that parses bytes into drafts of readings. Knows no sender
//! and no clock.

mod chirpstack;
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

use api::endpoints::{ENDPOINTS, Endpoint, Operation, PayloadFormat, READINGS, fetched_formats};
use api::{Problem, ProblemKind, is_ndjson};
use domain::Timestamp;
use serde_json::Value;

use draft::Entry;
use payload::{Payload, TreeFormat};

/// The format in which readings are sent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ReadingFormat {
    /// A JSON document, or JSON lines sent without their content type.
    Json,
    /// One JSON object per line.
    Ndjson,
    /// A payload in the form of the device's maker.
    Payload(PayloadReader),
}

/// The format of an endpoint's payloads, with its parser.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PayloadReader {
    pub(crate) endpoint: &'static Endpoint,
    pub(crate) format: PayloadFormat,
    read: Read,
}

/// The formats of payloads that are JSON trees. A test finds payload endpoints without a format.
const TREE_FORMATS: [&TreeFormat; 7] = [
    &tasmota::FORMAT,
    &shelly::FORMAT,
    &zigbee2mqtt::FORMAT,
    &switchbot::FORMAT,
    &remo::FORMAT,
    &things_stack::FORMAT,
    &chirpstack::FORMAT,
];

/// The parser of a format's payloads.
#[derive(Debug, Clone, Copy)]
enum Read {
    /// Reads a body.
    Tree(&'static TreeFormat),
    /// Reads the query parameters of an address.
    Address(fn(&[u8]) -> Result<Vec<Payload>, Problem>),
}

impl Read {
    /// The reader of an operation's payloads.
    fn of(operation: Operation) -> Option<Self> {
        match operation {
            Operation::QuickReading => Some(Self::Address(query::quick)),
            Operation::ShellyReading => Some(Self::Address(query::shelly)),
            _ => {
                let found = TREE_FORMATS.into_iter().find(|format| format.operation == operation);
                found.map(Self::Tree)
            }
        }
    }
}

/// The largest payload of a device, in bytes: IoT Core hands on no larger message. The parsed tree takes up to 16 times
/// as much memory.
pub(crate) const MAX_PAYLOAD: usize = 128 << 10;

impl ReadingFormat {
    /// The format of a body, by its `Content-Type`.
    pub(crate) fn of(content_type: &str) -> Self {
        if is_ndjson(content_type) { Self::Ndjson } else { Self::Json }
    }

    /// The format of a fetched body, by name: [`READINGS`] or the last part of a payload endpoint's path.
    pub(crate) fn of_fetched(name: &str) -> Result<Self, Problem> {
        if name == READINGS {
            return Ok(Self::Json);
        }

        let found = PayloadReader::all().find(|reader| reader.endpoint.body_format() == Some(name));
        found
            .map(Self::Payload)
            .ok_or_else(|| Problem::field("format", unknown_format(name, fetched_formats())))
    }

    /// The entries of a body. A bad entry does not affect the others; a body that cannot be split into entries is
    /// refused as a whole.
    pub(crate) fn read(self, body: &[u8]) -> Result<Vec<Entry>, Problem> {
        match self {
            Self::Json => json::document_or_lines(body),
            Self::Ndjson => json::lines(body),
            Self::Payload(_) => unreachable!("payloads are read by their own way"),
        }
    }
}

impl PayloadReader {
    /// The reader of an endpoint's payloads; `None` if the endpoint takes the API's own JSON.
    pub(crate) fn of(endpoint: &'static Endpoint) -> Option<Self> {
        Some(Self {
            endpoint,
            format: endpoint.operation.payload()?,
            read: Read::of(endpoint.operation)?,
        })
    }

    /// The readers of all formats.
    fn all() -> impl Iterator<Item = Self> {
        ENDPOINTS.iter().filter_map(Self::of)
    }

    /// The reader of the format that a level of a topic names.
    pub(crate) fn of_topic(level: &str) -> Option<Self> {
        Self::all().find(|reader| reader.format.topic == Some(level))
    }

    /// The levels of topics that name a format.
    pub(crate) fn topics() -> impl Iterator<Item = &'static str> {
        Self::all().filter_map(|reader| reader.format.topic)
    }

    /// Finds the device in the part of a topic after the format's name; `None` if the topic carries no readings.
    pub(crate) fn device_of<'a>(&self, rest: &'a str) -> Option<&'a str> {
        match self.read {
            Read::Tree(format) => (format.device_of)(rest),
            Read::Address(_) => None,
        }
    }

    /// Whether the readings are in the query of an address, not in a body.
    pub(crate) fn is_address(&self) -> bool {
        self.endpoint.takes_values()
    }

    /// The payloads of a body of at most `max_payload` bytes, or of the query of an address. Empty if there are no
    /// numbers.
    pub(crate) fn read(
        &self,
        body: &[u8],
        max_payload: usize,
        arrived: Timestamp,
    ) -> Result<Vec<Payload>, Problem> {
        let format = match self.read {
            Read::Address(read) => return read(body),
            Read::Tree(format) => format,
        };
        (format.read)(&tree(body, max_payload)?, arrived).ok_or_else(|| {
            let (owner, expected) = (self.format.owner, format.expected);
            let detail = format!("The payload is not {owner}; looked for {expected}.");
            Problem::new(ProblemKind::BadRequest, detail)
        })
    }
}

/// The message that refuses an unknown format and lists the `known` names.
pub(crate) fn unknown_format(name: &str, known: impl Iterator<Item = &'static str>) -> String {
    let known: Vec<_> = known.collect();
    let (last, others) = known.split_last().expect("there are formats");
    format!("{:?} is not a format; expected {} or {last}", domain::excerpt(name), others.join(", "))
}

/// Parses a device's payload as a JSON tree.
fn tree(body: &[u8], max_payload: usize) -> Result<Value, Problem> {
    if body.len() > max_payload {
        let detail = format!(
            "The payload is {} bytes long; a device may send at most {max_payload}.",
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
