//! Reads the rules with what each judgement needs beside readings: channels, the zone, pauses. Judges nothing.

use std::time::Duration;

use domain::{TimeRange, Timestamp};
use table::{RunningNote, Session, StoreResult};
use tokio::sync::OnceCell;

use crate::judging::JudgingSession;
use crate::ports::Store;
use crate::rules::Rules;

/// The longest time for each item without which messages are sent all the same.
const MAX_ASKING: Duration = Duration::from_secs(3);

impl<S: Store> JudgingSession<'_, S> {
    /// Asks the table for the rules, and without a rule for nothing else. Of the zone and of pauses, what was read `before`
    /// holds while the table does not tell them: sending needs no pauses, and budgets have a zone of their own.
    pub(crate) async fn read_rules(&self, before: Option<&Rules>) -> StoreResult<Rules> {
        let rules = self.table.alert_rules().await?;
        let mut read = Rules {
            rules: rules.found,
            channels: Vec::new(),
            zone: None,
            pauses: OnceCell::new(),
            unreadable: rules.unreadable,
            lacking: Vec::new(),
        };
        if read.rules.is_empty() {
            return Ok(read);
        }

        let channels = self.table.channels().await?;
        read.channels = channels.found;
        read.unreadable.extend(channels.unreadable);

        let Session { invocation, now, .. } = self.table;
        let asking = || invocation.part_of(MAX_ASKING.min(invocation.remaining() / 2));
        read.zone = match self.table.within(&asking()).rollup_state().await {
            Ok(state) => state.and_then(|state| state.zone.parse().ok()),
            Err(error) => {
                read.lacking.push(error);
                before.and_then(|before| before.zone)
            }
        };

        let pauses = match self.table.within(&asking()).running_note().await {
            Ok(note) => Some(pauses_of(note, now)),
            Err(error) => {
                // A damaged note counts as absent: whoever notes next that the system runs replaces it.
                let is_damaged = error.is_permanent();
                read.lacking.push(error);
                let known = before.and_then(|before| before.pauses.get().cloned());
                known.or_else(|| is_damaged.then(Vec::new))
            }
        };
        read.pauses = OnceCell::new_with(pauses);
        Ok(read)
    }

    /// When nothing was taken in, in order. A judgement asks again where nobody could read it in the short time before
    /// messages are sent. Without an answer it fails: devices would be called silent because the system stood still.
    pub(crate) async fn pauses<'r>(&self, rules: &'r Rules) -> StoreResult<&'r [TimeRange]> {
        let pauses = rules.pauses.get_or_try_init(async || {
            let note = self.table.running_note().await?;
            Ok(pauses_of(note, self.table.now))
        });
        pauses.await.map(Vec::as_slice)
    }
}

/// The pauses that a note has, with one that nobody has noted yet.
fn pauses_of(note: Option<RunningNote>, now: Timestamp) -> Vec<TimeRange> {
    let Some(note) = note else { return Vec::new() };
    let unnoted = note.pause_until(now);
    note.pauses.into_iter().chain(unnoted).collect()
}
