//! Imports a source: sorts its points or lines by device and time, and uploads them, or reports on them in a dry run.
//! Opens no source.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use domain::{DeviceId, MetricName, Timestamp};
use history::LineRules;
use history::csv::totals::Totals;
use history::line::{Line, Lines};
use history::made_counters::MadeCounters;
use history::notes::Notes;
use history::point::Point;
use history::points::device_point::{DevicePoint, DevicesOfSeries};
use history::points::line_reader::LineReader;
use history::points::thin::{KnownKinds, Thinned, ThinnedCount};
use history::points::unite::{Group, United};
use history::refusals::{Refusal, Refusals};
use history::source::{HistorySource, SourceItems};
use history::taught::{self, Taught};
use history::temporary::megabytes;
use history::units::{Known, SeriesUnits};
use indicatif::ProgressBar;

use super::args::ImportArgs;
use super::beforehand;
use super::decoded::{self, DecodedLines, PointRules};
use super::described::Described;
use super::estimate::Estimate;
use super::hourly;
use super::imported::Imported;
use super::patterns::NamePatterns;
use super::points::{Selection, SeriesMap, beside_no_means, in_vacant_hours, meet_tags};
use super::registry::RegistryLine;
use super::round::Rounds;
use super::session::{self, after_upload, exit_code, state_of};
use super::sort::{self, Merged};
use super::state::ImportState;
use super::upload::{self, UploadOptions};
use crate::client::Client;
use crate::interrupted::stop_on_ctrl_c;
use crate::moment::MILLISECOND;
use crate::output::print;

/// The remark of a dry run about hourly statistics, because a dry run asks no server.
const HOURS_UNASKED: &str = "\
statistics   of hours for which the table has finer readings are left out by the import, which asks it, and so are
             readings of powers in hours whose mean it has; a dry run asks no table and counts them";

/// The points or lines of a source, sorted by device and time.
enum SortedItems {
    Points(United<Merged<DevicePoint>>),
    Lines(Merged<Line>, Totals),
}

/// The kind of run: an import or a dry run.
#[derive(Clone, Copy)]
enum Run<'a> {
    Import(&'a Imported<'a>, &'a Client),
    /// A dry run, which counts the readings that thinning would leave.
    Dry {
        thinned: &'a Cell<u64>,
    },
}

/// A source that is read whole.
struct Sorted {
    items: SortedItems,
    /// The number of points or lines, and the bytes that they take on disk.
    total: u64,
    disk: u64,
    registry: Vec<RegistryLine>,
    refusals: Refusals,
    notes: Notes,
    units: SeriesUnits,
    made: MadeCounters,
    reader: LineReader,
    /// The time before which points are thinned.
    thin_before: Option<Timestamp>,
    /// The patterns of what is left out of lines.
    except: NamePatterns,
}

/// Imports a source, or estimates the import in a dry run.
pub(super) fn import(
    args: &ImportArgs,
    source: HistorySource,
    bar: &ProgressBar,
    now: Timestamp,
) -> anyhow::Result<ExitCode> {
    let map = map_of(args)?;
    let identity = identity(args, &map);
    let mut state = if args.dry_run { None } else { Some(state_of(args, &identity)?) };
    let began = state.as_mut().map_or(now, |state| state.began(now));
    let wanted = WantedSeries::of(args, map, began)?;

    let reader = LineReader { now, rules: args.line_rules() };
    let sorted = sort(args, source, wanted, reader, bar)?;
    if sorted.is_empty() {
        print_notes(&sorted.notes);
        return match sorted.items {
            SortedItems::Lines(..) => Ok(say_empty(args)),
            SortedItems::Points(_) => {
                bail!("{} has no points that can be imported", args.file.display())
            }
        };
    }

    match state {
        None => dry_run(args, sorted, bar),
        Some(state) => upload(args, sorted, state, bar),
    }
}

/// Says that there is nothing to import, for example in an export of an empty table.
pub(super) fn say_empty(args: &ImportArgs) -> ExitCode {
    print(format_args!("{} has nothing in it", args.file.display()));
    ExitCode::SUCCESS
}

