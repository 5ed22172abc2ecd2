//! The figure of a rule on demand: the mean power of the current period, projected to its end. Sends no message.

use alerts::{DemandLimit, Figure, RECENT, RunningPeriod};
use domain::{CalendarUnit, Device, EnergyUnit, Exact, Meter, MetricRule, TimeRange, Timestamp};
use series::{DeviceQuestion, EnergyDevice, Grid, Horizon, Level};

use crate::Result;
use crate::devices::gauges;
use crate::judging::JudgingSession;
use crate::peaks::Peak;
use crate::ports::Store;

const HOUR: i64 = 3_600_000;
/// The rows of [`grid_until`]: the period before the recent minutes, and the recent minutes.
const BEFORE: usize = 0;
const RECENT_ROW: usize = 1;

impl<S: Store> JudgingSession<'_, S> {
    /// The projected demand of a device. Empty in the first minutes of a period, and for a device without energy
    /// readings.
    pub(crate) async fn demand_figures(
        &self,
        period: CalendarUnit,
        limit: &DemandLimit,
        device: &Device,
        horizon: &Horizon,
    ) -> Result<Vec<Figure>> {
        let range = period.bucket_of(self.table.now, horizon.zone());
        let running = self.running(device, range, horizon).await?;
        let Some(projection) = running.and_then(|running| running.project(self.table.now)) else {
            return Ok(Vec::new());
        };

        let highest = match limit {
            DemandLimit::Kilowatts(_) => None,
            DemandLimit::Peak => self.peak_before(range.from(), period, device, horizon).await?,
        };
        let limit = limit_of(limit, highest.as_ref());
        let is_beyond = limit.is_some_and(|limit| projection.least > limit);
        Ok(vec![Figure::new(range.from(), projection.least, is_beyond)])
    }

    /// The energy of the current period, from its readings; `None` without recent energy. The last minutes are measured
    /// by power where possible, because a counter moves in steps.
    async fn running(
        &self,
        device: &Device,
        range: TimeRange,
        horizon: &Horizon,
    ) -> Result<Option<RunningPeriod>> {
        let since = self.table.now.saturating_add(-RECENT);
        let Some(grid) = grid_until(range, since, self.table.now) else { return Ok(None) };
        let level = Level::Readings;
        let Some(rows) = self.energy(device, &grid, horizon, level).await? else { return Ok(None) };
        // Only recent energy says how the period goes on. Without earlier energy, the period has the recent energy
        // alone.
        let Some(recent) = rows.bought(RECENT_ROW) else { return Ok(None) };
        let energy_so_far = &rows.bought(BEFORE).unwrap_or_else(Exact::zero) + &recent;

        let mut period =
            RunningPeriod { range, energy: energy_so_far, recent, step: step_of(&rows) };
        if rows.meter.is_counter {
            let gauges = gauges(device);
            let meter = Meter::of(&gauges).and_then(|meter| meter.alone(&gauges));
            let question = DeviceQuestion::of(device, &grid, horizon, level, self.table.now);
            let powers = self.energy_by(meter, &question).await?;
            if let Some(recent) = powers.and_then(|rows| rows.bought(RECENT_ROW)) {
                (period.recent, period.step) = (recent, Exact::zero());
            }
        }

        Ok(Some(period))
    }

    /// The highest mean power in kW of the month's periods before `until`; `None` in the first period of the month.
    async fn peak_before(
        &self,
        until: Timestamp,
        period: CalendarUnit,
        device: &Device,
        horizon: &Horizon,
    ) -> Result<Option<Exact>> {
        let now = self.table.now;
        let month = CalendarUnit::Month.bucket_of(until, horizon.zone()).from();
        let key = (device.id().clone(), period);
        let settings = device.fold_settings().number;
        let is_valid =
            |peak: &Peak| (peak.month, peak.settings) == (month, settings) && peak.until <= until;
        let known = self.judging.peaks.get(&key, now).filter(is_valid);
        let begun = || Peak { month, settings, read_at: now, until: month, highest: None };
        let mut peak = known.unwrap_or_else(begun);

        if let Ok(more) = TimeRange::new(peak.until, until)
            && let Some(grid) = Grid::of(period, more, horizon.zone())
        {
            let level = Level::of(Some(period));
            let rows = self.energy(device, &grid, horizon, level).await?;
            let powers = rows.iter().flat_map(|rows| {
                let periods = grid.rows().iter().enumerate();
                periods.filter_map(|(index, range)| power(&rows.bought(index)?, *range))
            });
            peak.highest = peak.highest.into_iter().chain(powers).max();
            peak.until = until;
            self.judging.peaks.keep(key, peak.clone(), peak.read_at);
        }

        Ok(peak.highest)
    }
}

