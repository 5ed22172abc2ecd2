//! Compares the table with the source of an import, month by month, and writes how to take the import back. Sends no
//! reading.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use chrono::TimeDelta;
use domain::{AboutMetric, DeviceId, Exact, MetricName, Reading, RoomId, Timestamp, Zone};
use indicatif::ProgressBar;
use runtime::clock::Stopwatch;

use super::gap::Gaps;
use super::kept::{Earlier, GoesOn, Kept};
use super::known::{Before, Extremes, Known};
use super::outcome::Outcome;
use super::report::{Head, Places, Report, Row};
use super::take_back::{self, Spans};
use super::tally::{OfDevice, Tally, Totals, month_and_day};
use crate::client::Client;
use crate::import::described::Described;
use crate::import::rolled_up::{self, Waited};
use crate::import::round;
use crate::import::several_meters::Meters;
use crate::output::counted;
use crate::progress;

/// The maximum number of months that are shown.
const MAX_SHOWN: usize = 20;
/// The field name of Home Assistant's states.
const VALUE: &str = "value";
/// The time of one request for hours: a month, for which the server reads readings if there are no rollups.
const HOURS_ASKED: TimeDelta = TimeDelta::days(31);
/// The reasons for no comparison.
const UNTOLD: &str =
    "the server does not tell how far its rollups are; the URL has to answer queries, too";
const FORBIDDEN: &str = "the token may not read";
const BEHIND: &str = "the rollups are behind; once they are not, the same command compares";

/// The comparison of an import under way.
pub(in crate::import) struct Comparison<'a> {
    /// The server's data; or the reason why the server cannot be asked.
    known: Result<Known<'a>, &'static str>,
    state: RefCell<State>,
    now: Timestamp,
    /// Whether the import replaces existing readings with all their metrics.
    replaces: bool,
}

struct State {
    tally: Tally,
    earlier: Earlier,
    kept: Option<Kept>,
    /// The metric that each device has for the field `value`, as Home Assistant's entities have it.
    values: BTreeMap<DeviceId, MetricName>,
    /// The latest answer about the hours of a device.
    stored_hours: Option<StoredHours>,
    /// Whether an import continues although the file of the table's earlier state is lost.
    is_past_unknown: bool,
    /// The devices whose values are not compared: counting them would need all their readings in memory.
    uncounted: BTreeSet<DeviceId>,
    /// The number of readings that the server refused.
    refused: u64,
}

/// The result of a comparison.
#[derive(Debug, Default)]
pub(in crate::import) struct Compared {
    /// Whether the table lacks some values of the source.
    pub(in crate::import) is_lossy: bool,
    /// The report for the person.
    pub(in crate::import) text: String,
}

/// The compared months of all metrics, counted.
#[derive(Default)]
struct Months {
    series: usize,
    all: usize,
    equal: usize,
    lossy: usize,
    /// The number of devices whose rollups do not reach back to their first reading.
    untold: u64,
    uncounted: u64,
    deleted: u64,
    /// The number of readings that the server refused.
    refused: u64,
    meters: Meters,
    /// Lines about the first months that differ without a loss of values; at most `MAX_SHOWN`.
    shown: Vec<String>,
    /// Lines about the first months with lost values; at most `MAX_SHOWN`. They are shown first.
    shown_lossy: Vec<String>,
}

/// The values of a metric in an hour of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::import) enum StoredHour {
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

/// Returns the metric that a reading has for the field `value`, as Home Assistant's entities have it.
pub(in crate::import) fn value_metric(reading: &Reading) -> Option<&MetricName> {
    let is_value =
        |metric: &AboutMetric| metric.field.as_ref().is_some_and(|source| source.field == VALUE);
    let metrics = &reading.about.as_ref()?.metrics;
    metrics.iter().find(|(_, metric)| is_value(metric)).map(|(name, _)| name)
}

