//! Refuses settings that a metric of its kind or unit does not use, because they would have no effect. Edits nothing.

use super::{Edit, EnergyUnit, MetricInfo, MetricKind, MetricName, MetricPatch, MetricRule};

/// A setting that a metric of its kind or unit does not use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct MeaninglessSetting {
    metric: MetricName,
    setting: &'static str,
    why: &'static str,
}

impl MeaninglessSetting {
    /// The member of the patch that is wrong.
    pub fn field(&self) -> String {
        format!("metrics.{}.{}", self.metric, self.setting)
    }
}

impl MetricPatch {
    /// Refuses a setting that the metric does not use. `after` is the metric as it is after the edit.
    pub fn check(&self, name: &MetricName, after: &MetricInfo) -> Result<(), MeaninglessSetting> {
        let Some((setting, why)) = self.meaningless(after) else { return Ok(()) };
        Err(MeaninglessSetting { metric: name.clone(), setting, why })
    }

    fn meaningless(&self, after: &MetricInfo) -> Option<(&'static str, &'static str)> {
        let of_counters = [
            ("modulus", is_set(&self.modulus)),
            ("max_w", is_set(&self.max_w)),
            ("tolerance", is_set(&self.tolerance)),
            ("exchanges", is_set(&self.exchanges)),
            ("verdicts", is_set(&self.verdicts)),
            ("net", self.net == Edit::Set(true)),
            ("cycle", is_set(&self.cycle)),
        ];

        if after.kind != MetricKind::Counter {
            let set = of_counters.into_iter().find(|(_, is_set)| *is_set);
            if let Some((name, _)) = set {
                return Some((name, "is a setting of counters, and this metric is a gauge"));
            }
        }

        if is_set(&self.max_w) && EnergyUnit::of(after.unit.as_ref()).is_none() {
            return Some(("max_w", "needs a metric in Wh, kWh or MWh"));
        }

        let is_power = matches!(MetricRule::of(after), MetricRule::Power(_));
        let is_energy =
            after.kind == MetricKind::Counter && EnergyUnit::of(after.unit.as_ref()).is_some();
        if is_set(&self.role) && !is_energy && !is_power {
            return Some(("role", "needs a counter in Wh, kWh or MWh, or a gauge in W, kW or MW"));
        }

        if is_set(&self.hold) && !is_power {
            return Some(("hold", "is a setting of gauges in W, kW or MW"));
        }
        None
    }
}

const fn is_set<T>(edit: &Edit<T>) -> bool {
    matches!(edit, Edit::Set(_))
}
