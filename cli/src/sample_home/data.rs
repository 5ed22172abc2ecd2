//! The sample home as requests: three weeks of a real house. Sends none; sample-home/README.md names the source.

use anyhow::bail;
use chrono::FixedOffset;
use flate2::read::GzDecoder;
use serde_json::json;

use crate::import::{Columns, Line, Shape, TimestampColumn, Zone, csv_lines};

static DATA: &[u8] = include_bytes!("../../sample-home/energydata.csv.gz");

/// The rooms: id, name, and the number of the thermometer in it.
const ROOMS: [(&str, &str, u8); 9] = [
    ("kitchen", "Kitchen", 1),
    ("living-room", "Living room", 2),
    ("laundry", "Laundry", 3),
    ("office", "Office", 4),
    ("bathroom", "Bathroom", 5),
    ("outside", "Outside, north", 6),
    ("ironing-room", "Ironing room", 7),
    ("teenager-room", "Teenager's room", 8),
    ("parents-room", "Parents' room", 9),
];
const METER: &str =
    "meter@house:current_w=Appliances+lights*6,cumulative_kwh_p=total(Appliances+lights)*0.001";
/// The readings of a request.
const BATCH_SIZE: usize = 1_000;

/// The columns of the data set: nine thermometers and a power meter, UTC+1 all year.
fn columns() -> anyhow::Result<Columns> {
    let thermometers = ROOMS
        .iter()
        .map(|(room, _, n)| format!("thermo-{room}@{room}:temperature=T{n},humidity=RH_{n}"));
    let maps: Vec<String> = thermometers.chain([METER.to_owned()]).collect();
    let timestamp = TimestampColumn {
        name: "date".to_owned(),
        format: Some("%Y/%m/%d %H:%M".to_owned()),
        zone: FixedOffset::east_opt(3_600).map(Zone::Fixed),
    };
    Ok(Columns { timestamp, shape: Shape::wide(&maps)?, ..Columns::default() })
}

/// Returns the bodies of `POST /readings`, NDJSON: one device after the other, each in time order, so that the
/// readings of 15 minutes arrive together and are rolled up once.
pub(crate) fn requests() -> anyhow::Result<impl Iterator<Item = Vec<u8>>> {
    let record = |line| match line? {
        Line::Reading(record) => Ok(record),
        Line::Refused(refusal) => bail!("{refusal}"),
    };
    let mut records: Vec<_> =
        csv_lines(GzDecoder::new(DATA), &columns()?)?.map(record).collect::<anyhow::Result<_>>()?;
    records.sort_by_cached_key(|record| device_of(&record.json));
    let bodies: Vec<Vec<u8>> = records
        .chunks(BATCH_SIZE)
        .map(|batch| {
            batch.iter().flat_map(|record| [record.json.as_str(), "\n"]).collect::<String>()
        })
        .map(String::into_bytes)
        .collect();
    Ok(bodies.into_iter())
}

fn device_of(json: &str) -> Option<String> {
    let reading: serde_json::Value = serde_json::from_str(json).ok()?;
    reading["device_id"].as_str().map(str::to_owned)
}

/// Returns the paths and bodies of the PATCH requests that name the devices and rooms.
pub(crate) fn names() -> impl Iterator<Item = (String, Vec<u8>)> {
    let devices = ROOMS.into_iter().map(|(room, name, _)| {
        let body = json!({"name": format!("{name} thermometer"), "kind": "climate"});
        (format!("/devices/thermo-{room}"), body)
    });
    let rooms =
        ROOMS.into_iter().map(|(room, name, _)| (format!("/rooms/{room}"), json!({"name": name})));
    let house = [
        ("/devices/meter".to_owned(), json!({"name": "Smart meter", "kind": "power"})),
        ("/rooms/house".to_owned(), json!({"name": "Whole house"})),
    ];
    devices.chain(rooms).chain(house).map(|(path, body)| (path, body.to_string().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_three_weeks_of_ten_devices_and_every_reading_is_valid() {
        let bodies: Vec<Vec<u8>> = requests().unwrap().collect();
        let lines: Vec<String> = bodies
            .iter()
            .flat_map(|body| {
                String::from_utf8(body.clone())
                    .unwrap()
                    .lines()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(lines.len(), 3 * 7 * 144 * 10);
        let now = domain::Timestamp::from_millis(1_800_000_000_000).unwrap();
        let readings: Vec<_> =
            lines.iter().map(|line| local::read_reading(line, now).unwrap()).collect();
        let last =
            readings.iter().rev().find(|reading| reading.device.as_str() == "meter").unwrap();
        let total =
            last.metrics().iter().find(|(name, _)| name.as_str() == "cumulative_kwh_p").unwrap().1;
        assert!(total.as_str().parse::<f64>().unwrap() > 100.0, "{total}");
    }
}
