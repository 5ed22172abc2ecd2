//! Groups the readings of a source into rounds. Sends nothing.
//!
//! Within a round no two readings have the same device and timestamp: such lines become one reading, in which the last
//! line wins. Rounds are sent one after the other. So the requests of a round may run in any order and be repeated.

use std::collections::HashMap;

use domain::{DeviceId, Timestamp};
use history::reading::{HistoryReading, json};
use history::refusals::Refusal;

use super::decoded::{Decoded, DecodedLines};
use super::state::Passed;

/// The maximum body size of a request: half of the server's limit.
const MAX_BODY: usize = 512 << 10;

/// Readings that may be stored in any order.
#[derive(Debug, Default)]
pub(super) struct Round {
    pub(super) readings: Vec<HistoryReading>,
    /// The index of each reading.
    indices: HashMap<(DeviceId, Timestamp), usize>,
    /// The number of lines that became part of another line's reading.
    pub(super) folded: u64,
    /// Lines that cannot be stored.
    pub(super) refusals: Vec<Refusal>,
    /// The number of lines of the source that are processed once this round is stored.
    pub(super) end: u64,
    /// The digest of these lines.
    pub(super) passed: Passed,
}

/// The rounds of a source.
pub(super) struct Rounds<'a> {
    lines: DecodedLines<'a>,
    /// The maximum number of lines, and of readings, in a round.
    size: usize,
    position: u64,
    /// The digest of all lines read so far.
    passed: Passed,
    ended: bool,
}

impl<'a> Rounds<'a> {
    /// Makes rounds of these lines.
    pub(super) fn new(lines: DecodedLines<'a>, size: usize) -> Self {
        Self { lines, size, position: 0, passed: Passed::default(), ended: false }
    }

    /// Returns the next round of the first `lines` lines, which are already stored; `None` after them.
    pub(super) fn next_stored(&mut self, lines: u64) -> anyhow::Result<Option<Round>> {
        let left = lines.saturating_sub(self.position);
        if left == 0 || self.ended {
            return Ok(None);
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(self.size);
        self.fill(most).map(Some)
    }

    /// Returns the number and the digest of the lines read so far.
    pub(super) const fn passed(&self) -> (u64, &Passed) {
        (self.position, &self.passed)
    }

    /// Makes the next round, of at most `most_lines` lines.
    fn fill(&mut self, most_lines: usize) -> anyhow::Result<Round> {
        let mut round = Round::default();
        let mut taken = 0;
        // The number of readings is limited too, because wide lines have several and a round is held in memory.
        while taken < most_lines && round.readings.len() < self.size {
            let Some(decoded) = self.lines.next().transpose()? else {
                self.ended = true;
                break;
            };
            let Decoded { lines, text, readings, refusals, .. } = decoded;
            self.position += lines;
            self.passed.add(&text);
            taken += usize::try_from(lines).unwrap_or(usize::MAX);
            round.refusals.extend(refusals);
            readings.into_iter().for_each(|reading| round.add(reading));
        }

        (round.end, round.passed) = (self.position, self.passed.clone());
        Ok(round)
    }
}

impl Round {
    /// Adds a reading, or merges it into an earlier reading with the same device and timestamp; the later values win.
    /// Refuses the reading if both together have more metrics than a reading may have.
    fn add(&mut self, read: HistoryReading) {
        let Some(index) = self.indices.get(&key(&read)).copied() else {
            self.indices.insert(key(&read), self.readings.len());
            self.readings.push(read);
            return;
        };

        let HistoryReading { line, reading } = read;
        let earlier = &mut self.readings[index];
        match earlier.reading.merge_later_within_limit(reading) {
            Ok(()) => self.folded += u64::from(earlier.line != line),
            Err(why) => {
                let reason = format!("with other lines of its time: {why}");
                self.refusals.push(Refusal { line, reason });
            }
        }
    }
}

impl Iterator for Rounds<'_> {
    type Item = anyhow::Result<Round>;

    fn next(&mut self) -> Option<anyhow::Result<Round>> {
        if self.ended {
            return None;
        }
        let round = self.fill(self.size);
        self.ended |= round.is_err();
        Some(round)
    }
}

/// Returns the device and the timestamp of a reading, by which an answer is found again.
pub(super) fn key(read: &HistoryReading) -> (DeviceId, Timestamp) {
    (read.reading.device.clone(), read.reading.at)
}

