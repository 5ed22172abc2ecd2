//! A reading of a source, decoded by the code of the function ingest. Reads no source.

use api::AboutBody;
use domain::{About, Reading, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A reading, and the number of the first line that was decoded with it, which names the reading in a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryReading {
    /// The number of the line, from 1; 0 if the source has no lines.
    pub line: u64,
    /// The reading.
    #[serde(serialize_with = "write", deserialize_with = "read")]
    pub reading: Reading,
}

/// Writes a reading as JSON for `POST /readings`.
pub fn json(reading: &Reading) -> String {
    let Reading { device, at, room, .. } = reading;
    let mut json = format!(r#"{{"device_id":"{device}","timestamp":"{at}""#);
    if let Some(room) = room {
        json.extend([r#","room":""#, room.as_str(), "\""]);
    }

    for (name, value) in reading.metrics() {
        json.extend([",\"", name.as_str(), "\":", value.as_str()]);
    }

    if let Some(about) = &reading.about {
        let about = serde_json::to_string(&AboutBody::from(About::clone(about)));
        json.extend([",\"about\":", &about.expect("a description is JSON")]);
    }

    json.push('}');
    json
}

/// Decodes the JSON of a reading. The error names the member.
pub fn decode(json: &str, now: Timestamp) -> Result<Reading, String> {
    ingest::read_reading(json, now).map_err(|error| {
        let field = error.field.map(|field| format!("{field}: ")).unwrap_or_default();
        format!("{field}{}", error.message)
    })
}

fn write<S: Serializer>(reading: &Reading, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&json(reading))
}

/// Decodes a reading that was accepted before, whatever the time is.
fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Reading, D::Error> {
    let json = String::deserialize(deserializer)?;
    decode(&json, Timestamp::MAX).map_err(de::Error::custom)
}
