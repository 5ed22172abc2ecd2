//! Finds counters of one import that may count the same energy. Sends no request.

use std::collections::BTreeMap;
use std::fmt;

use domain::{Meter, MetricInfo, MetricName};

/// The maximum number of devices, or metrics, that are named.
const MAX_NAMED: usize = 8;

/// The consumption meters of an import. A sum of the house adds them up, by the rule of `domain::Meter`.
#[derive(Debug, Default)]
pub(super) struct Meters {
    /// The devices that are behind no other meter.
    devices: Vec<String>,
    /// The devices in `devices` whose role is unknown.
    unsure: Vec<String>,
    /// Devices with several counters of unknown role, and these counters.
    several: Vec<(String, Vec<String>)>,
}

impl Meters {
    /// Adds a device, if one of its metrics is a consumption counter.
    pub(super) fn add(
        &mut self,
        device: &str,
        metrics: &BTreeMap<MetricName, MetricInfo>,
        is_behind: bool,
    ) {
        let meter = Meter::of(metrics).filter(|meter| meter.is_counter && !meter.used.is_empty());
        let Some(meter) = meter else { return };

        if !is_behind {
            self.devices.push(device.to_owned());
            if meter.is_unsure {
                self.unsure.push(device.to_owned());
            }
        }

        if meter.is_unsure && meter.used.len() > 1 {
            let used = meter.used.iter().map(ToString::to_string).collect();
            self.several.push((device.to_owned(), used));
        }
    }
}

impl fmt::Display for Meters {
    /// Begins each paragraph with a new line. Writes nothing about a single counter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [first, second, ..] = &self.devices[..] {
            write!(
                f,
                "\n{} devices have counters of energy, and none is behind another: {}\n  \
                 a sum counts all of them: if {second} measures a part of what {first} measures, PATCH /devices/{second} with\n  \
                 {{\"behind\": \"{first}\"}}; a copy of another meter gets the role none (docs/guide/energy.md)",
                self.devices.len(),
                named(&self.devices)
            )?;
            if !self.unsure.is_empty() {
                write!(
                    f,
                    "\n  nothing tells the role of {}: production or a battery among them counts as used\n  \
                     until its metric has the role production or storage",
                    named(&self.unsure)
                )?;
            }
        }

        for (device, metrics) in self.several.iter().take(MAX_NAMED) {
            write!(
                f,
                "\n{device} has {} counters of energy that add up, as those of phases do: {}\n  \
                 if {} measures all of it, PATCH /devices/{device} with\n  \
                 {{\"metrics\": {{\"{}\": {{\"role\": \"import\"}}}}}}; the roles production, storage and none take a metric out of the sum",
                metrics.len(),
                named(metrics),
                metrics[0],
                metrics[0],
            )?;
        }

        if self.several.len() > MAX_NAMED {
            write!(f, "\nand {} more devices with several", self.several.len() - MAX_NAMED)?;
        }
        Ok(())
    }
}

fn named(names: &[String]) -> String {
    let more = if names.len() > MAX_NAMED { ", ..." } else { "" };
    format!("{}{more}", names[..names.len().min(MAX_NAMED)].join(", "))
}

#[cfg(test)]
mod tests {
    use domain::given::{metric, unit};
    use domain::{MetricKind, Role};

    use super::*;

    fn metrics(names: &[&str]) -> BTreeMap<MetricName, MetricInfo> {
        let names = names.iter().map(|name| name.parse::<MetricName>().unwrap());
        names.map(|name| (name.clone(), MetricInfo::from(&name))).collect()
    }

    /// Counters in kWh, whatever their names are.
    fn counters(names: &[&str]) -> BTreeMap<MetricName, MetricInfo> {
        let mut metrics = metrics(names);
        for info in metrics.values_mut() {
            info.kind = MetricKind::Counter;
            info.unit = Some(unit("kWh"));
        }
        metrics
    }

    fn said(devices: &[(&str, BTreeMap<MetricName, MetricInfo>)]) -> String {
        let mut meters = Meters::default();
        devices.iter().for_each(|(device, metrics)| meters.add(device, metrics, false));
        meters.to_string()
    }

    #[test]
    fn what_is_sold_produced_or_a_power_is_no_meter_of_what_is_used() {
        let other = ("other", metrics(&["cumulative_kwh_p"]));
        for (names, expected) in [
            (&["cumulative_kwh_p"][..], true),
            (&["cumulative_kwh_p", "cumulative_kwh_n"], true),
            (&["cumulative_kwh_n"], false),
            (&["current_w"], false),
            (&["temperature"], false),
        ] {
            let said = said(&[("a", metrics(names)), other.clone()]);
            assert_eq!(!said.is_empty(), expected, "{names:?}");
        }
    }

    #[test]
    fn one_meter_alone_is_nothing_to_say() {
        let meter = || metrics(&["cumulative_kwh_p"]);
        assert_eq!(said(&[("a", meter())]), "");
        let text = said(&[("main", meter()), ("plug", meter())]);
        assert!(text.starts_with("\n2 devices have counters of energy"), "{text}");
        let expected = "PATCH /devices/plug with\n  {\"behind\": \"main\"}";
        assert!(text.contains(expected), "{text}");
        assert!(!text.contains("nothing tells"), "their names do: {text}");
        assert!(said(&vec![("m", meter()); 9]).contains(", ...\n"));
        let mut meters = Meters::default();
        meters.add("main", &meter(), false);
        meters.add("plug", &meter(), true);
        assert_eq!(meters.to_string(), "", "it is behind the other");
    }

    #[test]
    fn meters_whose_names_do_not_tell_their_roles_are_named_as_in_unsure() {
        let devices = ["car", "house", "roof"].map(|it| (it, counters(&["energy"])));
        let text = said(&devices);
        assert!(text.contains("\n  nothing tells the role of car, house, roof: "), "{text}");
        let roof = ("roof", counters(&["solar_energy"]));
        let text = said(&[devices[0].clone(), devices[1].clone(), roof]);
        assert!(text.contains("\n2 devices") && text.contains("role of car, house: "), "{text}");
    }

    #[test]
    fn counters_of_one_device_that_add_up_are_named_until_one_has_a_role() {
        let mut house = counters(&["car_kwh", "heat_kwh", "main_kwh"]);
        let text = said(&[("house", house.clone())]);
        let expected = "\nhouse has 3 counters of energy that add up, as those of phases do: \
                        car_kwh, heat_kwh, main_kwh\n  if car_kwh measures all of it, PATCH /devices/house with\n  \
                        {\"metrics\": {\"car_kwh\": {\"role\": \"import\"}}}; ";
        assert!(text.starts_with(expected), "{text}");
        house.get_mut(&metric("main_kwh")).unwrap().role = Some(Role::Import);
        assert_eq!(said(&[("house", house)]), "", "the others are parts of it");
        let phases = metrics(&["cumulative_kwh_p_a", "cumulative_kwh_p_b", "cumulative_kwh_p_c"]);
        assert_eq!(said(&[("meter", phases)]), "", "their names tell it");
    }
}
