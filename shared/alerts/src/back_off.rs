//! When a message is sent again after a failed attempt. Reads no clock.

use chrono::TimeDelta;
use domain::Timestamp;

/// The pause after the first attempt. Each further pause is twice as long as the one before.
const MIN_PAUSE: TimeDelta = TimeDelta::seconds(10);
/// The longest pause, even if the receiving server asks for a longer one.
pub const MAX_PAUSE: TimeDelta = TimeDelta::hours(1);
/// The time from the first attempt until a message is given up.
pub const MAX_RETRIED: TimeDelta = TimeDelta::days(1);
/// The largest number of attempts. A day has fewer, so this limit is reached only if the clock was set back.
const MAX_ATTEMPTS: u32 = 40;

/// When the next attempt is due after `attempts` failed ones, the last of them at `now`. `None` after a day: the
/// message waits until a newer message is sent.
///
/// A server may ask for a longer pause of up to an hour. A pause without a limit could use up the whole day.
pub fn next_attempt(
    first: Timestamp,
    attempts: u32,
    now: Timestamp,
    retry_after: Option<TimeDelta>,
) -> Option<Timestamp> {
    let doublings = attempts.saturating_sub(1).min(MAX_ATTEMPTS / 4);
    let pause = (MIN_PAUSE * (1 << doublings)).min(MAX_PAUSE);
    let wait = retry_after.unwrap_or(pause).clamp(pause, MAX_PAUSE);
    let next = now.saturating_add(wait);
    (next.since(first) <= MAX_RETRIED && attempts < MAX_ATTEMPTS).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given;

    fn first() -> Timestamp {
        given::at("2026-01-11T16:00:00Z")
    }

    fn pause(attempts: u32, asked: Option<i64>) -> Option<i64> {
        let asked = asked.map(TimeDelta::seconds);
        next_attempt(first(), attempts, first(), asked).map(|at| at.since(first()).num_seconds())
    }

    #[test]
    fn pauses_double_from_10_seconds_to_an_hour() {
        let pauses: Vec<_> = (0..12).filter_map(|attempts| pause(attempts, None)).collect();
        let expected = [10, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600, 3_600];
        assert_eq!(pauses, expected);
        assert_eq!(pause(MAX_ATTEMPTS - 1, None), Some(3_600));
    }

    #[test]
    fn a_server_may_ask_for_a_longer_pause_up_to_an_hour() {
        assert_eq!(pause(1, Some(60)), Some(60));
        assert_eq!(pause(1, Some(3)), Some(10));
        assert_eq!(pause(1, Some(-3)), Some(10));
        assert_eq!(pause(1, Some(86_400)), Some(3_600));
        assert_eq!(pause(12, Some(5)), Some(3_600));
    }

    #[test]
    fn a_message_is_given_up_a_day_after_its_first_attempt() {
        let (mut now, mut attempts) = (first(), 1);
        while let Some(next) = next_attempt(first(), attempts, now, None) {
            assert!(next > now && next.since(first()) <= MAX_RETRIED);
            (now, attempts) = (next, attempts + 1);
        }
        assert_eq!(attempts, 32);
        assert!(now.since(first()) > TimeDelta::hours(23));
    }

    #[test]
    fn a_clock_that_was_put_back_loses_no_message_and_ends_all_the_same() {
        let early = first().saturating_add(TimeDelta::days(-400));
        assert_eq!(
            next_attempt(first(), 1, early, None),
            Some(early.saturating_add(TimeDelta::seconds(10)))
        );
        assert_eq!(next_attempt(first(), MAX_ATTEMPTS, early, None), None);
    }
}
