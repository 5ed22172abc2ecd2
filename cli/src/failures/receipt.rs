//! The reply of ingest to a message: whether all of its readings are stored. Invokes nothing.

use std::collections::BTreeSet;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::Value;

/// The most reasons of refusals that are named.
const MAX_NAMED: usize = 5;

/// How many readings of a message are stored, and why others are refused.
#[derive(Debug, Deserialize)]
pub(super) struct Receipt {
    accepted: usize,
    #[serde(default)]
    accepted_before: usize,
    #[serde(default)]
    rejected: Vec<Refusal>,
    /// The places of refused readings whose reasons did not fit.
    #[serde(default)]
    more_rejected: Vec<usize>,
}

#[derive(Debug, Deserialize)]
struct Refusal {
    message: String,
}

impl Receipt {
    /// Understands the reply of a function. One of another function says nothing about readings.
    pub(super) fn of(function: &str, reply: &Value) -> anyhow::Result<Self> {
        Self::deserialize(reply).with_context(|| {
            format!("{function} replies {reply}, not how many readings are stored")
        })
    }

    /// An error if a reading is refused: its message is the only copy.
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
