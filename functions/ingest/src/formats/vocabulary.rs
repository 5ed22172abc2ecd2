//! The vocabulary: names and units of the metrics to which devices' own payloads are mapped. Knows no payload.

use std::sync::LazyLock;

use domain::{MetricKind, MetricName, Unit};

/// The metrics of each unit. States and ratios have no unit, nor have values in the device's own unit or steps.
///
/// A metric is a counter because of its name, see [`MetricName::well_known`], or because it is in [`COUNTERS`].
const UNITS: &[(Option<&str>, &str)] = &[
    // Own units and steps: lights of Zigbee have 0 to 254 for `brightness_level`; `illuminance_raw` is on Zigbee's
    // logarithmic scale or in lx; `voc` in µg/m³, ppb, ppm or as an index; `water_consumed` in m³ or L; `gas_reading`
    // is of a gas meter or a sensor.
    (
        None,
        "battery_low brightness_level carbon_monoxide contact count gas gas_reading heating \
         illuminance_raw input light_level link_quality locked motion motion_count nox_index \
         occupancy on open power_factor presence smoke tamper uv_index vibration voc voc_index \
         water_consumed water_leak window_open",
    ),
    // How far a cover and its slats are open: 100 is open. `position` is the same as `opening`, for devices whose value
    // needs no conversion.
    (
        Some("%"),
        "battery brightness heating_demand humidity opening position soil_moisture tilt_opening",
    ),
    (Some("A"), "current"),
    (Some("Hz"), "frequency"),
    (Some("V"), "battery_voltage voltage"),
    (Some("VA"), "apparent_power"),
    (Some("W"), "current_w"),
    (Some("cm"), "distance"),
    (Some("dB"), "link_margin snr"),
    (Some("dBm"), "signal_strength"),
    (Some("hPa"), "pressure sea_level_pressure"),
    (Some("kOhm"), "gas_resistance"),
    (Some("kWh"), "cumulative_kwh_n cumulative_kwh_p"),
    (Some("km"), "lightning_distance"),
    (Some("lx"), "illuminance"),
    (Some("m/s"), "wind_gust wind_speed"),
    (Some("mm"), "rain"),
    (Some("mm/h"), "rain_rate"),
    (Some("m³"), "water_volume"),
    (Some("m³/h"), "flow"),
    (Some("ppb"), "tvoc"),
    (Some("ppm"), "co2 eco2 gas_concentration"),
    (Some("var"), "reactive_power"),
    (Some("°"), "tilt wind_direction"),
    (Some("°C"), "device_temperature dew_point probe_temperature set_temperature temperature"),
    (Some("µg/m³"), "pm1 pm10 pm2_5"),
];

/// Every metric with its unit, sorted by name.
pub(crate) static METRICS: LazyLock<Vec<(&str, Option<&str>)>> = LazyLock::new(|| {
    let of_unit = |(unit, names): &(_, &'static str)| {
        let unit: Option<&'static str> = *unit;
        names.split_whitespace().map(move |name| (name, unit))
    };
    let mut metrics: Vec<_> = UNITS.iter().flat_map(of_unit).collect();
    metrics.sort_unstable();
    metrics
});

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
        let index = METRICS.binary_search_by_key(&name, |(known, _)| known).ok()?;
        let unit = METRICS[index].1.map(|unit| unit.parse().expect("the vocabulary has units"));
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
        for (name, unit) in METRICS.iter() {
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
