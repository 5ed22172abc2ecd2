//! A reading in an answer of the API. Writes nothing.

use std::collections::BTreeMap;

use anyhow::Context as _;
use domain::{DeviceId, RoomId, Timestamp};
use serde_json::value::RawValue;

/// A reading: its ids, its time, and the digits of each metric's value.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) device: DeviceId,
    pub(super) at: Timestamp,
    pub(super) room: Option<RoomId>,
    /// The digits of the values, by metric name.
    pub(super) metrics: BTreeMap<&'a str, &'a str>,
}

impl<'a> Row<'a> {
    /// Parses a row of an answer.
    pub(super) fn of(json: &'a RawValue) -> anyhow::Result<Self> {
        Self::read(json).with_context(|| format!("no reading: {}", domain::excerpt(json.get())))
    }

    fn read(json: &'a RawValue) -> anyhow::Result<Self> {
        let mut members: BTreeMap<&str, &RawValue> = serde_json::from_str(json.get())?;
        let text = |value: Option<&RawValue>| -> anyhow::Result<Option<String>> {
            value.map(|raw| serde_json::from_str(raw.get()).map_err(Into::into)).transpose()
        };
        let device = text(members.remove("device_id"))?.context("it has no device_id")?.parse()?;
        let at = text(members.remove("timestamp"))?.context("it has no timestamp")?;
        let at = Timestamp::parse_absolute(&at)?;
        let room = text(members.remove("room"))?.map(|room| room.parse()).transpose()?;
        let metrics = members.into_iter().map(|(name, value)| (name, value.get())).collect();
        Ok(Self { device, at, room, metrics })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_keeps_every_digit_and_another_object_is_named() {
        let json =
            r#"{"device_id":"-m","timestamp":"2026-01-11T16:00:00.001Z","t":1.5E-100,"h":5}"#;
        let json = RawValue::from_string(json.to_owned()).unwrap();
        let row = Row::of(&json).unwrap();
        assert_eq!((row.device.as_str(), row.at.as_millis()), ("-m", 1_768_147_200_001));
        assert!(row.room.is_none());
        assert_eq!(row.metrics.into_iter().collect::<Vec<_>>(), [("h", "5"), ("t", "1.5E-100")]);
        for other in ["{}", r#"{"device_id":"a b"}"#, "5"] {
            let json = RawValue::from_string(other.to_owned()).unwrap();
            let error = format!("{:#}", Row::of(&json).unwrap_err());
            assert!(error.starts_with("no reading: "), "{error}");
        }
    }
}
