//! The view of an import on its table: the readings before the import, the values of an hour, and a comparison with the
//! stored readings. Sends no reading.

mod gap;
mod read_back;
mod table;

use std::cell::{RefCell, RefMut};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use chrono::TimeDelta;
use domain::{AboutMetric, DeviceId, Exact, MetricName, Reading, Timestamp};

use super::several_meters::Meters;
use super::state::{DeviceBefore, ImportState, LastSent};
use crate::client::Client;
use gap::Gaps;
use read_back::ReadBack;
use table::{Extremes, Table};

/// The field name of Home Assistant's states.
const VALUE: &str = "value";
/// The span of one request for hours: the longest for which the server reads readings if it has no rollups.
const HOURS_ASKED: TimeDelta = TimeDelta::days(31);
/// The number of newest distances from which a device's usual distance follows.
const DISTANCES: usize = 100;

/// An import and its table.
pub(super) struct Imported<'a> {
    /// The table; or the reason why it cannot be asked.
    table: Result<Table<'a>, &'static str>,
    state: RefCell<ImportState>,
    seen: RefCell<Seen>,
}

/// The facts that this run has found out, and that no file keeps.
#[derive(Default)]
struct Seen {
    read_back: ReadBack,
    distances: BTreeMap<DeviceId, Distances>,
    /// The devices whose past this run has asked for.
    verified: BTreeSet<DeviceId>,
    /// The metric that each device has for the field `value`, as Home Assistant's entities have it.
    values: BTreeMap<DeviceId, MetricName>,
    /// The latest answer about the hours of a device.
    stored_hours: Option<StoredHours>,
}

/// The newest distances between the readings of a device, in milliseconds.
#[derive(Debug, Default)]
struct Distances {
    newest: Option<Timestamp>,
    millis: VecDeque<i64>,
}

/// The values of a metric in an hour of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StoredHour {
    Empty,
    /// The smallest and the largest value.
    Between(Exact, Exact),
    /// The server cannot tell, for example because the rollups of 15 minutes have expired.
    Untold,
}

/// The hourly values of a device in a span; `None` if the server cannot tell.
struct StoredHours {
    device: DeviceId,
    span: Range<Timestamp>,
    hours: Option<BTreeMap<Timestamp, Extremes>>,
}

/// A round for whose readings the server has answered.
#[derive(Debug)]
pub(super) struct SentRound {
    /// The number of readings that this run has stored, up to the round's end.
    pub(super) readings: u64,
    /// The number of lines that count as processed once the round is stored; 0 if no more lines do.
    pub(super) end: u64,
    /// The digest of these lines.
    pub(super) passed: String,
    /// The readings that were answered as stored. Each has the room in which it is stored, or no room if the registry
    /// decides.
    pub(super) stored: Vec<Reading>,
    /// The number of refused readings.
    pub(super) refused: u64,
}

/// The end of an import, for the person.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Whether the table lacks some values of the source.
    pub(super) is_lossy: bool,
    pub(super) text: String,
}

/// Returns the metric that a reading has for the field `value`, as Home Assistant's entities have it.
pub(super) fn value_metric(reading: &Reading) -> Option<&MetricName> {
    let is_value =
        |metric: &AboutMetric| metric.field.as_ref().is_some_and(|source| source.field == VALUE);
    let metrics = &reading.about.as_ref()?.metrics;
    metrics.iter().find(|(_, metric)| is_value(metric)).map(|(name, _)| name)
}

impl<'a> Imported<'a> {
    /// Begins an import. Asks whether the table may be read.
    pub(super) fn begin(client: &'a Client, state: ImportState) -> anyhow::Result<Self> {
        let table = Table::of(client)?;
        Ok(Self { table, state: RefCell::new(state), seen: RefCell::default() })
    }

