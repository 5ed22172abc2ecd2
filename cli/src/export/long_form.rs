//! Readings as rows of Parquet: one row for each value. Knows no byte of Parquet.

use std::path::Path;
use std::{fmt, io};

use anyhow::Context as _;
use domain::Decimal;

use super::bytes::Bytes;
use super::parquet::{ColumnRows, ParquetFile};
use super::row::Row;
use crate::output::counted;

/// The largest number of digits with which every number survives the conversion to DOUBLE.
const SAFE_DIGITS: usize = 15;

/// A Parquet file with one row for each value, while it is written.
pub(super) struct LongForm {
    rows: ColumnRows,
    file: ParquetFile<Bytes>,
    inexact: Inexact,
}

/// The values that DOUBLE cannot represent exactly.
#[derive(Debug, Default)]
pub(super) struct Inexact {
    count: u64,
    first: Option<String>,
}

impl LongForm {
    /// Begins a file.
    pub(super) fn begin(bytes: Bytes) -> io::Result<Self> {
        let file = ParquetFile::begin(bytes)?;
        Ok(Self { rows: ColumnRows::default(), file, inexact: Inexact::default() })
    }

    /// The temporary file before it is renamed, if there is one.
    pub(super) fn unfinished(&self) -> Option<&Path> {
        self.file.out().unfinished()
    }

    /// Writes the values of a reading.
    pub(super) fn reading(&mut self, row: &Row<'_>) -> anyhow::Result<()> {
        let Row { device, at, room, metrics } = row;
        for (name, text) in metrics {
            let value: f64 = text.parse().with_context(|| format!("{name} of {device}: {text}"))?;
            if !is_exact(text, value) {
                self.inexact.count += 1;
                let first = || format!("{name} of {device} at {at}, {text}");
                self.inexact.first.get_or_insert_with(first);
            }
            let room = room.as_ref().map(domain::RoomId::as_str);
            self.rows.push(device.as_str(), at.as_millis(), room, name, value);
            if self.rows.is_full() {
                self.file.group(&mut self.rows)?;
            }
        }

        Ok(())
    }

    /// Completes the file. Returns the values that DOUBLE cannot represent exactly.
    pub(super) fn finish(mut self) -> io::Result<(Bytes, Inexact)> {
        if !self.rows.is_empty() {
            self.file.group(&mut self.rows)?;
        }
        Ok((self.file.finish()?, self.inexact))
    }
}

/// Returns whether the shortest text of `value` is the same number as `text`.
fn is_exact(text: &str, value: f64) -> bool {
    text.len() <= SAFE_DIGITS
        || Decimal::parse(&format!("{value:e}"))
            .is_ok_and(|shown| Ok(shown) == Decimal::parse(text))
}

/// Says how many values DOUBLE cannot represent exactly, and names the first. Writes nothing if there are none.
impl fmt::Display for Inexact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, first: Some(first) } = self else { return Ok(()) };
        let values = counted(*count, "value");
        write!(f, "\n{values} with more digits than DOUBLE gives back, the first: {first}")
    }
}

#[cfg(test)]
mod tests {
    use domain::given;
    use proptest::prelude::*;

    use super::*;

    fn is_given_back(text: &str) -> bool {
        is_exact(text, text.parse().unwrap())
    }

    #[test]
    fn digits_that_a_double_does_not_have_are_noticed() {
        for text in ["21.5", "0.1", "123456789012345", "12345.67890123456", "-1.5E-100", "9.99E125"]
        {
            assert!(is_given_back(text), "{text}");
        }
        for text in ["12345678901234567890", "0.1234567890123456789", "9007199254740993"] {
            assert!(!is_given_back(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn fifteen_digits_are_always_given_back(digits in "[1-9][0-9]{0,13}", exponent in -130..112) {
            let number = given::number(&format!("{digits}e{exponent}"));
            let value: f64 = number.as_str().parse().unwrap();
            prop_assert_eq!(Decimal::parse(&format!("{value:e}")), Ok(number));
        }
    }
}
