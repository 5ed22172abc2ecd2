//! The time range of a request to a source with a history, and its placeholders. Reads no clock.

use chrono::{DateTime, TimeDelta, Utc};
use domain::Timestamp;

use crate::placeholder::Values;

/// The longest range of one request.
const MAX_WINDOW: TimeDelta = TimeDelta::days(31);

/// How far back and ahead each run of a source with a history reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryWindow {
    /// How much of the time that was already read is read again, because values may still come or change.
    pub back: TimeDelta,
    /// How far ahead of now the source has values.
    pub ahead: TimeDelta,
}

/// The time range of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeWindow {
    /// The beginning of the range.
    pub from: Timestamp,
    /// The end of the range, exclusive.
    pub to: Timestamp,
    now: Timestamp,
}

impl HistoryWindow {
    /// The range of a run at `now`, of at most 31 days. It begins `back` before `position`; without a position, at
    /// `since`; without either, `back` before `now`.
    pub fn at(
        self,
        position: Option<Timestamp>,
        since: Option<Timestamp>,
        now: Timestamp,
    ) -> TimeWindow {
        let end = now.saturating_add(self.ahead);
        // A position ahead of the clock comes from a wrong clock, and is ignored.
        let from = match position.filter(|position| *position <= now) {
            Some(position) => position.saturating_add(-self.back),
            None => since.unwrap_or_else(|| now.saturating_add(-self.back)),
        };
        let from = from.min(now);
        TimeWindow { from, to: end.min(from.saturating_add(MAX_WINDOW)), now }
    }
}

impl TimeWindow {
    /// The empty range of a source without a history.
    pub const fn moment(now: Timestamp) -> Self {
        Self { from: now, to: now, now }
    }

    /// The time up to which the past is read once the answer is stored.
    pub fn position(&self) -> Timestamp {
        self.to.min(self.now)
    }

    /// Whether a part of the past is left after this range.
    pub fn is_behind(&self) -> bool {
        self.to < self.now
    }

    /// The values of the placeholders for times.
    pub(crate) fn values(&self) -> Values {
        let of = |prefix: &str, at: Timestamp| {
            let utc = utc(at);
            [
                (prefix.to_owned(), utc.format("%Y-%m-%dT%H:%M:%SZ").to_string()),
                (format!("{prefix}_minute"), utc.format("%Y-%m-%dT%H:%M").to_string()),
                (format!("{prefix}_unix"), utc.timestamp().to_string()),
                (format!("{prefix}_date"), utc.format("%Y-%m-%d").to_string()),
            ]
        };
        let all = [of("from", self.from), of("to", self.to), of("now", self.now)];
        all.into_iter().flatten().collect()
    }
}

/// Whether a placeholder has this name for a time.
pub(crate) fn is_time(name: &str) -> bool {
    TimeWindow::moment(Timestamp::MAX).values().contains_key(name)
}

fn utc(at: Timestamp) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(at.as_millis()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::at;

    const DAY: HistoryWindow =
        HistoryWindow { back: TimeDelta::days(1), ahead: TimeDelta::days(2) };

    #[test]
    fn a_window_begins_before_what_was_answered_and_has_31_days_at_most() {
        let now = at("2026-03-10T12:00:00Z");
        for (position, since, from, to, is_behind) in [
            (None, None, "2026-03-09T12:00:00Z", "2026-03-12T12:00:00Z", false),
            (
                Some("2026-03-10T09:00:00Z"),
                None,
                "2026-03-09T09:00:00Z",
                "2026-03-12T12:00:00Z",
                false,
            ),
            (
                None,
                Some("2026-01-01T00:00:00Z"),
                "2026-01-01T00:00:00Z",
                "2026-02-01T00:00:00Z",
                true,
            ),
            (
                Some("2026-02-01T00:00:00Z"),
                Some("2026-01-01T00:00:00Z"),
                "2026-01-31T00:00:00Z",
                "2026-03-03T00:00:00Z",
                true,
            ),
            (
                Some("2027-01-01T00:00:00Z"),
                None,
                "2026-03-09T12:00:00Z",
                "2026-03-12T12:00:00Z",
                false,
            ),
            (
                None,
                Some("2027-01-01T00:00:00Z"),
                "2026-03-10T12:00:00Z",
                "2026-03-12T12:00:00Z",
                false,
            ),
        ] {
            let window = DAY.at(position.map(at), since.map(at), now);
            assert_eq!((window.from, window.to), (at(from), at(to)), "{position:?} {since:?}");
            assert_eq!(window.is_behind(), is_behind, "{position:?} {since:?}");
            assert_eq!(window.position(), at(to).min(now));
        }
    }

    #[test]
    fn the_times_of_a_request_have_these_forms() {
        let window = DAY.at(None, None, at("2026-03-10T12:34:56.789Z"));
        let values = window.values();
        for (name, expected) in [
            ("from", "2026-03-09T12:34:56Z"),
            ("to_minute", "2026-03-12T12:34"),
            ("from_unix", "1773059696"),
            ("to_date", "2026-03-12"),
            ("now_unix", "1773146096"),
        ] {
            assert_eq!(values[name], expected, "{name}");
            assert!(is_time(name));
        }
    }
}
