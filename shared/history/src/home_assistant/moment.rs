//! Times in a database: seconds since 1970, or text in UTC. Knows no table.

use domain::Timestamp;

/// Returns a time in nanoseconds, from the column with seconds, or else from the column with text.
pub(super) fn nanos(seconds: Option<f64>, text: Option<&str>) -> Option<i64> {
    if let Some(seconds) = seconds {
        // Home Assistant's times have microseconds; further digits come from the floating-point number.
        let micros = (seconds * 1e6).round();
        #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
        return (micros.abs() < 9e15).then(|| micros as i64 * 1_000);
    }

    let text = text?.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = format!("{}Z", whole.replacen(' ', "T", 1));

    let millis = Timestamp::parse_absolute(&whole).ok()?.as_millis();
    let digits: String = fraction.chars().take_while(char::is_ascii_digit).take(9).collect();
    let fraction: i64 = if digits.is_empty() { 0 } else { format!("{digits:0<9}").parse().ok()? };
    millis.checked_mul(1_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_the_filled_one_counts() {
        assert_eq!(nanos(Some(1_768_147_200.123_456), None), Some(1_768_147_200_123_456_000));
        assert_eq!(
            nanos(None, Some("2026-01-11 16:00:00.123456")),
            Some(1_768_147_200_123_456_000)
        );
        assert_eq!(nanos(None, Some("2026-01-11 16:00:00")), Some(1_768_147_200_000_000_000));
        let both = nanos(Some(1_768_147_200.0), Some("2020-01-01 00:00:00"));
        assert_eq!(both, Some(1_768_147_200_000_000_000));
        // Nanoseconds end in 2262.
        let last = nanos(None, Some("2262-04-11 23:47:16.854775"));
        assert_eq!(last, Some(9_223_372_036_854_775_000));
        for late in ["2262-04-11 23:47:17", "2262-04-11 23:47:16.9", "9999-12-31 23:59:59"] {
            assert_eq!(nanos(None, Some(late)), None);
        }
        assert_eq!((nanos(None, None), nanos(None, Some("never"))), (None, None));
    }
}
