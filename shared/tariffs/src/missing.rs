//! What the sums of a bill lack. Sums up nothing.

use domain::{Amount, TimeRange, Timestamp};

domain::words! {
    /// What is missing.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
    pub enum MissingKind {
        /// A series has no price for a time in which something was used or sold. The amount is without it.
        Price = "price",
        /// No line has a price for what was used. The amount is without it.
        Tariff = "tariff",
        /// It is unknown what was used.
        Energy = "energy",
        /// Energy was measured over a longer time than prices hold. It is spread evenly.
        Spread = "spread",
        /// A named list of a zone has no date in a year. The prices are those of other zones.
        Days = "days",
        /// A meter is deleted or has no such metric.
        Meter = "meter",
    }
}

/// Something that a bill lacks.
#[derive(Debug, Clone)]
pub struct Missing {
    /// What is missing.
    pub what: MissingKind,
    /// The name of the line that lacks it.
    pub line: Option<String>,
    /// The name of a list of days, or the id of a device.
    pub name: Option<String>,
    /// When it is missing.
    pub range: TimeRange,
    /// The energy that is concerned.
    pub energy: Option<Amount>,
}

/// All that a bill lacks, joined where it is the same in neighbouring time.
#[derive(Debug, Default)]
pub(crate) struct MissingList(Vec<Missing>);

impl MissingList {
    /// Adds something, which is not earlier than what is in the list already.
    pub(crate) fn add(&mut self, missing: Missing) {
        let joins = |last: &&mut Missing| {
            last.what == missing.what
                && last.line == missing.line
                && last.name == missing.name
                && last.range.to() >= missing.range.from()
        };
        // What is missing at once is the newest of the list: one entry for each line and kind.
        let mut newest = self.0.iter_mut().rev().take(MAX_AT_ONCE);
        let Some(last) = newest.find(joins) else { return self.0.push(missing) };

        let to: Timestamp = last.range.to().max(missing.range.to());
        last.range = TimeRange::new(last.range.from(), to).expect("it only grows");
        if let (Some(sum), Some(energy)) = (&mut last.energy, &missing.energy) {
            sum.add(energy);
        }
    }

    /// The entries, in the order of their begin.
    pub(crate) fn sorted(mut self) -> Vec<Missing> {
        self.0.sort_by_key(|missing| missing.range.from());
        self.0
    }
}

/// How many of the newest entries are searched for one that goes on.
const MAX_AT_ONCE: usize = 16;