/// Reads a source, and sorts the points or lines that are wanted.
fn sort(
    args: &ImportArgs,
    source: HistorySource,
    wanted: WantedSeries,
    reader: LineReader,
    bar: &ProgressBar,
) -> anyhow::Result<Sorted> {
    let HistorySource { items, notes, units, totals, made, growing } = source;
    let thin_before = wanted.thin_before;
    bar.set_message(sort::SORTING);

    let mut registry = Vec::new();
    let except = NamePatterns::of(&args.except);
    let (items, total, disk) = match items {
        SourceItems::Points(points) => {
            let (map, selection) = (wanted.map.clone(), wanted.selection.clone());
            let LineRules { device_tags, room_tag, .. } = &reader.rules;
            let tags = [
                ("--device-tags", NamePatterns::of(device_tags)),
                ("--room-tag", NamePatterns::of(room_tag.as_slice())),
            ];
            let points = points.inspect(|point| {
                if let Ok(point) = point {
                    tags.iter().for_each(|(_, names)| meet_tags(names, point));
                }
            });

            let points = wanted.of_points(points, notes.clone(), units.clone(), reader.clone());
            let sorted = sort::sorted(points, sort::RUN, bar)?;

            map.not_met().into_iter().for_each(print);
            selection.unmatched().for_each(print);
            tags.iter().filter_map(|(option, names)| names.unmatched(option)).for_each(print);
            let (total, disk) = (sorted.total(), sorted.disk());
            (SortedItems::Points(United::new(sorted, notes.clone())), total, disk)
        }
        SourceItems::Lines(lines) => {
            let lines = of_lines(lines, &mut registry, &except, &notes);
            let sorted = sort::sorted(lines, sort::RUN, bar)?;
            let (total, disk) = (sorted.total(), sorted.disk());
            (SortedItems::Lines(sorted, totals), total, disk)
        }
    };
    growing.and_then(|growing| growing.said()).into_iter().for_each(|said| notes.say(said));

    bar.reset();
    bar.set_message("");
    bar.set_length(total);
    let refusals = notes.take_refusals();
    Ok(Sorted {
        items,
        total,
        disk,
        registry,
        refusals,
        notes,
        units,
        made,
        reader,
        thin_before,
        except,
    })
}

/// Returns the readings and rows of lines. Moves entries of the registry to `registry`, and notes refusals.
fn of_lines<'a>(
    lines: Lines,
    registry: &'a mut Vec<RegistryLine>,
    except: &'a NamePatterns,
    notes: &'a Notes,
) -> impl Iterator<Item = anyhow::Result<Line>> + 'a {
    lines.filter_map(move |line| match line {
        Ok(Line::Registry(record)) => {
            match RegistryLine::read(&record) {
                Ok(line) => registry.extend(line.without(except)),
                Err(reason) => notes.refuse(record.line, reason),
            }
            None
        }
        Ok(Line::Refused(Refusal { line, reason })) => {
            notes.refuse(line, reason);
            None
        }
        line => Some(line),
    })
}

/// Fails if the amounts of lines do not continue the counters of the table.
pub(super) fn ensure_fit(
    totals: &Totals,
    lines: Lines,
    bar: &ProgressBar,
    now: Timestamp,
) -> anyhow::Result<()> {
    let (mut registry, except, notes) = (Vec::new(), NamePatterns::default(), Notes::default());
    let lines = of_lines(lines, &mut registry, &except, &notes);
    totals.ensure_fit(sort::sorted(lines, sort::RUN, bar)?, now)
}

impl Sorted {
    fn is_empty(&self) -> bool {
        self.total == 0 && self.refusals.count() == 0 && self.registry.is_empty()
    }

    /// Prints the remarks about the source, when all of it is decoded.
    fn print_remarks(&self) {
        print_notes(&self.notes);
        if let SortedItems::Lines(..) = self.items {
            self.except.unmatched("--except").into_iter().for_each(print);
        }
    }

    fn options(&self, args: &ImportArgs) -> UploadOptions {
        args.upload_options(matches!(self.items, SortedItems::Points(_)))
    }

