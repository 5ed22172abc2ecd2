//! Ingest's reply to a message, which tells whether all its readings are stored. Invokes nothing.

use std::collections::BTreeSet;

use anyhow::{Context as _, bail};
use serde::Deserialize as _;
use serde_json::Value;

use crate::ask::Receipt;

/// The maximum number of refusals that an error names with their reasons.
const MAX_NAMED: usize = 5;

/// Fails if a function's reply refuses a reading, because its message is the only copy. A function other than ingest
/// replies nothing about readings.
pub(super) fn ensure_all_stored(function: &str, reply: &Value) -> anyhow::Result<()> {
    let receipt = Receipt::deserialize(reply)
        .with_context(|| format!("{function} replies {reply}, not how many readings are stored"))?;
    let refused = receipt.rejected.len() + receipt.more_rejected.len();
    if refused == 0 {
        return Ok(());
    }

    let reasons: BTreeSet<&str> =
        receipt.rejected.iter().map(|refusal| refusal.message.as_str()).collect();
    let named: Vec<&str> = reasons.into_iter().take(MAX_NAMED).collect();
    bail!(
        "{refused} of {} readings are refused: {}",
        receipt.stored().saturating_add(refused),
        named.join("; ")
    )
}
