//! The time that a source with a history is asked for, and its placeholders. Reads no clock.

use chrono::{DateTime, TimeDelta, Utc};
use domain::Timestamp;

use crate::placeholder::Values;

/// The longest time that is asked for at once.
const MAX_WINDOW: TimeDelta = TimeDelta::days(31);

/// The names of the times that a request may have.
pub(crate) const TIME_NAMES: [&str; 10] = [
    "from",
    "to",
    "from_minute",
    "to_minute",
    "from_unix",
    "to_unix",
    "from_date",
    "to_date",
    "now",
    "now_unix",
];

/// How a source with a history is asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryWindow {
    /// The time before what was answered last, in which values may still come or change.
    pub back: TimeDelta,
    /// The time ahead of now that the source knows.
    pub ahead: TimeDelta,
}

/// The time that one run asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeWindow {
    /// Its start.
    pub from: Timestamp,
    /// Its end, which is not in it.
    pub to: Timestamp,
    now: Timestamp,
}

impl HistoryWindow {
    /// The time that is asked for at `now`: from what was answered last, or else from `since`.
    pub fn at(
        self,
        position: Option<Timestamp>,
        since: Option<Timestamp>,
        now: Timestamp,
    ) -> TimeWindow {
        let end = now.saturating_add(self.ahead);
        // A position ahead of the clock was noted by a clock that was wrong.
        let from = match position.filter(|position| *position <= now) {
            Some(position) => position.saturating_add(-self.back),
            None => since.unwrap_or_else(|| now.saturating_add(-self.back)),
        };
        let from = from.min(now);
        TimeWindow { from, to: end.min(from.saturating_add(MAX_WINDOW)), now }
    }
}

impl TimeWindow {
    /// No time but this moment: what a source without a history is asked at.
    pub const fn moment(now: Timestamp) -> Self {
        Self { from: now, to: now, now }
    }

    /// What was answered once the answer of this window is stored.
    pub fn position(&self) -> Timestamp {
        self.to.min(self.now)
    }

    /// Whether there is more to ask for before now.
    pub fn is_behind(&self) -> bool {
        self.to < self.now
    }

    /// The values of the placeholders of times.
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
            assert!(TIME_NAMES.contains(&name));
        }
        assert!(TIME_NAMES.iter().all(|name| values.contains_key(*name)));
    }
}
