//! The vocabulary: names and units of the metrics to which devices' own payloads are mapped. Knows no payload.

use domain::{MetricKind, MetricName, Unit};

/// Every metric with its unit. States and ratios have no unit.
///
/// A metric is a counter because of its name, see [`MetricName::well_known`], or because it is in [`COUNTERS`].
pub(crate) const METRICS: &[(&str, Option<&str>)] = &[
    ("apparent_power", Some("VA")),
    ("battery", Some("%")),
    ("battery_low", None),
    ("battery_voltage", Some("V")),
    ("brightness", Some("%")),
    // In the device's own steps; lights of Zigbee have 0 to 254.
    ("brightness_level", None),
    ("carbon_monoxide", None),
    ("co2", Some("ppm")),
    ("contact", None),
    ("count", None),
    ("cumulative_kwh_n", Some("kWh")),
    ("cumulative_kwh_p", Some("kWh")),
    ("current", Some("A")),
    ("current_w", Some("W")),
    ("device_temperature", Some("°C")),
    ("dew_point", Some("°C")),
    ("distance", Some("cm")),
    ("eco2", Some("ppm")),
    ("flow", Some("m³/h")),
    ("frequency", Some("Hz")),
    ("gas", None),
    ("gas_concentration", Some("ppm")),
    // Of a gas meter or a sensor, in the device's own unit.
    ("gas_reading", None),
    ("gas_resistance", Some("kOhm")),
    ("heating", None),
    ("heating_demand", Some("%")),
    ("humidity", Some("%")),
    ("illuminance", Some("lx")),
    // On Zigbee's logarithmic scale; some devices send lx.
    ("illuminance_raw", None),
    ("input", None),
    ("light_level", None),
    ("lightning_distance", Some("km")),
    ("link_margin", Some("dB")),
    ("link_quality", None),
    ("locked", None),
    ("motion", None),
    ("motion_count", None),
    ("nox_index", None),
    ("occupancy", None),
    ("on", None),
    ("open", None),
    // How far a cover is open: 100 is open. `position` is the same for devices whose value needs no conversion.
    ("opening", Some("%")),
    ("pm1", Some("µg/m³")),
    ("pm10", Some("µg/m³")),
    ("pm2_5", Some("µg/m³")),
    ("position", Some("%")),
    ("power_factor", None),
    ("presence", None),
    ("pressure", Some("hPa")),
    ("probe_temperature", Some("°C")),
    ("rain", Some("mm")),
    ("rain_rate", Some("mm/h")),
    ("reactive_power", Some("var")),
    ("sea_level_pressure", Some("hPa")),
    ("set_temperature", Some("°C")),
    ("signal_strength", Some("dBm")),
    ("smoke", None),
    ("snr", Some("dB")),
    ("soil_moisture", Some("%")),
    ("tamper", None),
    ("temperature", Some("°C")),
    ("tilt", Some("°")),
    // How far slats are open: 100 is open.
    ("tilt_opening", Some("%")),
    ("tvoc", Some("ppb")),
    ("uv_index", None),
    ("vibration", None),
    // In the device's own unit: µg/m³, ppb, ppm or an index.
    ("voc", None),
    ("voc_index", None),
    ("voltage", Some("V")),
    // In the device's own unit: m³ or L.
    ("water_consumed", None),
    ("water_leak", None),
    ("water_volume", Some("m³")),
    ("wind_direction", Some("°")),
    ("wind_gust", Some("m/s")),
    ("wind_speed", Some("m/s")),
    ("window_open", None),
];

/// The metrics that are counters although their names do not say so.
const COUNTERS: [&str; 4] = ["count", "rain", "water_consumed", "water_volume"];

/// The suffixes for metrics of one phase; `_n` is the neutral conductor.
const PHASES: [&str; 9] = ["_a", "_b", "_c", "_d", "_e", "_f", "_g", "_h", "_n"];

/// The metric of one of several phases or relays, which are numbered from 0; `None` beyond the eighth.
pub(crate) fn of_phase(metric: &str, phase: usize) -> Option<String> {
    PHASES[..8].get(phase).map(|suffix| format!("{metric}{suffix}"))
}

/// Whether a metric is in the vocabulary without the suffix of a phase, so that it may have phases.
pub(crate) fn may_have_phases(metric: &str) -> bool {
    METRICS.binary_search_by_key(&metric, |(known, _)| known).is_ok()
}

/// The kind and the unit of a metric of the vocabulary, with or without the suffix of a phase.
pub(crate) fn meaning(metric: &str) -> Option<(MetricKind, Option<Unit>)> {
    let find = |name: &str| {
        let place = METRICS.binary_search_by_key(&name, |(known, _)| known).ok()?;
        let unit = METRICS[place].1.map(|unit| unit.parse().expect("the vocabulary has units"));
        if COUNTERS.contains(&name) {
            return Some((MetricKind::Counter, unit));
        }
        let name: MetricName = name.parse().expect("the vocabulary has names");
        Some((name.well_known().0, unit))
    };
    let whole = PHASES.iter().find_map(|phase| metric.strip_suffix(phase));
    find(metric).or_else(|| find(whole?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_found_and_well_known_ones_keep_their_unit() {
        for (name, unit) in METRICS {
            let (kind, found) = meaning(name).expect(name);
            assert_eq!(found.as_ref().map(Unit::as_str), *unit, "{name}");
            let well_known = name.parse::<MetricName>().expect("a name").well_known();
            let is_counter = COUNTERS.contains(name) || well_known.0 == MetricKind::Counter;
            assert_eq!(kind == MetricKind::Counter, is_counter, "{name}");
            assert!(well_known.1.is_none_or(|unit| Some(unit) == found), "{name}");
        }
        assert_eq!(meaning("utm_source"), None);
    }

    #[test]
    fn a_phase_means_what_the_whole_means() {
        let phase = of_phase("cumulative_kwh_p", 1).expect("the second");
        assert_eq!(phase, "cumulative_kwh_p_b");
        assert_eq!(meaning(&phase), meaning("cumulative_kwh_p"));
        assert_eq!(meaning("current_n"), meaning("current"));
        assert_eq!(of_phase("current", 8), None);
        assert!(may_have_phases("current") && !may_have_phases("current_a"));
    }
}
