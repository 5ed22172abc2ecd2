//! Limits the time that is lost to throttled requests. Reads nothing itself.

use chrono::TimeDelta;
use table::{Remembered, Session, StoreError, StoreResult, out_of_patience};

/// How long requests of a kind are not made after one of them was throttled.
const PAUSE: TimeDelta = TimeDelta::minutes(1);

/// The last throttling of one kind of request, which many judgements make. Such a request gets a part of the time. If
/// the request is throttled, further requests of the kind fail at once for a minute. A judgement then uses what was
/// read last, or is put off, so that the time is left to others.
#[derive(Debug, Default)]
pub struct RequestThrottle(Remembered<()>);

impl RequestThrottle {
    /// Makes a request, and repeats it for a limited time while it is throttled. Fails at once if a request of its kind
    /// was throttled within the last minute.
    pub async fn unless_throttled<S, T>(
        &self,
        table: Session<'_, S>,
        request: impl AsyncFnOnce(Session<'_, S>) -> StoreResult<T>,
    ) -> StoreResult<T> {
        let now = table.now;
        if self.0.get(now, |()| PAUSE).is_some() {
            return Err(out_of_patience());
        }

        let part = table.invocation.with_quarter_patience();
        // Without patience there is a single attempt, which says little about the next request.
        let is_repeated = !part.patience().is_zero();
        let answer = request(table.within(&part)).await;
        if is_repeated && matches!(answer, Err(StoreError::Throttled(_))) {
            self.0.keep((), now);
        }
        answer
    }
}
