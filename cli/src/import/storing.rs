//! Stores one round while the next one is sent, and notes then how far an import is. Sends nothing.

use std::panic::resume_unwind;
use std::thread::JoinHandle;

use domain::Reading;

use super::resume::Resume;
use crate::client::Client;

/// A round that was sent, and what is noted of it when it is stored.
#[derive(Debug)]
pub(super) struct SentRound {
    /// The readings that were sent up to its end.
    pub(super) readings: u64,
    /// The lines up to its end, which count as processed; 0 if no more lines do.
    pub(super) end: u64,
    /// The digest of these lines.
    pub(super) passed: String,
    pub(super) witness: Option<Reading>,
    /// The number of readings that were refused.
    pub(super) refused: u64,
}

/// The rounds that are stored, and the one that is being stored.
#[derive(Debug)]
pub(super) struct Storing<'a> {
    pub(super) resume: &'a mut Resume,
    under_way: Option<(JoinHandle<anyhow::Result<()>>, SentRound)>,
    stored: u64,
}

impl<'a> Storing<'a> {
    /// Nothing, after what an earlier import has stored.
    pub(super) const fn after(resume: &'a mut Resume) -> Self {
        Self { resume, under_way: None, stored: 0 }
    }

    /// The readings of the rounds that are stored.
    pub(super) const fn stored(&self) -> u64 {
        self.stored
    }

    /// Begins to store a round, as soon as the one before is stored.
    pub(super) fn begin(&mut self, client: &Client, round: SentRound) -> anyhow::Result<()> {
        self.end()?;
        match client.store() {
            Some(storing) => self.under_way = Some((storing, round)),
            None => self.note(&round)?,
        }
        Ok(())
    }

    /// Waits until everything is stored that was sent.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        let Some((storing, round)) = self.under_way.take() else { return Ok(()) };
        storing.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        self.note(&round)
    }

    fn note(&mut self, round: &SentRound) -> anyhow::Result<()> {
        self.stored = round.readings;
        let SentRound { end, witness, refused, passed, .. } = round;
        self.resume.acknowledge(*end, witness.as_ref(), *refused, passed)
    }
}
