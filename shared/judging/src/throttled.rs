//! Limits the time that is lost to throttled requests. Reads nothing itself.

use chrono::TimeDelta;
use table::{Remembered, Session, StoreError, StoreResult, out_of_patience};

/// How long a throttled request is not made again.
const REST: TimeDelta = TimeDelta::minutes(1);

/// The last throttling of one kind of request, which many judgements make. Such a request gets a part of the time. If
/// it is throttled, further requests of its kind fail at once for a minute: their kind rests. Judgements use what was
/// read last, or are put off, so that others keep their time.
#[derive(Debug, Default)]
pub struct RequestThrottle(Remembered<()>);

impl RequestThrottle {
    /// Makes a request, and repeats it for a limited time while it is throttled. Fails at once while its kind rests.
    pub async fn unless_resting<S, T>(
        &self,
        table: Session<'_, S>,
        request: impl AsyncFnOnce(Session<'_, S>) -> StoreResult<T>,
    ) -> StoreResult<T> {
        let now = table.now;
        if self.0.get(now, |()| REST).is_some() {
            return Err(out_of_patience());
        }

        let part = table.invocation.with_quarter_patience();
        // If no time is given for repeats, there is a single attempt. That it was throttled says little of the next
        // one.
        let is_repeated = !part.patience().is_zero();
        let answer = request(table.within(&part)).await;
        if is_repeated && matches!(answer, Err(StoreError::Throttled(_))) {
            self.0.keep((), now);
        }
        answer
    }
}
