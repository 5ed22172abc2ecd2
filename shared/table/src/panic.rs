//! Turns a panic into an error, so that a bug ends one invocation and not the process. Recovers nothing else.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;

/// A caught panic, with its message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the code panicked: {0}")]
pub struct Panic(String);

/// Runs a future to its end, or to a panic.
///
/// State outside the future stays usable after a panic, because no lock is held while code can panic.
pub async fn catching<T>(future: impl Future<Output = T>) -> Result<T, Panic> {
    AssertUnwindSafe(future).catch_unwind().await.map_err(|payload| Panic(text(payload.as_ref())))
}

/// The text of a panic. `panic!` passes a `&str` or a `String`.
fn text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a value that is not text").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_that_says_its_text() {
        assert_eq!(catching(async { 5 }).await, Ok(5));
        let at = 7;
        let error = catching(async { panic!("index {at}") }).await.map(|(): ()| ());
        assert_eq!(error.expect_err("it panics").to_string(), "the code panicked: index 7");
        let error = catching(async { panic!("a constant") }).await.map(|(): ()| ());
        assert_eq!(error.expect_err("it panics").to_string(), "the code panicked: a constant");
        let error = catching(async { std::panic::panic_any(7) }).await.map(|(): ()| ());
        assert!(error.expect_err("it panics").to_string().contains("not text"));
    }

    #[tokio::test]
    async fn a_panic_after_an_await_is_caught_too() {
        let late = async {
            tokio::task::yield_now().await;
            panic!("late");
        };
        assert_eq!(catching(late).await.map(|(): ()| ()), Err(Panic("late".to_owned())));
    }
}
