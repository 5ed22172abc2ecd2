//! Names that say a quantity with its unit, such as `temperature_C`, or that are another's name of a metric. Knows no
//! energies: an `energy_kWh` may be a meter's count, a day's or an interval's.
//!
//! Sources: <https://github.com/merbanan/rtl_433/blob/master/docs/DATA_FORMAT.md>,
//! <https://github.com/airgradienthq/arduino/blob/master/docs/local-server.md>

use super::conversion::{
    Conversion, FAHRENHEIT, HUNDREDFOLD, HUNDREDTH, INCHES, INCHES_OF_MERCURY, KILO,
    KILOMETRES_PER_HOUR, KNOTS, MILES_PER_HOUR, MILLI, TENTH,
};

/// The units of a quantity as names end in them, without `_`, with the way to the metric's.
type Units = &'static [(&'static str, Conversion)];

const TEMPERATURE: Units = &[
    ("c", Conversion::Same),
    ("degc", Conversion::Same),
    ("celsius", Conversion::Same),
    ("f", FAHRENHEIT),
    ("degf", FAHRENHEIT),
    ("fahrenheit", FAHRENHEIT),
];
const PERCENT: Units = &[("pct", Conversion::Same), ("percent", Conversion::Same)];
const VOLTAGE: Units = &[("v", Conversion::Same), ("volts", Conversion::Same), ("mv", MILLI)];
const SPEED: Units = &[
    ("ms", Conversion::Same),
    ("mps", Conversion::Same),
    ("kmh", KILOMETRES_PER_HOUR),
    ("kph", KILOMETRES_PER_HOUR),
    ("mih", MILES_PER_HOUR),
    ("mph", MILES_PER_HOUR),
    ("kn", KNOTS),
    ("knots", KNOTS),
];
const DUST: Units = &[("ugm3", Conversion::Same)];

/// Quantities by their names, their metric and their units. A tyre's pressure is no room's: it is in kPa or PSI.
const QUANTITIES: &[(&[&str], &str, Units)] = &[
    (&["temperature", "temp"], "temperature", TEMPERATURE),
    (
        &["device_temperature", "cpu_temperature", "cpu_temp", "chip_temperature"],
        "device_temperature",
        TEMPERATURE,
    ),
    (&["dew_point", "dewpoint"], "dew_point", TEMPERATURE),
    (&["setpoint", "set_temperature", "target_temperature"], "set_temperature", TEMPERATURE),
    (&["humidity", "relative_humidity"], "humidity", PERCENT),
    (&["soil_moisture"], "soil_moisture", PERCENT),
    (&["battery", "battery_level"], "battery", PERCENT),
    (&["battery", "battery_voltage", "bat", "batt"], "battery_voltage", VOLTAGE),
    (&["voltage"], "voltage", VOLTAGE),
    (
        &["current"],
        "current",
        &[("a", Conversion::Same), ("amps", Conversion::Same), ("ma", MILLI)],
    ),
    (
        &["power"],
        "current_w",
        &[
            ("w", Conversion::Same),
            ("watt", Conversion::Same),
            ("watts", Conversion::Same),
            ("kw", KILO),
        ],
    ),
    (&["apparent_power"], "apparent_power", &[("va", Conversion::Same), ("kva", KILO)]),
    (&["reactive_power"], "reactive_power", &[("var", Conversion::Same), ("kvar", KILO)]),
    (&["frequency"], "frequency", &[("hz", Conversion::Same)]),
    (
        &["pressure", "barometric_pressure", "air_pressure"],
        "pressure",
        &[
            ("hpa", Conversion::Same),
            ("mbar", Conversion::Same),
            ("pa", HUNDREDTH),
            ("inhg", INCHES_OF_MERCURY),
        ],
    ),
    (
        &["illuminance", "light"],
        "illuminance",
        &[("lux", Conversion::Same), ("lx", Conversion::Same), ("klx", KILO)],
    ),
    (&["co2", "carbon_dioxide"], "co2", &[("ppm", Conversion::Same)]),
    (&["pm1", "pm1_0"], "pm1", DUST),
    (&["pm2_5", "pm25"], "pm2_5", DUST),
    (&["pm10", "pm10_0"], "pm10", DUST),
    (&["wind_speed", "wind_avg"], "wind_speed", SPEED),
    (&["wind_gust", "wind_max"], "wind_gust", SPEED),
    (&["wind_dir", "wind_direction"], "wind_direction", &[("deg", Conversion::Same)]),
    (&["rain"], "rain", &[("mm", Conversion::Same), ("in", INCHES)]),
    (&["rain_rate"], "rain_rate", &[("mmh", Conversion::Same), ("inh", INCHES)]),
    (
        &["distance", "depth"],
        "distance",
        &[("cm", Conversion::Same), ("mm", TENTH), ("m", HUNDREDFOLD)],
    ),
    (&["storm_dist", "lightning_distance"], "lightning_distance", &[("km", Conversion::Same)]),
    (&["rssi", "signal"], "signal_strength", &[("dbm", Conversion::Same)]),
];

