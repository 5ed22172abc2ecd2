//! Meaning: members become a reading, or a refusal that names the field. Stores nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use api::json::{Members, describe, string};
use chrono::TimeDelta;
use domain::{Decimal, DeviceId, MetricName, Reading, RoomId, Timestamp, excerpt};
use serde_json::value::RawValue;

/// How far ahead of its arrival a reading may be: clocks drift, but not by days.
const MAX_AHEAD: TimeDelta = TimeDelta::days(1);

/// When readings arrived, and which timestamps they may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// When the gateway or the broker took them.
    pub(crate) arrived: Timestamp,
    /// Timestamps before it come from clocks that were never set.
    pub(crate) earliest: Timestamp,
    /// After how many days readings are deleted.
    pub(crate) retention_days: Option<u32>,
}

/// What members say: a reading, at the timestamp of its arrival where it has no timestamp.
#[derive(Debug)]
pub(crate) struct Draft {
    /// The reading.
    pub(crate) reading: Reading,
    /// Whether its timestamp is its own.
    pub(crate) has_timestamp: bool,
}

/// Who sends readings, as far as that is known for certain.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sender<'a> {
    /// Whoever may write for every device.
    Anyone,
    /// The device that an IoT rule took from the topic.
    Topic(&'a DeviceId),
    /// The holder of a token for these devices.
    Holder(&'a BTreeSet<DeviceId>),
}

impl Sender<'_> {
    /// The device of a reading that names none.
    fn only(&self) -> Option<&DeviceId> {
        match self {
            Self::Anyone => None,
            Self::Topic(device) => Some(device),
            Self::Holder(devices) => devices.first().filter(|_| devices.len() == 1),
        }
    }

    fn may_write(&self, device: &DeviceId) -> bool {
        match self {
            Self::Anyone => true,
            Self::Topic(own) => *own == device,
            Self::Holder(devices) => devices.contains(device),
        }
    }
}

/// Why members are no reading.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The member at fault; none where it is the whole.
    pub(crate) field: Option<String>,
    /// What is wrong with it.
    pub(crate) message: String,
    /// Whether the sender tried to write for a device that is not theirs.
    pub(crate) forbidden: bool,
}

impl Refusal {
    /// The whole reading is at fault.
    pub(crate) fn whole(message: impl Display) -> Self {
        Self { field: None, message: message.to_string(), forbidden: false }
    }

    fn of(field: &str, message: impl Display) -> Self {
        Self { field: Some(excerpt(field)), message: message.to_string(), forbidden: false }
    }

    /// A second reading of a device and metric without a timestamp.
    pub(crate) fn second_arrival(device: &DeviceId, metric: &MetricName) -> Self {
        let message = format!(
            "is missing, and another reading of {:?} in this request has {metric} at the time of arrival; only one can",
            device.as_str()
        );
        Self::of("timestamp", message)
    }
}

/// The reading that the members say.
///
/// A `sender` whose device is known for certain need not name it, and can name no other.
pub(crate) fn read(
    mut members: Members<'_>,
    sender: Sender<'_>,
    times: &Times,
) -> Result<Draft, Refusal> {
    let device = device(members.take_non_null("device_id"), sender)?;
    let at = members.take_non_null("timestamp").map(|value| timestamp(value, times)).transpose()?;
    let room = members.take_non_null("room").map(|value| {
        string(value).and_then(|room| room.parse::<RoomId>().map_err(|why| why.to_string()))
    });
    let room = room.transpose().map_err(|why| Refusal::of("room", why))?;
    let mut metrics = BTreeMap::new();
    for (name, value) in members {
        let metric: MetricName = name.parse().map_err(|why| Refusal::of(&name, why))?;
        let value = number(value).map_err(|why| Refusal::of(&name, why))?;
        metrics.insert(metric, value);
    }
    let reading = Reading::new(device, at.unwrap_or(times.arrived), room, metrics);
    let reading = reading.map_err(Refusal::whole)?;
    Ok(Draft { reading, has_timestamp: at.is_some() })
}

fn device(value: Option<&RawValue>, sender: Sender<'_>) -> Result<DeviceId, Refusal> {
    let refuse = |why: String| Refusal::of("device_id", why);
    let Some(value) = value else {
        return sender.only().cloned().ok_or_else(|| refuse("is missing".to_owned()));
    };
    let text = string(value).map_err(refuse)?;
    let device: DeviceId = text.parse().map_err(|why| refuse(format!("{why}")))?;
    if sender.may_write(&device) {
        return Ok(device);
    }
    let message = format!("is {:?}, which is not the sender's", device.as_str());
    Err(Refusal { forbidden: true, ..refuse(message) })
}

