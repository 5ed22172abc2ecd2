//! The text of the time for which a power holds, such as `15m`. Holds no power.

use chrono::TimeDelta;

/// The longest time: a day.
const MAX_SECONDS: i64 = 86_400;

/// Reads a time.
pub(crate) fn parse(text: &str) -> Option<TimeDelta> {
    let (digits, seconds) = [("s", 1), ("m", 60), ("h", 3_600)]
        .into_iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let seconds = digits.parse::<i64>().ok()?.checked_mul(seconds)?;
    (1..=MAX_SECONDS).contains(&seconds).then(|| TimeDelta::seconds(seconds))
}

/// The text of a time, in the largest unit that has no fraction.
pub(crate) fn text(hold: TimeDelta) -> String {
    match hold.num_seconds() {
        seconds if seconds % 3_600 == 0 => format!("{}h", seconds / 3_600),
        seconds if seconds % 60 == 0 => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
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
