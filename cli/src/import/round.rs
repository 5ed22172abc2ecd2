//! Groups the lines of a file into rounds. Sends nothing.
//!
//! Within a round no two readings have the same device and timestamp: such lines become one reading, in which the last
//! line wins. Rounds are sent one after the other. So the requests of a round may run in any order and be repeated, and
//! an earlier line never wins over a later one.
//!
//! A reading that an earlier round may hold is merged, any other is put. A put is preferred, because DynamoDB stores 25
//! of them with one request; each merge is a request of its own. To decide in bounded memory, the time span of each
//! device's earlier readings is kept instead of every key. A reading outside the span is new. So the readings of a file
//! that is sorted by time, in either direction, are all put.

use std::collections::HashMap;

use api::AboutBody;
use domain::{About, DeviceId, Reading, Timestamp};

use super::decoded::{Decoded, DecodedLines, Entry};
use super::registry::RegistryLine;
use super::state::Passed;
use history::refusals::Refusal;

/// The maximum body size of a request: half of the server's limit.
const MAX_BODY: usize = 512 << 10;
/// The maximum number of devices whose spans are kept; readings of further devices are merged.
const MAX_SPANS: usize = 100_000;

/// Readings that may be stored in any order.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// Readings that no earlier round holds.
    pub(super) puts: Vec<Entry>,
    /// Readings that an earlier round may hold.
    pub(super) merges: Vec<Entry>,
    /// The number of merged readings that may keep metrics from before the import, because it is unknown whether an
    /// earlier round has put these readings.
    pub(super) uncertain: u64,
    /// The number of lines that became part of another line's reading.
    pub(super) folded: u64,
    /// Lines and cells that cannot be stored.
    pub(super) refusals: Vec<Refusal>,
    /// Registry entries of a backup.
    pub(super) registry: Vec<RegistryLine>,
    /// The number of lines of the file that are processed once this round is stored.
    pub(super) end: u64,
    /// The digest of these lines.
    pub(super) passed: Passed,
}

/// The rounds of a source.
pub(super) struct Rounds<'a> {
    lines: DecodedLines<'a>,
    /// The maximum number of lines, and of entries, in a round.
    size: usize,
    /// Whether every reading is merged, whatever the earlier rounds hold.
    merge: bool,
    spans: HashMap<DeviceId, (Timestamp, Timestamp)>,
    position: u64,
    /// The digest of all lines read so far.
    passed: Passed,
    ended: bool,
}

