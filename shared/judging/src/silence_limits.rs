//! The time without a reading after which a device counts as silent. Learned from its rollups of the last week, and
//! remembered for some hours. Judges nothing.

use std::collections::BTreeMap;

use alerts::{AlertSubject, DayCounts, Watch, silence_limit};
use chrono::TimeDelta;
use domain::{DeviceId, QuarterHour, TimeRange, Timestamp};
use table::{StoreResult, StoredRollup};

use crate::judging::{JudgingSession, LEARNED_AGE};
use crate::ports::Store;
use crate::room_mean::ROOM_SILENCE;
use crate::rule_on_subject::RuleOnSubject;

/// The number of days from which the usual gap is learned.
const DAYS: usize = 7;
const QUARTERS_OF_DAY: usize = 96;
const QUARTERS_OF_HOUR: usize = 4;
/// A day counts as silent if its longest gap is longer than usual by this factor.
const UNUSUAL: usize = 2;

impl<S: Store> JudgingSession<'_, S> {
    /// The time without a reading after which the subject of a rule counts as silent.
    pub(crate) async fn subject_silent_after(
        &self,
        on_subject: RuleOnSubject<'_>,
    ) -> StoreResult<TimeDelta> {
        match &on_subject.key.subject {
            AlertSubject::Device(device) => {
                self.silent_after(&on_subject.rule.definition.watch, device).await
            }
            AlertSubject::Room(_) => Ok(ROOM_SILENCE),
        }
    }

    /// The time without a reading after which a device counts as silent for a rule.
    pub async fn silent_after(&self, watch: &Watch, device: &DeviceId) -> StoreResult<TimeDelta> {
        match watch {
            Watch::Silence { after: Some(after) } => Ok(*after),
            _ => self.silence_limit(device).await,
        }
    }

    /// The time without a reading after which a device counts as silent, learned from seven days. Remembered for six
    /// hours, if the history is at least as long: the first hours of a new device say little.
    async fn silence_limit(&self, device: &DeviceId) -> StoreResult<TimeDelta> {
        let now = self.table.now;
        if let Some(limit) = self.judging.silence_limits.get(device, now) {
            return Ok(limit);
        }

        let quarters = self.last_quarters(device).await?;
        let Some((range, quarters)) = quarters else { return Ok(limit_of(&[])) };
        let rules = self.rules().await?;
        let pauses = self.pauses(&rules).await?;
        let limit = limit_of(&counts(&quarters, range, pauses));

        let first = quarters.first().map(|stored| stored.range.from());
        if first.is_some_and(|first| first.saturating_add(LEARNED_AGE) <= now) {
            self.judging.silence_limits.keep(device.clone(), limit, now);
        }
        Ok(limit)
    }

    /// The finished rollups of a device in the last week, and their range. `None` while no rollups are made.
    async fn last_quarters(
        &self,
        device: &DeviceId,
    ) -> StoreResult<Option<(TimeRange, Vec<StoredRollup>)>> {
        let throttle = &self.judging.throttles.rollup_state;
        let state =
            throttle.unless_throttled(self.table, async |table| table.rollup_state().await).await?;
        let Some(state) = state else { return Ok(None) };
        let newest = rollups::newest_sealable_end(self.table.now);
        let sealed = QuarterHour::of(state.sealed_of(device).min(newest));
        let length = i32::try_from(DAYS * QUARTERS_OF_DAY).expect("a week is short");
        let first = QuarterHour::of(sealed.start().saturating_add(-QuarterHour::LENGTH * length));
        let Ok(range) = TimeRange::new(first.start(), sealed.start()) else { return Ok(None) };
        let quarters = self.table.quarters(device, range, false).await?;
        Ok(Some((range, quarters)))
    }
}

/// The number of readings in each quarter of a range. Empty quarters in a pause of the system are left out: whether the
/// device was silent then is not known.
fn counts(quarters: &[StoredRollup], range: TimeRange, pauses: &[TimeRange]) -> Vec<u32> {
    let count = |stored: &StoredRollup| {
        // A reading counts also if none of its values takes part in a rollup.
        let count = stored.rollup.most_values().max(u64::from(!stored.rollup.is_empty()));
        (stored.range.from(), u32::try_from(count).unwrap_or(u32::MAX))
    };
    let by_start: BTreeMap<Timestamp, u32> = quarters.iter().map(count).collect();

    let is_in_pause = |quarter: &QuarterHour| {
        pauses.iter().any(|pause| pause.intersection(quarter.range()).is_some())
    };

    let first = QuarterHour::of(range.from());
    std::iter::successors(Some(first), |quarter| Some(quarter.next()))
        .take_while(|quarter| quarter.start() < range.to())
        .map(|quarter| (quarter, by_start.get(&quarter.start()).copied().unwrap_or(0)))
        .filter(|(quarter, count)| *count > 0 || !is_in_pause(quarter))
        .map(|(_, count)| count)
        .collect()
}

/// The silence limit that follows from the counts of a week.
///
/// A day counts as silent if its longest gap is more than twice as long as that of most days, and over two hours. So a
/// device that stops for up to three days does not raise its limit.
fn limit_of(counts: &[u32]) -> TimeDelta {
    let last_day = counts.len().saturating_sub(QUARTERS_OF_DAY);
    let hours: Vec<u32> =
        counts[last_day..].chunks(QUARTERS_OF_HOUR).map(|hour| hour.iter().sum()).collect();

    let first = counts.iter().position(|count| *count > 0).unwrap_or(counts.len());
    let days: Vec<&[u32]> = counts[first..].rchunks(QUARTERS_OF_DAY).rev().collect();
    let gap =
        |day: &&[u32]| day.split(|count| *count > 0).map(<[u32]>::len).max().unwrap_or_default();
    let mut gaps: Vec<usize> = days.iter().map(gap).collect();
    gaps.sort_unstable();
    let usual = gaps.get(gaps.len().saturating_sub(1) / 2).copied().unwrap_or_default();

    let is_silent = |day: &&[u32]| gap(day) > usual.max(QUARTERS_OF_HOUR) * UNUSUAL;
    let days: Vec<DayCounts<'_>> =
        days.iter().map(|day| DayCounts { quarters: day, was_silent: is_silent(day) }).collect();
    silence_limit(&hours, &days)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn week(day: impl Fn(usize, usize) -> u32) -> Vec<u32> {
        let quarters =
            (0..DAYS).flat_map(|n| (0..QUARTERS_OF_DAY).map(move |quarter| (n, quarter)));
        quarters.map(|(n, quarter)| day(n, quarter)).collect()
    }

    fn minutes(counts: &[u32]) -> i64 {
        limit_of(counts).num_minutes()
    }

    #[test]
    fn a_device_that_sleeps_at_night_is_not_silent_then() {
        let asleep = week(|_, quarter| if quarter < 32 { 0 } else { 15 });
        assert_eq!(minutes(&asleep), 2 * 32 * 15);
        assert_eq!(minutes(&week(|_, _| 15)), 10);
        assert_eq!(minutes(&week(|_, quarter| u32::from(quarter % 4 == 0))), 240, "hourly");
    }

    #[test]
    fn days_of_silence_teach_nothing() {
        let dying = week(|day, quarter| if day > 3 && quarter > 20 { 0 } else { 15 });
        assert_eq!(minutes(&dying), 10);
        let back = week(|day, _| if day == 3 || day == 4 { 0 } else { 15 });
        assert_eq!(minutes(&back), 10);
        assert_eq!(minutes(&[]), 60, "nothing is known");
    }
}
