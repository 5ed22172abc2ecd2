//! Turns drafts into readings, one per device and timestamp, and names the bad drafts. Reads and writes no table.

use std::collections::HashMap;

use api::{FieldError, Problem};
use domain::{DeviceId, Reading, Timestamp, Zone};
use table::ReadingKey;

use crate::formats::draft::{Content, Entry, Fault, Refusal};
use crate::formats::{ReadingFormat, json};
use crate::intake::sender::RequestSender;
use crate::intake::submission::Submission;
use crate::intake::times::Times;
use crate::readings::batch::{Assembled, EntryReading};
use crate::readings::payloads::{Drafts, drafts};
use crate::settings::Settings;

/// The largest number of readings that an MQTT message stores.
pub(crate) const MAX_OF_MESSAGE: usize = 500;

/// Makes readings of the entries of a submission.
///
/// Entries of the same device and timestamp become one reading; later values win. Entries without a timestamp become
/// one reading per device, but a second value of a metric is refused: the request does not say which value was measured
/// when.
///
/// Local times in devices' own payloads are in `zone`.
pub(crate) fn assemble(
    submission: &Submission<'_>,
    settings: &Settings,
    zone: Zone,
) -> Result<Assembled, Problem> {
    let Submission { sender, format, body, arrived, hints: address, fetched, .. } = submission;
    let Drafts { mut entries, wrong_clocks, ignored } = match format {
        ReadingFormat::Payload(reader) => {
            let payloads = reader.read(body, submission.max_payload, *arrived)?;
            drafts(payloads, address, sender, *arrived, zone)?
        }
        format => Drafts { entries: format.read(body)?, ..Drafts::default() },
    };

    if matches!(sender, RequestSender::Topic(_)) {
        for entry in entries.iter_mut().skip(MAX_OF_MESSAGE) {
            *entry = Err(Refusal::whole(Fault::TooManyOfMessage(MAX_OF_MESSAGE)));
        }
    }

    let times = Times::new(*arrived, settings);
    let ignored = ignored.into_iter().collect();
    let mut assembled = Assembled { wrong_clocks, ignored, ..place_all(entries, sender, &times) };
    if let Some(message) = fetched {
        message.complete(&mut assembled);
    }
    Ok(assembled)
}

/// Makes readings of entries, in their order.
pub(crate) fn place_all(
    entries: Vec<Entry>,
    sender: &RequestSender<'_>,
    times: &Times,
) -> Assembled {
    let mut all = Assembled::default();
    // The indices in `all.timed` and in `all.arrivals`, where further entries are merged.
    let mut by_key: HashMap<ReadingKey, usize> = HashMap::with_capacity(entries.len());
    let mut by_device: HashMap<DeviceId, usize> = HashMap::new();

    for (index, entry) in entries.into_iter().enumerate() {
        let added =
            read(entry, sender, times).and_then(|EntryReading { reading, has_timestamp }| {
                if has_timestamp {
                    all.timed.add_or_merge(by_key.entry(ReadingKey::of(&reading)), reading, index)
                } else {
                    all.arrivals.add_once(by_device.entry(reading.device.clone()), reading, index)
                }
            });

        if let Err(refusal) = added {
            all.is_foreign |= refusal.is_foreign();
            all.rejected.push(refusal.at(Some(index)));
        }
    }
    all
}

/// Makes a reading of an entry, after checking that the sender may write for the device and that the timestamp is
/// accepted.
fn read(entry: Entry, sender: &RequestSender<'_>, times: &Times) -> Result<EntryReading, Refusal> {
    let draft = entry?;
    let device = sender.device(draft.device)?;
    let Content { timestamp, room, metrics, about } = draft.content?;
    if let Some(at) = timestamp {
        times.check(at, &metrics)?;
    }

    let reading = Reading::new(device, timestamp.unwrap_or(times.arrived), room, metrics);
    let reading = reading.map_err(Refusal::whole)?.with_about(about);
    Ok(EntryReading { reading, has_timestamp: timestamp.is_some() })
}

/// Parses a JSON object as `POST /readings` would at `now`.
pub fn read_reading(json: &str, now: Timestamp) -> Result<Reading, FieldError> {
    let times = Times::new(now, &Settings::default());
    let entry = read(json::entry(json), &RequestSender::Anyone, &times);
    entry.map(|entry| entry.reading).map_err(|refusal| refusal.at(None))
}

#[cfg(test)]
mod tests {
    use domain::RoomId;
    use domain::given::{at, cases, device, label};

    use super::*;

    const NOW: &str = "2026-01-11T16:00:00.000Z";

