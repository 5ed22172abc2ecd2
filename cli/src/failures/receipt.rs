//! Ingest's reply to a message, which tells whether all its readings are stored. Invokes nothing.

use std::collections::BTreeSet;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::Value;

/// The maximum number of refusals that an error names with their reasons.
const MAX_NAMED: usize = 5;

/// The number of stored readings of a message, and the reasons of refusals.
#[derive(Debug, Deserialize)]
pub(super) struct Receipt {
    accepted: usize,
    #[serde(default)]
    accepted_before: usize,
    #[serde(default)]
    rejected: Vec<Refusal>,
    /// The indices of refused readings whose reasons did not fit into the reply.
    #[serde(default)]
    more_rejected: Vec<usize>,
}

#[derive(Debug, Deserialize)]
struct Refusal {
    message: String,
}

impl Receipt {
    /// Parses the reply of a function. A function other than ingest replies nothing about readings.
    pub(super) fn of(function: &str, reply: &Value) -> anyhow::Result<Self> {
        Self::deserialize(reply).with_context(|| {
            format!("{function} replies {reply}, not how many readings are stored")
        })
    }

    /// Fails if a reading is refused, because its message is the only copy.
    pub(super) fn ensure_all_stored(&self) -> anyhow::Result<()> {
        let refused = self.rejected.len() + self.more_rejected.len();
        if refused == 0 {
            return Ok(());
        }

        let stored = self.accepted.saturating_add(self.accepted_before);
        let reasons: BTreeSet<&str> =
            self.rejected.iter().map(|refusal| refusal.message.as_str()).collect();
        let named: Vec<&str> = reasons.into_iter().take(MAX_NAMED).collect();
        bail!(
            "{refused} of {} readings are refused: {}",
            stored.saturating_add(refused),
            named.join("; ")
        )
    }
}