fn timestamp(value: &RawValue, times: &Times) -> Result<Timestamp, Refusal> {
    let refuse = |why: &dyn Display| Refusal::of("timestamp", why.to_string());
    let text = match describe(value) {
        "a string" => string(value).map_err(|why| refuse(&why))?,
        "a number" => value.get().to_owned(),
        other => return Err(refuse(&format!("must be a string or a number, not {other}"))),
    };
    let at = Timestamp::parse_absolute(&text).map_err(|why| refuse(&why))?;
    let Times { arrived, earliest, retention_days } = *times;
    if at > arrived.saturating_add(MAX_AHEAD) {
        return Err(refuse(&format!(
            "{at} is more than a day ahead of the server's clock ({arrived})"
        )));
    }
    if at < earliest {
        return Err(refuse(&format!("{at} is before {earliest}: the clock was not set")));
    }
    match retention_days {
        Some(days) if at < arrived.saturating_add(-TimeDelta::days(days.into())) => {
            Err(refuse(&format!("{at} is older than the {days} days that readings are kept")))
        }
        _ => Ok(at),
    }
}

fn number(value: &RawValue) -> Result<Decimal, String> {
    match describe(value) {
        "a number" => Decimal::parse(value.get()).map_err(|why| why.to_string()),
        other => Err(format!("must be a number, not {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::MAX_MEMBERS;

    const NOW: &str = "2026-01-11T16:00:00.000Z";

    fn try_read(json: &str, sender: Option<&str>) -> Result<Reading, Refusal> {
        kept_for(None, json, sender)
    }

    fn kept_for(
        retention_days: Option<u32>,
        json: &str,
        sender: Option<&str>,
    ) -> Result<Reading, Refusal> {
        let timestamp = |text| Timestamp::parse_absolute(text).expect("a timestamp");
        let times = Times {
            arrived: timestamp(NOW),
            earliest: timestamp("2000-01-01T00:00:00Z"),
            retention_days,
        };
        let sender: Option<DeviceId> = sender.map(|sender| sender.parse().expect("an id"));
        let sender = sender.as_ref().map_or(Sender::Anyone, Sender::Topic);
        let draft = read(Members::parse(json, MAX_MEMBERS).expect("an object"), sender, &times)?;
        assert_eq!(draft.has_timestamp, json.contains("timestamp") && !json.contains("null"));
        Ok(draft.reading)
    }

    fn refused(json: &str) -> String {
        let Refusal { field, message, .. } = try_read(json, None).expect_err(json);
        format!("{} {message}", field.unwrap_or_default())
    }

    #[test]
    fn a_reading_is_read_whole() {
        let reading = try_read(
            r#"{"device_id": "remo-e", "timestamp": 1768147199, "room": "chiyoda1-a", "current_w": 512, "cumulative_kwh_p": 8048.10}"#,
            None,
        )
        .expect("a reading");
        assert_eq!(reading.at.to_string(), "2026-01-11T15:59:59.000Z");
        assert_eq!(reading.room.as_ref().map(RoomId::as_str), Some("chiyoda1-a"));
        let values: Vec<_> = reading.metrics().iter().map(|(n, v)| format!("{n}={v}")).collect();
        assert_eq!(values, ["cumulative_kwh_p=8048.1", "current_w=512"]);
    }

    #[test]
    fn without_a_timestamp_it_is_the_time_of_arrival() {
        for json in
            [r#"{"device_id": "d", "t": 1}"#, r#"{"device_id": "d", "timestamp": null, "t": 1}"#]
        {
            assert_eq!(try_read(json, None).expect("a reading").at.to_string(), NOW);
        }
    }

    #[test]
    fn every_bad_member_is_named_with_its_reason() {
        let digits = format!(r#"{{"device_id": "d", "t": {}}}"#, "1".repeat(39));
        for (json, expected) in [
            (r#"{"t": 1}"#, "device_id is missing"),
            (r#"{"device_id": 5, "t": 1}"#, "device_id must be a string, not a number"),
            (r#"{"device_id": "DEVICE", "t": 1}"#, r#"device_id "DEVICE" is a reserved name"#),
            (r#"{"device_id": "room", "t": 1}"#, r#"device_id "room" is a reserved name"#),
            (r#"{"device_id": "a#b", "t": 1}"#, "device_id contains '#'"),
            (r#"{"device_id": "a\u0000", "t": 1}"#, r"device_id contains '\0'"),
            (
                r#"{"device_id": "d", "room": "Token", "t": 1}"#,
                r#"room "Token" is a reserved name"#,
            ),
            (r#"{"device_id": "d", "room": 5, "t": 1}"#, "room must be a string"),
            (r#"{"device_id": "d"}"#, "there is no metric"),
            (r#"{"device_id": "d", "pk": 1}"#, r#"pk "pk" is a reserved name"#),
            (r#"{"device_id": "d", "Temp": 1}"#, "Temp \"Temp\" is not a metric name"),
            (r#"{"device_id": "d", "t": "21.5"}"#, "t must be a number, not a string"),
            (r#"{"device_id": "d", "t": "NaN"}"#, "t must be a number, not a string"),
            (r#"{"device_id": "d", "t": null}"#, "t must be a number, not null"),
            (r#"{"device_id": "d", "t": true}"#, "t must be a number, not a boolean"),
            (r#"{"device_id": "d", "t": [1]}"#, "t must be a number, not an array"),
            (r#"{"device_id": "d", "t": 1e400}"#, "t \"1e400\" is outside of"),
            (&digits, "t has 39 significant digits"),
            (
                r#"{"device_id": "d", "timestamp": true, "t": 1}"#,
                "timestamp must be a string or a number",
            ),
            (
                r#"{"device_id": "d", "timestamp": "soon", "t": 1}"#,
                "timestamp \"soon\" is not a timestamp",
            ),
            (
                r#"{"device_id": "d", "timestamp": "0001-01-01T00:00:00Z", "t": 1}"#,
                "outside of the years",
            ),
            (r#"{"device_id": "d", "timestamp": 1e400, "t": 1}"#, "outside of the years"),
            (r#"{"device_id": "d", "timestamp": "now", "t": 1}"#, "timestamp \"now\" is relative"),
            (r#"{"device_id": "d", "timestamp": "-5m", "t": 1}"#, "timestamp \"-5m\" is relative"),
            (r#"{"device_id": "d", "timestamp": 35, "t": 1}"#, "the clock was not set"),
            (r#"{"device_id": "d", "timestamp": 2026, "t": 1}"#, "the clock was not set"),
            (
                r#"{"device_id": "d", "timestamp": "1999-12-31T23:59:59.999Z", "t": 1}"#,
                "is before 2000-01-01T00:00:00.000Z",
            ),
            (r#"{"device_id": "..", "t": 1}"#, r#"device_id ".." cannot be part of"#),
            (r#"{"device_id": "d", "room": ".", "t": 1}"#, r#"room "." cannot be part of"#),
            (
                r#"{"device_id": "d", "timestamp": "2026-01-12T16:00:01Z", "t": 1}"#,
                "more than a day ahead",
            ),
            (
                r#"{"device_id": "d", "timestamp": "10000-01-01T00:00:00Z", "t": 1}"#,
                "is not a timestamp",
            ),
        ] {
            assert!(refused(json).contains(expected), "{json}: {}", refused(json));
        }
    }

    #[test]
    fn a_reading_that_would_be_deleted_at_once_is_refused() {
        let json = r#"{"device_id": "d", "timestamp": "2025-12-12T15:59:59Z", "t": 1}"#;
        let refusal = kept_for(Some(30), json, None).expect_err("31 days old");
        assert!(refusal.message.contains("older than the 30 days"), "{}", refusal.message);
        assert!(kept_for(Some(31), json, None).is_ok());
        assert!(kept_for(None, json, None).is_ok());
    }

    #[test]
    fn a_known_sender_cannot_speak_for_another() {
        let own = try_read(r#"{"t": 1}"#, Some("d")).expect("a reading");
        assert_eq!(own.device.as_str(), "d");
        assert!(try_read(r#"{"device_id": "d", "t": 1}"#, Some("d")).is_ok());
        let refusal = try_read(r#"{"device_id": "e", "t": 1}"#, Some("d")).expect_err("another");
        assert!(refusal.message.contains("not the sender's") && refusal.forbidden);
    }
}
