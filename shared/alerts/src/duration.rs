//! The texts of durations, such as `10m`. Has no limits of its own.

use chrono::TimeDelta;

const UNITS: [(&str, i64); 4] = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];

/// Reads a number of days, hours, minutes or seconds.
pub(crate) fn parse(text: &str) -> Option<TimeDelta> {
    let (digits, unit) =
        UNITS.into_iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))?;
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = digits.parse::<i64>().ok().filter(|_| is_plain)?.checked_mul(unit)?;
    TimeDelta::try_seconds(seconds)
}

/// The text of a duration, in the largest unit that has no fraction.
pub(crate) fn text(duration: TimeDelta) -> String {
    let seconds = duration.num_seconds();
    let largest = UNITS.into_iter().find(|(_, unit)| seconds != 0 && seconds % unit == 0);
    let (unit, length) = largest.unwrap_or(("s", 1));
    format!("{}{unit}", seconds / length)
}
