//! The number of points or readings in a dry run, their first and last times, and their gaps. Reads none.

use std::fmt;

use super::energy::GAP;
use crate::moment::shown_millis;
use crate::output::counted;

/// Points of a series, or readings of a device, in order of time.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeriesSpan {
    pub(super) count: u64,
    /// The first time in milliseconds.
    first: i64,
    last: i64,
    /// The number of gaps longer than [`GAP`], and the longest gap.
    gaps: u64,
    longest: i64,
}

impl SeriesSpan {
    /// Makes the span whose first point will be at this millisecond.
    pub(super) const fn before(millis: i64) -> Self {
        Self { count: 0, first: millis, last: millis, gaps: 0, longest: 0 }
    }

    /// Adds the next point.
    pub(super) fn add(&mut self, millis: i64) {
        self.count += 1;
        let time = millis - self.last;
        if time > GAP.num_milliseconds() {
            self.gaps += 1;
            self.longest = self.longest.max(time);
        }
        self.first = self.first.min(millis);
        self.last = self.last.max(millis);
    }

    /// The times of the first and the last point.
    pub(super) fn ends(&self) -> (String, String) {
        (shown_millis(self.first), shown_millis(self.last))
    }

    /// Writes the counts, the target, and the gaps.
    pub(super) fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        nouns: &str,
        becomes: &str,
    ) -> fmt::Result {
        let (first, last) = self.ends();
        writeln!(f, "    {} {nouns} from {first} to {last}: {becomes}", self.count)?;
        if self.gaps > 0 {
            let (count, longest) = (counted(self.gaps, "gap"), hours(self.longest));
            writeln!(f, "    {count} of more than 2 hours, the longest of {longest} hours")?;
        }
        Ok(())
    }
}

/// Hours, with one decimal.
fn hours(millis: i64) -> String {
    let tenths = millis / 360_000;
    format!("{}.{}", tenths / 10, tenths % 10)
}
