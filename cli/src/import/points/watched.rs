//! Groups on their way to the server, noted by a comparison before they are sent. Sends nothing.

use std::collections::VecDeque;

use domain::{Hints, Reading, Timestamp};

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
    pub(super) watcher: Watcher<'a>,
    noted: VecDeque<anyhow::Result<Group>>,
}

/// A comparison of the readings that lines become; none in tests.
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
        let readings = self.read(body, way);
        comparison.note(readings.iter().map(|(reading, hints)| (reading, hints)))
    }

    /// Takes back a line that the server refused.
    pub(super) fn take_back(&self, line: &SentLine) -> anyhow::Result<()> {
        let Some(comparison) = self.comparison else { return Ok(()) };
        let readings = self.read(&line.text, line.way);
        readings.iter().try_for_each(|(reading, _)| comparison.take_back(reading))
    }

    /// What the server makes of lines that cannot be read is its affair.
    fn read(&self, body: &str, way: Way) -> Vec<(Reading, Hints)> {
        let (device_tags, room_tag) = way.tags();
        let read = local::read_points(body.as_bytes(), self.now, device_tags, room_tag);
        read.unwrap_or_default().readings
    }
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