impl<'a> Comparison<'a> {
    /// Begins a comparison, if the server can answer. The file `kept` keeps what devices had before the import.
    pub(in crate::import) fn begin(
        client: &'a Client,
        kept: Option<PathBuf>,
        goes_on: GoesOn<'_>,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let known = match Known::of(client)? {
            Some(known) if known.may_read()? => Ok(known),
            Some(_) => Err(FORBIDDEN),
            None => Err(UNTOLD),
        };
        let (kept, mut earlier) = match kept {
            Some(path) if known.is_ok() => {
                let (kept, earlier) = Kept::open(path, goes_on)?;
                (Some(kept), earlier)
            }
            _ => (None, matches!(goes_on, GoesOn::No(_)).then(Earlier::default)),
        };
        if known.is_ok() && earlier.is_some() && matches!(goes_on, GoesOn::No(_)) {
            // Waits for the rollups of recent writes. Without these, a line of the report would delete readings of
            // others.
            let bar = progress::spinner();
            let waited = rolled_up::wait(client, &bar);
            bar.finish_and_clear();
            if waited? != Waited::RolledUp {
                earlier = None;
            }
        }
        let zone = known.as_ref().map_or(Zone::UTC, Known::zone);
        let is_past_unknown = earlier.is_none();
        let state = State {
            tally: Tally::new(zone),
            is_past_unknown,
            earlier: earlier.unwrap_or_default(),
            values: BTreeMap::new(),
            stored_hours: None,
            kept,
            uncounted: BTreeSet::new(),
            refused: 0,
        };
        Ok(Self { known, state: RefCell::new(state), now, replaces: false })
    }

    /// Sets whether the import replaces existing readings with all their metrics.
    pub(in crate::import) fn replacing(self, replaces: bool) -> Self {
        Self { replaces, ..self }
    }

    /// Counts readings before they are sent, and asks what their devices had before the import.
    pub(in crate::import) fn note<'r>(
        &self,
        readings: impl IntoIterator<Item = &'r Reading>,
    ) -> anyhow::Result<()> {
        let mut state = self.state.borrow_mut();
        for reading in readings {
            if !state.values.contains_key(&reading.device)
                && let Some(name) = value_metric(reading)
            {
                state.values.insert(reading.device.clone(), name.clone());
            }
            if let Ok(known) = &self.known {
                state.ask(known, reading, self.now)?;
            }
            state.tally.add(reading);
        }
        Ok(())
    }

    /// Returns the metric of an entity's field `value`. Returns `None` if the table had readings of the device up to
    /// this day before the import.
    pub(in crate::import) fn value_without_past(
        &self,
        device: &DeviceId,
        at: Timestamp,
    ) -> Option<MetricName> {
        let state = self.state.borrow();
        let before = state.earlier.devices.get(device)?.as_ref()?;
        let (month, day) = month_and_day(&state.tally.zone().date(at).to_string());
        let has_past = before.months.iter().any(|(it, of_month)| {
            *it < month || *it == month && of_month.days.iter().any(|it| *it <= day)
        });
        state.values.get(device).filter(|_| !has_past).cloned()
    }

    /// Returns the reason if the server cannot be asked.
    pub(in crate::import) fn why_unknown(&self) -> Option<&'static str> {
        self.known.as_ref().err().copied()
    }

    /// Returns the values of a metric in an hour of UTC. Costs no request if the device had no readings on that day
    /// before the import.
    pub(in crate::import) fn stored_hour(
        &self,
        device: &DeviceId,
        metric: &MetricName,
        hour: Timestamp,
    ) -> anyhow::Result<StoredHour> {
        let Ok(known) = &self.known else { return Ok(StoredHour::Empty) };
        let mut state = self.state.borrow_mut();
        state.ask_device(known, device, self.now)?;
        let before = state.earlier.devices.get(device).and_then(Option::as_ref);
        if before.is_some_and(|before| !before.may_have(hour, known.zone())) {
            return Ok(StoredHour::Empty);
        }

        let has_asked = |asked: &StoredHours| asked.device == *device && asked.span.contains(&hour);
        if !state.stored_hours.as_ref().is_some_and(has_asked) {
            let span = hour..hour.saturating_add(HOURS_ASKED);
            let hours = known.hours(device, &span)?;
            state.stored_hours = Some(StoredHours { device: device.clone(), span, hours });
        }

        let asked = state.stored_hours.as_ref().and_then(|asked| asked.hours.as_ref());
        let Some(hours) = asked else { return Ok(StoredHour::Untold) };
        let extremes = hours.get(&hour).and_then(|of_hour| of_hour.get(metric)).cloned();
        Ok(extremes
            .map_or(StoredHour::Empty, |(least, largest)| StoredHour::Between(least, largest)))
    }

    /// Returns at most `count` of the first stored values of a metric in a span, with their times.
    pub(in crate::import) fn stored_values(
        &self,
        device: &DeviceId,
        metric: &MetricName,
        span: &Range<Timestamp>,
        count: usize,
    ) -> anyhow::Result<Vec<(Timestamp, Exact)>> {
        match &self.known {
            Ok(known) => known.first_values(device, metric, span, count),
            Err(_) => Ok(Vec::new()),
        }
    }

    /// Notes that the server refused a reading.
    pub(in crate::import) fn take_back(&self, reading: &Reading) -> anyhow::Result<()> {
        let mut state = self.state.borrow_mut();
        state.tally.take_back(reading);
        state.refused += 1;
        let refused = round::json(reading);
        // An earlier run counted this refusal already, but did not save its progress.
        if state.earlier.refused.remove(&refused) {
            return Ok(());
        }
        state.kept.as_mut().map_or(Ok(()), |kept| kept.add_refused(refused))
    }

    /// Notes that a reading replaces values of an earlier one with the same device and time.
    pub(in crate::import) fn replace(&self, earlier: &Reading, later: &Reading) {
        self.state.borrow_mut().tally.replace(earlier, later);
    }

    /// Excludes a device from the comparison: its readings come in no known order, so that replaced values cannot be
    /// told, or some readings were refused.
    pub(in crate::import) fn leave_out(&self, device: &DeviceId) {
        let mut state = self.state.borrow_mut();
        if !state.uncounted.contains(device) {
            state.uncounted.insert(device.clone());
        }
    }

    /// Compares the table with the source if everything is rolled up, and writes the report.
    pub(in crate::import) fn finish(
        self,
        is_rolled_up: bool,
        head: &Head,
        places: &Places,
    ) -> anyhow::Result<Compared> {
        let Self { known, state, replaces, .. } = self;
        let bar = progress::spinner();
        let mut state = state.into_inner();
        state.take_back_earlier();
        state.tally.forget_taken_back();
        let State { tally, earlier, kept, is_past_unknown, uncounted, refused, .. } = state;
        let known = known.and_then(|known| if is_rolled_up { Ok(known) } else { Err(BEHIND) });
        let zone = known.as_ref().ok().map(Known::zone);
        let mut report = Report::new(head, zone);
        let compared = known.map_err(|why| anyhow::anyhow!(why)).and_then(|known| {
            let sides = Sides { tally: &tally, earlier: &earlier, uncounted: &uncounted, replaces };
            compare(&known, &sides, &mut report, &bar)
        });
        bar.finish_and_clear();
        if let Ok((_, gaps)) = &compared
            && !gaps.is_empty()
        {
            report.comment(gaps.to_string().trim());
        }
        if is_past_unknown {
            report.comment("This import went on where an earlier one stopped, and nothing is known of that one any more.");
        }
        let lines = write_take_back(&tally, &earlier, &mut report);
        let report_at = places.report.as_deref().map(|it| report.write(it)).transpose()?;
        let mut said = Compared::default();
        match compared {
            Ok((mut months, gaps)) => {
                months.refused = refused;
                said.is_lossy = months.lossy > 0;
                let zone = zone.unwrap_or(Zone::UTC);
                said.text = months.text(zone.name(), report_at.as_deref());
                write!(said.text, "{gaps}")?;
                write!(said.text, "{}", months.meters)?;
            }
            // The import succeeded; only the comparison failed.
            Err(error) => said.text = format!("not compared with the source: {error:#}"),
        }
        if let Some(path) = report_at {
            let taken_back = match lines {
                0 => "why no line takes the import back",
                _ => "the lines that take the import back",
            };
            let path = path.display();
            write!(said.text, "\n{path} has the counts and sums, and {taken_back}")?;
        }
        if let Some(kept) = kept {
            kept.finish();
        }
        for report in &earlier.reports {
            // The new report includes all lines of the earlier reports.
            drop(std::fs::remove_file(report));
        }
        Ok(said)
    }

    /// Keeps the file of the earlier state for the caller, who removes it later. Returns the file's name.
    pub(in crate::import) fn give_up_kept(&self) -> Option<PathBuf> {
        self.state.borrow_mut().kept.take().map(Kept::into_path)
    }

    /// Removes the file of the earlier state, because nothing was sent.
    pub(in crate::import) fn forget(&self) {
        if let Some(kept) = self.state.borrow_mut().kept.take() {
            kept.finish();
        }
    }

    /// Writes a report with the lines that take a stopped import back.
    pub(in crate::import) fn stopped(&self, head: &Head, places: &Places) -> anyhow::Result<()> {
        let mut state = self.state.borrow_mut();
        if state.tally.devices.is_empty() && state.earlier.is_nothing() {
            drop(state);
            self.forget();
            return Ok(());
        }
        let Some(report_at) = places.if_stopped.as_deref() else { return Ok(()) };
        if self.known.is_err() || state.tally.devices.is_empty() {
            return Ok(());
        }
        let mut report = Report::new(head, None);
        report.comment("The import stopped before its end. What was on its way then is in these lines, stored or not:");
        report.comment("a line deletes nothing of the import where nothing of it is stored.");
        write_take_back(&state.tally, &state.earlier, &mut report);
        let written = report.write(report_at)?;
        match &mut state.kept {
            Some(kept) => kept.add_report(written),
            None => Ok(()),
        }
    }
}