    /// Decodes the lines that are sent together. An import asks its table about hours of statistics, and which metrics
    /// are counters; a dry run asks nothing.
    fn decoded<'a>(&'a mut self, args: &'a ImportArgs, of: Run<'a>) -> DecodedLines<'a> {
        let reader = &self.reader;
        let united = match &mut self.items {
            SortedItems::Lines(lines, totals) => {
                let lines = std::mem::take(totals).add_up(lines, reader.now);
                return decoded::lines(lines, self.except.clone(), self.notes.clone());
            }
            SortedItems::Points(united) => united,
        };

        let taught = Taught::of(&self.units, reader);
        let known = KnownKinds {
            counters_of: Box::new(move |device| match of {
                Run::Import(_, client) => counters_of(device, client),
                Run::Dry { .. } => Ok(BTreeSet::new()),
            }),
            taught: taught.clone(),
            reader: reader.clone(),
        };

        let rules = PointRules { reader: reader.clone(), precision: args.precision, taught };

        let imported = match of {
            Run::Import(imported, _) => imported,
            Run::Dry { thinned } if self.thin_before.is_none() => {
                let left = rules.clone();
                let readings_of = move |group| left.decode(group).readings.len();
                let counted = ThinnedCount::new(united, known, readings_of, thinned);
                return decoded::points(counted, rules);
            }
            Run::Dry { .. } => {
                return decoded::points(groups(united, self.thin_before, known), rules);
            }
        };

        let vacant = in_vacant_hours(united, imported, self.notes.clone(), reader.clone());
        let groups = groups(vacant, self.thin_before, known);
        let groups = beside_no_means(groups, imported, self.notes.clone(), reader.clone());
        decoded::points(groups, rules)
    }
}

/// Estimates an import, and prints the estimate.
fn dry_run(args: &ImportArgs, mut sorted: Sorted, bar: &ProgressBar) -> anyhow::Result<ExitCode> {
    let options = sorted.options(args);
    let mut estimate = match sorted.items {
        SortedItems::Lines(..) => Estimate::of_lines(options),
        SortedItems::Points(_) => {
            // The source's own sums are totals over all its time, so they fit no part of it.
            let is_part = args.from.is_some() || args.to.is_some();
            let own_sums = if is_part { BTreeMap::new() } else { sorted.notes.own_sums() };
            Estimate::of_points(own_sums, options)
        }
    };

    let (reader, thinned) = (sorted.reader.clone(), Cell::new(0));
    let lines = Box::new(bar.wrap_iter(sorted.decoded(args, Run::Dry { thinned: &thinned })));

    let added = estimate.add_all(lines, options.batch, &reader);
    bar.finish_and_clear();
    added?;

    estimate.thinned = Some(thinned.get()).filter(|left| *left > 0);
    estimate.add_registry(&sorted.registry);
    estimate.refusals.append(std::mem::take(&mut sorted.refusals));

    let map_file = args.map_file().filter(|file| !file.exists());
    if let (Some(file), SortedItems::Points(_)) = (map_file, &sorted.items) {
        estimate.write_map(file)?;
        print(format_args!("{} has the series; edit it and import with --map", file.display()));
    }

    sorted.print_remarks();
    if !sorted.notes.hourly().is_empty() {
        print(HOURS_UNASKED);
    }

    if sorted.disk > 0 {
        let directory = tempfile::env::temp_dir();
        let taken = megabytes(sorted.disk);
        print(format_args!("sorting      {taken} on disk, in {}", directory.display()));
    }
    print(&estimate);
    show_units(&sorted.units, &reader);
    Ok(exit_code(&estimate.refusals, 0))
}

