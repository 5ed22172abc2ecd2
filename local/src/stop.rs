//! The signal to stop, which every task of the system watches. Ends no task itself.

use std::time::Duration;

use tokio::sync::watch;

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