impl State {
    /// Subtracts the readings that the server refused in earlier runs.
    fn take_back_earlier(&mut self) {
        for refused in std::mem::take(&mut self.earlier.refused) {
            if let Ok(reading) = local::read_reading(&refused, Timestamp::MAX) {
                self.tally.take_back(&reading);
                self.refused += 1;
            }
        }
    }

    /// Asks what the device and the room of a reading had before the import. Fails without an answer, so that the next
    /// run asks again: an unknown past would stay unknown.
    fn ask(&mut self, known: &Known<'_>, reading: &Reading, now: Timestamp) -> anyhow::Result<()> {
        let Reading { device, room, .. } = reading;
        self.ask_device(known, device, now)?;
        if let Some(room) = room.as_ref().filter(|room| !self.earlier.rooms.contains_key(*room)) {
            let is_new = !self.is_past_unknown && !known.has_room(room)?;
            if let Some(kept) = &mut self.kept {
                kept.add_room(room, is_new)?;
            }
            self.earlier.rooms.insert(room.clone(), is_new);
        }
        Ok(())
    }

    fn ask_device(
        &mut self,
        known: &Known<'_>,
        device: &DeviceId,
        now: Timestamp,
    ) -> anyhow::Result<()> {
        if self.earlier.devices.contains_key(device) {
            return Ok(());
        }

        let before = if self.is_past_unknown { None } else { known.before(device, now)? };
        if let Some(kept) = &mut self.kept {
            kept.add_device(device, before.as_ref())?;
        }
        self.earlier.devices.insert(device.clone(), before);
        Ok(())
    }
}

