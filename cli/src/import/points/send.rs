//! Sends groups of lines to the write endpoint, several requests at once. Unites nothing.

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, bail};
use domain::Timestamp;
use indicatif::ProgressBar;
use runtime::clock::Stopwatch;
use serde::Deserialize;

use super::unite::{Group, SentLine};
use crate::client::{Ask, Client, wait};
use crate::import::concurrent::concurrently;
use crate::import::imported::{Imported, StoredReading};
use crate::import::refusals::{Refusal, Refusals};
use crate::import::sources::line_protocol::{PRECISION_HINT, Precision};
use crate::import::state::Passed;
use crate::import::storing::{SentRound, Storing};
use crate::import::upload::{FIRST_BATCH, SECONDS_A_BATCH, SHARE, UploadOptions};
use crate::import::write_units;
use crate::output::counted;
use crate::pace::Pace;

/// Where points are written. Its answers name refused lines by their numbers.
pub(super) const WRITE: &str = "/api/v3/write_lp?precision=nanosecond";
/// The number of lines in a round; the progress is saved after each.
const ROUND: usize = 16_000;
/// The maximum body size of a request.
const MAX_BODY: usize = 512 << 10;
/// The number of lines that are decoded at once.
const DECODED: usize = 500;

/// The result of sending points.
#[derive(Debug, Default)]
pub(in crate::import) struct Sent {
    /// The number of points that the server stored.
    pub(in crate::import) stored: u64,
    /// The number of points that the server refused in earlier runs of the import.
    pub(in crate::import) refused_before: u64,
    /// The refusals of this run.
    pub(in crate::import) refusals: Refusals,
    seconds: f64,
}

impl fmt::Display for Sent {
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.stored as f64 / self.seconds.max(0.001);
        let stored = counted(self.stored, "point");
        write!(f, "{stored} stored in {:.1} s ({rate:.0} a second)", self.seconds)?;
        if self.refused_before > 0 {
            let text = "refused by the server before the import was interrupted (--again sends all once more)";
            write!(f, "\n{} {text}", counted(self.refused_before, "point"))?;
        }
        Ok(())
    }
}

/// Sends all lines after those that are stored already.
///
/// Rounds are sent one after the other. The requests of a round may run in any order and be repeated, because no two of
/// its lines have the same series and time.
pub(in crate::import) fn send(
    groups: impl Iterator<Item = anyhow::Result<Group>>,
    client: &Client,
    options: PointOptions,
    imported: &Imported<'_>,
    bar: &ProgressBar,
) -> anyhow::Result<Sent> {
    let refused_before = imported.state().refused();
    let mut sent = Sent { refused_before, ..Sent::default() };
    let watch = Stopwatch::start();
    let mut storing = Storing::of(imported);
    let sender = PointSender { client, pace: Pace::chosen_or(options.upload.pace, SHARE), options };
    let result = sender.send_rounds(groups, imported, &mut storing, bar, &mut sent);
    // After a failure, a round that was sent before may still be being stored.
    let result = result.and(storing.end());
    sent.seconds = watch.elapsed().as_secs_f64();
    if client.holds_back() {
        sent.stored = storing.stored();
    }
    match result {
        Ok(()) => Ok(sent),
        Err(error) => {
            let stored = client.stored_here().unwrap_or(sent.stored);
            let is_strict = options.upload.strict;
            Err(imported.state().stopped(error, (stored, "point"), is_strict))
        }
    }
}

/// The options of points, and the time of reception.
#[derive(Debug, Clone, Copy)]
pub(in crate::import) struct PointOptions {
    pub(in crate::import) upload: UploadOptions,
    pub(in crate::import) now: Timestamp,
}

/// Sends lines to a server.
struct PointSender<'a> {
    client: &'a Client,
    pace: Pace,
    options: PointOptions,
}