/// The limit in kW: a fixed one, or the mean power of the `highest` period of the month so far. `None` before a period
/// of the month has been measured.
pub(crate) fn limit_of(limit: &DemandLimit, highest: Option<&Exact>) -> Option<Exact> {
    match limit {
        DemandLimit::Kilowatts(kilowatts) => Some(Exact::from(kilowatts)),
        DemandLimit::Peak => highest.cloned(),
    }
}

/// The period up to now, in two parts: the recent minutes begin at `since`. `None` if they begin before the period.
fn grid_until(range: TimeRange, since: Timestamp, now: Timestamp) -> Option<Grid> {
    let so_far = TimeRange::new(range.from(), now).ok().filter(|_| since > range.from())?;
    Some(Grid::between(so_far, [since].into()))
}

/// The resolution of a device's energy in kWh: the sum of the resolutions of its counters. A counter's resolution is
/// the place value of the last decimal in any of its values.
fn step_of(rows: &EnergyDevice<'_>) -> Exact {
    let mut sum = Exact::zero();
    for name in &rows.meter.used {
        let Some(metric) = rows.values.metrics.get(*name) else { continue };
        let unit = rows.values.device.metrics().get(*name).and_then(|info| info.unit.as_ref());
        let (MetricRule::Counter(_), Some(unit)) = (&metric.rule, EnergyUnit::of(unit)) else {
            continue;
        };
        let rollups = metric.rows.iter().filter_map(|row| row.rollup.as_ref());
        let values = rollups
            .flat_map(|rollup| [&rollup.first.value, &rollup.last.value, &rollup.min, &rollup.max]);
        if let Some(step) = values.map(|value| Exact::from(value).resolution()).min() {
            sum += &unit.to_kwh(&step);
        }
    }

    sum
}

/// The mean power in kW that an energy in kWh makes over a range.
pub(crate) fn power(energy: &Exact, range: TimeRange) -> Option<Exact> {
    (energy * HOUR).rounded_quotient(&Exact::from(range.length().num_milliseconds()))
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use domain::{Reading, Verdict};
    use rollups::RollupDelay;
    use series::RollupStateCache;
    use table::given::{self, invocation};
    use table::memory_db::MemoryDb;
    use table::{PutReadings as _, Session};

    use super::*;
    use crate::judging::Judging;

    const METER: &str = "cumulative_kwh_p";

    fn at(hours: i64) -> Timestamp {
        let month = given::at("2026-01-01T00:00:00Z");
        month.saturating_add(TimeDelta::hours(hours))
    }

    fn reading(hours: i64, value: &str) -> Reading {
        given::reading("meter", at(hours), None, &[(METER, value)])
    }

    async fn highest(
        judging: &Judging,
        store: &MemoryDb,
        device: &Device,
        now: Timestamp,
    ) -> Option<String> {
        let (until, invocation) = (at(5), invocation());
        let session = judging.session(Session::new(store, &invocation, now));
        let horizon = RollupStateCache::new(RollupDelay::default()).read(session.table).await;
        let horizon = horizon.expect("memory");
        let highest = session.peak_before(until, CalendarUnit::Hour, device, &horizon).await;
        highest.expect("answered").map(|highest| highest.to_string())
    }

    #[tokio::test]
    async fn a_peak_that_is_remembered_follows_verdicts_at_once_and_late_readings_within_hours() {
        let (judging, store) = (Judging::default(), MemoryDb::default());
        let readings = [(0, "100"), (1, "101"), (2, "103"), (3, "903"), (4, "904")];
        let readings = readings.map(|(hours, value)| reading(hours, value));
        store.put_readings(&readings, None, &invocation()).await;
        let device = given::device_of(&readings);
        let peak = async |device, hours| highest(&judging, &store, device, at(hours)).await;
        assert_eq!(peak(&device, 5).await.as_deref(), Some("2"), "800 kW is suspect");
        let name = METER.parse().expect("a name");
        let judged = device.changed(|parts| {
            let metric = parts.metrics.get_mut(&name).expect("it has sent it");
            metric.verdicts.insert(at(3), Verdict::Accept);
            parts.fold_settings.number += 1;
        });
        let judged = judged.expect("valid");
        assert_eq!(peak(&judged, 6).await.as_deref(), Some("800"));
        assert_eq!(peak(&device, 6).await.as_deref(), Some("2"), "taken back");

        store.put_readings(&[reading(2, "105")], None, &invocation()).await;
        assert_eq!(peak(&device, 11).await.as_deref(), Some("2"));
        assert_eq!(peak(&device, 12).await.as_deref(), Some("4"));
    }
}
