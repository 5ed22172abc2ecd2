//! Runs a function as Lambda does: a panic ends only the invocation, and a time-out ends the function.

use std::pin::Pin;
use std::sync::Arc;

use anyhow::anyhow;
use runtime::clock::Deadline;
use tokio::task::JoinSet;

use crate::deployment::DeployedFunction;

/// A function for whatever invokes it: the stream, a queue, a schedule or another function.
pub(crate) struct HostedFunction<Event, Reply> {
    function: DeployedFunction,
    handle: Box<dyn Fn(Event, Deadline) -> Handling<Reply> + Send + Sync>,
}

type Handling<Reply> = Pin<Box<dyn Future<Output = Reply> + Send>>;

impl<Event, Reply: Send + 'static> HostedFunction<Event, Reply> {
    /// Hosts one kind of event of an instance.
    pub(crate) fn new<
        Instance: Send + Sync + 'static,
        H: Future<Output = Reply> + Send + 'static,
    >(
        function: DeployedFunction,
        instance: &Arc<Instance>,
        handle: impl Fn(Arc<Instance>, Event, Deadline) -> H + Send + Sync + 'static,
    ) -> Self {
        let instance = Arc::clone(instance);
        let handle = move |event, deadline| -> Handling<Reply> {
            Box::pin(handle(Arc::clone(&instance), event, deadline))
        };
        Self { function, handle: Box::new(handle) }
    }

    /// The function's logical id.
    pub(crate) const fn name(&self) -> &'static str {
        self.function.name
    }

    /// Runs the function until it ends, panics or times out; the last two are errors. The function has stopped when
    /// this returns, so a batch that is delivered again never overlaps its earlier delivery.
    ///
    /// Source: <https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html>
    pub(crate) async fn invoke(&self, event: Event) -> anyhow::Result<Reply> {
        let DeployedFunction { timeout, .. } = self.function;
        let handling = (self.handle)(event, Deadline::after(timeout));

        // A `JoinSet` aborts its tasks when it is dropped: an aborted poller leaves no function running.
        let mut tasks = JoinSet::new();
        tasks.spawn(tokio::time::timeout(timeout, handling));
        let ended = tasks.join_next().await.expect("the task of the function");
        ended?.map_err(|_| anyhow!("the function took too long"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;
    use crate::deployment::REGISTRY;

    const TIMEOUT: Duration = REGISTRY.timeout;

    /// A function that works for some time, and then adds this time to the list of its instance.
    fn working(list: &Arc<Mutex<Vec<Duration>>>) -> HostedFunction<Duration, ()> {
        HostedFunction::new(REGISTRY, list, |list, time: Duration, _| async move {
            tokio::time::sleep(time).await;
            list.lock().unwrap().push(time);
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_function_within_its_time_is_done() {
        let done = Arc::default();
        working(&done).invoke(TIMEOUT / 2).await.unwrap();
        assert_eq!(*done.lock().unwrap(), [TIMEOUT / 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_function_that_takes_too_long_is_ended() {
        let done = Arc::default();
        let error = working(&done).invoke(TIMEOUT * 2).await.unwrap_err();
        assert_eq!(error.to_string(), "the function took too long");
        tokio::time::sleep(TIMEOUT * 2).await;
        assert!(done.lock().unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_function_ends_with_the_poller_that_is_aborted() {
        let done = Arc::default();
        let function = working(&done);
        let poller = tokio::spawn(async move { function.invoke(TIMEOUT / 2).await });
        tokio::time::sleep(TIMEOUT / 4).await;
        poller.abort();
        tokio::time::sleep(TIMEOUT).await;
        assert!(done.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_panic_of_a_function_is_an_error() {
        let panics = |_, (), _| async { panic!("the function's own") };
        let function = HostedFunction::<(), ()>::new(REGISTRY, &Arc::new(()), panics);
        let error = function.invoke(()).await.unwrap_err();
        assert!(error.to_string().contains("panicked"), "{error}");
    }
}
