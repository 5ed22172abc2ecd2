//! What counts as a device's energy, for devices of random metrics: by the amounts that their meters would show.

use std::collections::BTreeMap;

use domain::given::metric;
use domain::{Meter, MetricInfo, MetricKind, MetricName, Role};
use proptest::prelude::*;

/// One way to name the parts of a measured flow, and its total.
#[derive(Debug, Clone, Copy)]
struct Style {
    total: &'static str,
    parts: [&'static str; 3],
}

const BOUGHT: [Style; 5] = [
    Style {
        total: "cumulative_kwh_p",
        parts: ["cumulative_kwh_p_a", "cumulative_kwh_p_b", "cumulative_kwh_p_c"],
    },
    Style { total: "import_total", parts: ["import_t1", "import_t2", "import_t3"] },
    Style {
        total: "energy_import",
        parts: ["l1_energy_import", "l2_energy_import", "l3_energy_import"],
    },
    Style { total: "obis_1_8_0", parts: ["obis_1_8_1", "obis_1_8_2", "obis_1_8_3"] },
    Style { total: "energy", parts: ["energy_1", "energy_2", "energy_3"] },
];
const SOLD: [Style; 4] = [
    Style {
        total: "cumulative_kwh_n",
        parts: ["cumulative_kwh_n_a", "cumulative_kwh_n_b", "cumulative_kwh_n_c"],
    },
    Style { total: "export_total", parts: ["export_t1", "export_t2", "export_t3"] },
    Style { total: "obis_2_8_0", parts: ["obis_2_8_1", "obis_2_8_2", "obis_2_8_3"] },
    Style { total: "returned", parts: ["returned_ch1", "returned_ch2", "returned_ch3"] },
];

/// What a device measures of one direction: the amounts of its parts, and which of its metrics it sends.
#[derive(Debug, Clone)]
struct Flow {
    style: Style,
    amounts: [u32; 3],
    has_total: bool,
    /// How many of the parts there are; their total is of these.
    parts: usize,
}

impl Flow {
    fn sent(&self) -> Vec<(&'static str, u32)> {
        let parts = self.style.parts.into_iter().zip(self.amounts).take(self.parts);
        let total = (self.has_total).then(|| (self.style.total, self.used()));
        // A total of nothing but itself is a meter of one phase.
        parts.chain(total).collect()
    }

    fn used(&self) -> u32 {
        match self.parts {
            0 => self.amounts[0],
            parts => self.amounts[..parts].iter().sum(),
        }
    }

    fn is_sent(&self) -> bool {
        self.has_total || self.parts > 0
    }
}

fn flow<const N: usize>(styles: [Style; N]) -> impl Strategy<Value = Flow> {
    (prop::sample::select(styles.to_vec()), any::<[u16; 3]>(), any::<bool>(), 0_usize..4).prop_map(
        |(style, amounts, has_total, parts)| Flow {
            style,
            amounts: amounts.map(|it| u32::from(it) + 1),
            has_total,
            parts,
        },
    )
}

fn info(name: &str, role: Option<Role>) -> (MetricName, MetricInfo) {
    let name: MetricName = metric(name);
    let unit = Some("kWh".parse().expect("a unit"));
    let info = MetricInfo { kind: MetricKind::Counter, unit, role, ..MetricInfo::from(&name) };
    (name, info)
}

proptest! {
    #[test]
    fn what_counts_is_what_was_used_and_what_was_sold(
        bought in flow(BOUGHT),
        sold in flow(SOLD),
        others in prop::collection::btree_set(
            prop::sample::select(vec![Role::Production, Role::Storage, Role::None]), 0..3),
        power: bool,
    ) {
        let mut amounts: BTreeMap<MetricName, u32> = BTreeMap::new();
        let mut metrics = BTreeMap::new();
        for (name, amount) in bought.sent().into_iter().chain(sold.sent()) {
            let (name, info) = info(name, None);
            amounts.insert(name.clone(), amount);
            metrics.insert(name, info);
        }
        for role in &others {
            metrics.extend([info(&format!("x_{}", role.as_str()), Some(*role))]);
        }
        if power {
            let (name, info) = info("current_w", None);
            let unit = Some("W".parse().expect("a unit"));
            metrics.insert(name, MetricInfo { kind: MetricKind::Gauge, unit, ..info });
        }
        let Some(meter) = Meter::of(&metrics) else {
            prop_assert!(metrics.is_empty());
            return Ok(());
        };
        let has_counter = bought.is_sent() || sold.is_sent()
            || others.iter().any(|role| *role != Role::None);
        prop_assert_eq!(meter.is_counter, has_counter);
        let shown = |names: &[&MetricName]| -> u32 {
            names.iter().map(|name| amounts.get(*name).copied().unwrap_or_default()).sum()
        };
        if bought.is_sent() {
            prop_assert_eq!(shown(&meter.used), bought.used());
        } else {
            let is_power = power && !has_counter;
            prop_assert_eq!(meter.used.len(), usize::from(is_power));
        }
        prop_assert_eq!(shown(&meter.sold), if sold.is_sent() { sold.used() } else { 0 });
        prop_assert!(meter.used.iter().all(|name| !meter.sold.contains(name)));
        // Each metric counts or says why not.
        let said = meter.names().chain(meter.left_out.keys().copied());
        let mut said: Vec<&MetricName> = said.collect();
        said.sort();
        prop_assert_eq!(said, metrics.keys().collect::<Vec<_>>());
    }
}
