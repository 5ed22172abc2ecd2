//! Resolves the hour that a clock shows twice, by the order of the lines. Parses no time.
//!
//! The lines of a device pass the repeated hour twice if their local times rise to it, step back once, and rise to the
//! time after it. Lines before the step back have the earlier offset, lines after it the later one. Both passes must
//! cover about the same minutes, because two swapped lines, or one late line, look like a step back, too. In hourly
//! files all lines of the hour have one local time. There, the second pass begins where a metric repeats with another
//! value. Any other order is ambiguous: a single pass, or lines that stepped back in time before. Ambiguous lines are
//! refused.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDateTime;
use domain::Timestamp;

use super::rows::Draft;
use super::timestamp::Moment;
use crate::line::Line;
use crate::refusals::Refusal;

/// The maximum number of lines that wait for the end of their device's repeated hour.
const MAX_WAITING: usize = 100_000;

/// The lines of each device, in the order of the file.
#[derive(Debug, Default)]
pub struct Passes {
    devices: BTreeMap<String, DeviceClock>,
    waiting: usize,
}

#[derive(Debug, Default)]
struct DeviceClock {
    last: Option<Timestamp>,
    /// Whether the device's lines have gone back in time before the repeated hour. Then their order cannot resolve that
    /// hour.
    is_unsorted: bool,
    waiting: Vec<Repeated>,
}

/// A parsed line whose local time occurs twice.
#[derive(Debug)]
struct Repeated {
    draft: Draft,
    local: NaiveDateTime,
    earlier: Timestamp,
    later: Timestamp,
}

impl Passes {
    /// Adds the next line of a file. Pushes the resolved lines to `lines`, in order within each device.
    pub fn push(&mut self, draft: Draft, lines: &mut Vec<Line>) {
        let device = self.devices.entry(draft.row.device.clone()).or_default();
        match draft.at {
            Moment::At(at) => {
                self.waiting -= device.waiting.len();
                device.is_unsorted |= device.last.is_some_and(|last| at < last);
                device.decide(Some(at), lines);
                device.last = Some(at);
                lines.extend(draft.resolved(at).map(Line::Row));
            }
            Moment::Repeated { local, earlier, later } => {
                device.waiting.push(Repeated { draft, local, earlier, later });
                self.waiting += 1;
                if self.waiting > MAX_WAITING {
                    self.waiting -= device.waiting.len();
                    device.decide(None, lines);
                }
            }
        }
    }

    /// Resolves the waiting lines at the end of the file.
    pub fn finish(&mut self, lines: &mut Vec<Line>) {
        self.waiting = 0;
        self.devices.values_mut().for_each(|device| device.decide(None, lines));
    }
}

impl DeviceClock {
    /// Resolves the waiting lines by the timestamp of the line after them.
    fn decide(&mut self, next: Option<Timestamp>, lines: &mut Vec<Line>) {
        let waiting = std::mem::take(&mut self.waiting);
        let (Some(first), Some(last)) = (waiting.first(), waiting.last()) else { return };

        let rises = self.last.is_none_or(|before| before < first.earlier)
            && next.is_none_or(|behind| last.later < behind);
        let second_pass = second_pass(&waiting).filter(|_| rises && !self.is_unsorted);

        self.last = Some(last.later);
        let waiting = waiting.into_iter().enumerate();
        lines.extend(waiting.filter_map(|(n, repeated)| match second_pass {
            Some(second) if n < second => repeated.draft.resolved(repeated.earlier).map(Line::Row),
            Some(_) => repeated.draft.resolved(repeated.later).map(Line::Row),
            None if repeated.draft.row.metrics.is_empty() => None,
            None => Some(Line::Refused(repeated.refuse())),
        }));
    }
}

/// The index of the first line of the second pass; `None` if the order is ambiguous.
fn second_pass(waiting: &[Repeated]) -> Option<usize> {
    let steps_back = (1..waiting.len()).filter(|n| waiting[*n].local < waiting[*n - 1].local);
    let mut starts: Vec<usize> = steps_back.collect();

    if starts.is_empty() && waiting.iter().all(|line| line.local == waiting[0].local) {
        let mut seen = BTreeSet::new();
        for (n, line) in waiting.iter().enumerate() {
            let names = || line.draft.row.metrics.iter().map(|(name, _)| name);
            if names().any(|name| seen.contains(name)) {
                let is_same =
                    |earlier: &Repeated| earlier.draft.row.metrics == line.draft.row.metrics;
                if !line.draft.has_amounts && waiting[..n].iter().any(is_same) {
                    // The second line may be a copy of the first.
                    return None;
                }
                starts.push(n);
                seen.clear();
            }
            seen.extend(names());
        }
    }

    let [start] = starts[..] else { return None };
    let (first, second) = waiting.split_at(start);
    cover_the_same(first, second).then_some(start)
}

/// Whether the starts of both passes, and their ends, differ by at most half of the repeated time. The step back
/// between the passes must be at least half of it, except in hourly files.
fn cover_the_same(first: &[Repeated], second: &[Repeated]) -> bool {
    let ([first_start, ..], [.., first_end]) = (first, first) else { return false };
    let ([second_start, ..], [.., second_end]) = (second, second) else { return false };
    let half = (first_start.later.as_millis() - first_start.earlier.as_millis()) / 2;
    let apart =
        |one: &Repeated, other: &Repeated| (one.local - other.local).num_milliseconds().abs();

    let is_hourly = first_end.local == second_start.local;
    apart(first_start, second_start) <= half
        && apart(first_end, second_end) <= half
        && (is_hourly || apart(first_end, second_start) >= half)
}

