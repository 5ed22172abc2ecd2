//! Notes rounds of readings for a comparison before they are sent. Sends nothing.

use std::collections::HashMap;

use domain::{DeviceId, Reading, Timestamp};

use super::comparison::Comparison;
use super::round::Round;

/// The readings of each device so far, so that a value which a later line replaces counts once.
///
/// Within a round each device and timestamp occurs once. A file is in order of time, so only a device's last reading
/// may occur again in the next round. Standard input may be in any order; a device that goes back in time is not
/// compared.
#[derive(Default)]
pub(super) struct Noted<'a> {
    comparison: Option<&'a Comparison<'a>>,
    seen: HashMap<DeviceId, Seen>,
}

/// The readings of a device in earlier rounds.
struct Seen {
    first: Timestamp,
    newest: Timestamp,
    last: Reading,
}

impl<'a> Noted<'a> {
    /// Makes the notes for a comparison.
    pub(super) fn of(comparison: &'a Comparison<'a>) -> Self {
        Self { comparison: Some(comparison), seen: HashMap::new() }
    }

    /// Passes the readings of a round to the comparison.
    pub(super) fn note(&mut self, round: &Round) -> anyhow::Result<()> {
        let Some(comparison) = self.comparison else { return Ok(()) };
        if round.is_rest {
            return self.note_rest(comparison, round);
        }
        let mut spans: HashMap<&DeviceId, (Timestamp, Timestamp, &Reading)> = HashMap::new();
        // Merges come first: in a file ordered by time, a merged reading is the earliest of its device.
        for reading in round.merges.iter().chain(&round.puts).map(|entry| &entry.reading) {
            let Reading { device, at, .. } = reading;
            match self.seen.get(device) {
                Some(seen) if seen.last.at == *at => comparison.replace(&seen.last, reading),
                Some(seen) if (seen.first..=seen.newest).contains(at) => {
                    comparison.leave_out(device);
                }
                _ => {}
            }
            comparison.note([reading])?;
            let span = spans.entry(device).or_insert((*at, *at, reading));
            *span = (span.0.min(*at), span.1.max(*at), reading);
        }
        for (device, (first, newest, last)) in spans {
            let Some(seen) = self.seen.get_mut(device) else {
                let last = last.clone();
                self.seen.insert(device.clone(), Seen { first, newest, last });
                continue;
            };
            (seen.first, seen.newest) = (seen.first.min(first), seen.newest.max(newest));
            // Merged readings add up: the table has the metrics of both.
            let is_absorbed = seen.last.at == last.at && seen.last.absorb(last.clone()).is_ok();
            if !is_absorbed {
                seen.last = last.clone();
            }
        }
        Ok(())
    }

    /// Notes metrics for which the previous round had no room. They replace nothing, and do not count as going back in
    /// time.
    fn note_rest(&mut self, comparison: &Comparison<'_>, round: &Round) -> anyhow::Result<()> {
        for reading in round.puts.iter().chain(&round.merges).map(|entry| &entry.reading) {
            comparison.note([reading])?;
            if let Some(seen) = self.seen.get_mut(&reading.device)
                && seen.last.at == reading.at
            {
                seen.last.unite(reading.clone());
            }
        }
        Ok(())
    }

    /// Notes that the server refused a reading.
    pub(super) fn take_back(&self, reading: &Reading) -> anyhow::Result<()> {
        self.comparison.map_or(Ok(()), |comparison| comparison.take_back(reading))
    }
}
