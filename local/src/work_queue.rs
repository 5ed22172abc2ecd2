//! The work queue of one machine: messages in the engine's file. Delivers no message; `queue_poller` does.

use std::sync::Arc;

use runtime::work_queue::{FoldRequest, NotSent, WorkQueue};
use table::Invocation;

use crate::engine::Queue;

/// The sending side of a queue.
#[derive(Clone)]
pub(crate) struct LocalWorkQueue(Arc<Queue>);

impl LocalWorkQueue {
    /// Makes the sending side of `queue`.
    pub(crate) const fn to(queue: Arc<Queue>) -> Self {
        Self(queue)
    }
}

impl WorkQueue for LocalWorkQueue {
    async fn send(&self, messages: &[FoldRequest], _: &Invocation) -> Result<(), NotSent> {
        let bodies = messages.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
        let (queue, bodies) = (Arc::clone(&self.0), bodies.map_err(NotSent::because)?);
        let sent = tokio::task::spawn_blocking(move || queue.send(&bodies)).await;
        sent.map_err(NotSent::because)?.map_err(NotSent::because)
    }

    async fn depth(&self, _: &Invocation) -> Result<u64, NotSent> {
        let queue = Arc::clone(&self.0);
        let counted = tokio::task::spawn_blocking(move || queue.depth()).await;
        counted.map_err(NotSent::because)?.map_err(NotSent::because)
    }
}
