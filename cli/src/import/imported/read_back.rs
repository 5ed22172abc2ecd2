//! Reads the readings of a stored round back, and finds readings that are missing or differ. Sends no reading.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use chrono::TimeDelta;
use domain::{DeviceId, Exact, Reading, Timestamp};

use super::table::Table;
use crate::import::reading_pages::{self, MAX_PAGE, Row};
use crate::output::counted;

/// The pause before a second comparison: reads are not consistent, so the first may lack readings just written.
const PAUSE: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_secs(2) };
/// The maximum number of readings that are named.
const MAX_SHOWN: usize = 20;

/// The comparison of this run's rounds with the table. The losses of an earlier run are not known.
#[derive(Debug, Default)]
pub(super) struct ReadBack {
    readings: u64,
    /// The number of readings that are missing or differ in the table. `named` describes the first of them.
    lost: u64,
    named: Vec<String>,
    /// Devices that somebody deletes meanwhile.
    deleted: BTreeSet<DeviceId>,
}

/// A reading that the table lacks, or has with another value or room.
struct Lost<'a> {
    stored: &'a Reading,
    why: String,
}

impl ReadBack {
    /// Reads a round back, and notes the lost readings.
    pub(super) fn check(&mut self, table: &Table<'_>, round: &[Reading]) -> anyhow::Result<()> {
        let mut by_device: BTreeMap<&DeviceId, Vec<&Reading>> = BTreeMap::new();
        for stored in round {
            by_device.entry(&stored.device).or_default().push(stored);
        }

        for (device, mut readings) in by_device {
            readings.sort_by_key(|stored| stored.at);
            self.readings += readings.len() as u64;
            match find_lost(table, device, &readings)? {
                None => drop(self.deleted.insert(device.clone())),
                Some(lost) => lost.into_iter().for_each(|lost| self.note(&lost)),
            }
        }

        Ok(())
    }

    /// Whether readings are missing or differ, or somebody deletes their device.
    pub(super) fn is_lossy(&self) -> bool {
        self.lost > 0 || !self.deleted.is_empty()
    }

    /// Whether somebody deletes the device meanwhile.
    pub(super) fn is_deleted(&self, device: &DeviceId) -> bool {
        self.deleted.contains(device)
    }

    fn note(&mut self, lost: &Lost<'_>) {
        self.lost += 1;
        if self.named.len() < MAX_SHOWN {
            let Reading { device, at, .. } = lost.stored;
            self.named.push(format!("{device} {at}: {}", lost.why));
        }
    }
}

impl fmt::Display for ReadBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read back {}: ", counted(self.readings, "reading"))?;
        match self.lost {
            0 if self.deleted.is_empty() => write!(f, "the table has all as they were sent")?,
            0 => write!(f, "the table has those as they were sent whose device is not deleted")?,
            1 => write!(f, "1 is missing or differs")?,
            count => write!(f, "{count} are missing or differ")?,
        }

        self.named.iter().try_for_each(|lost| write!(f, "\n  {lost}"))?;
        let hidden = self.lost - self.named.len() as u64;
        if hidden > 0 {
            write!(f, "\n  and {hidden} more")?;
        }
        self.deleted.iter().try_for_each(|device| write!(f, "\n  {device} is being deleted"))
    }
}

/// Finds the readings of a device that are lost in a second comparison, too. `None` if the device is being deleted.
fn find_lost<'a>(
    table: &Table<'_>,
    device: &DeviceId,
    readings: &[&'a Reading],
) -> anyhow::Result<Option<Vec<Lost<'a>>>> {
    let Some(first_look) = look(table, device, readings)? else { return Ok(None) };
    if first_look.is_empty() {
        return Ok(Some(Vec::new()));
    }

    table.wait(PAUSE);
    let again: Vec<&Reading> = first_look.into_iter().map(|lost| lost.stored).collect();
    look(table, device, &again)
}

