//! The energy of a device by rows of time: what `/energy` answers of it. Judges nothing.

use domain::{Device, Meter, MetricName, MetricRule};
use series::{DeviceQuestion, EnergyDevice, Grid, Horizon, Level, device_values};

use crate::Result;
use crate::devices::meter;
use crate::judging::JudgingSession;
use crate::ports::Store;

/// The energy of a device that is asked about by itself.
pub(crate) struct EnergyQuestion<'a> {
    pub(crate) device: &'a Device,
    /// The meter that is read.
    pub(crate) meter: Option<Meter<'a>>,
    pub(crate) grid: &'a Grid,
    pub(crate) horizon: &'a Horizon,
    pub(crate) coarsest: Level,
}

impl<'a> EnergyQuestion<'a> {
    /// The energy of a device by its own meter: counters, else powers.
    pub(crate) fn of(
        device: &'a Device,
        grid: &'a Grid,
        horizon: &'a Horizon,
        coarsest: Level,
    ) -> Self {
        Self { device, meter: meter(device), grid, horizon, coarsest }
    }
}

impl<S: Store> JudgingSession<'_, S> {
    /// The energy of a device; `None` if the device measures none.
    pub(crate) async fn energy<'q>(
        &self,
        question: EnergyQuestion<'q>,
    ) -> Result<Option<EnergyDevice<'q>>> {
        let EnergyQuestion { device, meter, grid, horizon, coarsest } = question;
        let Some(meter) = meter else { return Ok(None) };
        let names: Vec<MetricName> = meter.names().cloned().collect();
        let question = DeviceQuestion::of(device, grid, horizon, coarsest, self.table.now);
        let spans = |rule: &MetricRule| *rule != MetricRule::Gauge;
        let values = device_values(self.table, &question, &names, spans).await?;
        Ok(Some(EnergyDevice { values, meter }))
    }
}