/// Uploads the readings that no earlier run of the import has stored.
fn upload(
    args: &ImportArgs,
    mut sorted: Sorted,
    state: ImportState,
    bar: &ProgressBar,
) -> anyhow::Result<ExitCode> {
    let client = args.client()?;
    if client.is_server() && !sorted.registry.is_empty() {
        let needs = "the file describes devices, rooms or annotations, and nothing of it is sent";
        beforehand::ensure_may_edit(client).context(needs)?;
    }

    let goes_on = state.stored.lines > 0;
    stop_on_ctrl_c(client.interrupted());
    let imported = session::begin(args, client, state)?;

    let options = sorted.options(args);
    let registry = std::mem::take(&mut sorted.registry);
    let round = args.round.get().max(upload::REQUESTS * options.batch);
    let rounds = Rounds::new(sorted.decoded(args, Run::Import(&imported, client)), round);
    let summary = upload::run(rounds, &registry, client, options, &imported, bar);
    bar.finish_and_clear();

    let mut summary = summary.inspect_err(|_| session::forget_unused(&imported, client))?;
    summary.refusals.append(std::mem::take(&mut sorted.refusals));

    print(&summary);
    sorted.print_remarks();
    after_upload(client, summary.stored, goes_on);
    let metric_of = |device: &DeviceId, at: Timestamp| imported.value_without_past(device, at);
    hourly::note(&sorted.notes.hourly(), metric_of, client).into_iter().for_each(print);
    let misfits = sorted.made.misfits(&**client)?;
    session::end(imported, &misfits, &summary.refusals, summary.refused_before)
}

/// Returns the groups of lines to send. Lines before the instant `thin_before` are thinned.
fn groups<'a>(
    united: impl Iterator<Item = anyhow::Result<Group>> + 'a,
    thin_before: Option<Timestamp>,
    known: KnownKinds<'a>,
) -> Box<dyn Iterator<Item = anyhow::Result<Group>> + 'a> {
    match thin_before {
        Some(before) => Box::new(Thinned::new(united, before, known)),
        None => Box::new(united),
    }
}

/// Returns the metrics that are counters in the table's registry.
fn counters_of(device: &DeviceId, client: &Client) -> anyhow::Result<BTreeSet<MetricName>> {
    let known = Described::ask(client, device.as_str());
    let known = known.context("--thin-before asks which metrics are counters")?;
    Ok(known.iter().flat_map(Described::counters).collect())
}

/// Reads the map of series. In a dry run its file may be missing, because the dry run writes it.
fn map_of(args: &ImportArgs) -> anyhow::Result<SeriesMap> {
    let map_file = args.map_file().filter(|file| !args.dry_run || file.exists());
    map_file.map_or_else(|| Ok(SeriesMap::default()), SeriesMap::read)
}

/// Returns a text that identifies the import. Relative times stay as they were written, because their instant
/// differs in each run.
fn identity(args: &ImportArgs, map: &SeriesMap) -> String {
    let ImportArgs {
        format,
        csv,
        merge,
        database,
        precision,
        from,
        to,
        only,
        except,
        thin_before,
        ..
    } = args;
    let rules = args.line_rules();
    let target = args.client.as_ref().map(|client| client.identity()).unwrap_or_default();
    let selected = format!("{from:?} {to:?} {only:?} {except:?} {thin_before:?} {map:?}");
    let read = format!("{format:?} {csv:?} {merge} {database:?} {precision:?} {rules:?}");
    format!("by device to {target} {read} {selected}")
}

/// The points that the person wants from a source.
struct WantedSeries {
    selection: Selection,
    /// The time before which points are thinned.
    thin_before: Option<Timestamp>,
    map: SeriesMap,
}

impl WantedSeries {
    /// Reads the options, whose relative times are counted from the start of the first run.
    fn of(args: &ImportArgs, map: SeriesMap, began: Timestamp) -> anyhow::Result<Self> {
        let selection = Selection::of(args, began)?;
        Ok(Self { selection, thin_before: args.thin_before(began)?, map })
    }

