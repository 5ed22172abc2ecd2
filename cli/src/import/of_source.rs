//! Imports the points of a source: sorts, unites and sends them, or reports them in a dry run. Opens no source.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use domain::{DeviceId, MetricName, Timestamp};
use indicatif::ProgressBar;

use super::args::ImportArgs;
use super::decoded::{self, PointRules};
use super::described::Described;
use super::hourly;
use super::points::{
    Counts, DevicePoint, DevicesOfSeries, Group, KnownKinds, LineReader, Report, Selection,
    SeriesMap, Thinned, United, beside_no_means, in_vacant_hours,
};
use super::round::Rounds;
use super::session::{self, after_upload, client, exit_code, state_of};
use super::settings::{self, Taught};
use super::sort;
use super::sources::{Notes, Point, Source, Units};
use super::temporary::megabytes;
use super::upload;
use crate::client::{Client, without_login};
use crate::interrupted::stop_on_ctrl_c;
use crate::moment::MILLISECOND;
use crate::output::{counted, print};

/// What a dry run says of hourly statistics, because a dry run asks no server.
const HOURS_UNASKED: &str = "\
statistics   of hours for which the table has finer readings are left out by the import, which asks it, and so are
             readings of powers in hours whose mean it has; a dry run asks no table and counts them";

/// Imports a source, or reports in a dry run what an import would do.
pub(super) fn import(
    args: &ImportArgs,
    source: Source,
    bar: &ProgressBar,
    now: Timestamp,
) -> anyhow::Result<ExitCode> {
    let Source { points, notes, units } = source;
    let reader = LineReader { now, rules: args.line_rules() };
    let wanted = Wanted::of(args, now)?;
    let map_file = args.csv.map.first().map(Path::new);
    let is_map_written = args.dry_run && map_file.is_some_and(|file| !file.exists());

    let identity = format!("points by time {}", wanted.identity(args));
    let mut state = if args.dry_run { None } else { Some(state_of(args, &identity)?) };
    let began = state.as_mut().map_or(now, |state| state.began(now));
    let wanted = wanted.counted_from(args, began)?;
    let map = wanted.map().clone();

    let points = wanted.of_points(points, notes.clone(), units.clone(), reader.clone());
    bar.set_message(sort::SORTING);
    let sorted = sort::sorted(points, sort::RUN, bar)?;
    if let Some(said) = map.not_met() {
        print(said);
    }

    let refusals = notes.take_refusals();
    if let (true, Some(first)) = (args.strict, refusals.first()) {
        bail!("{first}");
    }
    let (read, disk) = (sorted.total(), sorted.disk());
    if read == 0 && refusals.count() == 0 {
        print(&notes);
        bail!("{} has no points that can be imported", args.file.display());
    }

    bar.reset();
    bar.set_message("");
    bar.set_length(read);

    let mut united = United::new(sorted);
    let thin_before = args.thin_before(began)?;
    let options = args.upload_options(false);
    let taught = Taught::of(&units, &reader);
    let rules =
        PointRules { reader: reader.clone(), precision: args.precision, taught: taught.clone() };

    if args.dry_run {
        // The source's own sums are totals over all its time, so they fit no part of it.
        let is_part = args.from.is_some() || args.to.is_some();
        let own_sums = if is_part { BTreeMap::new() } else { notes.own_sums() };
        let known = KnownKinds {
            counters_of: Box::new(|_| Ok(BTreeSet::new())),
            taught,
            reader: reader.clone(),
        };
        let groups = groups(&mut united, thin_before, known);

        let report = Report::of(bar.wrap_iter(groups), own_sums, rules, options);
        bar.finish_and_clear();
        let mut report = report?;
        report.append(refusals);
        if thin_before.is_none() {
            report.show_thinning();
        }

        if let Some(file) = map_file.filter(|_| is_map_written) {
            report.write_map(file)?;
            print(format_args!("{} has the series; edit it and import with --map", file.display()));
        }
        print_notes(&notes);
        if !notes.hourly().is_empty() {
            print(HOURS_UNASKED);
        }
        print_counts(united.counts());
        if disk > 0 {
            let directory = tempfile::env::temp_dir();
            let taken = megabytes(disk);
            print(format_args!("sorting      {taken} on disk, in {}", directory.display()));
        }
        print(&report);
        settings::show(&units, &reader);
        return Ok(exit_code(report.refusals(), 0));
    }

    let client = client(args)?;
    let state = state.context("an import has a state")?;
    let goes_on = state.acknowledged() > 0;
    stop_on_ctrl_c(client.interrupted());
    let imported = session::begin(args, &client, state)?;

    let known = KnownKinds {
        counters_of: Box::new(|id| counters_of(id, &client)),
        taught,
        reader: reader.clone(),
    };
    let vacant = in_vacant_hours(united.by_ref(), &imported, notes.clone(), reader.clone());
    let groups = groups(vacant, thin_before, known);
    let groups = beside_no_means(groups, &imported, notes.clone(), reader.clone());

    let round = args.round.get().max(upload::REQUESTS * options.batch);
    let rounds = Rounds::new(decoded::points(groups, rules), round, true);
    let summary = upload::run(rounds, &client, options, &imported, bar);
    bar.finish_and_clear();
    let mut summary = summary.inspect_err(|_| session::forget_unused(&imported, &client))?;
    summary.refusals.append(refusals);

    print(&summary);
    print_counts(united.counts());
    print_notes(&notes);
    after_upload(&client, summary.stored, goes_on);
    let metric_of = |device: &DeviceId, at: Timestamp| imported.value_without_past(device, at);
    if let Some(said) = hourly::note(&notes.hourly(), metric_of, &client) {
        print(said);
    }
    session::end(imported, &summary.refusals, summary.refused_before)
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
    let known = known.context("--thin asks which metrics are counters")?;
    Ok(known.iter().flat_map(Described::counters).collect())
}

