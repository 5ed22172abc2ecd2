//! The age of the oldest work that is not folded: what the sweeps have left, what the stream is known to have, what
//! waits in the queue. Folds nothing.

use rollups::newest_sealable_edge;
use runtime::clock::Clock;
use runtime::work_queue::WorkQueue;
use table::{RollupState, Session, StoreResult};

use crate::bucket_folding::BucketFolding;
use crate::ports::Store;

impl<S: Store, W: WorkQueue, C: Clock> BucketFolding<S, W, C> {
    /// The age, in seconds, of the oldest work that is left after a sweep; 0 where none is known.
    ///
    /// Changes of the past that the stream may still bring count from the moment of their marks on, so that up to
    /// two minutes are usual.
    pub(crate) async fn oldest_unfinished(
        &self,
        session: Session<'_, S>,
        state: &RollupState,
    ) -> StoreResult<i64> {
        let now = self.clock.now();
        let late = session.late_changes().await?;
        let changed = now.since(self.settings.following.folded_until(&late, now));
        let left = newest_sealable_edge(now).since(state.sealed());
        let queued = self.queue_busy.since(state.queue).map(|since| now.since(since));
        let ages = [Some(changed), Some(left), queued].into_iter().flatten();
        Ok(ages.map(|age| age.num_seconds()).max().unwrap_or_default().max(0))
    }
}