    /// Selects and maps the wanted points. A point with a time that no reading can have is refused here, before
    /// anything counts it.
    fn of_points(
        self,
        points: impl Iterator<Item = anyhow::Result<Point>>,
        notes: Notes,
        units: SeriesUnits,
        reader: LineReader,
    ) -> impl Iterator<Item = anyhow::Result<DevicePoint>> {
        let has_units = !units.is_empty();
        let mut devices = DevicesOfSeries::new(reader, notes.clone());
        points.filter_map(move |point| {
            let point = point.and_then(|mut point| {
                self.map.meet(&point);
                if !self.selection.takes(&mut point, &notes) {
                    return Ok(None);
                }

                if let Err(why) = Timestamp::from_millis(point.nanos.div_euclid(MILLISECOND)) {
                    let series = point.series();
                    notes.refuse(point.line, format!("{series}: the time in milliseconds: {why}"));
                    return Ok(None);
                }

                // Units belong to the series of the source, so its name is taken before the map renames it.
                let series = has_units.then(|| point.series());
                let point = self.map.apply(point, &notes)?;

                if let Some(point) = &point
                    && point.hour.is_some_and(|hour| hour.has_means_only)
                    && let Some(entity) = point.entity()
                {
                    notes.hour(&entity, point.nanos);
                }
                if let (Some(series), Some(point)) = (&series, &point) {
                    units.see(series, point);
                }
                Ok(point.map(|point| devices.with_device(point)))
            });
            point.transpose()
        })
    }
}

/// Prints the units and kinds that an import gives to metrics.
fn show_units(units: &SeriesUnits, reader: &LineReader) {
    for (device, metrics) in taught::settings(units, reader) {
        for (metric, Known { unit, is_counter }) in metrics {
            let kind = if is_counter { ", a counter" } else { "" };
            print(format_args!("unit         {device} {metric}: {unit}{kind}"));
        }
    }
}

/// Prints the source's remarks, and the counts of points and values that are left out.
fn print_notes(notes: &Notes) {
    let says = notes.to_string();
    if !says.is_empty() {
        print(says);
    }
}

#[cfg(test)]
mod tests {
    use domain::given::at_millis;
    use proptest::prelude::*;

    use super::*;
    use crate::tests::parsed;
    use history::point::Way;

    /// A power, a counter and a temperature of a device.
    fn point(nanos: i64) -> Point {
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        Point {
            measurement: "m".to_owned(),
            tags: "host=a".to_owned(),
            fields: vec![field("power", "5"), field("energy_kwh", "7"), field("t", "21.5")],
            nanos,
            line: 1,
            way: Way::Plain,
            hour: None,
        }
    }

    /// Times at which something begins or ends, and near the ends of what can be counted.
    fn time() -> impl Strategy<Value = i64> {
        let edges =
            [i64::MIN, -9_223_372_036_854_775_806, -900_000_000_001, 0, 1_768_147_200_000_000_000];
        let edges = proptest::sample::select([&edges[..], &[i64::MAX]].concat());
        let near = (edges, -3_i64..3, prop_oneof![Just(1), Just(1_000_000), Just(900_000_000_000)]);
        let near = near.prop_map(|(edge, steps, length)| edge.saturating_add(steps * length));
        prop_oneof![3 => near, 1 => any::<i64>()]
    }

    #[test]
    fn a_relative_time_is_asked_for_as_it_is_written() {
        let identity = |option: &str, value: &str| {
            let args = parsed(["import", "points", option, value]).unwrap();
            identity(&args, &map_of(&args).unwrap())
        };
        for option in ["--from", "--to"] {
            assert_ne!(identity(option, "-1201d"), identity(option, "-1200d"));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

        #[test]
        fn a_time_that_no_reading_can_have_is_refused_and_any_other_is_counted_with(
            times in proptest::collection::vec(time(), 1..6),
            before in proptest::option::of(proptest::sample::select(
                vec!["0", "2024-01-01T00:00:00Z", "2262-04-11T23:47:16Z", "9999-12-31T23:59:59Z"],
            )),
        ) {
            let thin = before.map_or(vec![], |at| vec!["--thin-before", at]);
            let words = ["import", "points", "--dry-run"].into_iter().chain(thin);
            let args = parsed(words).unwrap();
            let points: Vec<_> = times.iter().map(|nanos| Ok(point(*nanos))).collect();
            let source = HistorySource::of_points(Box::new(points.into_iter()), Notes::default());
            let now = at_millis(0);
            let code = import(&args, source, &ProgressBar::hidden(), now).unwrap();
            if times.iter().any(|nanos| *nanos < 0) {
                prop_assert_ne!(code, ExitCode::SUCCESS);
            }
        }
    }
}
