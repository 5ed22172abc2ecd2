//! Pauses between tries at what `DynamoDB` left undone: growing, jittered, within the time left. Tries nothing.

use std::time::Duration;

use crate::store::Budget;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(1);

/// The pauses of one batch.
#[derive(Debug)]
pub(super) struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Pauses {
    /// Waits, longer each time; tells whether there is time left to try again.
    pub(super) async fn pause(&mut self, budget: &Budget) -> bool {
        let pause = self.0.mul_f64(0.5 + fastrand::f64() / 2.0);
        if budget.remaining() <= pause {
            return false;
        }
        tokio::time::sleep(pause).await;
        self.0 = (self.0 * 2).min(LONGEST);
        true
    }
}
