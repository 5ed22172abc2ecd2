//! Units of series that a source knows and its lines cannot express. Sets no unit.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::point::Point;

/// The unit of a series, and whether it is a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The unit.
    pub unit: String,
    /// Whether the values are a counter's totals.
    pub is_counter: bool,
}

/// Units by series, shared by a source and the import.
#[derive(Debug, Clone, Default)]
pub struct SeriesUnits(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    known: BTreeMap<String, Known>,
    /// For each series, one point in the form in which it is sent.
    seen: BTreeMap<String, (Point, Known)>,
}

impl SeriesUnits {
    /// Notes the unit and the kind of a series.
    pub fn know(&self, series: String, unit: &str, is_counter: bool) {
        self.state().known.insert(series, Known { unit: unit.to_owned(), is_counter });
    }

    /// Notes the form in which a series is sent.
    pub fn see(&self, series: &str, sent: &Point) {
        let mut state = self.state();
        if state.seen.contains_key(series) {
            return;
        }
        if let Some(known) = state.known.get(series).cloned() {
            state.seen.insert(series.to_owned(), (sent.clone(), known));
        }
    }

    /// Returns whether no unit is known.
    pub fn is_empty(&self) -> bool {
        self.state().known.is_empty()
    }

    /// Returns one sent point of each series, with the series' unit.
    pub fn seen(&self) -> Vec<(Point, Known)> {
        self.state().seen.values().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