    /// Returns how far the import came.
    pub(super) fn state(&self) -> RefMut<'_, ImportState> {
        self.state.borrow_mut()
    }

    /// Returns the reason if the table cannot be asked.
    pub(super) fn why_unknown(&self) -> Option<&'static str> {
        self.table.as_ref().err().copied()
    }

    /// Notes the readings that are about to be sent. Before the first readings of a device or a room, asks the table
    /// what it has of it. Fails without an answer, so that the next run asks again: an unknown past would stay unknown.
    pub(super) fn note_sending<'r>(
        &self,
        readings: impl IntoIterator<Item = &'r Reading>,
    ) -> anyhow::Result<()> {
        let mut sending: BTreeMap<DeviceId, Range<Timestamp>> = BTreeMap::new();
        for reading in readings {
            self.note_room(reading)?;
            self.seen.borrow_mut().note(reading);
            let at = reading.at;
            match sending.get_mut(&reading.device) {
                Some(span) => *span = span.start.min(at)..span.end.max(at),
                None => drop(sending.insert(reading.device.clone(), at..at)),
            }
        }

        for (device, span) in &sending {
            self.device_before(device, span.start)?;
        }

        let mut state = self.state.borrow_mut();
        let last = sending.into_iter().map(|(device, span)| {
            let earlier = state.sent.get(&device).copied();
            let at = earlier.map_or(span.end, |earlier| earlier.at.max(span.end));
            let first = earlier.map_or(Some(span.start), |earlier| {
                earlier.first.map(|first| first.min(span.start))
            });
            let before = earlier.and_then(|earlier| earlier.usual_distance);
            let seen = self.seen.borrow();
            let distances = seen.distances.get(&device);
            let usual_distance = distances.and_then(|known| known.usual_after(before));
            (device, LastSent { at, first, usual_distance })
        });
        let last: Vec<_> = last.collect();

        state.note_sending(last)
    }

    fn note_room(&self, reading: &Reading) -> anyhow::Result<()> {
        let (Ok(table), Some(room)) = (&self.table, &reading.room) else { return Ok(()) };
        let mut state = self.state.borrow_mut();
        if state.rooms.contains_key(room) {
            return Ok(());
        }
        let is_new = !table.has_room(room)?;
        state.note_room(room, is_new)
    }

    /// Returns the state of a device before the import, if readings from `from` on are about to be sent. `None` if the
    /// table cannot be asked.
    fn device_before(
        &self,
        device: &DeviceId,
        from: Timestamp,
    ) -> anyhow::Result<Option<DeviceBefore>> {
        let Ok(table) = &self.table else { return Ok(None) };
        let mut state = self.state.borrow_mut();
        let is_verified = self.seen.borrow().verified.contains(device);
        let before = match state.devices.get(device).copied() {
            None => first_asked(from, device, table)?,
            Some(before) if !is_verified => {
                let first_sent = state.sent.get(device).and_then(|sent| sent.first);
                verified(before, first_sent, from, device, table)?
            }
            Some(before) if before.from <= from => return Ok(Some(before)),
            // Readings from `before.from` on may be the import's own, so they prove nothing.
            Some(before) => {
                let found = table.first_from(device, from)?.filter(|found| *found < before.from);
                DeviceBefore { from, until: found.or(before.until), ..before }
            }
        };

        state.note_device(device, before)?;
        self.seen.borrow_mut().verified.insert(device.clone());
        Ok(Some(before))
    }

    /// Returns the metric of an entity's field `value`. Returns `None` if the table had readings of the device up to
    /// this time before the import.
    pub(super) fn value_without_past(
        &self,
        device: &DeviceId,
        at: Timestamp,
    ) -> Option<MetricName> {
        let before = *self.state.borrow().devices.get(device)?;
        let has_past = before.has_past || before.until.is_some_and(|until| until <= at);
        self.seen.borrow().values.get(device).filter(|_| !has_past).cloned()
    }

    /// Returns the values of a metric in an hour of UTC; `Empty`, too, if the table cannot be asked. Costs no request
    /// if the device had no readings up to that hour before the import.
    pub(super) fn stored_hour(
        &self,
        device: &DeviceId,
        metric: &MetricName,
        hour: Timestamp,
    ) -> anyhow::Result<StoredHour> {
        let Ok(table) = &self.table else { return Ok(StoredHour::Empty) };
        let end = hour.saturating_add(TimeDelta::hours(1));
        let before = self.device_before(device, hour)?;
        if before.is_some_and(|before| before.until.is_none_or(|until| until >= end)) {
            return Ok(StoredHour::Empty);
        }

        let mut seen = self.seen.borrow_mut();
        let covers = |known: &StoredHours| known.device == *device && known.span.contains(&hour);
        if !seen.stored_hours.as_ref().is_some_and(covers) {
            let span = hour..hour.saturating_add(HOURS_ASKED);
            let hours = table.hours(device, &span)?;
            seen.stored_hours = Some(StoredHours { device: device.clone(), span, hours });
        }

        let hours = seen.stored_hours.as_ref().and_then(|known| known.hours.as_ref());
        let Some(hours) = hours else { return Ok(StoredHour::Untold) };
        let extremes = hours.get(&hour).and_then(|of_hour| of_hour.get(metric)).cloned();
        Ok(extremes
            .map_or(StoredHour::Empty, |(least, largest)| StoredHour::Between(least, largest)))
    }

    /// Returns at most `count` of the first stored values of a metric in a span, with their times.
    pub(super) fn stored_values(
        &self,
        device: &DeviceId,
        metric: &MetricName,
        span: &Range<Timestamp>,
        count: usize,
    ) -> anyhow::Result<Vec<(Timestamp, Exact)>> {
        match &self.table {
            Ok(table) => table.first_values(device, metric, span, count),
            Err(_) => Ok(Vec::new()),
        }
    }

    /// Reads a stored round back, and notes that it is stored. If the table lacks a value, neither this round nor a
    /// later one counts as stored. A run that continues then sends the value and names it again.
    pub(super) fn note_stored(&self, round: &SentRound) -> anyhow::Result<()> {
        if let Ok(table) = &self.table {
            let read_back = &mut self.seen.borrow_mut().read_back;
            read_back.check(table, &round.stored)?;
            if read_back.is_lossy() {
                return Ok(());
            }
        }
        let SentRound { end, refused, passed, stored, .. } = round;
        self.state.borrow_mut().acknowledge(*end, stored.last(), *refused, passed)
    }

    /// Reports the comparison with the table, the gaps that are left, and the command that takes the import back.
    pub(super) fn end(self) -> anyhow::Result<Ended> {
        let Self { table, state, seen } = self;
        let (state, seen) = (state.into_inner(), seen.into_inner());
        let mut ended = match &table {
            Ok(table) => {
                let read_back = seen.read_back;
                let is_lossy = read_back.is_lossy();
                // The import succeeded; only the remarks failed.
                let remarks = remarks(table, &state, &read_back)
                    .unwrap_or_else(|error| format!("\ngaps and meters are not known: {error:#}"));
                Ended { is_lossy, text: format!("{read_back}{remarks}") }
            }
            Err(why) => Ended { is_lossy: false, text: format!("not read back: {why}") },
        };

        // If the table was not read, the report lacks what devices had before, so it cannot take the import back.
        let is_past_known = table.is_ok();
        let has_address = state.import.url.is_some();
        if let Some(report) = state.into_report()?
            && is_past_known
        {
            let report = report.display();
            // A directory has no address.
            let url = if has_address { "" } else { " --url ADDRESS" };
            ended.text += &format!(
                "\n{report} takes the import back: roomtide import --take-back {report}{url}"
            );
        }

        Ok(ended)
    }
}

