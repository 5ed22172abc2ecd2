//! The sample home at any time: three weeks of a real house, repeated for ever. Sends nothing; sample-home/README.md
//! names the source.

use std::io::Read as _;

use anyhow::Context as _;
use chrono::TimeDelta;
use domain::Timestamp;
use flate2::read::GzDecoder;
use rust_decimal::Decimal;
use serde_json::json;

/// The readings of the data set, one a line. The lines of a device follow one another in time order.
static DATA: &[u8] = include_bytes!("../../sample-home/home.ndjson.gz");

/// The ids and names of the rooms with a thermometer.
const ROOMS: [(&str, &str); 9] = [
    ("kitchen", "Kitchen"),
    ("living-room", "Living room"),
    ("laundry", "Laundry"),
    ("office", "Office"),
    ("bathroom", "Bathroom"),
    ("outside", "Outside, north"),
    ("ironing-room", "Ironing room"),
    ("teenager-room", "Teenager's room"),
    ("parents-room", "Parents' room"),
];
/// The ids and names of the meter of the house and of those behind it.
const METERS: [(&str, &str); 3] =
    [("meter", "Smart meter"), ("appliances", "Appliances"), ("lights", "Lights")];
/// The number of readings in a request.
const BATCH_SIZE: usize = 1_000;
/// The first timestamp of the data set: 2016-01-11 17:00 in Belgium.
const FIRST_MILLIS: i64 = 1_452_528_000_000;
/// The interval of the data set.
const INTERVAL_MILLIS: i64 = 600_000;
/// The length of the data set: whole weeks, so that weekdays stay the same.
pub(crate) const LAP: TimeDelta = TimeDelta::weeks(3);

/// The data set, by device.
#[derive(Debug)]
pub(crate) struct SampleHome {
    devices: Vec<SampleDevice>,
}

/// A device and its readings in time order.
#[derive(Debug)]
pub(crate) struct SampleDevice {
    pub(crate) id: String,
    rows: Vec<Row>,
}

/// A reading without its timestamp.
#[derive(Debug)]
struct Row {
    /// The members after the timestamp, without the closing brace.
    members: String,
    /// The counter, if the device has one.
    kwh: Option<Decimal>,
}

impl SampleHome {
    /// Reads the data set.
    pub(crate) fn read() -> anyhow::Result<Self> {
        let mut lines = String::new();
        GzDecoder::new(DATA).read_to_string(&mut lines)?;
        let mut devices: Vec<SampleDevice> = Vec::new();
        for line in lines.lines() {
            let (id, row) = Row::read(line).context("a line without a device")?;
            match devices.last_mut().filter(|device| device.id == id) {
                Some(device) => device.rows.push(row),
                None => devices.push(SampleDevice { id: id.to_owned(), rows: vec![row] }),
            }
        }
        Ok(Self { devices })
    }

    /// Returns the devices.
    pub(crate) fn devices(&self) -> &[SampleDevice] {
        &self.devices
    }
}

impl Row {
    /// Reads a line. Returns the id of the device with it.
    fn read(line: &str) -> Option<(&str, Self)> {
        let members = &line[line.find(",\"device_id\":\"")?..];
        let id = members.split('"').nth(3)?;
        let members = members.trim_end_matches('}');
        let (members, kwh) = match members.split_once(",\"cumulative_kwh_p\":") {
            Some((members, kwh)) => (members, Some(kwh.parse().ok()?)),
            None => (members, None),
        };
        Some((id, Self { members: members.to_owned(), kwh }))
    }
}

impl SampleDevice {
    /// Returns the bodies of `POST /readings`, NDJSON, with the readings from `from` until before `to`. They are in
    /// order of time, so that the readings of 15 minutes arrive together and are rolled up once.
    ///
    /// The data set repeats for ever, and its counter goes on rising from one repetition to the next. So a reading
    /// depends only on its timestamp, and storing it twice changes nothing.
    pub(crate) fn requests(&self, from: Timestamp, to: Timestamp) -> Vec<Vec<u8>> {
        let places: Vec<i64> = (first_place(from)..first_place(to)).collect();
        let body = |places: &[i64]| places.iter().map(|place| self.reading(*place)).collect();
        places.chunks(BATCH_SIZE).map(body).map(String::into_bytes).collect()
    }

    /// Returns the line of a reading by its index in the endless data set.
    fn reading(&self, place: i64) -> String {
        let rows = i64::try_from(self.rows.len()).expect("some thousands");
        let row = usize::try_from(place.rem_euclid(rows)).expect("below the number of rows");
        let Row { members, kwh } = &self.rows[row];
        let at = Timestamp::from_millis(FIRST_MILLIS + place * INTERVAL_MILLIS)
            .expect("between two timestamps");
        let last = self.rows.last().and_then(|row| row.kwh);
        let counter = kwh.zip(last).map(|(kwh, last)| {
            let total = kwh + last * Decimal::from(place.div_euclid(rows));
            format!(",\"cumulative_kwh_p\":{}", total.normalize())
        });
        format!("{{\"timestamp\":\"{at}\"{members}{}}}\n", counter.unwrap_or_default())
    }
}