impl Repeated {
    fn refuse(&self) -> Refusal {
        let Self { draft, local, .. } = self;
        let why = "is shown twice by the clock on that day, and the order of the lines does not \
                   tell which one it is; write it with its offset";
        Refusal { line: draft.row.line, reason: format!("{}: {local} {why}", draft.column) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::rows::CsvRow;
    use crate::csv::timestamp::{self, RowInterval};

    /// The UTC times of lines of `device metric time`, or `?` for those that are refused.
    fn times(rows: &[&str]) -> Vec<String> {
        let mut passes = Passes::default();
        let mut lines = Vec::new();
        for (row, line) in rows.iter().zip(1..) {
            let mut words = row.split(' ');
            let (device, metric) = (words.next().unwrap(), words.next().unwrap());
            let unique = line.to_string();
            let (metric, value) = metric.split_once('=').unwrap_or((metric, &unique));
            let time = format!("2026-10-25 {}", words.next().unwrap());
            let at = timestamp::read(&time, None, Some("Europe/Berlin".parse().unwrap())).unwrap();
            let row = CsvRow {
                line,
                at: Timestamp::MIN,
                device: device.to_owned(),
                room: String::new(),
                metrics: vec![(metric.to_owned(), value.to_owned())],
            };
            let (column, interval) = ("time".to_owned(), RowInterval::default());
            let draft = Draft { column, at, interval, row, has_amounts: false };
            passes.push(draft, &mut lines);
        }
        passes.finish(&mut lines);
        let mut times: Vec<(u64, String)> = lines
            .into_iter()
            .map(|line| match line {
                Line::Row(row) => (row.line, row.at.to_string()[11..16].to_owned()),
                Line::Refused(refusal) => {
                    assert!(refusal.reason.starts_with("time: 2026-10-25 02:"), "{refusal}");
                    (refusal.line, "?".to_owned())
                }
                line => panic!("{line:?}"),
            })
            .collect();
        times.sort();
        times.into_iter().map(|(_, time)| time).collect()
    }

    #[test]
    fn two_passes_are_told_apart_by_the_step_back() {
        let rows = ["d t 01:30", "d t 02:00", "d t 02:30", "d t 02:00", "d t 02:30", "d t 03:00"];
        assert_eq!(times(&rows), ["23:30", "00:00", "00:30", "01:00", "01:30", "02:00"]);
        assert_eq!(times(&rows[1..5]), ["00:00", "00:30", "01:00", "01:30"], "the whole file");
    }

    #[test]
    fn devices_that_alternate_are_told_apart_one_by_one() {
        let rows = [
            "a t 02:10",
            "b t 02:20",
            "a t 02:40",
            "b t 02:50",
            "b t 02:20",
            "a t 02:10",
            "a t 03:00",
            "b t 03:10",
        ];
        assert_eq!(
            times(&rows),
            ["00:10", "00:20", "00:40", "00:50", "01:20", "01:10", "02:00", "02:10"]
        );
    }

    #[test]
    fn an_hourly_file_shows_the_hour_twice() {
        let rows = ["d t 01:00", "d t 02:00", "d t 02:00", "d t 03:00"];
        assert_eq!(times(&rows), ["23:00", "00:00", "01:00", "02:00"]);
        let narrow = ["d t 02:00", "d h 02:00", "d t 02:00", "d h 02:00", "d t 03:00"];
        assert_eq!(times(&narrow), ["00:00", "00:00", "01:00", "01:00", "02:00"]);
    }

    #[test]
    fn what_the_order_does_not_tell_is_refused() {
        assert_eq!(times(&["d t 01:30", "d t 02:30", "d t 03:00"]), ["23:30", "?", "02:00"]);
        assert_eq!(times(&["d t 02:00", "d h 02:00", "d t 03:00"]), ["?", "?", "02:00"]);
        let thrice = ["d t 02:00", "d t 02:00", "d t 02:00"];
        assert_eq!(times(&thrice), ["?", "?", "?"]);
        let newest_first = ["d t 03:00", "d t 02:30", "d t 02:00", "d t 02:30", "d t 01:00"];
        assert_eq!(times(&newest_first), ["02:00", "?", "?", "?", "23:00"]);
        // A line that stands twice is not a second pass.
        let doubled = ["d t 02:00", "d t 02:10", "d t 02:10", "d t 02:20", "d t 03:00"];
        assert_eq!(times(&doubled), ["?", "?", "?", "?", "02:00"]);
        let swapped = ["d t 02:00", "d t 02:30", "d t 02:20", "d t 02:50", "d t 03:00"];
        assert_eq!(times(&swapped), ["?", "?", "?", "?", "02:00"]);
        let late = ["d t 02:00", "d t 02:20", "d t 02:50", "d t 02:10", "d t 03:00"];
        assert_eq!(times(&late), ["?", "?", "?", "?", "02:00"]);
        let unsorted = [
            "d t 01:30",
            "d t 01:10",
            "d t 01:40",
            "d t 02:00",
            "d t 02:30",
            "d t 02:00",
            "d t 02:30",
            "d t 03:00",
        ];
        assert_eq!(times(&unsorted)[3..], ["?", "?", "?", "?", "02:00"]);
        assert_eq!(
            times(&["d t=21 02:00", "d t=21 02:00"]),
            ["?", "?"],
            "one line, written twice, or two hours alike"
        );
    }
}
