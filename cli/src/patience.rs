//! Asks a table for bulk work: again while it is busy, and at the pace that it can bear. Gives up after a minute or two.

use std::sync::OnceLock;
use std::time::Duration;

use runtime::clock::Deadline;
use table::{Invocation, StoreResult};

use crate::pace::Pace;

/// The most attempts at what a busy table refuses, and the pause after the first; it doubles each time.
const ATTEMPTS: u32 = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The time for one visit.
const VISIT: Duration = Duration::from_secs(60);

/// The paces of reads and of writes. A process is one command, and a command works on one table.
static PACES: OnceLock<(Pace, Pace)> = OnceLock::new();

/// Bounds what is done from now on by half of a table's units a second.
pub(crate) fn keep_to(read_units: Option<u32>, write_units: Option<u32>) {
    PACES.get_or_init(|| (Pace::half_of(read_units), Pace::half_of(write_units)));
}

/// Does something again while the table is too busy for it or does not answer. Each attempt has its own time.
pub(crate) async fn patiently<T>(
    action: impl AsyncFn(&Invocation) -> StoreResult<T>,
) -> anyhow::Result<T> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..ATTEMPTS {
        match visit(&action).await {
            Err(error) if error.is_retryable() => tokio::time::sleep(pause).await,
            result => return Ok(result?),
        }
        pause *= 2;
    }
    let last = visit(&action).await;
    last.map_err(|error| {
        if !error.is_retryable() {
            return error.into();
        }
        let why = "the same command continues where it stopped";
        anyhow::Error::new(error).context(format!("gave up after {ATTEMPTS} attempts; {why}"))
    })
}

/// Does something when its turn has come. What it consumes is known afterwards.
async fn visit<T>(action: impl AsyncFn(&Invocation) -> StoreResult<T>) -> StoreResult<T> {
    if let Some((reads, writes)) = PACES.get() {
        tokio::time::sleep(reads.take(0.0).max(writes.take(0.0))).await;
    }
    let invocation = Invocation::until(Deadline::after(VISIT));
    let result = action(&invocation).await;
    if let Some((reads, writes)) = PACES.get() {
        reads.settle(0.0, invocation.read_units());
        writes.settle(0.0, invocation.write_units());
    }
    result
}
