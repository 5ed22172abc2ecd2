//! What the sums of a bill lack. Sums up nothing.

use domain::{Amount, TimeRange, Timestamp};
use serde::{Serialize, Serializer};

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
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missing {
    /// What is missing
    pub what: MissingKind,
    /// The name of the line that lacks it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// The name of a list of days, or the id of a device
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Since when it is missing
    pub from: Timestamp,
    /// Until when it is missing
    pub to: Timestamp,
    /// The energy that is concerned
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shown")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<domain::Exact>"))]
    pub kwh: Option<Amount>,
}

impl Missing {
    /// Something that is missing in a range, of no line.
    pub const fn of(what: MissingKind, range: TimeRange) -> Self {
        Self { what, line: None, name: None, from: range.from(), to: range.to(), kwh: None }
    }
}

/// Writes an amount as a number.
#[expect(clippy::ref_option, reason = "serde hands a reference")]
pub(crate) fn shown<S: Serializer>(amount: &Option<Amount>, to: S) -> Result<S::Ok, S::Error> {
    amount.as_ref().map(Amount::shown).serialize(to)
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
                && last.to >= missing.from
        };
        // What is missing at once is the newest of the list: one entry for each line and kind.
        let mut newest = self.0.iter_mut().rev().take(MAX_AT_ONCE);
        let Some(last) = newest.find(joins) else { return self.0.push(missing) };

        last.to = last.to.max(missing.to);
        if let (Some(sum), Some(energy)) = (&mut last.kwh, &missing.kwh) {
            sum.add(energy);
        }
    }

    /// The entries, in the order of their begin.
    pub(crate) fn sorted(mut self) -> Vec<Missing> {
        self.0.sort_by_key(|missing| missing.from);
        self.0
    }
}

/// How many of the newest entries are searched for one that goes on.
const MAX_AT_ONCE: usize = 16;