/// The data that the table is compared with.
struct Sides<'a> {
    tally: &'a Tally,
    earlier: &'a Earlier,
    uncounted: &'a BTreeSet<DeviceId>,
    replaces: bool,
}

fn compare(
    known: &Known<'_>,
    sides: &Sides<'_>,
    report: &mut Report,
    bar: &ProgressBar,
) -> anyhow::Result<(Months, Gaps)> {
    let Sides { tally, earlier, uncounted, replaces } = *sides;
    let (mut months, mut gaps) = (Months::default(), Gaps::default());
    let watch = Stopwatch::start();
    for (place, (device, imported)) in tally.devices.iter().enumerate() {
        bar.set_message(format!("comparing: {place} of {} devices", tally.devices.len()));
        let before = earlier.devices.get(device).and_then(Option::as_ref);
        let described = known.described_with(device, &imported.metrics(), &watch)?;
        let described = described.unwrap_or_default();
        if described.is_being_deleted() {
            report.comment(format_args!("{device} is not compared: it is being deleted"));
            months.deleted += 1;
            continue;
        }
        described.add_to(&mut months.meters, device.as_str());
        if uncounted.contains(device) {
            report.comment(format_args!(
                "{device} is not compared: its lines are in no order of time, or refused in part"
            ));
            months.uncounted += 1;
            continue;
        }
        let Some(rows) = rows(known, (device, &described), imported, before)? else {
            report.comment(format_args!(
                "{device} is not compared: its rollups do not reach so far back"
            ));
            months.untold += 1;
            continue;
        };
        for mut row in rows {
            if replaces && before.is_some() {
                row.outcome = Outcome::of_replaced(&row.source, &row.before, &row.table);
            }
            report.row(&row);
            months.add(&row);
        }
        months.series += imported.metrics().len();
        if let Some((_, last)) = imported.span() {
            let next = known.first_after(device, last)?;
            gaps.add(device, last, next, imported.usual_distance());
        }
    }
    Ok((months, gaps))
}

