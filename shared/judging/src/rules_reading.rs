//! Reads all that a judgement needs except readings: rules, channels, the zone, pauses. Judges nothing.

use std::time::Duration;

use domain::{TimeRange, Timestamp};
use table::{RunningNote, Session, StoreResult};
use tokio::sync::OnceCell;

use crate::judging::JudgingSession;
use crate::ports::Store;
use crate::rules::AlertRules;

/// The longest time for reading the zone or the pauses: messages are sent also without them.
const MAX_READING: Duration = Duration::from_secs(3);

impl<S: Store> JudgingSession<'_, S> {
    /// Reads the rules. If there are rules, also reads their channels, the zone and the pauses. While the zone or the
    /// pauses cannot be read, those of `before` are used. Sending needs no pauses, and budgets take their zone from the
    /// rollups.
    pub(crate) async fn read_rules(&self, before: Option<&AlertRules>) -> StoreResult<AlertRules> {
        let rules = self.table.alert_rules().await?;
        let mut read = AlertRules {
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
        let part = || invocation.shortened_to(MAX_READING.min(invocation.remaining() / 2));
        read.zone = match self.table.within(&part()).rollup_state().await {
            Ok(state) => state.and_then(|state| state.zone.parse().ok()),
            Err(error) => {
                read.lacking.push(error);
                before.and_then(|before| before.zone)
            }
        };

        let pauses = match self.table.within(&part()).running_note().await {
            Ok(note) => Some(pauses_of(note, now)),
            Err(error) => {
                // A damaged note counts as absent. The next process that notes that the system runs will replace the
                // note.
                let is_damaged = error.is_permanent();
                read.lacking.push(error);
                let known = before.and_then(|before| before.pauses.get().cloned());
                known.or_else(|| is_damaged.then(Vec::new))
            }
        };
        read.pauses = OnceCell::new_with(pauses);
        Ok(read)
    }

    /// The pauses of the system, in order: the times when the system stood still. Pauses that were not read with the
    /// rules are read now. If this read fails, no rule is judged, because devices would count as silent while the
    /// system stood still.
    pub(crate) async fn pauses<'r>(&self, rules: &'r AlertRules) -> StoreResult<&'r [TimeRange]> {
        let pauses = rules.pauses.get_or_try_init(async || {
            let note = self.table.running_note().await?;
            Ok(pauses_of(note, self.table.now))
        });
        pauses.await.map(Vec::as_slice)
    }
}

/// The pauses in a note, and the current pause if the note does not have it yet.
fn pauses_of(note: Option<RunningNote>, now: Timestamp) -> Vec<TimeRange> {
    let Some(note) = note else { return Vec::new() };
    let unnoted = note.pause_until(now);
    note.pauses.into_iter().chain(unnoted).collect()
}
