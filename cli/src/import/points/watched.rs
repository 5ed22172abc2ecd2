//! Notes groups for a comparison on their way to the server. Sends nothing.

use std::collections::VecDeque;

use domain::{DeviceId, Reading, Timestamp};
use local::PointsRead;

use super::send::{Batch, batches, body};
use super::unite::{Group, SentLine};
use crate::import::comparison::Comparison;
use crate::import::sources::Way;

/// The number of groups that are noted at once, and of lines that are parsed at once.
const CHUNK: usize = 1_000;
const LINES: usize = 500;

/// An iterator that notes groups for a comparison.
pub(in crate::import) struct Watched<'a, I> {
    groups: I,
    pub(super) watcher: Watcher<'a>,
    noted: VecDeque<anyhow::Result<Group>>,
}

/// A comparison of the readings that the server makes of lines; `None` in tests.
#[derive(Clone, Copy)]
pub(super) struct Watcher<'a> {
    pub(super) comparison: Option<&'a Comparison<'a>>,
    pub(super) now: Timestamp,
}

impl<'a, I: Iterator<Item = anyhow::Result<Group>>> Watched<'a, I> {
    pub(in crate::import) fn new(
        groups: I,
        comparison: Option<&'a Comparison<'a>>,
        now: Timestamp,
    ) -> Self {
        Self { groups, watcher: Watcher { comparison, now }, noted: VecDeque::new() }
    }

    fn note_next(&mut self) -> anyhow::Result<()> {
        let mut groups: Vec<Group> = Vec::new();
        let mut failed = None;
        for group in self.groups.by_ref().take(CHUNK) {
            match group {
                Ok(group) => groups.push(group),
                Err(error) => {
                    failed = Some(Err(error));
                    break;
                }
            }
        }
        for batch in batches(&groups, LINES) {
            self.watcher.note(&body(&batch), batch[0].way)?;
        }
        self.noted.extend(groups.into_iter().map(Ok).chain(failed));
        Ok(())
    }
}

impl Watcher<'_> {
    fn note(&self, body: &str, way: Way) -> anyhow::Result<()> {
        let Some(comparison) = self.comparison else { return Ok(()) };
        comparison.note(&self.read(body, way).readings)
    }

    /// Subtracts what is not stored of a refused line. If that is unknown, the devices are not compared.
    pub(super) fn take_back(&self, part: &RefusedPart) -> anyhow::Result<()> {
        let Some(comparison) = self.comparison else { return Ok(()) };
        match self.lost(part) {
            Lost::Nothing => Ok(()),
            Lost::All(readings) => {
                readings.iter().try_for_each(|reading| comparison.take_back(reading))
            }
            Lost::Unknown(devices) => {
                devices.iter().for_each(|device| comparison.leave_out(device));
                Ok(())
            }
        }
    }

    /// Returns what is lost of a refused line. An error of the line itself loses nothing, because the line was never
    /// noted. Any other error refuses one of the line's readings, but the answer does not name the reading.
    fn lost(&self, RefusedPart { line, beside, number, messages }: &RefusedPart) -> Lost {
        let numbers = *number..=number + line.text.matches('\n').count();
        let together = self.read(beside, line.way);
        let mut of_itself = together.refused.iter().filter(|(number, _)| numbers.contains(number));
        let is_of_itself = |message: &&String| of_itself.clone().any(|(_, why)| why == *message);
        let others = messages.iter().filter(|message| !is_of_itself(message)).count();
        if others == 0 {
            return Lost::Nothing;
        }

        let alone = self.read(&line.text, line.way).readings;
        if of_itself.next().is_none() && alone.len() <= others {
            Lost::All(alone)
        } else {
            Lost::Unknown(alone.into_iter().map(|reading| reading.device).collect())
        }
    }

    /// Parses lines as the server does. Unreadable lines are ignored here, because the server reports them.
    fn read(&self, body: &str, way: Way) -> PointsRead {
        let (device_tags, room_tag) = way.tags();
        let read = local::read_points(body.as_bytes(), self.now, device_tags, room_tag);
        read.unwrap_or_default()
    }
}

/// A line that the server refused as a whole or in part.
#[derive(Debug)]
pub(super) struct RefusedPart {
    line: SentLine,
    /// All lines of the same millisecond in the request. The server reads them together.
    beside: String,
    /// The number of the line among those in `beside`, from 1.
    number: usize,
    /// The server's messages about the line.
    messages: Vec<String>,
}

impl RefusedPart {
    pub(super) fn of(batch: &Batch<'_>, place: usize, messages: Vec<String>) -> Self {
        let line = batch[place];
        let is_beside = |other: &&&SentLine| other.millis == line.millis;
        let before = batch[..place].iter().rev().take_while(is_beside).count();
        let after = batch[place..].iter().take_while(is_beside).count();
        let first = place - before;
        let number = 1 + body(&batch[first..place].to_vec()).matches('\n').count();
        let beside = body(&batch[first..place + after].to_vec());
        Self { line: line.clone(), beside, number, messages }
    }
}

/// The part of a line's readings that is not stored.
#[derive(Debug, PartialEq, Eq)]
enum Lost {
    Nothing,
    All(Vec<Reading>),
    /// An unknown part of these devices' readings.
    Unknown(Vec<DeviceId>),
}

impl<I: Iterator<Item = anyhow::Result<Group>>> Iterator for Watched<'_, I> {
    type Item = anyhow::Result<Group>;

    fn next(&mut self) -> Option<anyhow::Result<Group>> {
        if self.noted.is_empty()
            && let Err(error) = self.note_next()
        {
            return Some(Err(error));
        }
        self.noted.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> SentLine {
        SentLine {
            line: 1,
            series: text.split(' ').next().unwrap().to_owned(),
            millis: 1_768_147_200_000,
            text: format!("{text} 1768147200000000000"),
            way: Way::Plain,
            hour: None,
        }
    }

    /// The second line's `value` would be the metric of the first line's, and its other field is stored.
    #[test]
    fn only_what_is_not_stored_of_a_refused_line_is_taken_back() {
        const GONE: &str = "device_id is of a device that is being deleted";
        let now = Timestamp::from_millis(1_800_000_000_000).unwrap();
        let watcher = Watcher { comparison: None, now };
        let lines = ["m,host=a value=1,x=2", "m,hostname=a value=3,x2=4", "n,host=b t=1"].map(line);
        let batch: Batch<'_> = lines.iter().collect();
        let shared = watcher.read(&body(&batch), Way::Plain).refused;
        assert_eq!(shared.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [2]);
        let shared = shared[0].1.as_str();
        let lost = |place: usize, messages: &[&str]| {
            let messages = messages.iter().map(|text| (*text).to_owned()).collect();
            let shown = |devices: Vec<DeviceId>| {
                let mut shown: Vec<String> = devices.iter().map(ToString::to_string).collect();
                shown.sort();
                shown.join(" ")
            };
            match watcher.lost(&RefusedPart::of(&batch, place, messages)) {
                Lost::Nothing => "nothing".to_owned(),
                Lost::All(all) => {
                    format!(
                        "all of {}",
                        shown(all.into_iter().map(|reading| reading.device).collect())
                    )
                }
                Lost::Unknown(devices) => format!("some of {}", shown(devices)),
            }
        };

        assert_eq!(lost(1, &[shared]), "nothing");
        assert_eq!(lost(1, &[shared, GONE]), "some of a a::m");
        assert_eq!(lost(0, &[GONE]), "some of a a::m");
        assert_eq!(lost(0, &[GONE, GONE]), "all of a a::m");
        assert_eq!(lost(2, &[GONE]), "all of b::n");
    }
}
