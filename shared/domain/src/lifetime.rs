//! The lifetime of a new token, as people write it. Knows no token.

use chrono::TimeDelta;

use super::duration;

/// The longest time for which a token is valid.
const MAX_LIFETIME: TimeDelta = TimeDelta::days(36_500);

/// The reasons for which a text is not a lifetime.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LifetimeError {
    /// The text does not have the form of a lifetime.
    #[error("expected hours, days or weeks, such as 12h, 90d or 4w")]
    Form,
    /// The lifetime is longer than a token may be valid.
    #[error("is more than 100 years; leave it out")]
    TooLong,
}

/// Reads a lifetime such as `90d`.
pub fn lifetime(text: &str) -> Result<TimeDelta, LifetimeError> {
    match duration::parse(text, "hdw").ok_or(LifetimeError::Form)? {
        time if time <= TimeDelta::zero() => Err(LifetimeError::Form),
        time if time > MAX_LIFETIME => Err(LifetimeError::TooLong),
        time => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_a_number_of_hours_days_or_weeks() {
        for text in ["", "d", "90", "-1d", "+1d", "0d", "90m", "1.5d", "9999999999999999d", "é"] {
            assert_eq!(lifetime(text), Err(LifetimeError::Form), "{text}");
        }
        assert_eq!(lifetime("40000d"), Err(LifetimeError::TooLong));
        for (text, hours) in [("12h", 12), ("90d", 90 * 24), ("4w", 28 * 24)] {
            assert_eq!(lifetime(text), Ok(TimeDelta::hours(hours)));
        }
    }
}
