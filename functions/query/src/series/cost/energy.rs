//! The energy that meters used and sold in each step of a bill, and its unknown parts. Prices nothing.

use api::Problem;
use chrono::TimeDelta;
use domain::{Amount, CalendarUnit, Flag, MetricName, TimeRange, Timestamp, Zone};
use series::{DeviceRows, RowValues, counted, counted_amount};
use tariffs::{EnergyStep, EstimatedEnergy, Per};

use super::meter::BilledMeter;
use super::{Biller, StepPlan};
use crate::ports::Store;

/// If a meter is silent for at least this time, the used energy counts as unknown.
const MIN_UNKNOWN: TimeDelta = TimeDelta::minutes(15);

impl<S: Store> Biller<'_, S> {
    /// The used and sold energy of all meters together, in each step. Meters are read one after the other, because the
    /// rows of all meters at once would take too much memory.
    pub(super) async fn metered(
        &mut self,
        meters: &[BilledMeter<'_>],
        steps: &StepPlan,
    ) -> Result<Vec<EnergyStep>, Problem> {
        let mut sum: Vec<EnergyStep> = steps.grid.rows().iter().map(empty_step).collect();
        for meter in meters {
            let read = self.read_rows(meter.device, &meter.names, steps).await?;
            let rolled_up = self.plan.horizon.rolled_up(meter.device.id());
            add(&mut sum, meter, &read, rolled_up.map(TimeRange::to));
        }

        for step in &mut sum {
            step.metered.clone_from(&step.used);
        }
        Ok(sum)
    }
}

fn empty_step(range: &TimeRange) -> EnergyStep {
    EnergyStep {
        range: *range,
        used: None,
        sold: None,
        metered: None,
        is_unknown: false,
        estimated: Vec::new(),
    }
}

/// Adds the energy that a meter measured to the steps. A time without readings counts as silence only before
/// `rolled_up`, because later readings may still be missing.
fn add(
    steps: &mut [EnergyStep],
    meter: &BilledMeter<'_>,
    values: &DeviceRows<'_>,
    rolled_up: Option<Timestamp>,
) {
    for (index, name) in meter.names.iter().enumerate() {
        let Some(metric) = values.metrics.get(name) else { continue };
        let per = if index < meter.used { Per::Used } else { Per::Sold };
        for (step, row) in steps.iter_mut().zip(&metric.rows) {
            // A suspect step counts nothing until a person judges it.
            let is_suspect = row.increase.flags.contains(Flag::Suspect);
            step.is_unknown |= per == Per::Used && is_suspect;

            if per == Per::Used && rolled_up.is_some_and(|until| step.range.to() <= until) {
                let begin = meter.device.first_seen().max(step.range.from());
                let range = TimeRange::new(begin, step.range.to());
                step.is_unknown |= range.is_ok_and(|range| is_unknown(range, row));
            }

            if let Some(amount) = counted(meter.device, name, row) {
                add_estimated(step, per, meter, name, row);
                let sum = if per == Per::Used { &mut step.used } else { &mut step.sold };
                sum.get_or_insert_default().add(&meter.billed(amount));
            }
        }
    }
}

/// Whether a meter was silent for so long that its energy in this time is unknown.
fn is_unknown(range: TimeRange, row: &RowValues) -> bool {
    let known = row.area.as_ref().map_or(row.increase.measured, |area| area.held);
    range.length() - known >= MIN_UNKNOWN.min(range.length())
}

/// Adds energy that was measured over more than a quarter of an hour: parts of a counter's steps, or all energy of a
/// power whose readings are means of hours.
fn add_estimated(
    step: &mut EnergyStep,
    per: Per,
    meter: &BilledMeter<'_>,
    name: &MetricName,
    row: &RowValues,
) {
    let energy = |amount: Amount, over| EstimatedEnergy { per, amount: meter.billed(amount), over };
    for part in &row.increase.estimated {
        let amount = counted_amount(meter.device, name, &part.amount);
        step.estimated.push(energy(amount, part.step));
    }

    let hourly = meter.device.metrics().get(name).and_then(|info| info.hourly_until);
    let is_hourly = row.area.is_some() && hourly.is_some_and(|until| step.range.to() <= until);
    if is_hourly && let Some(amount) = counted(meter.device, name, row) {
        step.estimated.push(energy(amount, hours_of(step.range)));
    }
}

/// The range, widened to whole hours of UTC.
fn hours_of(range: TimeRange) -> TimeRange {
    let hour = |at| CalendarUnit::Hour.bucket_of(at, Zone::UTC);
    TimeRange::new(hour(range.from()).from(), hour(range.last()).to()).expect("at least the range")
}
