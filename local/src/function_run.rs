//! Runs a function as Lambda does: a panic ends only the invocation, and a time-out ends the function.

use std::time::Duration;

use anyhow::anyhow;
use tokio::task::JoinSet;

/// Runs a function until it ends, panics or times out; the last two are errors. The function has stopped when this
/// returns, so a batch that is delivered again never overlaps its earlier delivery.
///
/// Source: <https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html>
pub(crate) async fn run_function<T: Send + 'static>(
    function: impl Future<Output = T> + Send + 'static,
    timeout: Duration,
) -> anyhow::Result<T> {
    // A `JoinSet` aborts its tasks when it is dropped: an aborted poller leaves no function running.
    let mut tasks = JoinSet::new();
    tasks.spawn(tokio::time::timeout(timeout, function));

    let ended = tasks.join_next().await.expect("the task of the function");
    ended?.map_err(|_| anyhow!("the function took too long"))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(60);

    /// A function that works for `time`, and a list that has an entry once the function has done its work.
    fn working(time: Duration) -> (impl Future<Output = ()> + Send, Arc<Mutex<Vec<Duration>>>) {
        let done = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&done);
        let function = async move {
            tokio::time::sleep(time).await;
            list.lock().unwrap().push(time);
        };
        (function, done)
    }

    #[tokio::test(start_paused = true)]
    async fn a_function_within_its_time_is_done() {
        let (function, done) = working(TIMEOUT / 2);
        run_function(function, TIMEOUT).await.unwrap();
        assert_eq!(*done.lock().unwrap(), [TIMEOUT / 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_function_that_takes_too_long_is_ended() {
        let (function, done) = working(TIMEOUT * 2);
        let error = run_function(function, TIMEOUT).await.unwrap_err();
        assert_eq!(error.to_string(), "the function took too long");
        tokio::time::sleep(TIMEOUT * 2).await;
        assert!(done.lock().unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_function_ends_with_the_poller_that_is_aborted() {
        let (function, done) = working(TIMEOUT / 2);
        let poller = tokio::spawn(run_function(function, TIMEOUT));
        tokio::time::sleep(TIMEOUT / 4).await;
        poller.abort();
        tokio::time::sleep(TIMEOUT).await;
        assert!(done.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_panic_of_a_function_is_an_error() {
        let panics = async { panic!("the function's own") };
        let error = run_function::<()>(panics, TIMEOUT).await.unwrap_err();
        assert!(error.to_string().contains("panicked"), "{error}");
    }
}
