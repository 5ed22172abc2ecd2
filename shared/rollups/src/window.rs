//! Folds several quarters with one query of readings. Chooses no quarters.

use std::collections::{BTreeMap, BTreeSet};

use domain::{QuarterHour, Rollup, TimeRange};
use table::{StoreResult, StoredReading, StoredRollup, at_once};

use crate::bounds::Bounds;
use crate::fold::{Assumed, DeviceFolds, FoldStep, Folded, FoldedBucket, Store};
use crate::seen_rooms::named_by_readings;

/// The result of folding the quarters of a range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoldedWindow {
    /// The quarters whose rollups are stored or frozen.
    pub folded: BTreeSet<QuarterHour>,
    /// The rollups that this fold put.
    pub put: BTreeMap<QuarterHour, Rollup>,
    /// Whether a rollup was folded with newer settings or a newer schema. The device must be read again, and the range
    /// folded again.
    pub is_outdated: bool,
}

/// The stored rollup of a quarter, and its stored readings.
type Stored = (Option<StoredRollup>, Vec<StoredReading>);
/// The stored rollups and readings of some quarters.
type Window = BTreeMap<QuarterHour, Stored>;

/// The number of rollups of a window that are put concurrently.
const PUT_CONCURRENCY: usize = 8;

impl<S: Store> DeviceFolds<'_, S> {
    /// Folds every quarter that begins in a range and has readings. Also folds every quarter that has a rollup, unless
    /// all rollups are assumed absent. Needs two queries, so the range should be at most a day.
    ///
    /// A quarter without readings and without a rollup gets no rollup.
    pub async fn quarters_of(
        &self,
        range: TimeRange,
        assumed: Assumed,
    ) -> StoreResult<FoldedWindow> {
        let found = self.read_window(range, assumed).await?;
        self.fold_window(found).await
    }

    /// Folds the quarters of a list, even quarters without readings and without a rollup. Needs two queries, for the
    /// time from the first to the last quarter.
    pub async fn these_quarters(
        &self,
        quarters: &BTreeSet<QuarterHour>,
    ) -> StoreResult<FoldedWindow> {
        let (Some(first), Some(last)) = (quarters.first(), quarters.last()) else {
            return Ok(FoldedWindow::default());
        };

        let range = TimeRange::new(first.start(), last.end()).expect("the last does not precede");
        let mut found = self.read_window(range, Assumed::Nothing).await?;
        found.retain(|quarter, _| quarters.contains(quarter));
        for quarter in quarters {
            found.entry(*quarter).or_default();
        }
        self.fold_window(found).await
    }

    /// Reads the rollups before the readings. So a fold that reads the readings later also puts later.
    async fn read_window(&self, range: TimeRange, assumed: Assumed) -> StoreResult<Window> {
        let device = &self.device.id;
        let stored = match assumed {
            Assumed::Absent => Vec::new(),
            Assumed::Nothing => self.session.quarters(device, range, true).await?,
        };
        let readings = self.session.stored_readings(device, range).await?;
        let mut found = Window::new();
        for rollup in stored {
            let quarter = QuarterHour::of(rollup.range.from());
            found.entry(quarter).or_default().0 = Some(rollup);
        }

        for reading in readings {
            let quarter = QuarterHour::of(reading.reading.at);
            found.entry(quarter).or_default().1.push(reading);
        }
        Ok(found)
    }

    /// Puts rollups of a range into the conditions index by the current schema, if they are not in the index or an
    /// older schema put them there. The rollups themselves stay as they are stored, even if their readings have
    /// expired. Returns the number of rollups that were put.
    pub async fn index_quarters(&self, range: TimeRange) -> StoreResult<usize> {
        let version =
            |rollup: &StoredRollup| rollup.indexed.as_ref().map_or(0, |indexed| indexed.schema);
        let mut indexed = 0;
        for known in self.session.quarters(&self.device.id, range, true).await? {
            let new = self.device.indexing.of(known.key.bucket, &known.rollup);
            let is_newer = new.as_ref().is_some_and(|new| new.schema > version(&known));
            if !is_newer || known.is_expired(self.session.now) {
                continue;
            }

            let rollup = StoredRollup { version: known.version + 1, indexed: new, ..known.clone() };
            // A concurrent put knows the newer schema, or is refused.
            indexed += usize::from(self.put(&rollup, Some(&known)).await?);
        }
        Ok(indexed)
    }

    async fn fold_window(&self, found: Window) -> StoreResult<FoldedWindow> {
        self.note(&named_by_readings(found.values().flat_map(|(_, readings)| readings))).await?;
        let folding = found.iter().map(|(quarter, stored)| self.in_window(*quarter, stored));
        let results: Vec<FoldedBucket> = at_once(PUT_CONCURRENCY, folding).await?;

        let mut window = FoldedWindow::default();
        for (quarter, FoldedBucket { folded, put }) in found.keys().zip(results) {
            window.put.extend(put.map(|rollup| (*quarter, rollup)));
            match folded {
                Folded::Stored | Folded::Frozen => drop(window.folded.insert(*quarter)),
                Folded::Outdated => window.is_outdated = true,
                Folded::Skipped => {}
            }
        }

        Ok(window)
    }

    async fn in_window(
        &self,
        quarter: QuarterHour,
        (known, readings): &Stored,
    ) -> StoreResult<FoldedBucket> {
        match self.folded_once(quarter, known.as_ref(), readings).await? {
            Some(result) => Ok(result),
            // Another fold has put the rollup meanwhile, so the readings may have changed too.
            None => self.put_quarter(quarter, Assumed::Nothing).await,
        }
    }

    /// Puts the fold of readings that were read after the rollup `known`, and returns the result. `None` if the stored
    /// rollup has changed.
    async fn folded_once(
        &self,
        quarter: QuarterHour,
        known: Option<&StoredRollup>,
        readings: &[StoredReading],
    ) -> StoreResult<Option<FoldedBucket>> {
        let bounds = Bounds::quarter(quarter);
        let (rollup, folded) = match self.step(&bounds, known) {
            FoldStep::Done(folded) => return Ok(Some(folded.into())),
            FoldStep::Freeze(frozen) => (*frozen, Folded::Frozen),
            FoldStep::Fold => {
                let source = self.of_readings(readings);
                match self.next(&bounds, known, source) {
                    Ok(rollup) => (rollup, Folded::Stored),
                    Err(folded) => return Ok(Some(folded.into())),
                }
            }
        };

        let is_put = self.put(&rollup, known).await?;
        Ok(is_put.then_some(FoldedBucket { folded, put: Some(rollup.rollup) }))
    }
}