/// Compares readings with the table, page by page. Each page begins at the next wanted reading, so years of foreign
/// readings between two wanted ones cost one page.
fn look<'a>(
    table: &Table<'_>,
    device: &DeviceId,
    readings: &[&'a Reading],
) -> anyhow::Result<Option<Vec<Lost<'a>>>> {
    let (mut left, mut lost) = (readings, Vec::new());
    while let (Some(first), Some(last)) = (left.first(), left.last()) {
        let span = first.at..last.at.saturating_add(TimeDelta::milliseconds(1));
        let limit = (2 * left.len()).min(MAX_PAGE);
        let Some(page) = table.readings(device, &span, limit)? else { return Ok(None) };

        let mut rows: BTreeMap<Timestamp, Row> = BTreeMap::new();
        for row in page.data {
            rows.insert(reading_pages::time_of(&row)?, row);
        }
        let read_until = match rows.last_key_value() {
            Some((at, _)) if page.next_cursor.is_some() => *at,
            _ => last.at,
        };

        let (read, rest) = left.split_at(left.partition_point(|stored| stored.at <= read_until));
        for stored in read {
            let why = difference(stored, rows.get(&stored.at));
            lost.extend(why.map(|why| Lost { stored, why }));
        }
        left = rest;
    }
    Ok(Some(lost))
}