/// The compared months of a device's metrics; `None` if the server cannot tell.
fn rows(
    known: &Known<'_>,
    (device, described): (&DeviceId, &Described),
    imported: &OfDevice,
    before: Option<&Before>,
) -> anyhow::Result<Option<Vec<Row>>> {
    let spans: Vec<_> = imported.months.values().map(|it| (it.first, it.last)).collect();
    let Some(table) = known.months(device, &spans)? else { return Ok(None) };
    let mut rows = Vec::new();
    for (month, of_month) in &imported.months {
        for (metric, values) in &of_month.metrics {
            let source = values.of(described.counts_all(metric));
            let found = table.get(month).and_then(|it| it.get(metric)).cloned();
            let table = found.unwrap_or_default();
            let (before, outcome) = match before {
                Some(before) => {
                    let before = before.months.get(month).and_then(|it| it.metrics.get(metric));
                    let before = before.cloned().unwrap_or_default();
                    let outcome = Outcome::of(&source, &before, &table);
                    (before, outcome)
                }
                None => (Totals::default(), Outcome::of_unknown_past(&source, &table)),
            };
            let (device, metric, month) = (device.clone(), metric.clone(), *month);
            rows.push(Row { device, metric, month, source, before, table, outcome });
        }
    }
    Ok(Some(rows))
}

impl Months {
    fn add(&mut self, row: &Row) {
        self.all += 1;
        if row.outcome == Outcome::Equal {
            self.equal += 1;
            return;
        }
        self.lossy += usize::from(row.outcome.is_loss());
        let shown = if row.outcome.is_loss() { &mut self.shown_lossy } else { &mut self.shown };
        if shown.len() < MAX_SHOWN {
            shown.push(row.to_string());
        }
    }

