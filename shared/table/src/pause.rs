//! Pauses between the attempts of a throttled request: each longer, partly random, within the time left. Sends nothing.

use std::time::Duration;

use crate::{Invocation, StoreError, StoreResult};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The next pause between the attempts of a request.
#[derive(Debug)]
pub struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(FIRST_PAUSE)
    }
}

/// Repeats a throttled request for as long as the invocation has patience. The SDK retries too, but gives up earlier.
pub async fn while_throttled<T, F>(
    invocation: &Invocation,
    mut attempt: impl FnMut() -> F + Send,
) -> StoreResult<T>
where
    F: Future<Output = StoreResult<T>> + Send,
{
    let mut pauses = Pauses::default();
    let mut cause = None;
    if invocation.is_out_of_patience() {
        return Err(out_of_patience());
    }

    loop {
        match (attempt().await, cause.take()) {
            (Err(throttled @ StoreError::Throttled(_)), _) => {
                invocation.note_throttled();
                if !pauses.pause(invocation).await {
                    return Err(throttled);
                }
                cause = Some(throttled);
            }
            // Timed out during the SDK's retries: the throttling before it is the cause.
            (Err(StoreError::TimedOut), Some(throttled)) => return Err(throttled),
            (done, _) => return done,
        }
    }
}

/// The error of a request that is not sent, because earlier requests used up the patience.
pub fn out_of_patience() -> StoreError {
    StoreError::Throttled("earlier requests were throttled until their time was over".into())
}

impl Pauses {
    /// Waits, each time longer. Returns false if there is no patience for another attempt.
    pub async fn pause(&mut self, invocation: &Invocation) -> bool {
        let pause = self.0.mul_f64(0.5 + fastrand::f64() / 2.0);
        if invocation.patience() <= pause {
            return false;
        }
        tokio::time::sleep(pause).await;
        self.0 = (self.0 * 2).min(MAX_PAUSE);
        true
    }
}
