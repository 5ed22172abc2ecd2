//! The hint that messages wait, within one process. Sends none.

use std::sync::Arc;
use std::time::Duration;

use runtime::clock::Deadline;
use runtime::hint::Hint;
use tokio::sync::{Notify, watch};

use crate::functions::Alerting;
use crate::stop::is_stopped;
use crate::warning::WarningLimiter;

/// How long the function may take.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Asks for what waits to be sent. Several hints that nobody has followed yet are one.
#[derive(Debug, Clone, Default)]
pub(crate) struct LocalHint(Arc<Notify>);

impl Hint for LocalHint {
    async fn ask(&self, _: Deadline) -> Result<(), String> {
        self.0.notify_one();
        Ok(())
    }
}

impl LocalHint {
    /// Invokes the function at each hint, until told to stop.
    pub(crate) async fn follow(self, alerting: Arc<Alerting>, stop: watch::Receiver<bool>) {
        let warnings = WarningLimiter::new();
        while !is_stopped(&stop) {
            self.0.notified().await;
            let sent = alerting.handle(alerting::Event::Hint, Deadline::after(TIMEOUT));
            if let Err(error) = Box::pin(sent).await {
                warnings.warn(format_args!("messages of alerts are not sent: {error}"));
            }
        }
    }
}
