//! The messages for what one request cannot read. Reads nothing.

use domain::Timestamp;
use table::StoredRollup;

use super::{DeviceQuestion, Level, MAX_READ};

/// The message that more than [`MAX_READ`] of readings would be read, and why.
pub(super) fn too_long(question: &DeviceQuestion<'_>) -> String {
    let days = MAX_READ.num_days();
    if question.coarsest == Level::Readings {
        return format!(
            "Rows of 1m and 5m come from readings; one request reads at most {days} days. \
             Narrow from and to, or ask with every=15m or longer."
        );
    }

    match question.horizon.state() {
        None => format!(
            "There are no rollups yet, and one request reads at most {days} days of readings. Narrow \
             from and to; or wait for the first rollups, and run `roomtide rollups rebuild` for older \
             readings."
        ),
        Some(state) if question.grid.range().from() < state.since => format!(
            "The rollups begin at {}, and one request reads at most {days} days of readings. Narrow \
             from and to, or run `roomtide rollups rebuild` once.",
            state.since
        ),
        Some(state) => format!(
            "The rollups of {} reach only to {}, and one request reads at most {days} days of \
             readings. Narrow from and to; the log of the rollup function says why it is behind.",
            question.device.id(),
            state.sealed_of(question.device.id())
        ),
    }
}

/// The message that the readings of a quarter are gone, and since when readings are kept.
pub(super) fn readings_expired(quarter: &StoredRollup, now: Timestamp) -> String {
    let until = quarter.raw_until.unwrap_or(Timestamp::MAX);
    let earliest = now.saturating_add(-until.since(quarter.range.from()));
    format!(
        "This takes readings of {} from the 15 minutes that begin at {}, which have expired: the \
         oldest readings are from about {earliest}. Ask from that time, or for rows of whole quarters \
         of an hour.",
        quarter.key.device,
        quarter.range.from()
    )
}
