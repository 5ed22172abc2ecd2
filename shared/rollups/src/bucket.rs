//! Reads the source of a bucket's fold: quarters or readings. Puts nothing.

use domain::{Bucket, Rollup, TimeRange};
use table::{StoreResult, StoredReading};

use crate::bounds::Bounds;
use crate::fold::{DeviceFolds, Store};
use crate::fresh::Fresh;
use crate::retention::is_closing;
use crate::seen_rooms::{named_by_readings, named_by_rollup};

impl<S: Store> DeviceFolds<'_, S> {
    /// Folds a bucket from what is stored at this moment.
    ///
    /// For a day, the readings are read only if the retention of the quarters has ended and no quarter is left. The
    /// quarters come first, because quarters that were put under an earlier, longer retention may have outlived their
    /// readings.
    pub(crate) async fn read(&self, bounds: &Bounds) -> StoreResult<Fresh> {
        if matches!(bounds.bucket, Bucket::Day(_)) {
            let source = self.of_quarters(bounds.range).await?;
            let has_quarters = self.retention.has_quarters(bounds.range.from(), self.session.now);
            if has_quarters || !source.rollup.is_empty() {
                return Ok(source);
            }
        }
        let device = &self.device.id;
        let readings = self.session.stored_readings(device, bounds.range).await?;
        Ok(self.of_readings(&readings))
    }

    /// Folds readings without the expired ones, which `DynamoDB` may delete only days later.
    pub(crate) fn of_readings(&self, readings: &[StoredReading]) -> Fresh {
        let is_there =
            |stored: &&StoredReading| stored.expires.is_none_or(|at| at > self.session.now);
        let kept = || readings.iter().filter(is_there);
        Fresh {
            rollup: Rollup::fold(kept().map(|stored| &stored.reading), &self.device.rules),
            until: kept().filter_map(|stored| stored.expires).min(),
            settings: 0,
            outdated: None,
            named: named_by_readings(kept()),
            is_stored_even_if_new: true,
        }
    }

    async fn of_quarters(&self, range: TimeRange) -> StoreResult<Fresh> {
        let quarters = self.session.quarters(&self.device.id, range, true).await?;
        let mut source = Fresh::default();
        for quarter in quarters {
            source.is_stored_even_if_new = true;
            if quarter.rollup.is_empty() || quarter.is_expired(self.session.now) {
                continue;
            }

            source.named.extend(named_by_rollup(&quarter));
            source.rollup.append(&quarter.rollup, &self.device.rules);
            source.until = source.until.into_iter().chain(quarter.expires).min();
            source.settings = source.settings.max(quarter.settings);
            // A quarter whose readings may be expiring stays as it is.
            if self.device.is_outdated(&quarter) && !is_closing(quarter.raw_until, self.session.now)
            {
                let known = source.outdated.unwrap_or(quarter.settings);
                source.outdated = Some(known.min(quarter.settings));
            }
        }
        Ok(source)
    }
}
