//! The meters of a tariff: which metrics of a device are billed, and why a meter is not. Reads nothing.

use std::collections::BTreeMap;

use domain::{
    Amount, Device, DeviceId, EnergyUnit, Exact, Meter, MetricName, MetricRule, Unit, watts,
};
use tariffs::TariffMeter;

/// The devices that a tariff names, as far as they are known.
type KnownDevices = BTreeMap<DeviceId, Device>;

/// The metrics of one device that are billed.
pub(crate) struct BilledMeter<'a> {
    pub(super) device: &'a Device,
    /// The metrics of used amounts, then the metrics of sold amounts.
    pub(super) names: Vec<MetricName>,
    /// The number of metrics of used amounts.
    pub(super) used: usize,
    pub(super) factor: Option<Exact>,
}

impl<'a> BilledMeter<'a> {
    /// Each meter of a tariff, or the reason why it is not billed, such as a unit other than the first meter's. If the
    /// first meter is not billed, its unit is unknown and taken to be kWh.
    pub(crate) fn all(
        meters: &[TariffMeter],
        devices: &'a KnownDevices,
    ) -> Vec<Result<Self, String>> {
        let (mut all, mut first) = (Vec::new(), None);
        for meter in meters {
            let found = Self::of(meter, first, devices);
            first = first.or(Some(found.as_ref().map_or("kWh", Self::unit)));
            all.push(found);
        }
        all
    }

    /// A meter of a tariff, or why it is not billed. `first` is the unit of the first meter.
    fn of(
        meter: &TariffMeter,
        first: Option<&str>,
        devices: &'a KnownDevices,
    ) -> Result<Self, String> {
        let TariffMeter { device: id, metric, factor, sold } = meter;
        let device = known_device(id, metric.as_ref(), devices)?;
        let found = match metric {
            None => Self::of_device(device),
            Some(name) => Self::of_metric(device, name, *sold),
        };
        let factor = factor.as_ref().map(Exact::from);
        let found = found.map(|found| Self { factor, ..found });
        let found = found.ok_or_else(|| format!("{id} measures no energy, so it is not billed"))?;

        let unit = found.unit();
        match first.filter(|first| *first != unit) {
            Some(first) => Err(format!(
                "{id} is in {unit} and not in {first}; without a factor it is not billed"
            )),
            None => Ok(found),
        }
    }

    /// One counter or power of a device; returns `None` if the metric is neither.
    fn of_metric(device: &'a Device, name: &MetricName, is_sold: bool) -> Option<Self> {
        let rule = MetricRule::of(device.metrics().get(name)?);
        let (names, used) = (vec![name.clone()], usize::from(!is_sold));
        (rule != MetricRule::Gauge).then_some(Self { device, names, used, factor: None })
    }

    /// The metrics of used and of sold energy of a device; `None` if it measures neither.
    pub(super) fn of_device(device: &'a Device) -> Option<Self> {
        let meter = Meter::of(device.metrics()).filter(Meter::is_of_sums)?;
        let (names, used) = (meter.names().cloned().collect(), meter.used.len());
        Some(Self { device, names, used, factor: None })
    }

    /// An amount of the meter in the unit of the prices.
    pub(super) fn billed(&self, amount: Amount) -> Amount {
        match &self.factor {
            Some(factor) => amount.times(factor),
            None => amount,
        }
    }

    /// The unit of the prices: kWh for energy, for power, and for a meter with a factor; else the unit of the metric.
    pub(super) fn unit(&self) -> &'a str {
        let info = self.names.first().and_then(|name| self.device.metrics().get(name));
        let unit = info.and_then(|info| info.unit.as_ref());
        let is_energy = EnergyUnit::of(unit).is_some() || watts(unit).is_some();
        unit.filter(|_| !is_energy && self.factor.is_none()).map_or("kWh", Unit::as_str)
    }
}

/// A device that a tariff names, if the device has sent the `metric`. The error says what is unknown.
pub(crate) fn known_device<'a>(
    id: &DeviceId,
    metric: Option<&MetricName>,
    devices: &'a KnownDevices,
) -> Result<&'a Device, String> {
    let device = devices.get(id);
    let device =
        device.ok_or_else(|| format!("there is no device {id}; it has sent no reading"))?;
    match metric.filter(|metric| !device.metrics().contains_key(*metric)) {
        Some(metric) => Err(format!("{id} has sent no {metric}")),
        None => Ok(device),
    }
}
