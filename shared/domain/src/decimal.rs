//! Measured values: exact decimal numbers as `DynamoDB` keeps them, with exactly one text for each number.

mod arithmetic;
pub(crate) mod small;

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use smol_str::SmolStr;

use super::excerpt;
use super::text_or_number::is_number;
use small::Small;

/// A decimal number with at most 38 significant digits, 0 or from 1E-130 to 9.99…E+125 in size.
///
/// These are the limits of `DynamoDB`'s type N, which is exact, so the digits are kept as text and
/// never pass through binary floating point. One number has one text: `21.50` and `2.15e1` are both
/// `21.5`, and equal.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html>
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decimal(SmolStr);

/// The reasons for which a text is not a [`Decimal`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// The text is not a decimal number: `NaN`, infinity, hexadecimal, words.
    #[error("{0:?} is not a number")]
    Unreadable(String),
    /// The number has more than 38 significant digits.
    #[error("has {0} significant digits; at most 38 can be kept exactly")]
    TooPrecise(usize),
    /// The number is closer to zero than 1E-130 or farther from it than 9.99…E+125.
    #[error("{0:?} is outside of 1E-130 to 9.99E+125")]
    OutOfRange(String),
}

const MAX_DIGITS: usize = 38;
/// A number with more digits than this before the point, or more zeros directly after it, is written in scientific
/// notation.
const PLAIN: i64 = 40;

impl Decimal {
    /// Parses decimal or scientific notation as in JSON; a leading `+` and a bare `.5` are also accepted.
    pub fn parse(text: &str) -> Result<Self, DecimalError> {
        if is_canonical(text) {
            return Ok(Self(text.into()));
        }

        let unreadable = || DecimalError::Unreadable(excerpt(text));
        let out_of_range = || DecimalError::OutOfRange(excerpt(text));
        let (negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        let exponent_digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        if whole.len() + fraction.len() == 0 || !digits(whole) || !digits(fraction) {
            return Err(unreadable());
        }

        if exponent_digits.is_empty() || !digits(exponent_digits) {
            return Err(unreadable());
        }

        let all = [whole, fraction].concat();
        let significant = all.trim_start_matches('0').trim_end_matches('0');
        if significant.is_empty() {
            return Ok(Self(SmolStr::new_static("0")));
        }
        if significant.len() > MAX_DIGITS {
            return Err(DecimalError::TooPrecise(significant.len()));
        }

        // The position of the decimal point, counted from the first significant digit.
        let leading = all.len() - all.trim_start_matches('0').len();
        let length = |s: &str| i64::try_from(s.len()).map_err(|_| out_of_range());
        let exponent: i64 = exponent.parse().map_err(|_| out_of_range())?;
        let point = length(whole)?
            .checked_sub(i64::try_from(leading).map_err(|_| out_of_range())?)
            .and_then(|point| point.checked_add(exponent))
            .ok_or_else(out_of_range)?;
        if !(-129..=126).contains(&point) {
            return Err(out_of_range());
        }

        Ok(Self(canonical(negative, significant, point).into()))
    }

    /// The number as text, in JSON's notation.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Small> for Decimal {
    fn from(small: Small) -> Self {
        Self(small.text())
    }
}

/// Whether a text already has the form that [`canonical`] writes. Recognizes only plain numbers of few digits, which
/// most measured values are.
fn is_canonical(text: &str) -> bool {
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "1"));
    text.len() <= MAX_DIGITS
        && digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && digits(fraction)
        && !fraction.ends_with('0')
        && text != "-0"
}

/// Writes a number in the only form that [`Decimal`] has for a number. The decimal point is `point` digits after the
/// beginning of `significant`.
fn canonical(negative: bool, significant: &str, point: i64) -> String {
    let sign = if negative { "-" } else { "" };
    let length = i64::try_from(significant.len()).expect("at most 38");
    let zeros = |n: i64| "0".repeat(usize::try_from(n).unwrap_or(0));

    if (-PLAIN..=0).contains(&point) {
        format!("{sign}0.{}{significant}", zeros(-point))
    } else if (1..length).contains(&point) {
        let (whole, fraction) = significant.split_at(usize::try_from(point).expect("positive"));
        format!("{sign}{whole}.{fraction}")
    } else if (length..=PLAIN).contains(&point) {
        format!("{sign}{significant}{}", zeros(point - length))
    } else {
        let (first, rest) = significant.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        format!("{sign}{first}{dot}{rest}E{}", point - 1)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A raw JSON value keeps all 38 digits; serde's own number types do not.
        RawValue::from_string(self.0.to_string())
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Box::<RawValue>::deserialize(deserializer)?;
        if !is_number(number.get()) {
            return Err(D::Error::custom("must be a number"));
        }
        Self::parse(number.get()).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::given;
    use proptest::prelude::*;

    #[test]
    fn json_keeps_every_digit() {
        let number = given::number("0.1234567890123456789012345678901234567");
        let json = serde_json::to_string(&number).expect("a number");
        assert_eq!(json, "0.1234567890123456789012345678901234567");
    }

    proptest! {
        #[test]
        fn a_text_that_is_taken_as_it_is_would_be_written_so(text in "-?[0-9]{0,3}(\\.[0-9]{0,3})?") {
            // The exponent keeps it from being taken as it is.
            let read = Decimal::parse(&format!("{text}e0"));
            prop_assert_eq!(Decimal::parse(&text).ok(), read.ok());
        }

        #[test]
        fn the_canonical_text_is_the_same_number_and_stays(n in -1e20f64..1e20, e in -20i32..20) {
            let text = format!("{n}e{e}");
            let number = given::number(&text);
            prop_assert_eq!(Decimal::parse(number.as_str()), Ok(number.clone()));
            let bits = |text: &str| text.parse::<f64>().map(f64::to_bits);
            prop_assert_eq!(bits(&text), bits(number.as_str()));
        }
    }
}