    fn text(&self, zone: &str, report_at: Option<&Path>) -> String {
        let (months, series) = (counted(self.all as u64, "month"), self.series);
        let all = if self.refused == 0 { "all" } else { "all other" };
        let equal = match self.all {
            0 => String::new(),
            months if months == self.equal => format!(": {all} counts and sums are the source's"),
            _ => format!(": {} have the source's counts and sums", self.equal),
        };
        let mut text = format!("compared {months} ({zone}) of {series} metrics{equal}");
        for (devices, why) in [
            (self.untold, "whose rollups do not reach so far back"),
            (self.uncounted, "whose lines are in no order of time, or refused in part"),
            (self.deleted, "which are being deleted"),
        ] {
            if devices > 0 {
                write!(text, "\n  not compared: {}, {why}", counted(devices, "device"))
                    .expect("a text takes everything");
            }
        }
        if self.refused > 0 {
            let readings = counted(self.refused, "reading");
            write!(text, "\n  not compared: {readings}, refused").expect("a text takes everything");
        }
        for row in self.shown_lossy.iter().chain(&self.shown).take(MAX_SHOWN) {
            write!(text, "\n  {row}").expect("a text takes everything");
        }
        let hidden = (self.all - self.equal).saturating_sub(MAX_SHOWN);
        if hidden > 0 {
            let place = report_at.map(|path| format!(", see {}", path.display()));
            write!(text, "\n  and {hidden} more{}", place.unwrap_or_default())
                .expect("a text takes everything");
        }
        text
    }
}

