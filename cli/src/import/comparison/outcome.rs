//! The result of comparing a month of a metric in the table with the source. Asks nobody.

use super::tally::Totals;

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The table has exactly the source's values, or these and the values from before the import.
    Equal,
    /// The table had values before, and has at least as many as the source, and as before.
    AtLeast,
    /// The table has at least as many values as the source, but fewer than before.
    Fewer,
    /// The table had no values before, and has more than the source.
    More,
    /// The table has as many values as the source, but different ones.
    OtherValues,
    /// The table lacks some of the source's values.
    Missing,
}

impl Outcome {
    /// Compares after an import that replaced readings with all their metrics.
    pub(super) fn of_replaced(source: &Totals, before: &Totals, table: &Totals) -> Self {
        match Self::of(source, before, table) {
            Self::Missing if table.count >= source.count => Self::Fewer,
            outcome => outcome,
        }
    }

    /// Compares the table with the source and with the values from before the import.
    pub(super) fn of(source: &Totals, before: &Totals, table: &Totals) -> Self {
        if table == source || before.count > 0 && *table == source.and(before) {
            Self::Equal
        } else if table.count < source.count.max(before.count) {
            Self::Missing
        } else if before.count > 0 {
            Self::AtLeast
        } else if table.count > source.count {
            Self::More
        } else {
            Self::OtherValues
        }
    }

    /// Compares if the values from before the import are unknown.
    pub(super) fn of_unknown_past(source: &Totals, table: &Totals) -> Self {
        match Self::of(source, &Totals::default(), table) {
            Self::More | Self::OtherValues => Self::AtLeast,
            outcome => outcome,
        }
    }

    /// Whether the table lacks some values of the source.
    pub(super) const fn is_loss(self) -> bool {
        matches!(self, Self::Missing | Self::OtherValues)
    }

    /// Returns the result's name in a report.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::AtLeast => "at least",
            Self::Fewer => "fewer than before",
            Self::More => "more",
            Self::OtherValues => "other values",
            Self::Missing => "missing",
        }
    }

    /// Returns a possible reason for the result.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::Equal => "the same",
            Self::AtLeast => {
                "some of them replaced values that were there before, or were there already"
            }
            Self::Fewer => {
                "readings that were there were replaced by ones without this metric, which --merge keeps, or were deleted"
            }
            Self::More => {
                "somebody else has written meanwhile, such as a live sender or another import"
            }
            Self::OtherValues => {
                "somebody else has written other values at the same times, or values of the source replaced each other"
            }
            Self::Missing => {
                "they were refused, deleted meanwhile, or two series of the source are one here"
            }
        }
    }
}

#[cfg(test)]
mod tests {

    use domain::given::exact;

    use super::*;

    fn totals((count, sum): (i64, &str)) -> Totals {
        Totals { count, sum: exact(sum) }
    }

    #[test]
    fn a_month_is_equal_only_if_nothing_else_can_be() {
        for (source, before, table, expected) in [
            ((2, "3"), (0, "0"), (2, "3"), Outcome::Equal),
            ((2, "3"), (2, "3"), (2, "3"), Outcome::Equal),
            ((2, "3"), (1, "0.5"), (3, "3.5"), Outcome::Equal),
            ((0, "0"), (0, "0"), (0, "0"), Outcome::Equal),
            ((2, "3"), (1, "0.5"), (3, "3.4"), Outcome::AtLeast),
            ((2, "3"), (1, "0.5"), (2, "3.1"), Outcome::AtLeast),
            ((2, "3"), (0, "0"), (3, "3.5"), Outcome::More),
            ((2, "3"), (0, "0"), (2, "3.1"), Outcome::OtherValues),
            ((2, "3"), (0, "0"), (1, "3"), Outcome::Missing),
            ((2, "3"), (4, "9"), (3, "9"), Outcome::Missing),
            ((2, "3"), (4, "9"), (1, "9"), Outcome::Missing),
        ] {
            let outcome = Outcome::of(&totals(source), &totals(before), &totals(table));
            assert_eq!(outcome, expected, "{source:?} {before:?} {table:?}");
        }
    }

    #[test]
    fn a_replaced_reading_takes_away_a_metric_that_the_source_lacks() {
        for (source, before, table, expected) in [
            ((1, "50"), (3, "153"), (2, "102"), Outcome::Fewer),
            ((2, "3"), (4, "9"), (1, "9"), Outcome::Missing),
            ((2, "3"), (0, "0"), (1, "3"), Outcome::Missing),
            ((2, "3"), (2, "3"), (2, "3"), Outcome::Equal),
        ] {
            let outcome = Outcome::of_replaced(&totals(source), &totals(before), &totals(table));
            assert_eq!(outcome, expected, "{source:?} {before:?} {table:?}");
        }
        assert!(!Outcome::Fewer.is_loss(), "the table has all of the source");
    }
}
