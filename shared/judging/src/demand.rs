//! The figure of a demand: where the period that runs is heading. Tells nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use alerts::{DemandLimit, Figure, RECENT, RunningPeriod};
use chrono::TimeDelta;
use domain::{
    CalendarUnit, Device, DeviceId, EnergyUnit, Exact, Meter, MetricRule, TimeRange, Timestamp,
};
use series::{EnergyDevice, Failure, Grid, Horizon, Level};
use table::Invocation;

use crate::energy::{energy, gauges, meter};
use crate::ports::Store;

const HOUR: i64 = 3_600_000;

/// The highest periods of months, as far as this process has computed them.
#[derive(Debug, Default)]
pub(crate) struct Peaks(Mutex<BTreeMap<(DeviceId, CalendarUnit), Peak>>);

/// The highest period of a month up to an instant, in kW.
#[derive(Debug, Clone)]
struct Peak {
    month: Timestamp,
    /// The number of the device's settings: a verdict changes what has been.
    settings: u64,
    /// When its first period was read.
    read_at: Timestamp,
    until: Timestamp,
    highest: Option<Exact>,
}

/// The time after which a month is read anew: readings that are late or deleted change what has been.
const MAX_AGE: TimeDelta = TimeDelta::hours(6);

/// The figures of a device: none in the first minutes of a period, and where nothing tells its energy.
pub(crate) async fn figures(
    store: &impl Store,
    device: &Device,
    (period, limit): (CalendarUnit, &DemandLimit),
    (peaks, horizon): (&Peaks, &Horizon),
    now: Timestamp,
    invocation: &Invocation,
) -> Result<Vec<Figure>, Failure> {
    let range = period.bucket_of(now, horizon.zone());
    let Some(running) = running(store, device, range, horizon, now, invocation).await? else {
        return Ok(Vec::new());
    };
    let Some(projection) = running.project(now) else { return Ok(Vec::new()) };
    let highest = match limit {
        DemandLimit::Kilowatts(_) => None,
        DemandLimit::Peak => {
            peaks.before(store, device, (period, range.from()), horizon, now, invocation).await?
        }
    };
    let limit = limit_of(limit, highest.as_ref());
    let is_beyond = limit.is_some_and(|limit| projection.least > limit);
    Ok(vec![Figure { at: range.from(), value: projection.least, is_beyond }])
}

/// The limit in kW; `None` in the first period of a month, where the limit is the highest before.
pub(crate) fn limit_of(limit: &DemandLimit, highest: Option<&Exact>) -> Option<Exact> {
    match limit {
        DemandLimit::Kilowatts(kilowatts) => Some(Exact::from(kilowatts)),
        DemandLimit::Peak => highest.cloned(),
    }
}

/// The period that runs, from its readings. The last minutes by a power where there is one: a counter moves in steps.
async fn running(
    store: &impl Store,
    device: &Device,
    range: TimeRange,
    horizon: &Horizon,
    now: Timestamp,
    invocation: &Invocation,
) -> Result<Option<RunningPeriod>, Failure> {
    let since = now.saturating_add(-RECENT);
    let Some(grid) = grid_until(range, since, now) else { return Ok(None) };
    let (places, level) = ((&grid, horizon), Level::Readings);
    let rows = energy(store, (device, meter(device)), places, level, now, invocation).await?;
    let Some(rows) = rows else { return Ok(None) };
    let Some(recent) = rows.used(1) else { return Ok(None) };
    let energy_so_far = &rows.used(0).unwrap_or_else(Exact::zero) + &recent;
    let mut period = RunningPeriod { range, energy: energy_so_far, recent, step: step_of(&rows) };
    if rows.meter.is_counter {
        let gauges = gauges(device);
        let powers = Meter::of(&gauges).and_then(|it| it.alone(&gauges));
        let powers = energy(store, (device, powers), places, level, now, invocation).await?;
        if let Some(recent) = powers.and_then(|rows| rows.used(1)) {
            (period.recent, period.step) = (recent, Exact::zero());
        }
    }
    Ok(Some(period))
}

/// The period up to now, cut where its last minutes begin.
fn grid_until(range: TimeRange, since: Timestamp, now: Timestamp) -> Option<Grid> {
    let so_far = TimeRange::new(range.from(), now).ok().filter(|_| since > range.from())?;
    Some(Grid::between(so_far, [since].into()))
}