impl<'a> Rounds<'a> {
    /// Makes rounds of these lines.
    pub(super) fn new(lines: DecodedLines<'a>, size: usize, merge: bool) -> Self {
        Self {
            lines,
            size,
            merge,
            spans: HashMap::new(),
            position: 0,
            passed: Passed::default(),
            ended: false,
        }
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

    /// Whether no earlier round can hold the reading: its time is outside the span of its device.
    fn is_new(&self, reading: &Reading) -> bool {
        let outside =
            |(first, last): &(Timestamp, Timestamp)| reading.at < *first || *last < reading.at;
        // Beyond MAX_SPANS, a device without a span may have readings in an earlier round.
        let has_room = self.spans.len() < MAX_SPANS;
        !self.merge && self.spans.get(&reading.device).map_or(has_room, outside)
    }

    /// Whether an earlier round may have put the reading, or not: its time is inside the span of its device, or the
    /// device has no span. A reading at an end of the span is certainly in an earlier round.
    fn is_uncertain(&self, reading: &Reading) -> bool {
        let at = reading.at;
        let within = |(first, last): &(Timestamp, Timestamp)| *first < at && at < *last;
        !self.merge && self.spans.get(&reading.device).is_none_or(within)
    }

    /// Extends the span of the reading's device to the reading.
    fn cover(&mut self, reading: &Reading) {
        let at = reading.at;
        if let Some((first, last)) = self.spans.get_mut(&reading.device) {
            (*first, *last) = (at.min(*first), at.max(*last));
        } else if self.spans.len() < MAX_SPANS {
            self.spans.insert(reading.device.clone(), (at, at));
        }
    }

    /// Makes the next round, of at most `most_lines` lines.
    fn fill(&mut self, most_lines: usize) -> anyhow::Result<Round> {
        let mut round = Round::default();
        let mut readings = RoundReadings::default();
        let mut taken = 0;
        // The number of entries is limited too, because wide lines have several and a round is held in memory.
        while taken < most_lines && readings.entries.len() < self.size {
            let Some(decoded) = self.lines.next().transpose()? else {
                self.ended = true;
                break;
            };
            let Decoded { lines, text, entries, registry, refusals } = decoded;
            self.position += lines;
            self.passed.add(&text);
            taken += usize::try_from(lines).unwrap_or(usize::MAX);
            round.registry.extend(registry);
            round.refusals.extend(refusals);
            for entry in entries {
                round.refusals.extend(readings.add(entry));
            }
        }

        let RoundReadings { entries, folded, .. } = readings;
        round.folded = folded;
        (round.end, round.passed) = (self.position, self.passed.clone());

        (round.puts, round.merges) =
            entries.into_iter().partition(|entry| self.is_new(&entry.reading));
        let uncertain = round.merges.iter().filter(|entry| self.is_uncertain(&entry.reading));
        round.uncertain = uncertain.count() as u64;
        round.puts.iter().chain(&round.merges).for_each(|entry| self.cover(&entry.reading));
        Ok(round)
    }
}

/// The readings of a round, each with another device or timestamp.
#[derive(Debug, Default)]
struct RoundReadings {
    entries: Vec<Entry>,
    /// The index of each entry.
    indices: HashMap<(DeviceId, Timestamp), usize>,
    /// The number of lines that became part of another line's reading.
    folded: u64,
}

impl RoundReadings {
    /// Adds an entry. Its values win over those of an earlier entry with the same device and timestamp. Refuses it if
    /// both together have more metrics than a reading may have.
    fn add(&mut self, entry: Entry) -> Option<Refusal> {
        let Some(index) = self.indices.get(&key(&entry)).copied() else {
            self.indices.insert(key(&entry), self.entries.len());
            self.entries.push(entry);
            return None;
        };

        let Entry { line, reading } = entry;
        let earlier = &mut self.entries[index];
        match earlier.reading.absorb(reading) {
            Ok(()) => {
                self.folded += u64::from(earlier.line != line);
                None
            }
            Err(why) => {
                Some(Refusal { line, reason: format!("with other lines of its time: {why}") })
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

fn key(entry: &Entry) -> (DeviceId, Timestamp) {
    (entry.reading.device.clone(), entry.reading.at)
}

/// Splits entries into requests of at most `readings` readings and [`MAX_BODY`] bytes.
pub(super) fn batches(entries: &[Entry], readings: usize) -> Vec<&[Entry]> {
    let mut batches = Vec::new();
    let mut rest = entries;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |entry: &&Entry| {
            bytes += json(&entry.reading).len() + 1;
            bytes <= MAX_BODY
        };
        let fitting = rest.iter().take(readings).take_while(fits).count().max(1);
        let (batch, behind) = rest.split_at(fitting);
        batches.push(batch);
        rest = behind;
    }
    batches
}

/// Writes a reading as JSON for `POST /readings`.
pub(super) fn json(reading: &Reading) -> String {
    let Reading { device, at, room, .. } = reading;
    let mut json = format!(r#"{{"device_id":"{device}","timestamp":"{at}""#);
    if let Some(room) = room {
        json.extend([r#","room":""#, room.as_str(), "\""]);
    }
    for (name, value) in reading.metrics() {
        json.extend([",\"", name.as_str(), "\":", value.as_str()]);
    }
    if let Some(about) = &reading.about {
        let about = serde_json::to_string(&AboutBody::from(About::clone(about)));
        json.extend([",\"about\":", &about.expect("a description is JSON")]);
    }
    json.push('}');
    json
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::decoded;
    use crate::import::patterns::Patterns;
    use history::line::{Line, Record};

    fn now() -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000).unwrap()
    }

    fn rounds(lines: &[&str], size: usize) -> Rounds<'static> {
        let lines: Vec<_> = lines
            .iter()
            .zip(1..)
            .map(|(json, line)| Ok(Line::Reading(Record { line, json: (*json).to_owned() })))
            .collect();
        let lines = decoded::rows(Box::new(lines.into_iter()), now(), Patterns::default());
        Rounds::new(lines, size, false)
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
        let shown: Vec<String> = round.puts.iter().map(|entry| json(&entry.reading)).collect();
        assert_eq!(
            shown,
            [
                r#"{"device_id":"d","timestamp":"2026-01-11T16:00:00.000Z","room":"b","h":5,"t":2}"#,
                r#"{"device_id":"e","timestamp":"2026-01-11T16:00:00.000Z","t":9}"#,
            ]
        );
        assert_eq!((round.folded, round.merges.len(), round.end), (1, 0, 3));
    }

    #[test]
    fn what_an_earlier_round_may_hold_is_merged_and_sorted_files_are_put() {
        let kinds = |seconds: &[i64]| -> Vec<(usize, usize)> {
            let lines: Vec<String> = seconds.iter().map(|at| line("d", *at, "\"t\":1")).collect();
            taken(&lines, 2).iter().map(|round| (round.puts.len(), round.merges.len())).collect()
        };
        assert_eq!(kinds(&[0, 1, 2, 3]), [(2, 0), (2, 0), (0, 0)]);
        assert_eq!(kinds(&[3, 2, 1, 0]), [(2, 0), (2, 0), (0, 0)]);
        assert_eq!(kinds(&[0, 5, 5, 6]), [(2, 0), (1, 1), (0, 0)]);
        assert_eq!(kinds(&[0, 5, 3, 9]), [(2, 0), (1, 1), (0, 0)], "perhaps known is known");

        let uncertain = |seconds: &[i64]| -> Vec<u64> {
            let lines: Vec<String> = seconds.iter().map(|at| line("d", *at, "\"t\":1")).collect();
            taken(&lines, 2).iter().map(|round| round.uncertain).collect()
        };
        assert_eq!(uncertain(&[0, 5, 5, 6]), [0, 0, 0], "the first round has put it");
        assert_eq!(uncertain(&[0, 5, 3, 9]), [0, 1, 0]);
    }

    #[test]
    fn with_merge_nothing_replaces_what_the_table_has() {
        let mut rounds = rounds(&[&line("d", 0, "\"t\":1")], 10);
        rounds.merge = true;
        let round = rounds.next().unwrap().unwrap();
        assert_eq!((round.puts.len(), round.merges.len(), round.uncertain), (0, 1, 0));
    }

    #[test]
    fn skipped_lines_count_as_an_earlier_round() {
        let lines: Vec<String> = [0, 5, 5].map(|at| line("d", at, "\"t\":1")).into();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut rounds = rounds(&lines, 10);
        assert_eq!(rounds.next_stored(2).unwrap().unwrap().end, 2);
        assert!(rounds.next_stored(2).unwrap().is_none());
        let round = rounds.next().unwrap().unwrap();
        assert_eq!((round.puts.len(), round.merges.len(), round.end), (0, 1, 3));
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
        assert_eq!((round.puts.len(), round.end), (2, 3));
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
            let batches = batches(&round.puts, readings);
            batches.iter().map(|batch| batch.len()).collect::<Vec<_>>()
        };
        assert_eq!(lengths(200), [118, 118, 64], "4,440 bytes each");
        assert_eq!(lengths(100), [100, 100, 100]);
    }

    #[test]
    fn a_line_that_is_no_reading_is_refused_with_its_reason() {
        let lines = [
            r#"{"device_id":"d","t":1}"#,
            r#"{"device_id":"d","timestamp":null,"t":1}"#,
            r#"{"device_id":"ROOM","timestamp":1768147200,"t":1}"#,
            "{",
            "5",
            r#"{"device":{"device_id":"d"},"timestamp":1}"#,
        ];
        let round = rounds(&lines, 10).next().unwrap().unwrap();
        let reasons: Vec<String> = round.refusals.iter().map(Refusal::to_string).collect();
        for (reason, expected) in reasons.iter().zip([
            "line 1: timestamp: is missing",
            "line 2: timestamp: is missing",
            "line 3: device_id: \"ROOM\" is a reserved name",
            "line 4: EOF",
            "line 5: must be an object",
            "line 6: ",
        ]) {
            assert!(reason.starts_with(expected), "{reason}");
        }
        assert_eq!((reasons.len(), round.puts.len()), (6, 0));
    }
}
