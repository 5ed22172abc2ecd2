//! Stores rounds one after the other, and notes each when the table has it. Sends nothing.

use std::panic::resume_unwind;
use std::thread::{self, JoinHandle};

use super::imported::{Imported, SentRound};
use crate::client::Client;

/// The progress of storing: the stored rounds, and the one that is being stored.
pub(super) struct Storing<'a> {
    imported: &'a Imported<'a>,
    under_way: Option<(JoinHandle<anyhow::Result<()>>, SentRound)>,
    stored: u64,
}

impl<'a> Storing<'a> {
    /// Makes the state at the start of a run, when no round is stored yet.
    pub(super) const fn of(imported: &'a Imported<'a>) -> Self {
        Self { imported, under_way: None, stored: 0 }
    }

    /// The number of readings in stored rounds.
    pub(super) const fn stored(&self) -> u64 {
        self.stored
    }

    /// Waits until the previous round is stored, then begins to store this one.
    pub(super) fn begin(&mut self, client: &Client, round: SentRound) -> anyhow::Result<()> {
        self.end()?;
        // A server stores before it answers.
        let Some(here) = client.here().cloned() else { return self.note(&round) };
        self.under_way = Some((thread::spawn(move || here.store()), round));
        Ok(())
    }

    /// Waits until all sent rounds are stored.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        let Some((storing, round)) = self.under_way.take() else { return Ok(()) };
        storing.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        self.note(&round)
    }

    fn note(&mut self, round: &SentRound) -> anyhow::Result<()> {
        self.stored = round.readings;
        self.imported.note_stored(round)
    }
}
