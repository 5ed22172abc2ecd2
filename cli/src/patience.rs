//! Requests to a table for bulk work: repeated while the table is busy, and limited to its pace. Gives up after a
//! minute or two.

use std::sync::OnceLock;
use std::time::Duration;

use anyhow::bail;
use domain::Device;
use runtime::clock::Deadline;
use table::{Invocation, ListDevices, StoreResult};

use crate::pace::{ATTEMPTS, FIRST_PAUSE, Pace};

/// The time limit of one attempt.
const VISIT: Duration = Duration::from_secs(60);

/// The paces of reads and of writes. They are global, because a process runs one command on one table.
static PACES: OnceLock<(Pace, Pace)> = OnceLock::new();

/// Limits all further requests to half of a table's units per second.
pub(crate) fn keep_to(read_units: Option<u32>, write_units: Option<u32>) {
    PACES.get_or_init(|| (Pace::half_of(read_units), Pace::half_of(write_units)));
}

/// Repeats an action while the table is too busy or does not answer. Each attempt has its own time limit.
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

/// Reads all devices of the registry, in the order of their ids.
pub(crate) async fn all_devices(store: &impl ListDevices) -> anyhow::Result<Vec<Device>> {
    let listing = patiently(async |invocation| store.all_devices(invocation).await).await?;
    if let Some(unreadable) = listing.unreadable.first() {
        bail!("a device of the registry cannot be read: {unreadable}");
    }
    let mut devices = listing.found;
    devices.sort_by(|a, b| a.id().cmp(b.id()));
    Ok(devices)
}

/// Runs an action when the pace permits it. The consumed units are known afterwards.
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
