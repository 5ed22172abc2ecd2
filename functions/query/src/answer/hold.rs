//! The text of the time for which a power holds, such as `15m`. Holds no power.

use chrono::TimeDelta;
use domain::duration;

const UNITS: &str = "smh";
/// The longest time: a day.
const MAX_SECONDS: i64 = 86_400;

/// Reads a time.
pub(crate) fn parse(text: &str) -> Option<TimeDelta> {
    let hold = duration::parse(text, UNITS)?;
    (1..=MAX_SECONDS).contains(&hold.num_seconds()).then_some(hold)
}

/// The text of a time, in the largest unit that has no fraction.
pub(crate) fn text(hold: TimeDelta) -> String {
    duration::text(hold, UNITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_back_as_it_was_written() {
        for text_of in ["1s", "90s", "15m", "1h", "24h"] {
            assert_eq!(text(parse(text_of).expect(text_of)), text_of);
        }
        assert_eq!(text(parse("3600s").expect("an hour")), "1h");
        for wrong in ["", "m", "15", "-1m", "0s", "25h", "1.5h", "1d", "99999999999999999999h"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
