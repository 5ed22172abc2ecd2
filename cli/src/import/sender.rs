//! Sends batches of readings until they are stored. While the server keeps up, several requests run at once; otherwise
//! one at a time, with fewer readings. Reads no file.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use anyhow::{Context as _, bail, ensure};
use api::ABOUT;
use indicatif::ProgressBar;

use super::write_units;
use crate::ask::Receipt;
use crate::client::{Answer, Ask, Client, FieldError, Problem, sleep};
use crate::pace::{ATTEMPTS, Pace};
use history::reading::{HistoryReading, json};
use history::refusals::Refusal;

/// A refusal, and the refused reading if the server's answer names it.
pub(super) type Refused<'a> = (Refusal, Option<&'a HistoryReading>);

/// Sends readings to a server.
pub(super) struct Sender<'a> {
    pub(super) client: &'a Client,
    pub(super) pace: Pace,
    bar: &'a ProgressBar,
    /// The maximum number of readings in a request while the server keeps up.
    batch: usize,
    /// The maximum number of readings in a request while the server does not keep up; `None` while it does.
    bearable: RwLock<Option<usize>>,
    /// The number of stored readings, by the server's answers.
    stored: AtomicU64,
    /// Whether a request may have stored something: the server has not refused it as a whole.
    has_effect: AtomicBool,
}

/// The result of one request.
struct Sent<'a> {
    readings: usize,
    refused: Vec<Refused<'a>>,
    /// The readings to send again.
    not_stored: Vec<&'a HistoryReading>,
    answer: Answer,
}

/// Fails unless the answer accepts or refuses each reading. With a token that may only write, no reading is read back,
/// so nothing else would show a missing one.
fn ensure_about_all(receipt: &Receipt, sent: usize) -> anyhow::Result<()> {
    let named = receipt.rejected.iter().filter_map(|error| error.index);
    let refused: BTreeSet<usize> = named.chain(receipt.more_rejected.iter().copied()).collect();
    let (stored, refused) = (receipt.stored(), refused.len());
    ensure!(
        stored.saturating_add(refused) == sent,
        "of {sent} readings the server accepts {stored} and refuses {refused}, and says nothing of the rest"
    );
    Ok(())
}

impl<'a> Sender<'a> {
    pub(super) fn new(client: &'a Client, pace: Pace, batch: usize, bar: &'a ProgressBar) -> Self {
        let (bearable, stored) = (RwLock::new(None), AtomicU64::new(0));
        let has_effect = AtomicBool::new(false);
        Self { client, pace, bar, batch, bearable, stored, has_effect }
    }

    /// Returns whether the server refused every request as a whole.
    pub(super) fn is_refused(&self) -> bool {
        !self.has_effect.load(Ordering::Relaxed)
    }

    /// Returns the number of stored readings, including those of batches that failed later.
    pub(super) fn stored(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    /// Sends a batch until every reading is stored or refused, and returns the refusals. Storing a reading twice
    /// changes nothing.
    pub(super) fn send<'b>(
        &self,
        path: &str,
        batch: &'b [HistoryReading],
        stop: &AtomicBool,
    ) -> anyhow::Result<Vec<Refused<'b>>> {
        let mut left: Vec<&'b HistoryReading> = batch.iter().collect();
        let mut refused = Vec::new();
        let mut in_vain = 0;

