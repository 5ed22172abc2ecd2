//! Checks that the days of a table can be folded in another time zone. Folds no day.

use anyhow::bail;
use domain::{LocalDate, Order, Timestamp, Zone};
use table::StoredRollup;

use super::walk::{Table, Walk};
use crate::patience::patiently;

/// Fails if a day rollup is older than all sources from which it could be folded again. The error names the earliest
/// possible date. Days before `from` may be lost.
pub(super) async fn check<S: Table>(
    walk: &Walk<'_, S>,
    from: Timestamp,
    old: Zone,
    now: Timestamp,
) -> anyhow::Result<()> {
    let mut earliest: Option<LocalDate> = None;
    for device in &walk.devices {
        let dates = old.date(from)..=old.date(now);
        let days = patiently(async |invocation| {
            walk.store
                .days(device.id(), dates.clone(), Order::Ascending, usize::MAX - 1, invocation)
                .await
        });
        let is_kept = |day: &StoredRollup| {
            day.range.from() >= from && !day.is_expired(now) && !day.rollup.is_empty()
        };
        let days = days.await?;
        let Some(oldest) = days.iter().find(|day| is_kept(day)) else { continue };
        let source = walk.first_source(device.id(), oldest.range.from(), now).await?;
        if source.is_none_or(|source| source >= oldest.range.to()) {
            let source = source.unwrap_or(now);
            let day = walk.zone.day(walk.zone.date(source)).expect("a timestamp lies in it");
            // A part of the source's day may have expired, so the next day is the first complete one.
            let whole = if day.from() == source { source } else { day.to() };
            earliest = earliest.max(Some(walk.zone.date(whole)));
        }
    }

    match earliest {
        None => Ok(()),
        Some(date) => {
            let range = walk.zone.day(date).expect("the date of a timestamp");
            bail!(
                "days before {date} cannot be folded in {}, because what they are folded from has expired; \
                 --from {} changes the zone and gives these days up",
                walk.zone.name(),
                range.from()
            )
        }
    }
}
