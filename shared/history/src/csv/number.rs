//! Parses the number cells of a CSV, with their decimal mark. Knows no column.

use domain::{Decimal, excerpt};

/// Cells without a measurement, in any letter case, as Home Assistant, Python and spreadsheets write them.
const ABSENT: [&str; 6] = ["", "unavailable", "unknown", "none", "null", "nan"];

/// The decimal mark of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecimalMark {
    /// A point. A comma is refused, because it could separate thousands.
    Point,
    /// A comma. A point is refused, because it could separate thousands.
    Comma,
    /// The mark of the first number with a mark; `None` before that number. For files with the separator `;`, which
    /// programs write where the comma is the decimal mark.
    Detected(Option<char>),
}

impl DecimalMark {
    /// Parses a cell; `None` if the cell has no measurement.
    pub fn read(&mut self, text: &str) -> Result<Option<Decimal>, String> {
        if ABSENT.iter().any(|absent| absent.eq_ignore_ascii_case(text)) {
            return Ok(None);
        }

        let number = |text: &str| Decimal::parse(text).map(Some).map_err(|why| why.to_string());
        let refused = |why: &str| Err(format!("{:?} {why}", excerpt(text)));
        let mark = match (text.contains('.'), text.contains(',')) {
            (false, false) => return number(text),
            (true, true) => return refused("is not a number: it has a point and a comma"),
            (true, false) => '.',
            (false, true) => ',',
        };

        match (*self, mark) {
            (Self::Detected(None), _) => *self = Self::Detected(Some(mark)),
            (Self::Point, ',') => {
                return refused(
                    "is not a number; --decimal-comma if the comma is its decimal mark",
                );
            }
            (Self::Comma, '.') => {
                return refused("has a point, but the decimal mark is the comma");
            }
            (Self::Detected(Some(detected)), _) if detected != mark => {
                return refused("has another decimal mark than the numbers before it");
            }
            _ => {}
        }

        number(&text.replace(',', "."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mark: &mut DecimalMark, text: &str) -> String {
        mark.read(text).map_or_else(
            |why| format!("refused: {why}"),
            |number| number.map_or("absent".to_owned(), |number| number.to_string()),
        )
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (text, number) in [
            ("21.50", "21.5"),
            ("-.5", "-0.5"),
            ("5.", "5"),
            ("007", "7"),
            ("+1e3", "1000"),
            ("12345678901234567890123456789012345678", "12345678901234567890123456789012345678"),
        ] {
            assert_eq!(read(&mut DecimalMark::Point, text), number);
        }
    }

    #[test]
    fn nothing_measured_is_no_error() {
        for text in ["", "unavailable", "Unknown", "None", "null", "NaN"] {
            assert_eq!(read(&mut DecimalMark::Point, text), "absent");
        }
        assert!(read(&mut DecimalMark::Point, "warm").contains("\"warm\" is not a number"));
    }

    #[test]
    fn a_comma_that_could_part_thousands_is_not_guessed() {
        assert!(read(&mut DecimalMark::Point, "1,234").contains("--decimal-comma"));
        assert_eq!(read(&mut DecimalMark::Comma, "-1,234"), "-1.234");
        assert!(read(&mut DecimalMark::Comma, "1.234").contains("has a point"));
        for mark in [DecimalMark::Point, DecimalMark::Comma, DecimalMark::Detected(None)] {
            assert!(read(&mut mark.clone(), "1.234,5").contains("a point and a comma"));
        }
        let mut mark = DecimalMark::Detected(None);
        assert_eq!(read(&mut mark, "7"), "7");
        assert_eq!(read(&mut mark, "21,5"), "21.5");
        assert!(read(&mut mark, "1.234").contains("another decimal mark"));
        let mut mark = DecimalMark::Detected(None);
        assert_eq!(read(&mut mark, "21.5"), "21.5");
        assert!(read(&mut mark, "1,234").contains("another decimal mark"));
    }
}
