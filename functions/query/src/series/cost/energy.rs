//! What meters used and sold in each step of a bill, and what is unknown of it. Prices nothing.

use api::Problem;
use chrono::TimeDelta;
use domain::{Device, MetricName, TimeRange, Timestamp};
use series::{DeviceValues, RowValues, counted};
use tariffs::{EnergyStep, SpreadOver};

use super::meter::BilledMeter;
use super::{Biller, StepPlan};
use crate::ports::Store;

/// The shortest time without a value for which it counts as unknown what was used.
const MIN_UNKNOWN: TimeDelta = TimeDelta::minutes(15);
/// The longest time over which energy of hours is spread.
const HOUR: TimeDelta = TimeDelta::hours(1);

impl<S: Store> Biller<'_, S> {
    /// What meters used and sold in each step; the meters are added up.
    pub(super) async fn metered(
        &mut self,
        meters: &[BilledMeter<'_>],
        steps: &StepPlan,
    ) -> Result<Vec<EnergyStep>, Problem> {
        let wanted: Vec<_> = meters.iter().map(|meter| (meter.device, &meter.names[..])).collect();
        let values = self.read_rows(&wanted, steps).await?;

        let mut sum: Vec<EnergyStep> = steps.grid.rows().iter().map(empty_step).collect();
        for (meter, values) in meters.iter().zip(&values) {
            let rolled_up = self.plan.horizon.rolled_up(meter.device.id());
            add(&mut sum, meter, values, rolled_up.map(TimeRange::to));
        }
        for step in &mut sum {
            step.metered.clone_from(&step.used);
        }
        Ok(sum)
    }
}

fn empty_step(range: &TimeRange) -> EnergyStep {
    let (range, is_unknown, spread) = (*range, false, None);
    EnergyStep { range, used: None, sold: None, metered: None, is_unknown, spread }
}

/// Adds what a meter measured. Until `rolled_up`, each time has a reading or the meter was silent.
fn add(
    steps: &mut [EnergyStep],
    meter: &BilledMeter<'_>,
    values: &DeviceValues<'_>,
    rolled_up: Option<Timestamp>,
) {
    for (index, name) in meter.names.iter().enumerate() {
        let Some(metric) = values.metrics.get(name) else { continue };
        let is_used = index < meter.used;
        let silences = silences(steps, &metric.rows);
        for ((step, row), silence) in steps.iter_mut().zip(&metric.rows).zip(silences) {
            let mut amount = counted(meter.device, name, row);
            if let (Some(amount), Some(factor)) = (&mut amount, &meter.factor) {
                *amount = amount.times(factor);
            }

            if is_used && rolled_up.is_some_and(|until| step.range.to() <= until) {
                let begin = meter.device.first_seen().max(step.range.from());
                let range = TimeRange::new(begin, step.range.to());
                step.is_unknown |= range.is_ok_and(|range| is_unknown(range, row));
            }

            if let Some(amount) = amount {
                let spread = spread(meter.device, name, step.range, row, silence);
                step.spread = step.spread.max(spread);
                let sum = if is_used { &mut step.used } else { &mut step.sold };
                sum.get_or_insert_default().add(&amount);
            }
        }
    }
}

/// Whether a meter was silent for so long that nobody knows what was used.
fn is_unknown(range: TimeRange, row: &RowValues) -> bool {
    let known = row.area.as_ref().map_or(row.increase.measured, |area| area.held);
    range.length() - known >= MIN_UNKNOWN.min(range.length())
}

/// Over what time the energy of a step is spread.
fn spread(
    device: &Device,
    name: &MetricName,
    range: TimeRange,
    row: &RowValues,
    silence: TimeDelta,
) -> Option<SpreadOver> {
    let hourly = device.metrics().get(name).and_then(|info| info.hourly_until);
    let is_hourly = row.area.is_some() && hourly.is_some_and(|until| range.to() <= until);
    match row.increase.estimated {
        true if silence >= HOUR => Some(SpreadOver::Longer),
        true => Some(SpreadOver::Hour),
        false => is_hourly.then_some(SpreadOver::Hour),
    }
}

/// For each step, how long the meter sent no value within it or right beside it, in whole steps.
fn silences(steps: &[EnergyStep], rows: &[RowValues]) -> Vec<TimeDelta> {
    let mut silences = vec![TimeDelta::zero(); rows.len()];
    let is_silent = |row: &RowValues| row.rollup.is_none();
    let mut begin = 0;
    for run in rows.chunk_by(|row, next| is_silent(row) == is_silent(next)) {
        let end = begin + run.len();
        if is_silent(&run[0]) {
            let silence: TimeDelta = steps[begin..end].iter().map(|step| step.range.length()).sum();
            for longest in &mut silences[begin.saturating_sub(1)..(end + 1).min(rows.len())] {
                *longest = silence.max(*longest);
            }
        }
        begin = end;
    }
    silences
}