/// Writes the lines that take the import back. Returns their number.
fn write_take_back(tally: &Tally, earlier: &Earlier, report: &mut Report) -> usize {
    let (mut brought, mut lines) = (Vec::new(), 0);
    let until = earlier.since.unwrap_or(Timestamp::MAX);
    if earlier.since.is_some() {
        report.comment(format_args!(
            "The source has changed since the import began. Readings from {until} on are not taken back: others may \
             have written since."
        ));
    }

    for (device, imported) in &tally.devices {
        let Some(before) = earlier.devices.get(device).and_then(Option::as_ref) else {
            report.comment(format_args!(
                "{device} is not taken back: nobody knows what it had before the import"
            ));
            continue;
        };
        let Spans { taken_back, kept } = Spans::of(imported, before);
        for (from, to) in taken_back.into_iter().filter(|(from, _)| *from < until) {
            report.line(&take_back::readings(device, (from, to.min(until))));
            lines += 1;
        }
        if !kept.is_empty() {
            report.comment(format_args!(
                "{device} is not taken back on days on which it had readings before: {}",
                kept.join(" ")
            ));
        }
        if before.is_new {
            brought.push(device);
        }
    }
    let rooms = earlier.rooms.iter().filter(|(_, is_new)| **is_new);
    let rooms: Vec<RoomId> = rooms.map(|(room, _)| room.clone()).collect();
    for line in take_back::brought(&brought, &rooms) {
        report.line(&line);
        lines += 1;
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use domain::given::{at, device, room};

    use super::*;
    use crate::import::comparison::Import;
    use crate::import::fake_server::{self, Reply};

    const HEADER: &str = "timestamp,partial,coverage,t.count,t.sum\n";

    fn head() -> Head {
        Head {
            source: "x".to_owned(),
            target: "u".to_owned(),
            url: "u".to_owned(),
            began: Timestamp::MIN,
        }
    }

    /// Compares two readings of 1 and 2 with a table that answers `after`.
    fn compared(
        health: &'static str,
        before: (u16, &'static str),
        after: &'static str,
    ) -> Compared {
        let (asked, described) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let server = fake_server::serve(move |_, request| match &*request.path {
            "/health?details=1" => Reply::of(200, health),
            "/rooms?limit=1" => Reply::of(200, r#"{"data": []}"#),
            // At first the registry is that of before, and a series would have no column of the metric.
            "/devices/d" => match described.fetch_add(1, Ordering::SeqCst) {
                0 => Reply::of(200, r#"{"metrics": {}}"#),
                _ => Reply::of(200, r#"{"metrics": {"t": {"kind": "gauge"}}}"#),
            },
            path if path.contains("/readings?") => Reply::of(200, r#"{"data": []}"#),
            path if path.contains("every=1d") => Reply::of(200, HEADER),
            path => {
                assert!(
                    path.starts_with("/devices/d/series?") && path.contains("every=1mo"),
                    "{path}"
                );
                match asked.fetch_add(1, Ordering::SeqCst) {
                    0 => Reply::of(before.0, &format!("{HEADER}{}", before.1)),
                    _ if described.load(Ordering::SeqCst) < 2 => Reply::of(200, HEADER),
                    _ => Reply::of(200, &format!("{HEADER}{after}")),
                }
            }
        });
        let client = Client::new(&server.url, None).unwrap();
        let now = at("2026-02-01T00:00:00Z");
        let comparison = Comparison::begin(&client, None, GoesOn::No(None), now).unwrap();
        for value in [1, 2] {
            let json = format!(
                r#"{{"device_id":"d","timestamp":"2026-01-11T16:00:0{value}Z","t":{value}}}"#
            );
            let reading = local::read_reading(&json, now).unwrap();
            comparison.note([&reading]).unwrap();
        }
        comparison.finish(true, &head(), &Places::default()).unwrap()
    }

    #[test]
    fn readings_since_the_first_run_of_a_changed_source_are_not_taken_back() {
        let mut tally = Tally::new(Zone::UTC);
        for time in ["2026-01-10T16:00:00Z", "2026-01-11T16:00:00Z", "2026-01-12T16:00:00Z"] {
            let json = format!(r#"{{"device_id":"d","timestamp":"{time}","t":1}}"#);
            tally.add(&local::read_reading(&json, Timestamp::MAX).unwrap());
        }
        let before = Before { is_new: true, ..Before::default() };
        let written = |since: Option<&str>| {
            let devices = [(device("d"), Some(before.clone()))].into();
            let earlier = Earlier { devices, since: since.map(at), ..Earlier::default() };
            let mut report = Report::new(&head(), None);
            let lines = write_take_back(&tally, &earlier, &mut report);
            let directory = tempfile::tempdir().unwrap();
            let path = report.write(&directory.path().join("report")).unwrap();
            (lines, std::fs::read_to_string(path).unwrap())
        };
        let (_, all) = written(None);
        assert!(all.contains("--to 2026-01-12T16:00:00.001Z"), "{all}");
        let (lines, part) = written(Some("2026-01-11T00:00:00Z"));
        assert!(
            part.contains("--from 2026-01-10T16:00:00.000Z --to 2026-01-11T00:00:00.000Z"),
            "{part}"
        );
        assert!(part.contains("from 2026-01-11T00:00:00.000Z on are not taken back"), "{part}");
        let (none, _) = written(Some("2026-01-10T00:00:00Z"));
        assert_eq!((lines, none), (3, 2), "the device itself");
    }

    const TOLD: &str = r#"{"rollups": {"tz": "UTC", "at": "2026-02-01T00:00:00.000Z", "folded_until": "2026-02-01T00:00:00.000Z"}}"#;

    #[test]
    fn what_is_missing_is_named_with_both_numbers() {
        for (before, after, is_lossy, expected) in [
            (
                (404, ""),
                "2026-01-01T00:00:00Z,,,2,3",
                false,
                "all counts and sums are the source's",
            ),
            (
                (404, ""),
                "2026-01-01T00:00:00Z,,,1,2",
                true,
                "d t 2026-01: source 2 with the sum 3, table 1 with the sum 2: missing: ",
            ),
            ((404, ""), "", true, "table 0 with the sum 0: missing: "),
            (
                (404, ""),
                "2026-01-01T00:00:00Z,,,2,3.1",
                true,
                "table 2 with the sum 3.1: other values: ",
            ),
            ((404, ""), "2026-01-01T00:00:00Z,,,3,4", false, "table 3 with the sum 4: more: "),
            (
                (200, "2026-01-01T00:00:00Z,,,2,3\n"),
                "2026-01-01T00:00:00Z,,,3,4",
                false,
                "before 2 with the sum 3: at least: ",
            ),
            (
                (200, "2026-01-01T00:00:00Z,,,4,3\n"),
                "2026-01-01T00:00:00Z,,,3,4",
                true,
                "missing: ",
            ),
            ((422, ""), "2026-01-01T00:00:00Z,,,3,4", false, "at least: "),
            ((422, ""), "2026-01-01T00:00:00Z,,,1,4", true, "missing: "),
        ] {
            let compared = compared(TOLD, before, after);
            assert!(compared.text.contains(expected), "{expected:?} is not in {}", compared.text);
            assert_eq!(compared.is_lossy, is_lossy, "{}", compared.text);
        }
    }

    /// Makes a comparison, and notes a reading in a room. Returns whether the device and the room were new.
    fn asked_before(
        client: &Client,
        kept: &Path,
        goes_on: GoesOn<'_>,
    ) -> anyhow::Result<[bool; 2]> {
        let now = at("2026-02-01T00:00:00Z");
        let comparison = Comparison::begin(client, Some(kept.to_owned()), goes_on, now)?;
        let json = r#"{"device_id":"d","room":"hall","timestamp":"2026-01-11T16:00:00Z","t":1}"#;
        comparison.note([&local::read_reading(json, now).unwrap()])?;

        let earlier = comparison.state.into_inner().earlier;
        let is_new_device = earlier.devices[&device("d")].as_ref().is_some_and(|it| it.is_new);
        Ok([is_new_device, earlier.rooms[&room("hall")]])
    }

    /// A server of a table without rooms that answers questions about devices with this status, or not at all while it is
    /// away.
    fn new_table(status: u16, is_away: &Arc<AtomicBool>) -> fake_server::Server {
        let is_away = Arc::clone(is_away);
        fake_server::serve(move |_, request| match &*request.path {
            "/health?details=1" => Reply::of(200, TOLD),
            "/rooms?limit=1" => Reply::of(200, "{}"),
            _ if is_away.load(Ordering::SeqCst) => Reply::NONE,
            "/rooms/hall" => Reply::of(404, "{}"),
            _ => Reply::of(status, "{}"),
        })
    }

    #[test]
    fn what_was_not_answered_before_an_import_is_asked_again_by_its_next_run() {
        let is_away = Arc::new(AtomicBool::new(true));
        let server = new_table(404, &is_away);
        let client = server.client();
        let directory = tempfile::tempdir().unwrap();
        let kept = directory.path().join("before");

        let begins = GoesOn::No(Some(&Import::default()));
        let error = asked_before(&client, &kept, begins).unwrap_err();
        assert!(error.to_string().starts_with("cannot reach"), "{error}");

        is_away.store(false, Ordering::SeqCst);
        assert_eq!(asked_before(&client, &kept, GoesOn::Read).unwrap(), [true, true]);
    }

    #[test]
    fn a_device_that_is_being_deleted_does_not_end_an_import() {
        let server = new_table(410, &Arc::default());
        let client = server.client();
        let directory = tempfile::tempdir().unwrap();
        let kept = directory.path().join("before");
        assert_eq!(asked_before(&client, &kept, GoesOn::No(None)).unwrap(), [false, true]);
    }

    #[test]
    fn what_was_refused_is_not_called_the_source() {
        let refused = Months { series: 1, all: 1, equal: 1, refused: 2, ..Months::default() };
        let text = refused.text("UTC", None);
        assert_eq!(
            text,
            "compared 1 month (UTC) of 1 metrics: all other counts and sums are the source's\n  \
             not compared: 2 readings, refused"
        );
    }

    #[test]
    fn a_server_that_does_not_tell_is_not_compared_with() {
        let compared = compared(r#"{"status": "pass"}"#, (404, ""), "");
        assert!(!compared.is_lossy);
        assert!(
            compared.text.starts_with("not compared with the source: the server does not tell"),
            "{}",
            compared.text
        );
    }
}
