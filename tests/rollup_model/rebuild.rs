//! A rebuild of a device beside the function, as the command does it: in one transaction, or put by put. Counts
//! nothing.

use domain::{Bucket, DeviceId, LocalDate, TimeRange, Timestamp, Zone};
use rollups::{
    Assumed, Change, DeviceFolds, DeviceRules, Folded, Retention, SeenRooms, Snapshot,
    newest_sealable_end,
};
use table::db::{Db as _, Write, absent, is, put};
use table::item::attribute::VERSION;
use table::item::{Attribute, Kind as _};
use table::keys::PK;
use table::{Expected, FindRegistry as _, Invocation, PutRollups as _, Session, StoreResult};

use super::design::Steps;
use crate::gate::deadline;

/// A rebuild of the rollups on some days.
pub(super) struct Rebuild {
    pub(super) zone: Zone,
    /// The days, in order.
    pub(super) dates: Vec<LocalDate>,
    pub(super) retention: Retention,
    pub(super) now: Timestamp,
    pub(super) is_transaction: bool,
}

impl Rebuild {
    /// Rebuilds the rollups of a device, until they are what was read.
    pub(super) async fn run(&self, steps: &Steps, id: &DeviceId) -> StoreResult<()> {
        let invocation = Invocation::until(deadline());
        loop {
            let listing = steps.find_devices(std::slice::from_ref(id), &invocation).await?;
            let Some(device) = listing.found.first().map(DeviceRules::of) else { return Ok(()) };

            let Some(changes) = self.changes(steps, &device, &invocation).await? else { continue };
            let is_put = if self.is_transaction {
                put_together(steps, &changes, &invocation).await?
            } else {
                put_each(steps, changes, &invocation).await?
            };
            if is_put {
                return Ok(());
            }
        }
    }

    /// What is to be put; `None` if the device has other settings meanwhile.
    async fn changes(
        &self,
        steps: &Steps,
        device: &DeviceRules,
        invocation: &Invocation,
    ) -> StoreResult<Option<Vec<Change>>> {
        let dates = self.dates[0]..=self.dates[self.dates.len() - 1];
        let range = TimeRange::new(self.day(*dates.start()).from(), self.day(*dates.end()).to());
        let range = range.expect("one is before the other");
        let snapshot = Snapshot::read(steps, &device.id, range, dates, invocation).await?;
        let snapshot = snapshot.without_flags();
        let fold = DeviceFolds {
            session: Session::new(&snapshot, invocation, self.now),
            device,
            seen: &SeenRooms::default(),
            retention: &self.retention,
        };

        let mut is_outdated = false;
        let end = newest_sealable_end(self.now);
        for date in &self.dates {
            let day = self.day(*date);
            if let Ok(over) = TimeRange::new(day.from(), day.to().min(end)) {
                is_outdated |= fold.quarters_of(over, Assumed::Nothing).await?.is_outdated;
            }
            let folded = fold.day(self.zone, *date, end, Assumed::Nothing).await?;
            is_outdated |= folded == Folded::Outdated;
        }
        Ok((!is_outdated).then(|| snapshot.into_rollups().0))
    }

    fn day(&self, date: LocalDate) -> TimeRange {
        self.zone.day(date).expect("a day")
    }
}

/// Puts rollups, all or none, where what they replace is still there.
async fn put_together(
    steps: &Steps,
    changes: &[Change],
    invocation: &Invocation,
) -> StoreResult<bool> {
    let puts: Vec<Write> = changes.iter().map(put_of).collect();
    if puts.is_empty() {
        return Ok(true);
    }
    Ok(steps.transact(puts, invocation).await?.is_ok())
}

fn put_of(change: &Change) -> Write {
    let is_as_read = match change.replaced_version() {
        None => absent(PK),
        Some(version) => is(VERSION, Attribute::number(version)),
    };
    put(change.rollup.item()).when([is_as_read])
}

async fn put_each(
    steps: &Steps,
    changes: Vec<Change>,
    invocation: &Invocation,
) -> StoreResult<bool> {
    let is_day = |change: &Change| matches!(change.rollup.key.bucket, Bucket::Day(_));
    let (days, quarters): (Vec<_>, Vec<_>) = changes.into_iter().partition(is_day);
    for change in quarters.into_iter().chain(days) {
        let expected = change.replaced_version().map_or(Expected::Absent, Expected::Version);
        if !steps.put_rollup(&change.rollup, expected, invocation).await? {
            return Ok(false);
        }
    }
    Ok(true)
}
