//! What the sums of a bill lack. Sums up nothing.

use std::cmp::Ordering;
use std::collections::HashMap;

use domain::{Amount, TimeRange, Timestamp};
use serde::{Serialize, Serializer};

domain::words! {
    /// What is missing.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
    pub enum MissingKind {
        /// A series has no price for a time in which something was used or sold. The amount is without it.
        Price = "price",
        /// No line has a price for what was used. The amount is without it.
        Tariff = "tariff",
        /// It is unknown what was used.
        Energy = "energy",
        /// Energy was measured over a time in which its price changed. It is spread evenly.
        Spread = "spread",
        /// A named list of a zone has no date in a year. The prices are those of other zones.
        Days = "days",
        /// A meter is deleted, has no such metric or another unit than the first.
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
    /// Whether no earlier entry is of the same kind, line and name.
    #[serde(skip)]
    pub is_first: bool,
    /// Until when it is missing, also without an effect.
    #[serde(skip)]
    pub until: Timestamp,
}

impl Missing {
    /// Something that is missing in a range, of no line.
    pub const fn of(what: MissingKind, range: TimeRange) -> Self {
        let (from, to) = (range.from(), range.to());
        Self { what, line: None, name: None, from, to, kwh: None, is_first: false, until: to }
    }

    /// Whether the sums lack anything. They do not if no energy is concerned, as of a price that is missing while
    /// nothing is used.
    pub(crate) fn has_effect(&self) -> bool {
        self.kwh.as_ref().is_none_or(|kwh| kwh.sign() != Ordering::Equal)
    }
}

/// Writes an amount as a number.
#[expect(clippy::ref_option, reason = "serde hands a reference")]
pub(crate) fn shown<S: Serializer>(amount: &Option<Amount>, to: S) -> Result<S::Ok, S::Error> {
    amount.as_ref().map(Amount::shown).serialize(to)
}

/// All that a bill lacks. An entry goes on as long as the same is missing, also while nothing is used. Its range is
/// from the first to the last time with an effect.
#[derive(Debug, Default)]
pub(crate) struct MissingList {
    entries: Vec<Missing>,
    /// For each kind, line and name, the index of its last entry.
    last: HashMap<MissingKey, usize>,
}

/// The kind, the line and the name of what is missing.
type MissingKey = (MissingKind, Option<String>, Option<String>);

impl MissingList {
    /// Adds something that is missing. Entries of one kind, line and name are added in order of time.
    pub(crate) fn add(&mut self, missing: Missing) {
        let key = (missing.what, missing.line.clone(), missing.name.clone());
        let last = self.last.get(&key).map(|place| &mut self.entries[*place]);
        let Some(last) = last.filter(|last| last.until >= missing.from) else {
            if missing.has_effect() {
                let is_first = self.last.insert(key, self.entries.len()).is_none();
                self.entries.push(Missing { is_first, ..missing });
            }
            return;
        };

        last.until = missing.to;
        if missing.has_effect() {
            last.to = missing.to;
        }
        if let (Some(sum), Some(energy)) = (&mut last.kwh, &missing.kwh) {
            sum.add(energy);
        }
    }

    /// The entries, in the order of their begin.
    pub(crate) fn sorted(mut self) -> Vec<Missing> {
        self.entries.sort_by_key(|missing| missing.from);
        self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_many_lines_lack_for_some_time_is_one_entry_for_each_line() {
        let begin = |hours: i64| Timestamp::from_millis(hours * 3_600_000).expect("a time");
        let hour = |hours| TimeRange::new(begin(hours), begin(hours + 1)).expect("a range");
        let mut list = MissingList::default();
        for hours in [0, 1, 2, 5] {
            for line in 0..40 {
                let line = Some(format!("line {line}"));
                list.add(Missing { line, ..Missing::of(MissingKind::Price, hour(hours)) });
            }
        }

        let ends: Vec<Timestamp> = list.sorted().iter().map(|missing| missing.to).collect();
        assert_eq!(ends, [[begin(3); 40], [begin(6); 40]].concat());
    }

    #[test]
    fn an_entry_goes_on_through_time_without_energy_and_ends_with_the_last_energy() {
        let begin = |hours: i64| Timestamp::from_millis(hours * 3_600_000).expect("a time");
        let hour = |hours| TimeRange::new(begin(hours), begin(hours + 1)).expect("a range");
        let mut list = MissingList::default();
        for (hours, kwh) in [(0, 0_i64), (1, 1), (2, 0), (3, 0), (4, 2), (5, 0), (7, 1)] {
            let kwh = Some(Amount::counted(domain::Exact::from(kwh)));
            list.add(Missing { kwh, ..Missing::of(MissingKind::Tariff, hour(hours)) });
        }

        let shown: Vec<_> = list.sorted().into_iter().map(|entry| (entry.from, entry.to)).collect();
        assert_eq!(shown, [(begin(1), begin(5)), (begin(7), begin(8))]);
    }
}
