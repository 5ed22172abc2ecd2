//! What an import would be and cost, without sending it. Prices are those of us-east-1.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::Context as _;
use shared::domain::{DeviceId, Instant, Reading, RoomId};

use super::source::Record;

/// Dollars per million write units, HTTP API requests and Lambda requests.
///
/// Source: <https://aws.amazon.com/dynamodb/pricing/on-demand/>, <https://aws.amazon.com/api-gateway/pricing/>,
/// <https://aws.amazon.com/lambda/pricing/>
const WRITE_UNIT: f64 = 0.625;
const API_REQUEST: f64 = 1.00;
const LAMBDA_REQUEST: f64 = 0.20;

/// What a file holds.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    readings: u64,
    pub(super) refused: u64,
    first_refusals: Vec<String>,
    devices: BTreeSet<DeviceId>,
    rooms: BTreeSet<RoomId>,
    span: Option<(Instant, Instant)>,
    write_units: u64,
    requests: u64,
}

/// Reads every record as the server would.
pub(super) fn of(
    records: impl Iterator<Item = anyhow::Result<Record>>,
    batch: usize,
    now: Instant,
) -> anyhow::Result<Estimate> {
    let mut estimate = Estimate::default();
    for record in records {
        let record = record?;
        match ingest::read_reading(&record.json, now) {
            Ok(reading) => estimate.add(reading),
            Err(error) => {
                estimate.refused += 1;
                if estimate.first_refusals.len() < 10 {
                    let field = error.field.map(|field| field + ": ").unwrap_or_default();
                    estimate
                        .first_refusals
                        .push(format!("line {}: {field}{}", record.line, error.message));
                }
            }
        }
    }
    let all = estimate.readings + estimate.refused;
    estimate.requests = all.div_ceil(u64::try_from(batch).context("a batch")?);
    Ok(estimate)
}

impl Estimate {
    fn add(&mut self, reading: Reading) {
        self.readings += 1;
        let (first, last) = self.span.unwrap_or((reading.at, reading.at));
        self.span = Some((first.min(reading.at), last.max(reading.at)));
        // One unit a started KB, in the table and again in the index by room.
        let kilobytes = bytes(&reading).div_ceil(1_024);
        self.write_units += kilobytes * if reading.room.is_some() { 2 } else { 1 };
        self.rooms.extend(reading.room);
        self.devices.insert(reading.device);
    }
}

/// The size of a reading's item: names and values, every digit counted as a byte, which is at least
/// what DynamoDB counts.
fn bytes(reading: &Reading) -> u64 {
    let keys = "pk".len() + reading.device.as_str().len() + "sk".len() + 27;
    let room = reading.room.as_ref().map_or(0, |room| "room".len() + room.as_str().len());
    let metrics =
        reading.metrics().iter().map(|(name, value)| name.as_str().len() + value.as_str().len());
    u64::try_from(keys + room + metrics.sum::<usize>()).unwrap_or(u64::MAX)
}

impl fmt::Display for Estimate {
    #[expect(clippy::cast_precision_loss, reason = "an estimate in dollars")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "readings     {}", self.readings)?;
        if let Some((first, last)) = self.span {
            writeln!(f, "             from {first} to {last}")?;
        }
        writeln!(f, "devices      {}", self.devices.len())?;
        writeln!(f, "rooms        {}", self.rooms.len())?;
        writeln!(f, "requests     {}", self.requests)?;
        writeln!(f, "write units  {}", self.write_units)?;
        let requests = self.requests as f64 * (API_REQUEST + LAMBDA_REQUEST) / 1e6;
        let dollars = self.write_units as f64 * WRITE_UNIT / 1e6 + requests;
        write!(f, "dollars      {dollars:.4} (us-east-1, on demand, with the index by room)")?;
        if self.refused > 0 {
            write!(f, "\nrefused      {}", self.refused)?;
        }
        for refusal in &self.first_refusals {
            write!(f, "\n             {refusal}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_readings() {
        let record = |line, json: &str| Ok(Record { line, json: json.to_owned() });
        let records = [
            record(
                1,
                r#"{"device_id": "a", "room": "r", "timestamp": "2026-01-11T16:00:00Z", "t": 1}"#,
            ),
            record(2, r#"{"device_id": "b", "timestamp": "2026-01-11T17:00:00Z", "t": 1}"#),
            record(3, r#"{"device_id": "ROOM", "t": 1}"#),
        ];
        let now = Instant::from_millis(1_800_000_000_000).unwrap();
        let estimate = of(records.into_iter(), 2, now).unwrap();
        assert_eq!((estimate.readings, estimate.refused, estimate.requests), (2, 1, 2));
        assert_eq!((estimate.devices.len(), estimate.rooms.len(), estimate.write_units), (2, 1, 3));
        let text = estimate.to_string();
        assert!(
            text.contains("from 2026-01-11T16:00:00.000Z to 2026-01-11T17:00:00.000Z"),
            "{text}"
        );
        assert!(text.contains("line 3: device_id: \"ROOM\" is a reserved name"), "{text}");
    }
}