/// Asks for the state of a device before its first reading is sent, when the registry does not have a new device yet.
fn first_asked(
    from: Timestamp,
    device: &DeviceId,
    table: &Table<'_>,
) -> anyhow::Result<DeviceBefore> {
    let first = table.first_from(device, Timestamp::MIN)?;
    let is_new = first.is_none() && table.described(device)?.is_none();
    let has_past = first.is_some_and(|first| first < from);
    let until = if has_past { table.first_from(device, from)? } else { first };
    Ok(DeviceBefore { is_new, has_past, from, until })
}

/// Returns the facts of an earlier run about a device, if the table is still the one of that run. Another table may
/// have begun at the same address since. Then a take-back keeps the device, and deletes no reading that was found. The
/// first reading that the earlier run sent may be later than `before.from`, which may be the start of an hour.
fn verified(
    before: DeviceBefore,
    first_sent: Option<Timestamp>,
    from: Timestamp,
    device: &DeviceId,
    table: &Table<'_>,
) -> anyhow::Result<DeviceBefore> {
    let from = from.min(before.from);
    let found = table.first_from(device, from)?;
    let own = [Some(before.from), first_sent, before.until];
    let is_known = found.is_none() || own.contains(&found);
    if is_known {
        return Ok(DeviceBefore { from, ..before });
    }
    Ok(DeviceBefore { is_new: false, has_past: true, from, until: found })
}

/// The gaps after the histories, and the meters that may measure the same energy.
fn remarks(table: &Table<'_>, state: &ImportState, read_back: &ReadBack) -> anyhow::Result<String> {
    let (mut gaps, mut meters) = (Gaps::default(), Meters::default());
    for (device, last) in &state.sent {
        if read_back.is_deleted(device) {
            continue;
        }
        // No reading of the device was stored, for example because the token is for other devices.
        let Some(described) = table.described(device)? else { continue };
        described.add_to(&mut meters, device.as_str());
        let next = table.first_from(device, last.at.saturating_add(TimeDelta::milliseconds(1)))?;
        gaps.add(device, last.at, next, last.usual_distance);
    }
    Ok(format!("{gaps}{meters}"))
}

impl Seen {
    fn note(&mut self, reading: &Reading) {
        let device = &reading.device;
        self.distances.entry(device.clone()).or_default().note(reading.at);

        if !self.values.contains_key(device)
            && let Some(name) = value_metric(reading)
        {
            self.values.insert(device.clone(), name.clone());
        }
    }
}

impl Distances {
    fn note(&mut self, at: Timestamp) {
        if self.newest.is_some_and(|newest| at <= newest) {
            return;
        }
        if let Some(newest) = self.newest.replace(at) {
            if self.millis.len() == DISTANCES {
                self.millis.pop_front();
            }
            self.millis.push_back(at.as_millis() - newest.as_millis());
        }
    }

