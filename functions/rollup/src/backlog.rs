//! The time at which an instance last noted that it is behind. Notes nothing itself.

use std::sync::Mutex;

use chrono::TimeDelta;
use domain::Timestamp;

/// The last note of an instance.
#[derive(Debug, Default)]
pub(crate) struct LastNote(Mutex<Option<Timestamp>>);

impl LastNote {
    /// Whether another note is due; one of a clock that was ahead counts for nothing.
    pub(crate) fn is_due(&self, now: Timestamp, interval: TimeDelta) -> bool {
        let last = *self.0.lock().expect("nothing panics while it is held");
        last.is_none_or(|last| now < last || now.since(last) >= interval)
    }

    /// Remembers a note that is stored.
    pub(crate) fn noted(&self, now: Timestamp) {
        *self.0.lock().expect("nothing panics while it is held") = Some(now);
    }
}
