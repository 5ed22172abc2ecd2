//! A rebuild of a device beside the function, as the command does it: in one transaction, or put by put. Counts nothing.

use domain::{Bucket, DeviceId, LocalDate, TimeRange, Timestamp, Zone};
use rollups::{
    Assumed, Change, DeviceRules, Fold, Folded, Retention, SeenRooms, Snapshot,
    newest_sealable_edge,
};
use table::{
    Expected, FindRegistry as _, Invocation, PutRollups as _, ReadRollupState as _, StoreResult,
};

use super::steps::Steps;
use crate::gate::deadline;

/// Rebuilds the rollups of a device on some days, until they are what it read.
pub(super) async fn rebuild(
    steps: &Steps,
    id: &DeviceId,
    (zone, dates): (Zone, &[LocalDate]),
    (retention, now): (Retention, Timestamp),
    is_transaction: bool,
) -> StoreResult<()> {
    let (invocation, seen) = (Invocation::until(deadline()), SeenRooms::default());
    let (Some(first), Some(last)) = (dates.first(), dates.last()) else { return Ok(()) };
    let day = |date: &LocalDate| zone.day(*date).expect("a day");
    let range = TimeRange::new(day(first).from(), day(last).to()).expect("one is before the other");
    loop {
        let listing = steps.find_devices(std::slice::from_ref(id), &invocation).await?;
        let Some(device) = listing.found.first().map(DeviceRules::of) else { return Ok(()) };
        let snapshot = Snapshot::read(steps, id, range, (*first, *last), &invocation).await?;
        let snapshot = snapshot.without_flags();
        let fold = Fold {
            store: &snapshot,
            device: &device,
            seen: &seen,
            retention: &retention,
            now,
            invocation: &invocation,
        };
        let mut is_outdated = false;
        let end = newest_sealable_edge(now);
        for date in dates {
            let day = day(date);
            if let Ok(over) = TimeRange::new(day.from(), day.to().min(end)) {
                is_outdated |= fold.quarters_of(over, Assumed::Nothing).await?.is_outdated;
            }
            let folded = fold.day(zone, *date, end, Assumed::Nothing).await?;
            is_outdated |= folded == Folded::Outdated;
        }
        if is_outdated {
            continue;
        }
        let changes = snapshot.into_changes();
        if is_transaction {
            // Others go on before it.
            steps.rollup_state(&invocation).await?;
            if steps.table.put_all(changes, &invocation).await? {
                return Ok(());
            }
        } else if put_each(steps, changes, &invocation).await? {
            return Ok(());
        }
    }
}

async fn put_each(
    steps: &Steps,
    changes: Vec<Change>,
    invocation: &Invocation,
) -> StoreResult<bool> {
    let is_day = |it: &Change| matches!(it.rollup.key.bucket, Bucket::Day(_));
    let (days, quarters): (Vec<_>, Vec<_>) = changes.into_iter().partition(is_day);
    for Change { rollup, replaced } in quarters.into_iter().chain(days) {
        let expected = replaced.map_or(Expected::Absent, Expected::Version);
        if !steps.put_rollup(&rollup, expected, invocation).await? {
            return Ok(false);
        }
    }
    Ok(true)
}
