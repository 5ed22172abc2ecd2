//! Requests that the table throttles, and what they cost then. Reads nothing itself.

use chrono::TimeDelta;
use table::{Remembered, Session, StoreError, StoreResult, out_of_patience};

/// How long a request that was throttled is not made again.
const REST: TimeDelta = TimeDelta::minutes(1);

/// A request that is made for many judgements. Where the table throttles the request to the end of its part of the time, it
/// fails at once for a minute. The judgement uses what was read last, or is left, and others keep their time.
#[derive(Debug, Default)]
pub struct ThrottledRequest(Remembered<()>);

impl ThrottledRequest {
    /// Makes the request with a part of the patience.
    pub async fn make<S, T>(
        &self,
        table: Session<'_, S>,
        request: impl AsyncFnOnce(Session<'_, S>) -> StoreResult<T>,
    ) -> StoreResult<T> {
        let (invocation, now) = (table.invocation, table.now);
        if self.0.get(now, |()| REST).is_some() {
            return Err(out_of_patience());
        }

        let part = invocation.for_one_of_several(invocation.patience());
        // A single attempt that is throttled says little of the next one.
        let is_repeated = !part.patience().is_zero();
        let answer = request(table.within(&part)).await;
        if is_repeated && matches!(answer, Err(StoreError::Throttled(_))) {
            self.0.keep((), now);
        }
        answer
    }
}