/// Lines that are sent together, and what became of them.
#[derive(Default)]
struct SentLines<'a> {
    refusals: Vec<Refusal>,
    /// The lines of which the server stored all.
    stored: Vec<&'a SentLine>,
}

impl PointSender<'_> {
    fn send_rounds(
        &self,
        groups: impl Iterator<Item = anyhow::Result<Group>>,
        imported: &Imported<'_>,
        storing: &mut Storing<'_>,
        bar: &ProgressBar,
        sent: &mut Sent,
    ) -> anyhow::Result<()> {
        let mut groups = groups.peekable();
        let (mut position, mut passed) = (0, Passed::default());
        let done = imported.state().acknowledged();
        if let Some(Ok(_)) = groups.peek() {
            imported.state().keep()?;
        }

        while groups.peek().is_some() {
            let mut round: Vec<Group> = Vec::new();
            let mut lines = 0;
            while let Some(group) = groups.next_if(|_| lines < ROUND) {
                let group = group?;
                let before = position;
                position += group.len() as u64;
                group.iter().for_each(|line| passed.add(&line.text));
                if before >= done {
                    lines += group.len();
                    round.push(group);
                } else if position >= done {
                    imported.state().ensure_same(position, &passed)?;
                }
            }
            if position < done {
                imported.state().ensure_same(position, &passed)?;
            }

            let all: Vec<&SentLine> = round.iter().flatten().collect();
            imported.note_sending(self.readings(&all).iter().map(|stored| &stored.reading))?;
            let SentLines { mut refusals, stored } = self.send_round(&round, bar, sent)?;
            refusals.sort_by_key(|refusal| refusal.line);
            let is_refused = self.options.upload.strict && !refusals.is_empty();
            storing.begin(
                self.client,
                SentRound {
                    readings: sent.stored,
                    // Refused lines count as processed, unless the first refusal ends the import.
                    end: if is_refused { 0 } else { position },
                    passed: passed.digest(),
                    stored: self.readings(&stored),
                    refused: refusals.len() as u64,
                },
            )?;
            if let Some(first) = refusals.first().filter(|_| is_refused) {
                bail!("{first}");
            }
            sent.refusals.extend(refusals);
        }
        Ok(())
    }

    /// Sends a round, several requests at once. The answer to the first request tells the table's capacity.
    fn send_round<'r>(
        &self,
        round: &'r [Group],
        bar: &ProgressBar,
        sent: &mut Sent,
    ) -> anyhow::Result<SentLines<'r>> {
        let mut lines = SentLines::default();
        let mut note = |batch: &Batch<'r>, refused: Vec<RefusedLine>| {
            sent.stored += (batch.len() - refused.len()) as u64;
            bar.set_message(format!("{} points", sent.stored));
            let places: HashSet<usize> = refused.iter().map(|line| line.place).collect();
            let all = batch.iter().enumerate();
            lines.stored.extend(all.filter(|(n, _)| !places.contains(n)).map(|(_, line)| *line));
            lines.refusals.extend(refused.into_iter().map(|RefusedLine { place, mut refusal }| {
                refusal.reason =
                    advised(batch[place], &refusal.reason, self.options.upload.precision);
                refusal
            }));
        };

        let first: usize = if self.pace.is_told() { 0 } else { FIRST_BATCH };
        let (before, rest) = round.split_at(first.min(round.len()));
        for batch in batches(before, self.options.upload.batch) {
            let refused = self.write(&batch, &AtomicBool::new(false))?;
            note(&batch, refused);
        }

        let most = self.options.upload.batch;
        let size = self.pace.units_within(SECONDS_A_BATCH).map_or(most, |units| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is small"
            )]
            let bearable = units as usize;
            bearable.min(most)
        });
        concurrently(&batches(rest, size), |batch, stop| self.write(batch, stop), &mut note)?;
        Ok(lines)
    }

    /// The readings that the server makes of lines. Unreadable lines are ignored here, because the server reports them.
    fn readings(&self, lines: &[&SentLine]) -> Vec<StoredReading> {
        let mut readings = Vec::with_capacity(lines.len());
        for chunk in lines.chunk_by(|a, b| a.way == b.way) {
            let (device_tags, room_tag) = chunk[0].way.tags();
            // Lines of one millisecond are read together, as in their request.
            for lines in parts(chunk) {
                let body = body(&lines.to_vec());
                let read =
                    local::read_points(body.as_bytes(), self.options.now, device_tags, room_tag);
                let read = read.unwrap_or_default().readings;
                readings.extend(
                    read.into_iter().map(|reading| StoredReading { reading, keeps_room: false }),
                );
            }
        }
        readings
    }
}

