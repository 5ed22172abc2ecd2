//! Pauses between retries: growing, jittered, within the time left. Sends no request.

use std::time::Duration;

use table::{Invocation, StoreError, StoreResult};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The pauses of one batch.
#[derive(Debug)]
pub(super) struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(FIRST_PAUSE)
    }
}

/// Repeats a request that the table throttles until the deadline: the SDK gives up earlier.
pub(super) async fn while_throttled<T, F>(
    invocation: &Invocation,
    mut attempt: impl FnMut() -> F + Send,
) -> StoreResult<T>
where
    F: Future<Output = StoreResult<T>> + Send,
{
    let mut pauses = Pauses::default();
    let mut cause = None;
    loop {
        match (attempt().await, cause.take()) {
            (Err(throttled @ StoreError::Throttled(_)), _) => {
                if !pauses.pause(invocation).await {
                    return Err(throttled);
                }
                cause = Some(throttled);
            }
            // The time ran out while the SDK tried again.
            (Err(StoreError::TimedOut), Some(throttled)) => return Err(throttled),
            (done, _) => return done,
        }
    }
}

impl Pauses {
    /// Waits, longer each time; returns whether there is time left for another try.
    pub(super) async fn pause(&mut self, invocation: &Invocation) -> bool {
        let pause = self.0.mul_f64(0.5 + fastrand::f64() / 2.0);
        if invocation.remaining() <= pause {
            return false;
        }
        tokio::time::sleep(pause).await;
        self.0 = (self.0 * 2).min(MAX_PAUSE);
        true
    }
}
