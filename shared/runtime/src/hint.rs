//! The hint that messages wait. Sends none.

mod lambda;

use crate::clock::Deadline;

pub use lambda::LambdaHint;

/// Asks the function `alerting` to send what waits now. A hint that is lost costs a minute: its own schedule finds what
/// waits.
pub trait Hint: Send + Sync {
    /// Asks, and does not wait for what is sent; the error says why nobody was asked.
    fn ask(&self, deadline: Deadline) -> impl Future<Output = Result<(), String>> + Send;
}

/// Asks nobody: what waits is sent by the schedule.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHint;

impl Hint for NoHint {
    async fn ask(&self, _deadline: Deadline) -> Result<(), String> {
        Ok(())
    }
}
