//! The energy of a device in ranges of time, computed as for `/energy`. Judges nothing.

use domain::{Device, Meter, MetricName, MetricRule};
use series::{DeviceQuestion, EnergyDevice, Grid, Horizon, Level, device_rows};

use crate::Result;
use crate::devices::meter;
use crate::judging::JudgingSession;
use crate::ports::Store;

impl<S: Store> JudgingSession<'_, S> {
    /// The energy of a device, measured by its counters, or without counters by its powers. `None` without a meter.
    pub(crate) async fn energy<'q>(
        &self,
        device: &'q Device,
        grid: &'q Grid,
        horizon: &'q Horizon,
        coarsest: Level,
    ) -> Result<Option<EnergyDevice<'q>>> {
        let question = DeviceQuestion::of(device, grid, horizon, coarsest, self.table.now);
        self.energy_by(meter(device), &question).await
    }

    /// The energy of a device by the given meter; `None` without a meter.
    pub(crate) async fn energy_by<'q>(
        &self,
        meter: Option<Meter<'q>>,
        question: &DeviceQuestion<'q>,
    ) -> Result<Option<EnergyDevice<'q>>> {
        let Some(meter) = meter else { return Ok(None) };
        let names: Vec<MetricName> = meter.names().cloned().collect();
        let needs_neighbours = |rule: &MetricRule| *rule != MetricRule::Gauge;
        let values = device_rows(self.table, question, &names, needs_neighbours).await?;
        Ok(Some(EnergyDevice { values, meter }))
    }
}
