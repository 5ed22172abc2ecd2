//! Limits the time that is lost to throttled requests. Reads nothing itself.

use chrono::TimeDelta;
use table::{Remembered, Session, StoreError, StoreResult, out_of_patience};

/// How long a throttled request is not made again.
const REST: TimeDelta = TimeDelta::minutes(1);

/// A request that many judgements make. It gets a part of the time. After a throttled request, the next ones fail at
/// once for a minute. A judgement then uses what was read last, or is put off, so that others keep their time.
#[derive(Debug, Default)]
pub struct ThrottledRequest(Remembered<()>);

impl ThrottledRequest {
    /// Makes the request with a part of the patience.
    pub async fn make<S, T>(
        &self,
        table: Session<'_, S>,
        request: impl AsyncFnOnce(Session<'_, S>) -> StoreResult<T>,
    ) -> StoreResult<T> {
        let now = table.now;
        if self.0.get(now, |()| REST).is_some() {
            return Err(out_of_patience());
        }

        let part = table.invocation.with_quarter_patience();
        // Without patience there is a single attempt, as in `judge_episodes`. If it is throttled, that says little of
        // the next one.
        let is_repeated = !part.patience().is_zero();
        let answer = request(table.within(&part)).await;
        if is_repeated && matches!(answer, Err(StoreError::Throttled(_))) {
            self.0.keep((), now);
        }
        answer
    }
}
