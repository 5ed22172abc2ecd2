//! The time left to an invocation and the capacity that it has consumed. Decides nothing by them.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::StoreError;
use crate::deadline::Deadline;

/// The longest time for which the requests of one device are repeated, if an invocation has several devices.
const MOST_PATIENCE: Duration = Duration::from_secs(15);

/// The time left to an invocation, its patience, and the capacity units that it has consumed. The patience is the time
/// for which throttled requests are repeated.
///
/// A part of an invocation adds its units to those of the whole. A part that [`shortened_to`](Self::shortened_to) makes
/// ends earlier. All other parts keep the deadline, and repeat throttled requests for less time.
#[derive(Debug)]
#[must_use]
pub struct Invocation {
    deadline: Deadline,
    /// Until when throttled requests are repeated.
    patience: Deadline,
    consumed: Arc<Consumed>,
    throttled: Arc<Throttled>,
}

/// The consumed units, counted in halves as `DynamoDB` does.
#[derive(Debug, Default)]
struct Consumed {
    read_halves: AtomicU64,
    write_halves: AtomicU64,
}

/// Whether the table has throttled a request of an invocation or of one of its parts. Parts do not see each other.
#[derive(Debug, Default)]
struct Throttled {
    is_throttled: AtomicBool,
    parent: Option<Arc<Self>>,
}

/// The patience if a sender waits for the answer. The answer then comes within 8 seconds, because senders such as Home
/// Assistant's hang up after 10.
const SENDERS_PATIENCE: Duration = Duration::from_secs(7);

/// The longest time of a single request to the table, including the SDK's retries.
pub const MAX_OPERATION: Duration = Duration::from_secs(5);

impl Invocation {
    /// An invocation that ends at `deadline` and has consumed nothing. Throttled requests are repeated until the
    /// deadline.
    pub fn until(deadline: Deadline) -> Self {
        let (consumed, throttled) = (Arc::default(), Arc::default());
        Self { deadline, patience: deadline, consumed, throttled }
    }

    /// An invocation for a sender that hangs up long before `deadline`. Throttled requests are repeated for 7 seconds.
    /// If one was throttled until then, no further request is begun.
    pub fn for_sender(deadline: Deadline) -> Self {
        Self { patience: Deadline::after(SENDERS_PATIENCE), ..Self::until(deadline) }
    }

    /// A part with half of the patience.
    pub fn with_half_patience(&self) -> Self {
        self.with_patience(self.patience() / 2)
    }

    /// A part with at most `time` as its patience.
    pub fn with_patience(&self, time: Duration) -> Self {
        self.part_until(self.deadline, Deadline::after(time.min(self.patience())))
    }

    /// A part for one device of several, which together have the time `left`. The part keeps the deadline. Its patience
    /// is a quarter of `left`, at most 15 seconds. So a throttled device leaves three quarters of the time to the next.
    pub fn with_quarter_of(&self, left: Duration) -> Self {
        self.with_patience((left / 4).min(MOST_PATIENCE))
    }

    /// A part for one of several requests, which together have the patience of the invocation.
    pub fn with_quarter_patience(&self) -> Self {
        self.with_quarter_of(self.patience())
    }

    /// A part that ends after `time` at the latest, and repeats throttled requests until its end.
    pub fn shortened_to(&self, time: Duration) -> Self {
        let deadline = Deadline::after(time.min(self.remaining()));
        self.part_until(deadline, deadline)
    }

    fn part_until(&self, deadline: Deadline, patience: Deadline) -> Self {
        // A part begins as throttled only if nothing may be tried any more.
        let is_throttled = AtomicBool::new(self.is_out_of_patience());
        let parent = Some(Arc::clone(&self.throttled));
        let throttled = Arc::new(Throttled { is_throttled, parent });
        Self { deadline, patience, consumed: Arc::clone(&self.consumed), throttled }
    }

    /// The time for which a throttled request is repeated.
    pub fn patience(&self) -> Duration {
        self.patience.remaining().min(self.remaining())
    }

    /// Records that the table has throttled a request.
    pub fn note_throttled(&self) {
        let mut part = Some(&self.throttled);
        while let Some(Throttled { is_throttled, parent }) = part.map(Arc::as_ref) {
            is_throttled.store(true, Ordering::Relaxed);
            part = parent.as_ref();
        }
    }

    /// Whether a throttled request was repeated until the patience ended. Later requests are then not begun: many first
    /// attempts one after the other would take as long as repetitions.
    pub fn is_out_of_patience(&self) -> bool {
        self.patience().is_zero() && self.throttled.is_throttled.load(Ordering::Relaxed)
    }

    /// The time left.
    pub fn remaining(&self) -> Duration {
        self.deadline.remaining()
    }

    /// Runs one operation within the time left.
    pub async fn within<T>(&self, operation: impl Future<Output = T>) -> Result<T, StoreError> {
        let limit = self.remaining().min(MAX_OPERATION);
        tokio::time::timeout(limit, operation).await.map_err(|_| StoreError::TimedOut)
    }

    /// Adds read units.
    pub fn add_read(&self, units: f64) {
        self.consumed.read_halves.fetch_add(halves(units), Ordering::Relaxed);
    }

    /// Adds write units.
    pub fn add_write(&self, units: f64) {
        self.consumed.write_halves.fetch_add(halves(units), Ordering::Relaxed);
    }

    /// The read units consumed so far.
    pub fn read_units(&self) -> f64 {
        units(&self.consumed.read_halves)
    }

    /// The write units consumed so far.
    pub fn write_units(&self) -> f64 {
        units(&self.consumed.write_halves)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
fn halves(units: f64) -> u64 {
    (units * 2.0).round() as u64
}

#[expect(clippy::cast_precision_loss, reason = "no invocation consumes 2^53 units")]
fn units(halves: &AtomicU64) -> f64 {
    halves.load(Ordering::Relaxed) as f64 / 2.0
}