/// Splits lines into parts of about [`DECODED`] lines. Lines of one millisecond stay together.
fn parts<'a, 'b>(mut lines: &'a [&'b SentLine]) -> Vec<&'a [&'b SentLine]> {
    let mut parts = Vec::new();
    while lines.len() > DECODED {
        let millis = lines[DECODED].millis;
        let same = lines[..DECODED].iter().rev().take_while(|line| line.millis == millis).count();
        let end = if same == DECODED { lines.len() } else { DECODED - same };
        let (part, rest) = lines.split_at(end);
        parts.push(part);
        lines = rest;
    }
    if !lines.is_empty() {
        parts.push(lines);
    }
    parts
}

/// The lines of a request, all with the same parameters.
pub(super) type Batch<'a> = Vec<&'a SentLine>;

/// Splits groups into requests of about `size` lines. No group is split.
pub(super) fn batches(groups: &[Group], size: usize) -> Vec<Batch<'_>> {
    let mut batches: Vec<Batch<'_>> = Vec::new();
    let mut bytes = 0;
    for group in groups {
        let length: usize = group.iter().map(|line| line.text.len() + 1).sum();
        let is_other = |batch: &Batch<'_>| {
            batch.len() + group.len() > size
                || bytes + length > MAX_BODY
                || batch.first().map(|line| line.way) != group.first().map(|line| line.way)
        };
        if batches.last().is_none_or(is_other) {
            batches.push(Vec::new());
            bytes = 0;
        }
        bytes += length;
        batches.last_mut().expect("one was just added").extend(group);
    }
    batches
}

/// The path and query of a batch's request.
fn path(batch: &Batch<'_>) -> String {
    let (device_tags, room_tag) = batch.first().map_or((&[][..], None), |line| line.way.tags());
    let mut path = WRITE.to_owned();
    if !device_tags.is_empty() {
        path.extend(["&device_tags=", &device_tags.join(",")]);
    }
    path.extend(room_tag.map(|tag| format!("&room_tag={tag}")));
    path
}

/// The body of a batch's request.
pub(super) fn body(batch: &Batch<'_>) -> String {
    batch.iter().flat_map(|line| [&line.text, "\n"]).collect()
}

/// A line that the server refuses, or some fields of such a line.
#[derive(Debug)]
struct RefusedLine {
    /// The index of the line in the batch.
    place: usize,
    refusal: Refusal,
}

/// The refusals of a batch.
#[derive(Debug, Default)]
struct Refused {
    lines: Vec<RefusedLine>,
    /// The number of further errors for which the answer had no room.
    unnamed: usize,
}

/// InfluxDB 3's answer to a write with refused lines; the other lines are stored.
#[derive(Deserialize)]
struct PartialWrite {
    data: Vec<Datum>,
}

#[derive(Deserialize)]
struct Datum {
    error_message: String,
    line_number: Option<usize>,
}

