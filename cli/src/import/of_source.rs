//! Imports the points of a source: sorts, unites and sends them, or reports what they are. Reads no file.

use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use domain::Timestamp;
use indicatif::ProgressBar;

use super::args::ImportArgs;
use super::points::{Report, Selection, SeriesMap, United, send};
use super::session::{after_upload, connect, exit_code, stop_on_ctrl_c};
use super::sort;
use super::sources::Source;
use super::upload::UploadOptions;
use crate::output::{counted, print};

/// Imports a source, or reports what an import would do.
pub(super) fn import(
    args: &ImportArgs,
    source: Source,
    bar: &ProgressBar,
    now: Timestamp,
) -> anyhow::Result<ExitCode> {
    let Source { points, notes } = source;
    let selection = Selection::of(args.from.as_deref(), args.to.as_deref(), &args.only, now)?;
    let map_file = args.csv.map.first().map(Path::new);
    let is_map_written = args.dry_run && map_file.is_some_and(|file| !file.exists());
    let map = match map_file.filter(|_| !is_map_written) {
        Some(file) => SeriesMap::read(file)?,
        None => SeriesMap::default(),
    };
    let asked_for = format!("{selection:?} {map:?}");
    let noted = notes.clone();
    let points = points.filter_map(move |point| {
        let point = point.and_then(|point| match selection.takes(&point, &noted) {
            true => map.apply(point, &noted),
            false => Ok(None),
        });
        point.transpose()
    });
    bar.set_message("sorting by device and time");
    let sorted = sort::sorted(points, sort::RUN)?;
    let refusals = notes.take_refusals();
    if let (true, Some(first)) = (args.strict, refusals.first()) {
        bail!("{first}");
    }
    let read = sorted.total();
    if read == 0 && refusals.count() == 0 {
        print(&notes);
        bail!("{} has no points that can be imported", args.file.display());
    }
    bar.reset();
    bar.set_length(read);
    let mut united = United::new(bar.wrap_iter(sorted));
    let batch = args.batch.get();
    if args.dry_run {
        let report = Report::of(united.by_ref(), batch, now);
        bar.finish_and_clear();
        let mut report = report?;
        report.append(refusals);
        if let Some(file) = map_file.filter(|_| is_map_written) {
            report.write_map(file)?;
            print(format_args!("{} has the series; edit it and import with --map", file.display()));
        }
        print(&notes);
        print_counts(&united);
        print(&report);
        return Ok(exit_code(report.refusals(), 0));
    }
    let asked =
        format!("points by time {} {:?} {:?} {asked_for}", args.url, args.database, args.precision);
    let (client, mut resume) = connect(args, &asked)?;
    stop_on_ctrl_c(client.interrupted());
    let options = UploadOptions { batch, strict: args.strict };
    let sent = send(united.by_ref(), &client, options, &mut resume, bar, now);
    bar.finish_and_clear();
    let sent = sent?;
    resume.finish();
    print(&sent);
    print_counts(&united);
    let says = notes.to_string();
    if !says.is_empty() {
        print(says);
    }
    let (stored, refused_before) = (sent.stored, sent.refused_before);
    let mut all = refusals;
    all.append(sent.refusals);
    let shown = all.to_string();
    if !shown.is_empty() {
        print(shown.trim_start_matches('\n'));
    }
    after_upload(&client, stored)?;
    Ok(exit_code(&all, refused_before))
}

/// Prints what was united.
fn print_counts<I: Iterator<Item = anyhow::Result<super::sources::Point>>>(united: &United<I>) {
    let counts = united.counts();
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