/// Names of metrics that say no unit and mean one all the same: AirGradient's, and the index of UV light.
const SYNONYMS: &[(&str, &str)] = &[
    ("atmp", "temperature"),
    ("nox_index", "nox_index"),
    ("pm01", "pm1"),
    ("pm02", "pm2_5"),
    ("rco2", "co2"),
    ("rhum", "humidity"),
    ("tvoc_index", "voc_index"),
    ("uvi", "uv_index"),
];

/// The end of a name that a meter of three phases has, and no unit.
const PHASE: &str = "_a";

/// The metric that a name means, and the way to its unit. The name is written as a metric's, `power_k_w`, and as its
/// sender wrote it: `current_A` is in amperes, `current_a` is of the first of three phases.
pub(crate) fn of_name(name: &str, written: &str) -> Option<(&'static str, Conversion)> {
    if written.ends_with(PHASE) {
        return None;
    }
    if let Some((_, metric)) = SYNONYMS.iter().find(|(known, _)| *known == name) {
        return Some((metric, Conversion::Same));
    }
    let borders = name.char_indices().filter(|(_, c)| *c == '_').map(|(at, _)| at);
    borders.into_iter().find_map(|at| {
        let (quantity, unit) = (&name[..at], name[at + 1..].replace('_', ""));
        QUANTITIES.iter().filter(|(names, ..)| names.contains(&quantity)).find_map(
            |(_, metric, units)| {
                let (_, conversion) = units.iter().find(|(known, _)| *known == unit)?;
                Some((*metric, *conversion))
            },
        )
    })
}

/// The metrics that names mean.
#[cfg(test)]
pub(crate) fn metrics() -> impl Iterator<Item = &'static str> {
    let synonyms = SYNONYMS.iter().map(|(_, metric)| *metric);
    QUANTITIES.iter().map(|(_, metric, _)| *metric).chain(synonyms)
}

#[cfg(test)]
mod tests {

    use domain::given::number;

    use super::*;

    #[test]
    fn a_name_with_a_unit_is_a_metric() {
        for (name, value, expected) in [
            ("temperature_c", "21.5", "temperature 21.5"),
            ("temperature_f", "70.5", "temperature 21.389"),
            ("power_w", "800", "current_w 800"),
            ("power_k_w", "0.8", "current_w 800"),
            ("battery_m_v", "2975", "battery_voltage 2.975"),
            ("battery_pct", "80", "battery 80"),
            ("pressure_h_pa", "1013.2", "pressure 1013.2"),
            ("wind_avg_km_h", "36", "wind_speed 10"),
            ("wind_max_mi_h", "10", "wind_gust 4.47"),
            ("pm2_5_ug_m3", "7", "pm2_5 7"),
            ("rain_in", "2", "rain 50.8"),
            ("light_klx", "1.5", "illuminance 1500"),
            ("atmp", "21", "temperature 21"),
            ("rhum", "44", "humidity 44"),
        ] {
            let (metric, conversion) = of_name(name, name).expect(name);
            let value = conversion.apply(number(value));
            assert_eq!(format!("{metric} {}", value.expect("a number")), expected, "{name}");
        }
        for name in
            ["temperature", "temperature_1_c", "energy_k_wh", "pressure_k_pa", "c", "_c", "usage_c"]
        {
            assert!(of_name(name, name).is_none(), "{name}");
        }
        assert!(of_name("current_a", "current_a").is_none());
        assert!(of_name("current_a", "current_A").is_some());
    }
}
