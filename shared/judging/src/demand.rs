//! The figure of a demand: where the period that runs is heading. Tells nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use alerts::{DemandLimit, Figure, RECENT, RunningPeriod};
use domain::{
    CalendarUnit, Device, DeviceId, EnergyUnit, Exact, Meter, MetricRule, TimeRange, Timestamp,
};
use series::{Failure, Grid, Horizon, Level};
use table::Invocation;

use crate::energy::{EnergyRows, energy, gauges, meter};
use crate::ports::Store;

const HOUR: i64 = 3_600_000;

/// The highest periods of months, as far as this process has computed them.
#[derive(Debug, Default)]
pub(crate) struct Peaks(Mutex<BTreeMap<(DeviceId, CalendarUnit), Peak>>);

/// The highest period of a month up to an instant, in kW.
#[derive(Debug, Clone)]
struct Peak {
    month: Timestamp,
    until: Timestamp,
    highest: Option<Exact>,
}

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
fn step_of(rows: &EnergyRows<'_>) -> Exact {
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
        let known =
            self.known().get(&key).filter(|it| it.month == month && it.until <= until).cloned();
        let mut peak = known.unwrap_or(Peak { month, until: month, highest: None });
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