        while !left.is_empty() {
            let sent = self.send_some(path, &left, in_vain, stop)?;

            in_vain = if sent.not_stored.len() == sent.readings { in_vain + 1 } else { 0 };
            if in_vain == ATTEMPTS {
                return Err(self.client.error(path, &sent.answer));
            }

            let mut unsent = left.split_off(sent.readings);
            left = sent.not_stored;
            left.append(&mut unsent);
            refused.extend(sent.refused);
        }
        Ok(refused)
    }

    /// Sends all of these readings. If the server does not keep up, sends only the first ones, as many as it can store.
    fn send_some<'b>(
        &self,
        path: &str,
        left: &[&'b HistoryReading],
        in_vain: u32,
        stop: &AtomicBool,
    ) -> anyhow::Result<Sent<'b>> {
        let shared = self.bearable.read().unwrap_or_else(PoisonError::into_inner);
        if shared.is_none() {
            let sent = self.ask(path, left, stop)?;
            drop(shared);
            if !sent.not_stored.is_empty() {
                self.adapt(self.alone(), &sent, in_vain, stop);
            }
            return Ok(sent);
        }

        drop(shared);

        // The lock keeps other threads from sending until the answer is there and the pause that the server asks for is
        // over.
        let alone = self.alone();
        let readings = alone.unwrap_or(left.len()).min(left.len());
        let sent = self.ask(path, &left[..readings], stop)?;
        self.adapt(alone, &sent, in_vain, stop);
        Ok(sent)
    }

    /// Waits until no other request is under way. Others wait as long as the guard lives.
    fn alone(&self) -> RwLockWriteGuard<'_, Option<usize>> {
        self.bearable.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adapts the size of the next request: the number of readings stored this time, or twice as many if all were
    /// stored.
    fn adapt(
        &self,
        mut bearable: RwLockWriteGuard<'_, Option<usize>>,
        sent: &Sent<'_>,
        in_vain: u32,
        stop: &AtomicBool,
    ) {
        if sent.not_stored.is_empty() {
            *bearable = bearable.map(|readings| readings * 2).filter(|most| *most < self.batch);
            return;
        }

        let done = sent.readings - sent.not_stored.len();
        *bearable = Some(if done > 0 { done } else { (sent.readings / 2).max(1) });
        self.client.wait_after(&sent.answer, in_vain, stop);
    }

    /// Sends one request, and reads its answer.
    fn ask<'b>(
        &self,
        path: &str,
        entries: &[&'b HistoryReading],
        stop: &AtomicBool,
    ) -> anyhow::Result<Sent<'b>> {
        let body: String =
            entries.iter().flat_map(|entry| [json(&entry.reading), "\n".to_owned()]).collect();
        let body = Some(("application/x-ndjson", body.as_str()));
        let readings =
            entries.iter().map(|entry| (&entry.reading.device, entry.reading.at.as_millis()));
        sleep(self.pace.take(write_units::of(&readings)), &[stop]);

        let answer =
            self.client.send_unless(Ask { method: "POST", path, body, headers: &[] }, stop);
        if !answer.as_ref().is_ok_and(|answer| matches!(answer.status, 401 | 403)) {
            self.has_effect.store(true, Ordering::Relaxed);
        }
        let answer = answer?;
        self.pace.learn(answer.units.max_write);
        let (refused, not_stored) = self.read(path, entries, &answer)?;

        let sent = Sent { readings: entries.len(), refused, not_stored, answer };
        self.count(&sent);
        Ok(sent)
    }

    /// Adds the readings of a request to the total and to the bar.
    fn count(&self, sent: &Sent<'_>) {
        let left = sent.refused.len() + sent.not_stored.len();
        let stored = sent.readings.saturating_sub(left) as u64;
        let all = self.stored.fetch_add(stored, Ordering::Relaxed) + stored;
        self.bar.set_message(format!("{all} readings"));
        self.bar.inc((sent.readings - sent.not_stored.len()) as u64);
    }

    /// Parses which readings are refused, and which are to be sent again. Fails if the import cannot go on.
    fn read<'b>(
        &self,
        path: &str,
        entries: &[&'b HistoryReading],
        answer: &Answer,
    ) -> anyhow::Result<(Vec<Refused<'b>>, Vec<&'b HistoryReading>)> {
        let error = || self.client.error(path, answer);

        match answer.status {
            201 | 207 => {
                let receipt: Receipt = self.client.parsed(path, answer)?;
                ensure_takes_about(&receipt.rejected)?;
                ensure_about_all(&receipt, entries.len())?;
                Ok((refused(entries, &receipt.rejected, &receipt.more_rejected), Vec::new()))
            }
            400 | 410 => {
                let Problem { errors, more_errors, .. } = answer.problem();
                ensure_takes_about(&errors)?;
                // Every reading of the batch is invalid; the upload goes on.
                if errors.is_empty() || errors.iter().any(|error| error.index.is_none()) {
                    return Err(error());
                }
                Ok((refused(entries, &errors, &more_errors), Vec::new()))
            }
            403 => Err(forbidden(entries, answer, error())),
            413 => Err(error()).context("try a smaller --batch"),
            _ => {
                let Problem { errors, more_errors, not_stored, .. } = answer.problem();
                ensure_takes_about(&errors)?;
                let indices: BTreeSet<usize> = not_stored.into_iter().collect();
                // Without valid indices, readings would count as stored that are not.
                if indices.last().is_none_or(|last| *last >= entries.len()) {
                    return Err(error());
                }
                let not_stored = indices.iter().map(|index| entries[*index]).collect();
                Ok((refused(entries, &errors, &more_errors), not_stored))
            }
        }
    }
}

/// Makes the error of a batch that the token does not permit. Names the first refused reading.
fn forbidden(entries: &[&HistoryReading], answer: &Answer, error: anyhow::Error) -> anyhow::Error {
    let problem = answer.problem();
    let first = problem.errors.iter().find_map(|refused| entries.get(refused.index?));
    match first {
        Some(HistoryReading { line: 0, reading }) => {
            error.context(format!("the device \"{}\"", reading.device))
        }
        Some(HistoryReading { line, reading }) => {
            error.context(format!("line {line}: the device \"{}\"", reading.device))
        }
        None => error,
    }
}

/// Fails if the server is of an earlier version, which takes the member `about` for a metric.
fn ensure_takes_about(errors: &[FieldError]) -> anyhow::Result<()> {
    let is_metric = |error: &FieldError| {
        error.field.as_deref() == Some(ABOUT) && error.message.contains("number")
    };
    if errors.iter().any(is_metric) {
        bail!(
            "the server is of an earlier version, which does not know what a reading is about; update it first, then run \
             the same command again"
        );
    }
    Ok(())
}

fn refused<'a>(
    entries: &[&'a HistoryReading],
    errors: &[FieldError],
    more: &[usize],
) -> Vec<Refused<'a>> {
    let refused = |index: Option<usize>, reason| {
        let entry = index.and_then(|index| entries.get(index)).copied();
        let reason = match entry {
            // A source without lines.
            Some(HistoryReading { line: 0, reading }) => {
                format!("{} at {}: {reason}", reading.device, reading.at)
            }
            _ => reason,
        };
        (Refusal { line: entry.map_or(0, |entry| entry.line), reason }, entry)
    };

    let name = |error: &FieldError| {
        let field = error.field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default();
        refused(error.index, format!("{field}{}", error.message))
    };
    let unnamed = |index: &usize| {
        let reason = "the server refuses it; its answer has no room for the reason".to_owned();
        refused(Some(*index), reason)
    };
    errors.iter().map(name).chain(more.iter().map(unnamed)).collect()
}