/// Splits readings into requests of at most `readings` readings and [`MAX_BODY`] bytes.
pub(super) fn batches(all: &[HistoryReading], readings: usize) -> Vec<&[HistoryReading]> {
    let mut batches = Vec::new();
    let mut rest = all;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |read: &&HistoryReading| {
            bytes += json(&read.reading).len() + 1;
            bytes <= MAX_BODY
        };
        let fitting = rest.iter().take(readings).take_while(fits).count().max(1);
        let (batch, behind) = rest.split_at(fitting);
        batches.push(batch);
        rest = behind;
    }

    batches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::decoded;
    use crate::import::patterns::NamePatterns;
    use history::line::{JsonRecord, Line};
    use history::notes::Notes;

    fn rounds(lines: &[&str], size: usize) -> Rounds<'static> {
        let lines =
            lines.iter().zip(1..).map(|(json, line)| JsonRecord { line, json: (*json).to_owned() });
        let mut lines: Vec<Line> =
            lines.map(|record| Line::decode(record, Timestamp::MAX)).collect();
        lines.sort_by_key(Line::owner);
        Rounds::new(
            decoded::lines(lines.into_iter().map(Ok), NamePatterns::default(), Notes::default()),
            size,
        )
    }

    fn line(device: &str, second: i64, metrics: &str) -> String {
        format!(r#"{{"device_id":"{device}","timestamp":{},{metrics}}}"#, 1_768_147_200 + second)
    }

    fn taken(lines: &[String], size: usize) -> Vec<Round> {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        rounds(&lines, size).collect::<anyhow::Result<_>>().unwrap()
    }

    #[test]
    fn lines_of_one_reading_are_one_and_the_last_wins() {
        let lines = [
            line("d", 0, r#""room":"a","t":1,"h":5"#),
            line("e", 0, r#""t":9"#),
            line("d", 0, r#""room":"b","t":2"#),
        ];
        let [round] = &taken(&lines, 10)[..] else { panic!("one round") };
        let shown: Vec<String> = round.readings.iter().map(|entry| json(&entry.reading)).collect();
        assert_eq!(
            shown,
            [
                r#"{"device_id":"d","timestamp":"2026-01-11T16:00:00.000Z","room":"b","h":5,"t":2}"#,
                r#"{"device_id":"e","timestamp":"2026-01-11T16:00:00.000Z","t":9}"#,
            ]
        );
        assert_eq!((round.folded, round.end), (1, 3));
    }

    #[test]
    fn lines_of_one_time_are_never_in_two_rounds() {
        let lines: Vec<String> = [0, 5, 5, 5, 6].map(|at| line("d", at, "\"t\":1")).into();
        let ends: Vec<u64> = taken(&lines, 2).iter().map(|round| round.end).collect();
        assert_eq!(ends, [4, 5]);
    }

    #[test]
    fn more_metrics_than_a_reading_may_have_are_refused_with_their_line() {
        let metrics = |from: usize| {
            let names = (from..from + 160).map(|n| format!("\"m{n}\":1"));
            names.collect::<Vec<_>>().join(",")
        };
        let lines =
            [line("d", 0, &metrics(0)), line("d", 0, &metrics(160)), line("d", 1, "\"t\":1")];
        let [round] = &taken(&lines, 10)[..] else { panic!("one round") };
        assert_eq!((round.readings.len(), round.end), (2, 3));
        let refusals: Vec<String> = round.refusals.iter().map(Refusal::to_string).collect();
        assert!(refusals[0].starts_with("line 2: with other lines of its time: "), "{refusals:?}");
        assert_eq!(refusals.len(), 1);
    }

    #[test]
    fn a_request_is_neither_too_long_nor_too_large() {
        let metrics: Vec<String> =
            (0..64).map(|n| format!("\"m{n:02}{}\":1", "x".repeat(60))).collect();
        let lines: Vec<String> = (0..300).map(|n| line("d", n, &metrics.join(","))).collect();
        let [round, _] = &taken(&lines, 300)[..] else { panic!("a round and the end") };
        let lengths = |readings| {
            let batches = batches(&round.readings, readings);
            batches.iter().map(|batch| batch.len()).collect::<Vec<_>>()
        };
        assert_eq!(lengths(200), [118, 118, 64], "4,440 bytes each");
        assert_eq!(lengths(100), [100, 100, 100]);
    }
}