impl PointSender<'_> {
    /// Writes a batch until it is stored. Returns all refused lines.
    ///
    /// An answer names only some of the refused lines. Then the unnamed lines are written again, in requests of as many
    /// lines as the answer could name. Writing a line twice changes nothing.
    fn write(&self, batch: &Batch<'_>, stop: &AtomicBool) -> anyhow::Result<Vec<RefusedLine>> {
        let Refused { mut lines, unnamed } = self.write_once(batch, stop)?;
        lines.sort_by_key(|line| line.place);
        lines.dedup_by_key(|line| line.place);
        if unnamed == 0 {
            return Ok(lines);
        }
        if let ([line], []) = (&batch[..], &lines[..]) {
            let reason = "the server refuses it, and its answer does not tell why".to_owned();
            let refusal = Refusal { line: line.line, reason };
            return Ok(vec![RefusedLine { place: 0, refusal }]);
        }

        let named: HashSet<usize> = lines.iter().map(|line| line.place).collect();
        let others: Vec<usize> = (0..batch.len()).filter(|place| !named.contains(place)).collect();
        let size = if lines.is_empty() { batch.len().div_ceil(2) } else { lines.len() };
        for places in others.chunks(size) {
            let part: Batch<'_> = places.iter().map(|place| batch[*place]).collect();
            let refused = self.write(&part, stop)?;
            let in_batch = |line: RefusedLine| RefusedLine { place: places[line.place], ..line };
            lines.extend(refused.into_iter().map(in_batch));
        }
        Ok(lines)
    }

    fn write_once(&self, batch: &Batch<'_>, stop: &AtomicBool) -> anyhow::Result<Refused> {
        let (body, path) = (body(batch), path(batch));
        let path = path.as_str();
        let ask = Ask {
            method: "POST",
            path,
            body: Some(("text/plain; charset=utf-8", &body)),
            headers: &[],
        };
        let lines = batch.iter().map(|line| (&line.series, line.millis));
        wait(self.pace.take(write_units::of(&lines)), stop);
        let answer = self.client.send(ask, stop)?;
        self.pace.learn(answer.units.max_write);
        match answer.status {
            204 => Ok(Refused::default()),
            400 => {
                let partial: PartialWrite = serde_json::from_str(&answer.text)
                    .map_err(|_| self.client.error(path, &answer))?;
                Ok(refused(batch, &body, partial))
            }
            413 => Err(self.client.error(path, &answer)).context("try a smaller --batch"),
            _ => Err(self.client.error(path, &answer)),
        }
    }
}

fn refused(batch: &Batch<'_>, body: &str, partial: PartialWrite) -> Refused {
    // A string may contain line feeds, so the batch's lines and the body's lines have different numbers.
    let mut first_lines = Vec::with_capacity(batch.len());
    let mut number = 1;
    for line in batch {
        first_lines.push(number);
        number += line.text.matches('\n').count() + 1;
    }
    debug_assert_eq!(number, body.matches('\n').count() + 1, "each line has its end");
    let mut refused = Refused::default();
    for Datum { error_message, line_number } in partial.data {
        let place = line_number
            .and_then(|number| first_lines.partition_point(|it| *it <= number).checked_sub(1));
        match place.and_then(|place| Some((place, batch.get(place)?))) {
            Some((place, line)) => {
                let reason = match line.line {
                    0 => format!("{} at {}: {error_message}", line.series, shown(line.millis)),
                    _ => error_message.clone(),
                };
                let refusal = Refusal { line: line.line, reason };
                refused.lines.push(RefusedLine { place, refusal });
            }
            None => {
                let count = error_message.split(' ').find_map(|word| word.parse().ok());
                refused.unnamed += count.unwrap_or(1);
            }
        }
    }
    refused
}

/// The refusal of a line with an advice that can be followed: only a file has an option for the unit of its times.
pub(super) fn advised(line: &SentLine, refusal: &str, precision: Precision) -> String {
    match line.line {
        0 => refusal.split(PRECISION_HINT).next().unwrap_or_default().to_owned(),
        _ => precision.explain(refusal),
    }
}

fn shown(millis: i64) -> String {
    Timestamp::from_millis(millis).map_or_else(|_| format!("{millis} ms"), |at| at.to_string())
}

#[cfg(test)]
mod tests;