/// Returns the index of the first reading at or after a timestamp.
fn first_place(at: Timestamp) -> i64 {
    (at.as_millis() - FIRST_MILLIS + INTERVAL_MILLIS - 1).div_euclid(INTERVAL_MILLIS)
}

/// Returns the time from `now` until each device has a further reading.
pub(crate) fn until_next(now: Timestamp) -> TimeDelta {
    let next = FIRST_MILLIS + first_place(now) * INTERVAL_MILLIS;
    TimeDelta::milliseconds(next - now.as_millis() + 1)
}

/// Returns the ids and names of the devices.
pub(crate) fn devices() -> impl Iterator<Item = (String, String)> {
    let meters = METERS.into_iter().map(|(id, name)| (id.to_owned(), name.to_owned()));
    let thermometers = ROOMS
        .into_iter()
        .map(|(room, name)| (format!("thermo-{room}"), format!("{name} thermometer")));
    meters.chain(thermometers)
}

/// Tells whether an id is that of a thermometer.
pub(crate) fn is_thermometer(id: &str) -> bool {
    id.starts_with("thermo-")
}

/// Returns the paths and bodies of the PATCH requests that name the devices and rooms, and put the small meters behind
/// that of the house.
pub(crate) fn names() -> impl Iterator<Item = (String, Vec<u8>)> {
    let devices = devices().map(|(id, name)| {
        let kind = if is_thermometer(&id) { "climate" } else { "power" };
        let behind = (kind == "power" && id != "meter").then_some("meter");
        (format!("/devices/{id}"), json!({"name": name, "kind": kind, "behind": behind}))
    });
    let rooms = ROOMS.into_iter().map(|(room, name)| {
        // Outside, comfort is not judged.
        let is_outside = (room == "outside").then_some(true);
        (format!("/rooms/{room}"), json!({"name": name, "outside": is_outside}))
    });
    let house = [("/rooms/house".to_owned(), json!({"name": "Whole house"}))];
    devices.chain(rooms).chain(house).map(|(path, body)| (path, body.to_string().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::at;

    fn lines(device: &SampleDevice, from: Timestamp, to: Timestamp) -> Vec<String> {
        let bodies = device.requests(from, to);
        let text = bodies.into_iter().map(|body| String::from_utf8(body).unwrap());
        text.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    #[test]
    fn a_lap_is_three_weeks_of_twelve_devices_and_every_reading_is_valid() {
        let home = SampleHome::read().unwrap();
        let now = at("2026-11-22T04:03:00Z");
        let mut count = 0;
        for device in home.devices() {
            for line in lines(device, now.saturating_add(-LAP), now) {
                history::read_reading(&line, now).unwrap();
                count += 1;
            }
        }
        assert_eq!(count, 3 * 7 * 144 * 12);
    }

    #[test]
    fn the_figures_are_those_of_the_data_set_at_its_own_time_and_whole_laps_later() {
        let home = SampleHome::read().unwrap();
        let kitchen = home.devices().iter().find(|it| it.id == "thermo-kitchen").unwrap();
        let (first, next) = (at("2016-01-11T16:00:00Z"), at("2016-01-11T16:00:00.001Z"));
        let line = r#"{"timestamp":"2016-01-11T16:00:00.000Z","device_id":"thermo-kitchen","room":"kitchen","temperature":19.89,"humidity":47.59666667}"#;
        assert_eq!(lines(kitchen, first, next), [line]);
        let later = lines(kitchen, first.saturating_add(LAP * 188), next.saturating_add(LAP * 188));
        assert_eq!(later, [line.replace("2016-01-11", "2026-11-02")]);
        assert_eq!(lines(kitchen, next, next), [""; 0], "from is included, to is not");
    }

    #[test]
    fn the_counter_goes_on_from_lap_to_lap() {
        let home = SampleHome::read().unwrap();
        let meter = home.devices().iter().find(|it| it.id == "meter").unwrap();
        let seam = at("2026-11-02T16:00:00Z");
        let around = lines(
            meter,
            seam.saturating_add(TimeDelta::minutes(-30)),
            seam.saturating_add(TimeDelta::minutes(30)),
        );
        let totals: Vec<f64> = around
            .iter()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .map(|reading| reading["cumulative_kwh_p"].to_string().parse().unwrap())
            .collect();
        assert_eq!(totals.len(), 6);
        assert!(totals.windows(2).all(|pair| pair[0] < pair[1] && pair[1] - pair[0] < 1.0));
    }

    #[test]
    fn the_next_reading_is_due_just_after_its_timestamp() {
        let due = |text| until_next(at(text)).num_milliseconds();
        assert_eq!(due("2026-11-22T04:03:00Z"), 7 * 60_000 + 1);
        assert_eq!(due("2026-11-22T04:09:59.999Z"), 2);
        assert_eq!(due("2026-11-22T04:10:00Z"), 1, "to is not included");
    }
}