    /// Returns the longest of the newest distances, which counts as the usual one. `before` is that of an earlier run.
    fn usual_after(&self, before: Option<i64>) -> Option<i64> {
        let longest = self.millis.iter().copied().max();
        if self.millis.len() == DISTANCES { longest } else { longest.max(before) }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use domain::given::{at_second, device};

    use super::*;
    use crate::import::state::ImportName;
    use crate::tests::fake_server::{self, FakeRoomtide, Reply};

    impl Imported<'_> {
        /// Makes an import for tests whose table cannot be asked.
        pub(in crate::import) fn without_table(state: ImportState) -> Self {
            Self { table: Err("a test"), state: RefCell::new(state), seen: RefCell::default() }
        }
    }

    /// A server whose registry is empty, and whose table has one reading, at this second.
    fn table_with(second: i64) -> FakeRoomtide {
        let at = at_second(second);
        let rows = format!(r#"{{"data": [{{"timestamp": "{at}", "t": {second}}}]}}"#);
        fake_server::serve(move |_, request| match &*request.path {
            path if path.contains("/readings?") => Reply::of(200, &rows),
            path if path.starts_with("/rooms") => Reply::of(200, r#"{"data": []}"#),
            _ => Reply::of(404, "{}"),
        })
    }

    fn state() -> ImportState {
        let (file, target) = (Path::new("-"), "here");
        let name = ImportName { file, state: None, target, url: None, options: "" };
        ImportState::of(name, false).unwrap()
    }

    fn reading(second: i64) -> Reading {
        let at = at_second(second);
        let json = format!(r#"{{"device_id":"d","timestamp":"{at}","t":{second}}}"#);
        history::read_reading(&json, Timestamp::MAX).unwrap()
    }

    #[test]
    fn what_is_sent_from_a_lost_reading_on_does_not_count_as_stored() {
        let server = table_with(1);
        let client = server.client();
        let imported = Imported::begin(&client, state()).unwrap();
        for (second, end, counted) in [(1, 10, 10), (2, 20, 10), (1, 30, 10)] {
            let stored = vec![reading(second)];
            let passed = String::new();
            let round = SentRound { readings: 1, end, passed, stored, refused: 0 };
            imported.note_stored(&round).unwrap();
            assert_eq!(imported.state().stored.lines, counted, "{end} lines");
        }
        assert!(imported.end().unwrap().is_lossy);
    }

    /// An import was stopped before its first round was noted, and the server has begun anew at the same address.
    #[test]
    fn what_an_earlier_run_knew_of_another_table_is_not_believed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let (file, target) = (Path::new("-"), "here");
        let name = ImportName { file, state: Some(&path), target, url: None, options: "" };
        let known = DeviceBefore { is_new: true, has_past: false, from: at_second(1), until: None };
        for (second, until) in [(1, None), (3, Some(at_second(3)))] {
            let mut state = ImportState::of(name, true).unwrap();
            state.note_device(&device("d"), known).unwrap();
            drop(state);
            let server = table_with(second);
            let client = server.client();
            let imported = Imported::begin(&client, ImportState::of(name, false).unwrap()).unwrap();
            imported.note_sending([&reading(1), &reading(2)]).unwrap();
            let before = imported.state().devices[&device("d")];
            assert_eq!((before.is_new, before.until), (until.is_none(), until), "{second}");
        }
    }

    /// The table was asked by the hour, and the first reading was sent within the hour.
    #[test]
    fn the_own_readings_of_an_import_that_goes_on_are_known() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let (file, target) = (Path::new("-"), "here");
        let name = ImportName { file, state: Some(&path), target, url: None, options: "" };
        let known = DeviceBefore { is_new: true, has_past: false, from: at_second(0), until: None };
        let mut state = ImportState::of(name, true).unwrap();
        state.note_device(&device("d"), known).unwrap();
        drop(state);
        let first = table_with(9);
        let client = first.client();
        let imported = Imported::begin(&client, ImportState::of(name, false).unwrap()).unwrap();
        imported.seen.borrow_mut().verified.insert(device("d"));
        imported.note_sending([&reading(3), &reading(4)]).unwrap();
        drop(imported);

        let server = table_with(3);
        let client = server.client();
        let imported = Imported::begin(&client, ImportState::of(name, false).unwrap()).unwrap();
        imported.note_sending([&reading(5)]).unwrap();
        let before = imported.state().devices[&device("d")];
        assert_eq!((before.is_new, before.until), (true, None));
    }

    #[test]
    fn a_device_that_the_registry_does_not_know_yet_has_the_readings_it_has() {
        let server = table_with(5);
        let client = server.client();
        let imported = Imported::begin(&client, state()).unwrap();
        imported.note_sending([&reading(1)]).unwrap();
        let before = imported.state().devices[&device("d")];
        assert_eq!((before.is_new, before.until), (false, Some(at_second(5))));
    }
}
