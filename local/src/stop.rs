//! The signal to stop, which every task of the system watches, and the end of a task that has got it.

use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Returns whether the system stops, or was dropped without the signal.
pub(crate) fn is_stopped(stop: &watch::Receiver<bool>) -> bool {
    *stop.borrow() || stop.has_changed().is_err()
}

/// Waits for `duration`, or until the system stops.
pub(crate) async fn pause(duration: Duration, stop: &mut watch::Receiver<bool>) {
    tokio::select! {
        () = tokio::time::sleep(duration) => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
}

/// Waits for the end of a task that was told to stop, and aborts it after `timeout`: a client may keep a request open,
/// and a batch may hang.
pub(crate) async fn end(
    mut task: JoinHandle<()>,
    name: &str,
    timeout: Duration,
) -> anyhow::Result<()> {
    match tokio::time::timeout(timeout, &mut task).await {
        Ok(ended) => ended.with_context(|| format!("{name} panicked")),
        Err(_) => {
            task.abort();
            Ok(())
        }
    }
}