/// One step of the counters of some rows, in kWh: the last decimal that any of their values has.
fn step_of(rows: &EnergyDevice<'_>) -> Exact {
    let mut sum = Exact::zero();
    for name in &rows.meter.used {
        let Some(metric) = rows.values.metrics.get(*name) else { continue };
        let unit = rows.values.device.metrics().get(*name).and_then(|it| it.unit.as_ref());
        let (MetricRule::Counter(_), Some(unit)) = (&metric.rule, EnergyUnit::of(unit)) else {
            continue;
        };
        let rollups = metric.rows.iter().filter_map(|row| row.rollup.as_ref());
        let values = rollups.flat_map(|it| [&it.first.value, &it.last.value, &it.min, &it.max]);
        if let Some(step) = values.map(|value| Exact::from(value).resolution()).min() {
            sum += &unit.to_kwh(&step);
        }
    }
    sum
}

impl Peaks {
    /// The highest period of the month before the one that begins at `until`, in kW; `None` in the first.
    async fn before(
        &self,
        store: &impl Store,
        device: &Device,
        (period, until): (CalendarUnit, Timestamp),
        horizon: &Horizon,
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Option<Exact>, Failure> {
        let month = CalendarUnit::Month.bucket_of(until, horizon.zone()).from();
        let key = (device.id().clone(), period);
        let settings = device.fold_settings().number;
        let is_true = |it: &&Peak| {
            (it.month, it.settings) == (month, settings)
                && it.until <= until
                && now.since(it.read_at) < MAX_AGE
        };
        let known = self.known().get(&key).filter(is_true).cloned();
        let begun = || Peak { month, settings, read_at: now, until: month, highest: None };
        let mut peak = known.unwrap_or_else(begun);
        if let Ok(more) = TimeRange::new(peak.until, until)
            && let Some(grid) = Grid::of(period, more, horizon.zone())
        {
            let (places, level) = ((&grid, horizon), Level::of(Some(period)));
            let rows =
                energy(store, (device, meter(device)), places, level, now, invocation).await?;
            let powers = rows.iter().flat_map(|rows| {
                let places = grid.rows().iter().enumerate();
                places.filter_map(|(place, range)| power(&rows.used(place)?, *range))
            });
            peak.highest = peak.highest.into_iter().chain(powers).max();
            peak.until = until;
            self.known().insert(key, peak.clone());
        }
        Ok(peak.highest)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<(DeviceId, CalendarUnit), Peak>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The mean power of an energy in kWh, in kW.
pub(crate) fn power(energy: &Exact, range: TimeRange) -> Option<Exact> {
    let millis = range.to().since(range.from()).num_milliseconds();
    (energy * HOUR).rounded_quotient(&Exact::from(millis))
}

#[cfg(test)]
mod tests {
    use domain::{Reading, Verdict};
    use rollups::Following;
    use series::KnownState;
    use table::PutReadings as _;
    use table::given::{self, invocation};
    use table::memory_db::MemoryDb;

    use super::*;

    const METER: &str = "cumulative_kwh_p";

    fn at(hours: i64) -> Timestamp {
        let month = given::at("2026-01-01T00:00:00Z");
        month.saturating_add(TimeDelta::hours(hours))
    }

    fn reading(hours: i64, value: &str) -> Reading {
        given::reading("meter", at(hours), None, &[(METER, value)])
    }

    async fn highest(
        peaks: &Peaks,
        store: &MemoryDb,
        device: &Device,
        now: Timestamp,
    ) -> Option<String> {
        let (until, call) = (at(5), invocation());
        let horizon = KnownState::new(Following::default()).read(store, now, &call).await;
        let horizon = horizon.expect("memory");
        let of = (CalendarUnit::Hour, until);
        let highest = peaks.before(store, device, of, &horizon, now, &call).await;
        highest.expect("answered").map(|it| it.to_string())
    }

    #[tokio::test]
    async fn a_peak_that_is_remembered_follows_verdicts_at_once_and_late_readings_within_hours() {
        let (peaks, store) = (Peaks::default(), MemoryDb::default());
        let readings = [(0, "100"), (1, "101"), (2, "103"), (3, "903"), (4, "904")];
        let readings = readings.map(|(hours, value)| reading(hours, value));
        store.put_readings(&readings, None, &invocation()).await;
        let device = given::device_of(&readings);
        let peak = async |device, hours| highest(&peaks, &store, device, at(hours)).await;
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
