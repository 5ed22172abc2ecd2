//! Asks a busy table again. Gives up after a minute or two.

use std::time::Duration;

use runtime::clock::Deadline;
use table::{Invocation, StoreResult};

/// The most attempts at what a busy table refuses, and the pause after the first; it doubles each time.
const ATTEMPTS: u32 = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The time for one visit.
const VISIT: Duration = Duration::from_secs(60);

/// Does something again while the table is too busy for it or does not answer. Each attempt has its own time.
pub(crate) async fn patiently<T>(
    action: impl AsyncFn(&Invocation) -> StoreResult<T>,
) -> anyhow::Result<T> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..ATTEMPTS {
        match action(&Invocation::until(Deadline::after(VISIT))).await {
            Err(error) if error.is_retryable() => tokio::time::sleep(pause).await,
            result => return Ok(result?),
        }
        pause *= 2;
    }
    let last = action(&Invocation::until(Deadline::after(VISIT))).await;
    last.map_err(|error| {
        if !error.is_retryable() {
            return error.into();
        }
        let why = "the same command continues where it stopped";
        anyhow::Error::new(error).context(format!("gave up after {ATTEMPTS} attempts; {why}"))
    })
}
