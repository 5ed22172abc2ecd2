//! Durations as texts, such as `10m`. Has no limits of its own.

use chrono::TimeDelta;

/// The units and their seconds, the largest first.
const UNITS: [(char, i64); 5] = [('w', 604_800), ('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

/// Reads a whole number followed by its unit, which is a letter of `units` such as `"smhdw"`.
pub fn parse(text: &str, units: &str) -> Option<TimeDelta> {
    let (digits, seconds) = UNITS
        .into_iter()
        .filter(|(unit, _)| units.contains(*unit))
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: i64 = digits.parse().ok().filter(|_| is_number)?;
    TimeDelta::try_seconds(number.checked_mul(seconds)?)
}

/// The text of whole seconds, in the largest of `units` that leaves no fraction.
pub fn text(duration: TimeDelta, units: &str) -> String {
    let seconds = duration.num_seconds();
    let fits = |(unit, length): &(char, i64)| {
        units.contains(*unit) && seconds != 0 && seconds % length == 0
    };
    let (unit, length) = UNITS.into_iter().find(fits).unwrap_or(('s', 1));
    format!("{}{unit}", seconds / length)
}

/// The hold time: how long the value of a power counts if no newer value comes. Its texts are like `15m`.
pub mod hold {
    use chrono::TimeDelta;
    use serde::de::Error;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use crate::excerpt;

    const UNITS: &str = "smh";
    /// The longest time: a day.
    const MAX_SECONDS: i64 = 86_400;

    /// Reads a time that a person sets, from one second to a day.
    pub fn parse(text: &str) -> Option<TimeDelta> {
        let hold = super::parse(text, UNITS)?;
        (1..=MAX_SECONDS).contains(&hold.num_seconds()).then_some(hold)
    }

    /// Reads a time, or says what is expected.
    pub(crate) fn read<E: Error>(text: &str) -> Result<TimeDelta, E> {
        parse(text).ok_or_else(|| {
            let expected = "expected a time from 1s to 24h such as 90s, 15m or 1h";
            E::custom(format_args!("is {:?}; {expected}", excerpt(text)))
        })
    }

    /// The text of a time, in the largest unit that leaves no fraction.
    pub fn text(hold: TimeDelta) -> String {
        super::text(hold, UNITS)
    }

    #[expect(clippy::ref_option, reason = "serde hands a reference")]
    pub(crate) fn serialize<S: Serializer>(
        hold: &Option<TimeDelta>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        hold.map(text).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<TimeDelta>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| read(&text)).transpose()
    }
}
