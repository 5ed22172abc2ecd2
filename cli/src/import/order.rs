//! Puts the lines of a file into the order in which they are sent: for each device by time. Sends nothing.
//!
//! In this order the readings of 15 minutes reach the stream together, and their rollup is folded once or twice instead
//! of once a reading. A file in this order is read twice. Any other is sorted on disk, by device and time. Lines of one
//! device and timestamp stay in the file's order, because the last one wins.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressDrawTarget};

use super::sort::{self, RUN, Sortable};
use crate::progress;
use history::line::{Line, Lines};

/// The maximum number of devices whose order is checked; a file with more is sorted.
const MAX_DEVICES: usize = 100_000;

/// Returns the lines of a file in order, and a progress bar, with its length if the number of lines is known. `open`
/// opens the file.
///
/// A stream cannot be read twice, so it keeps its own order, unless it `must_be_sorted`.
pub(super) fn lines(
    path: &Path,
    must_be_sorted: bool,
    open: impl Fn() -> anyhow::Result<(Lines, ProgressBar)>,
) -> anyhow::Result<(Lines, ProgressBar)> {
    let (mut lines, mut bar) = open()?;
    if path.is_file() {
        bar.set_message("checking the order");
        let ordered = count_if_ordered(lines)?;
        bar.finish_and_clear();

        (lines, bar) = open()?;
        if let Some(count) = ordered {
            // The file's own bar shows what is read.
            bar.set_draw_target(ProgressDrawTarget::hidden());
            return Ok((lines, progress::share(count)?));
        }
    } else if !must_be_sorted {
        return Ok((lines, bar));
    }

    bar.set_message(sort::SORTING);
    let lines = sort::sorted(lines, RUN, &bar).context("the lines cannot be sorted")?;
    bar.finish_and_clear();
    let bar = progress::share(lines.total())?;
    Ok((Box::new(lines), bar))
}

/// Returns the number of lines, or `None` if the timestamps of a device go back.
fn count_if_ordered(lines: Lines) -> anyhow::Result<Option<u64>> {
    let mut newest: HashMap<String, i64> = HashMap::new();
    let mut count = 0;
    for line in lines {
        count += 1;
        let (device, Some(at)) = line?.owner() else { continue };
        if newest.len() == MAX_DEVICES && !newest.contains_key(&device) {
            return Ok(None);
        }
        let before = newest.insert(device, at);
        if before.is_some_and(|before| at < before) {
            return Ok(None);
        }
    }
    Ok(Some(count))
}

/// Lines that are not readings have neither device nor timestamp, so they come first.
impl Sortable for Line {
    fn place(&self) -> (String, Option<i64>) {
        self.owner()
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Reading(record) => record.json.len(),
            Self::Refused(refusal) => refusal.reason.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::line::Record;
    use history::refusals::Refusal;
    use proptest::prelude::*;

    fn reading(line: u64, device: &str, second: i64) -> Line {
        let timestamp = 1_768_147_200 + second;
        let json = format!(r#"{{"device_id":"{device}","timestamp":{timestamp},"t":{line}}}"#);
        Line::Reading(Record { line, json })
    }

    fn lines(lines: Vec<Line>) -> Lines {
        Box::new(lines.into_iter().map(Ok))
    }

    fn sorted_with(all: Vec<Line>, size: usize) -> Vec<Line> {
        sort::sorted(lines(all), size, &ProgressBar::hidden())
            .unwrap()
            .collect::<anyhow::Result<_>>()
            .unwrap()
    }

    #[test]
    fn devices_may_alternate_as_long_as_each_goes_forward() {
        let ordered = |order: &[(&str, i64)]| {
            let all = order.iter().zip(1..).map(|((device, at), line)| reading(line, device, *at));
            count_if_ordered(lines(all.collect())).unwrap()
        };
        assert_eq!(ordered(&[("a", 0), ("b", 5), ("a", 0), ("b", 6), ("a", 9)]), Some(5));
        assert_eq!(ordered(&[("a", 0), ("b", 5), ("a", 1), ("b", 4)]), None);
        assert_eq!(ordered(&[]), Some(0));
    }

    #[test]
    fn every_form_of_a_timestamp_has_its_place() {
        let line = |json: &str| Line::Reading(Record { line: 1, json: json.to_owned() });
        let at = Some(1_768_147_200_000);
        for timestamp in ["1768147200", "\"2026-01-11T17:00:00+01:00\"", "1768147200000"] {
            let json = format!(r#"{{"device_id":"\u0064","t":1,"timestamp":{timestamp}}}"#);
            assert_eq!(line(&json).owner(), ("d".to_owned(), at), "{timestamp}");
        }
        for other in
            ["{", r#"{"device":{"device_id":"d"}}"#, r#"{"device_id":"d","timestamp":"-1h"}"#]
        {
            assert_eq!(line(other).owner(), (String::new(), None), "{other}");
        }
    }

    #[test]
    fn what_is_no_reading_comes_first_and_in_its_own_order() {
        let refused = |line| Line::Refused(Refusal { line, reason: "no".to_owned() });
        let all = vec![reading(1, "b", 0), refused(2), reading(3, "a", 0), refused(4)];
        let expected = vec![refused(2), refused(4), reading(3, "a", 0), reading(1, "b", 0)];
        for size in [0, usize::MAX] {
            assert_eq!(sorted_with(all.clone(), size), expected);
        }
    }

    #[test]
    fn an_error_of_the_file_ends_the_sort() {
        let all = [Ok(reading(1, "a", 0)), Err(anyhow::anyhow!("a bad disk"))];
        let error = sort::sorted(Box::new(all.into_iter()) as Lines, 0, &ProgressBar::hidden())
            .err()
            .unwrap();
        assert!(format!("{error:#}").contains("a bad disk"));
    }

    proptest! {
        #[test]
        fn on_disk_and_in_memory_lines_are_sorted_as_a_stable_sort_does(
            order in proptest::collection::vec((0..3_usize, 0..20_i64), 0..60),
            size in 0..4_000_usize,
        ) {
            let all: Vec<Line> = (1..).zip(&order).map(|(line, (device, at))| {
                reading(line, ["a", "b", "c"][*device], *at)
            }).collect();
            let mut expected: Vec<_> = order.iter().zip(all.clone()).collect();
            expected.sort_by_key(|(key, _)| **key);
            let expected: Vec<Line> = expected.into_iter().map(|(_, line)| line).collect();
            prop_assert_eq!(sorted_with(all, size), expected);
        }
    }
}
