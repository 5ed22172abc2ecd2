//! Converts numbers of line protocol to decimals that the table can hold. Reads no line.

use domain::{Decimal, DecimalError};

/// Parses the number of a field: exact if the table can hold it, else rounded as a double is. A number too close to
/// zero for the table becomes zero.
pub(crate) fn decimal(text: &str) -> Result<Decimal, DecimalError> {
    Decimal::parse(text).or_else(|why| {
        let double: f64 = text.parse().map_err(|_| why.clone())?;
        if double.abs() < 1e-130 {
            return Decimal::parse("0");
        }
        Decimal::parse(&format!("{double:e}")).map_err(|_| why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_rounded_or_zero() {
        let third = "0.3333333333333333333333333333333333333333333";
        for (text, kept) in [
            ("21.50", "21.5"),
            (".5", "0.5"),
            ("-5.", "-5"),
            ("9223372036854775807", "9223372036854775807"),
            (third, "0.3333333333333333"),
            ("1e-200", "0"),
            ("-1e-400", "0"),
        ] {
            assert_eq!(decimal(text).map(|it| it.to_string()), Ok(kept.to_owned()), "{text}");
        }
        for text in ["1e126", "-1e400"] {
            assert!(matches!(decimal(text), Err(DecimalError::OutOfRange(_))), "{text}");
        }
    }
}
