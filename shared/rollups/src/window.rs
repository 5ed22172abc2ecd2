//! Folds all quarters of a range with one query of readings. Chooses no ranges.

use std::collections::{BTreeMap, BTreeSet};

use domain::{Quarter, TimeRange};
use table::{StoreResult, StoredReading, StoredRollup};

use crate::bucket::Bounds;
use crate::fold::{Assumed, Fold, Folded, Step, Store};

/// The result of folding the quarters of a range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoldedWindow {
    /// The quarters whose rollups are stored, or stay as they are because they are frozen.
    pub folded: BTreeSet<Quarter>,
    /// Whether a rollup was folded with newer settings: the device has to be read again, and the range
    /// folded again.
    pub is_outdated: bool,
}

impl<S: Store> Fold<'_, S> {
    /// Folds every quarter that begins in a range and has readings, and, unless all rollups are assumed
    /// absent, every quarter that has a rollup. Two queries, so the range should be at most a day.
    ///
    /// A quarter without a reading and without a rollup gets none.
    pub async fn quarters_of(
        &self,
        range: TimeRange,
        assumed: Assumed,
    ) -> StoreResult<FoldedWindow> {
        let device = &self.device.id;
        let stored = match assumed {
            Assumed::Absent => Vec::new(),
            Assumed::Nothing => self.store.quarters(device, range, true, self.invocation).await?,
        };
        let readings = self.store.stored_readings(device, range, self.invocation).await?;
        let mut quarters: BTreeMap<Quarter, (Option<StoredRollup>, Vec<StoredReading>)> =
            BTreeMap::new();
        for rollup in stored {
            let quarter = Quarter::of(rollup.range.from());
            quarters.entry(quarter).or_default().0 = Some(rollup);
        }
        for reading in readings {
            let quarter = Quarter::of(reading.reading.at);
            quarters.entry(quarter).or_default().1.push(reading);
        }
        let mut window = FoldedWindow::default();
        for (quarter, (known, readings)) in quarters {
            let folded = match self.folded_once(quarter, known.as_ref(), &readings).await? {
                Some(folded) => folded,
                // Somebody else put it meanwhile, so the readings may have changed too.
                None => self.quarter(quarter, Assumed::Nothing).await?,
            };
            match folded {
                Folded::Stored | Folded::Frozen => drop(window.folded.insert(quarter)),
                Folded::Outdated => window.is_outdated = true,
                Folded::Skipped => {}
            }
        }
        Ok(window)
    }

    /// Puts the fold of readings that were read after the rollup; `None` if the rollup has changed.
    async fn folded_once(
        &self,
        quarter: Quarter,
        known: Option<&StoredRollup>,
        readings: &[StoredReading],
    ) -> StoreResult<Option<Folded>> {
        let (rollup, folded) = match self.step(known) {
            Step::Done(folded) => return Ok(Some(folded)),
            Step::Freeze(frozen) => (frozen, Folded::Frozen),
            Step::Fold => {
                let source = self.of_readings(readings);
                match self.next(&Bounds::quarter(quarter), known, source) {
                    Ok(rollup) => (rollup, Folded::Stored),
                    Err(folded) => return Ok(Some(folded)),
                }
            }
        };
        Ok(self.put(&rollup, known).await?.then_some(folded))
    }
}