fn selection(args: &ImportArgs, now: Timestamp) -> anyhow::Result<Selection> {
    let span = (args.from.as_deref(), args.to.as_deref());
    Selection::of(span, (&args.only, &args.except), now)
}

/// The points that the person wants from a source.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    selection: Selection,
    map: SeriesMap,
}

impl Wanted {
    /// Reads the options and the map of series. In a dry run the map's file may be missing, because the dry run writes
    /// it.
    pub(super) fn of(args: &ImportArgs, now: Timestamp) -> anyhow::Result<Self> {
        let selection = selection(args, now)?;
        let map_file = args.csv.map.first().map(Path::new);
        let map = match map_file.filter(|file| !args.dry_run || file.exists()) {
            Some(file) => SeriesMap::read(file)?,
            None => SeriesMap::default(),
        };
        Ok(Self { selection, map })
    }

    /// Counts relative times from the start of the first run.
    pub(super) fn counted_from(self, args: &ImportArgs, began: Timestamp) -> anyhow::Result<Self> {
        Ok(Self { selection: selection(args, began)?, ..self })
    }

    /// Returns a text that identifies the import. Relative times stay as they were written, because their instant
    /// differs in each run.
    pub(super) fn identity(&self, args: &ImportArgs) -> String {
        let ImportArgs { database, precision, from, to, only, except, thin_before, .. } = args;
        let rules = args.line_rules();
        let target = without_login(args.target.name());
        let options =
            format!("{from:?} {to:?} {only:?} {except:?} {thin_before:?} {rules:?} {:?}", self.map);
        format!("to {target} {database:?} {precision:?} {options}")
    }

    /// Returns the span in nanoseconds; the end is exclusive.
    pub(super) fn span(&self) -> (i64, i64) {
        self.selection.span()
    }

    /// Returns the map of series.
    pub(super) const fn map(&self) -> &SeriesMap {
        &self.map
    }

    /// Selects and maps the wanted points. A point with a time that no reading can have is refused here, before
    /// anything counts it.
    pub(super) fn of_points(
        self,
        points: impl Iterator<Item = anyhow::Result<Point>>,
        notes: Notes,
        units: Units,
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

/// Prints the source's remarks, and what is left out of it.
fn print_notes(notes: &Notes) {
    let says = notes.to_string();
    if !says.is_empty() {
        print(says);
    }
}

/// Prints the counts of united points.
pub(super) fn print_counts(counts: Counts) {
    for (count, noun, text) in [
        (
            counts.within_a_millisecond,
            "point",
            "united with one less than a millisecond away; the last wins",
        ),
        (counts.replaced, "value", "replaced by a later line of the same series and time"),
        (counts.texts, "point", "left out, which have texts only"),
    ] {
        if count > 0 {
            print(format_args!("{} {text}", counted(count, noun)));
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::given::at_millis;
    use proptest::prelude::*;

    use super::*;
    use crate::import::sources::Way;
    use crate::tests::parsed;

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
        let identity = |option: &str, value: &str, millis: i64| {
            let args = parsed(["import", "points", option, value]).unwrap();
            let now = Timestamp::from_millis(millis).unwrap();
            Wanted::of(&args, now).unwrap().identity(&args)
        };
        for option in ["--from", "--to"] {
            let first = identity(option, "-1200d", 1_800_000_000_000);
            assert_eq!(identity(option, "-1200d", 1_800_000_060_000), first);
            assert_ne!(identity(option, "-1201d", 1_800_000_000_000), first);
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
            let thin = before.map_or(vec![], |at| vec!["--thin", "15m", "--thin-before", at]);
            let words = ["import", "points", "--dry-run"].into_iter().chain(thin);
            let args = parsed(words).unwrap();
            let points: Vec<_> = times.iter().map(|nanos| Ok(point(*nanos))).collect();
            let (notes, units) = (Notes::default(), Units::default());
            let source = Source { points: Box::new(points.into_iter()), notes, units };
            let now = at_millis(0);
            let code = import(&args, source, &ProgressBar::hidden(), now).unwrap();
            if times.iter().any(|nanos| *nanos < 0) {
                prop_assert_ne!(code, ExitCode::SUCCESS);
            }
        }
    }
}