    fn try_read(json: &str, sender: Option<&str>) -> Result<Reading, Refusal> {
        kept_for(None, json, sender)
    }

    fn kept_for(
        retention_days: Option<u32>,
        json: &str,
        sender: Option<&str>,
    ) -> Result<Reading, Refusal> {
        let arrived = at(NOW);
        let settings = Settings { retention_days, ..Settings::default() };
        let times = Times::new(arrived, &settings);
        let sender = sender.map_or(RequestSender::Anyone, |id| RequestSender::Topic(device(id)));
        let entry = read(json::entry(json), &sender, &times)?;
        let has_timestamp = json.contains("timestamp") && !json.contains("null");
        assert_eq!(entry.has_timestamp, has_timestamp);
        Ok(entry.reading)
    }

    fn refused(json: &str) -> String {
        try_read(json, None).expect_err(json).to_string()
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

    /// Each entry says another name and another tag; the first of a device and metric at its arrival counts.
    #[test]
    fn an_entry_that_is_refused_says_nothing() {
        let arrived = at(NOW);
        let times = Times::new(arrived, &Settings::default());
        let sent = [
            r#"{"device_id": "d", "t": 1}"#,
            r#"{"device_id": "d", "t": 2}"#,
            r#"{"device_id": "d", "t": "x"}"#,
            r#"{"device_id": "d", "timestamp": "1999-01-01T00:00:00Z", "t": 1}"#,
            r#"{"device_id": "e", "t": 2}"#,
        ];
        let entries = sent.iter().enumerate().map(|(n, json)| {
            let mut draft = json::entry(json)?;
            draft.content = draft.content.map(|mut content| {
                content.about.name = Some(label(&format!("name {n}")));
                content.about.tags.insert(format!("tag {n}"), "x".to_owned());
                content
            });
            Ok(draft)
        });
        let assembled = place_all(entries.collect(), &RequestSender::Anyone, &times);
        let refused: Vec<_> = assembled.rejected.iter().filter_map(|it| it.index).collect();
        assert_eq!(refused, [1, 2, 3]);
        let said = assembled.arrivals.readings.iter().map(|reading| {
            let about = reading.about.as_ref().expect("a name and a tag");
            let tags: Vec<_> = about.tags.keys().map(String::as_str).collect();
            (reading.device.as_str(), about.name.as_ref().map(ToString::to_string), tags)
        });
        let expected = [("d", "name 0", "tag 0"), ("e", "name 4", "tag 4")];
        let expected = expected.map(|(id, name, tag)| (id, Some(name.to_owned()), vec![tag]));
        assert_eq!(said.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn every_bad_member_is_named_with_its_reason() {
        let digits = format!(r#"{{"device_id": "d", "t": {}}}"#, "1".repeat(39));
        assert!(refused(&digits).contains("t has 39 significant digits"), "{}", refused(&digits));
        for case in cases(include_str!("refused.txt")) {
            let why = refused(case.given);
            assert!(why.contains(case.answer()), "{case}: {why}");
        }
    }

    #[test]
    fn prices_alone_may_be_three_days_ahead() {
        for timestamp in ["2026-01-14T04:00:00Z", "2026-01-14T16:00:00Z"] {
            let json = format!(
                r#"{{"device_id": "d", "timestamp": "{timestamp}", "price": -0.02, "price_net": 0}}"#
            );
            assert_eq!(try_read(&json, None).expect("prices").at, at(timestamp));
        }
    }

    #[test]
    fn a_reading_that_would_be_deleted_at_once_is_refused() {
        let json = r#"{"device_id": "d", "timestamp": "2025-12-12T15:59:59Z", "t": 1}"#;
        let refusal = kept_for(Some(30), json, None).expect_err("31 days old");
        assert!(refusal.to_string().contains("older than the 30 days"), "{refusal}");
        assert!(kept_for(Some(31), json, None).is_ok());
        assert!(kept_for(None, json, None).is_ok());
    }

    #[test]
    fn an_entry_of_another_s_device_is_foreign_whatever_else_is_wrong_with_it() {
        for json in [r#"{"device_id": "e", "t": 1}"#, r#"{"device_id": "e", "t": "x", "room": 5}"#]
        {
            assert!(try_read(json, Some("d")).expect_err("another's").is_foreign(), "{json}");
        }
        assert!(
            !try_read(r#"{"device_id": "d", "t": "x"}"#, Some("d")).expect_err("x").is_foreign()
        );
        let own = try_read(r#"{"t": 1}"#, Some("d")).expect("its device need not be named");
        assert_eq!(own.device.as_str(), "d");
    }
}