/// Says how a row of the table differs from a reading. `None` if the row has the reading's room and metrics. The row
/// may have more metrics.
fn difference(reading: &Reading, row: Option<&Row>) -> Option<String> {
    let Some(row) = row else { return Some("is missing".to_owned()) };

    let mut differences = Vec::new();
    for (metric, value) in reading.metrics() {
        match row.get(metric.as_str()).map(|found| Exact::parse(found.get())) {
            None => differences.push(format!("{metric} is missing")),
            Some(found) if found != Some(Exact::from(value)) => {
                differences.push(format!("{metric} has another value now"));
            }
            Some(_) => {}
        }
    }

    let room = || serde_json::from_str::<String>(row.get("room")?.get()).ok();
    if let Some(wanted) = &reading.room
        && room().as_deref() != Some(wanted.as_str())
    {
        differences.push("it has another room now".to_owned());
    }

    (!differences.is_empty()).then(|| differences.join(", "))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};

    use domain::given::at_second;

    use super::*;
    use crate::tests::fake_server::{self, Reply, Request};

    /// Returns the value of a parameter in a request's path.
    fn parameter<'a>(request: &'a Request, name: &str) -> &'a str {
        let (_, query) = request.path.split_once('?').unwrap();
        query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).unwrap()
    }

    fn row(second: i64, value: &str) -> (i64, String) {
        let at = at_second(second);
        let row =
            format!(r#"{{"device_id":"d","timestamp":"{at}","room":"hall","t":{value},"more":1}}"#);
        (second, row)
    }

    /// A server whose table has these rows, and in each page at most `most` of them. From its second answer on, it has
    /// `late` rows, too.
    fn table_of(
        rows: Vec<(i64, String)>,
        late: Vec<(i64, String)>,
        most: usize,
    ) -> (fake_server::FakeRoomtide, Arc<Mutex<Vec<String>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (seen, looks) = (Arc::clone(&asked), AtomicUsize::new(0));
        let server = fake_server::serve(move |_, request| {
            if request.path.starts_with("/rooms") {
                return Reply::of(200, r#"{"data": []}"#);
            }
            seen.lock().unwrap().push(request.path.clone());
            let is_late = looks.fetch_add(1, Ordering::SeqCst) > 0;
            let mut rows: Vec<_> =
                rows.iter().chain(if is_late { &late[..] } else { &[] }).cloned().collect();
            rows.sort();
            let (from, to) = (parameter(&request, "from"), parameter(&request, "to"));
            rows.retain(|(second, _)| {
                let at = at_second(*second).to_string();
                from <= at.as_str() && at.as_str() < to
            });
            let limit: usize = parameter(&request, "limit").parse().unwrap();
            let cursor = if rows.len() > limit.min(most) { r#""more""# } else { "null" };
            let texts: Vec<String> =
                rows.into_iter().take(limit.min(most)).map(|(_, row)| row).collect();
            let body = format!(r#"{{"data": [{}], "next_cursor": {cursor}}}"#, texts.join(","));
            Reply::of(200, &body)
        });
        (server, asked)
    }

    fn sent(second: i64) -> Reading {
        let at = at_second(second);
        let json =
            format!(r#"{{"device_id":"d","timestamp":"{at}","room":"hall","t":{second}.50}}"#);
        history::read_reading(&json, Timestamp::MAX).unwrap()
    }

    /// A reading whose room the registry decides.
    fn without_room(mut reading: Reading) -> Reading {
        reading.room = None;
        reading
    }

    fn said(server: &fake_server::FakeRoomtide, round: &[Reading]) -> String {
        let client = server.client();
        let table = Table::of(&client).unwrap().unwrap();
        let mut found = ReadBack::default();
        found.check(&table, round).unwrap();
        assert_eq!(found.is_lossy(), !found.to_string().ends_with("has all as they were sent"));
        found.to_string()
    }

    #[test]
    fn each_lost_and_each_changed_value_is_named() {
        let mut rows: Vec<_> = (0..100).map(|n| row(n, &format!("{n}.5"))).collect();
        rows.remove(70);
        rows[30] = row(30, "31");
        rows[20].1 = rows[20].1.replace("hall", "attic");
        rows[10].1 = rows[10].1.replace("\"t\"", "\"u\"");
        let (server, asked) = table_of(rows, Vec::new(), 10_000);
        let round: Vec<Reading> = (0..100).rev().map(sent).collect();
        let expected = [
            "read back 100 readings: 4 are missing or differ",
            &format!("  d {}: t is missing", at_second(10)),
            &format!("  d {}: it has another room now", at_second(20)),
            &format!("  d {}: t has another value now", at_second(30)),
            &format!("  d {}: is missing", at_second(70)),
        ];
        assert_eq!(said(&server, &round), expected.join("\n"));
        assert_eq!(asked.lock().unwrap().len(), 1 + 4, "a page, and a second look at each");

        let merged: Vec<Reading> = round.iter().map(|sent| without_room(sent.clone())).collect();
        assert!(
            said(&server, &merged).contains(": 3 are missing"),
            "the registry decides the room"
        );
    }

    #[test]
    fn what_a_second_look_finds_is_not_lost() {
        let rows = (0..10).filter(|n| n % 3 > 0).map(|n| row(n, &format!("{n}.50"))).collect();
        let late = (0..10).filter(|n| n % 3 == 0).map(|n| row(n, &format!("{n}.5"))).collect();
        let (server, _) = table_of(rows, late, 10_000);
        let round: Vec<Reading> = (0..10).map(sent).collect();
        assert_eq!(
            said(&server, &round),
            "read back 10 readings: the table has all as they were sent"
        );
    }

    #[test]
    fn pages_are_short_and_readings_of_others_in_between_cost_few() {
        let rows: Vec<_> = (0..10_000).map(|n| row(n, &format!("{n}.5"))).collect();
        let (server, asked) = table_of(rows, Vec::new(), 3);
        let round = [sent(0), sent(1), sent(2), sent(3), sent(9_998)];
        let expected = "read back 5 readings: the table has all as they were sent";
        assert_eq!(said(&server, &round), expected);
        assert_eq!(asked.lock().unwrap().len(), 3, "{asked:?}");
    }

    #[test]
    fn a_device_that_is_being_deleted_is_named_and_the_table_lacks_it() {
        let server = fake_server::serve(|_, request| {
            let is_list = request.path.starts_with("/rooms");
            if is_list { Reply::of(200, r#"{"data": []}"#) } else { Reply::of(410, "{}") }
        });
        let expected = "read back 1 reading: the table has those as they were sent whose device is not deleted\n  \
                        d is being deleted";
        assert_eq!(said(&server, &[sent(1)]), expected);
        let (nothing, _) = table_of(Vec::new(), Vec::new(), 1);
        assert!(said(&nothing, &[sent(1)]).ends_with(": is missing"));
    }
}
