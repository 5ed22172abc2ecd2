//! The hint to the function `alerting` that messages wait. Sends no message.

mod lambda;

use crate::clock::Deadline;

pub use lambda::LambdaHint;

/// Asks the function `alerting` to send waiting messages now. If a hint is lost, the messages are sent a minute later,
/// by the function's schedule.
pub trait Hint: Send + Sync {
    /// Gives the hint without waiting for messages to be sent. The error says why no hint was given.
    fn give(&self, deadline: Deadline) -> impl Future<Output = Result<(), String>> + Send;
}

/// Gives no hint: waiting messages are sent by the schedule.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHint;

impl Hint for NoHint {
    async fn give(&self, _deadline: Deadline) -> Result<(), String> {
        Ok(())
    }
}
