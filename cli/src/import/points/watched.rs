//! Groups on their way to the server, noted by a comparison before they are sent. Sends nothing.

use std::collections::VecDeque;

use domain::Timestamp;

use super::send::{batches, body};
use super::unite::{Group, SentLine};
use crate::import::comparison::Comparison;
use crate::import::sources::Way;

/// The groups that are noted at once, and the lines that are read at once.
const CHUNK: usize = 1_000;
const LINES: usize = 500;

/// Groups that a comparison notes.
pub(in crate::import) struct Watched<'a, I> {
    groups: I,
    comparison: &'a Comparison<'a>,
    now: Timestamp,
    noted: VecDeque<anyhow::Result<Group>>,
}

impl<'a, I: Iterator<Item = anyhow::Result<Group>>> Watched<'a, I> {
    pub(in crate::import) fn new(
        groups: I,
        comparison: &'a Comparison<'a>,
        now: Timestamp,
    ) -> Self {
        Self { groups, comparison, now, noted: VecDeque::new() }
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
            note(self.comparison, &body(&batch), batch[0].way, self.now)?;
        }
        self.noted.extend(groups.into_iter().map(Ok).chain(failed));
        Ok(())
    }
}

fn note(comparison: &Comparison<'_>, body: &str, way: Way, now: Timestamp) -> anyhow::Result<()> {
    let (device_tags, room_tag) = way.tags();
    let read = local::read_points(body.as_bytes(), now, device_tags, room_tag);
    // What the server makes of lines that cannot be read is its affair.
    let Ok(read) = read else { return Ok(()) };
    comparison.note(&read.readings)
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

/// Takes back lines that the server refused.
pub(in crate::import) fn take_back(
    comparison: &Comparison<'_>,
    lines: &[SentLine],
    now: Timestamp,
) {
    for line in lines {
        let (device_tags, room_tag) = line.way.tags();
        let read = local::read_points(line.text.as_bytes(), now, device_tags, room_tag);
        for (reading, _) in read.unwrap_or_default().readings {
            comparison.take_back(&reading);
        }
    }
}
