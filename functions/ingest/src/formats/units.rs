//! Conversions of units, and senders' names that mean a metric: a quantity with a unit, such as `temperature_C`, or a
//! synonym. Knows no energies: `energy_kWh` may be a meter's count, or the energy of a day or of an interval.
//!
//! Sources: <https://github.com/merbanan/rtl_433/blob/master/docs/DATA_FORMAT.md>,
//! <https://github.com/airgradienthq/arduino/blob/master/docs/local-server.md>

use domain::{Decimal, DecimalError, Unit};

use super::vocabulary;

/// The conversion of one unit to another unit of the same quantity.
#[derive(Debug, Clone, Copy)]
pub(crate) enum UnitConversion {
    /// The units are the same.
    Same,
    /// A multiplication by this number, exactly.
    Times(&'static str),
    /// A formula, whose result is rounded to this number of decimals.
    By(fn(f64) -> f64, usize),
}

/// Wh to kWh, mA to A, mV to V.
pub(crate) const MILLI: UnitConversion = UnitConversion::Times("0.001");
/// kW to W, klx to lx.
pub(crate) const KILO: UnitConversion = UnitConversion::Times("1000");
/// mm to cm, hectowatt-hours to kWh.
pub(crate) const TENTH: UnitConversion = UnitConversion::Times("0.1");
/// kPa to hPa.
pub(crate) const TENFOLD: UnitConversion = UnitConversion::Times("10");
/// Pa to hPa.
pub(crate) const HUNDREDTH: UnitConversion = UnitConversion::Times("0.01");
/// m to cm.
pub(crate) const HUNDREDFOLD: UnitConversion = UnitConversion::Times("100");
/// °F to °C.
pub(crate) const FAHRENHEIT: UnitConversion =
    UnitConversion::By(|degrees| (degrees - 32.0) / 1.8, 3);
/// mmHg to hPa.
pub(crate) const MILLIMETRES_OF_MERCURY: UnitConversion =
    UnitConversion::By(|pressure| pressure * 1.333_223_874, 3);
/// inHg to hPa.
pub(crate) const INCHES_OF_MERCURY: UnitConversion =
    UnitConversion::By(|pressure| pressure * 33.863_886_667, 3);
/// psi to hPa.
pub(crate) const PSI: UnitConversion = UnitConversion::By(|pressure| pressure * 68.947_572_932, 3);
/// km/h to m/s.
pub(crate) const KILOMETRES_PER_HOUR: UnitConversion = UnitConversion::By(|speed| speed / 3.6, 3);
/// mph to m/s.
pub(crate) const MILES_PER_HOUR: UnitConversion = UnitConversion::By(|speed| speed * 0.447_04, 3);
/// Knots to m/s.
pub(crate) const KNOTS: UnitConversion = UnitConversion::By(|speed| speed * 0.514_444, 3);
/// The closed share of a cover, in %, to the open share.
pub(crate) const CLOSED: UnitConversion = UnitConversion::By(|closed| 100.0 - closed, 3);
/// The tilt of slats to how far they are open, in %. Slats are level at 50 and closed at 0 and at 100.
pub(crate) const TILT: UnitConversion =
    UnitConversion::By(|tilt| 100.0 - 2.0 * f64::abs(tilt - 50.0), 3);
/// Inches to mm.
pub(crate) const INCHES: UnitConversion = UnitConversion::Times("25.4");

impl UnitConversion {
    /// Converts a value to the metric's unit.
    pub(crate) fn apply(self, value: Decimal) -> Result<Decimal, DecimalError> {
        match self {
            Self::Same => Ok(value),
            Self::Times(factor) => value.checked_mul(&Decimal::parse(factor)?),
            Self::By(formula, decimals) => {
                // A decimal always parses as a double: its text is a number, and no sensor's value is too large.
                let value: f64 = value.as_str().parse().unwrap_or(f64::MAX);
                Decimal::parse(&format!("{:.decimals$}", formula(value)))
            }
        }
    }
}

/// Senders' units at the end of names, without `_`; the unit of the metric; the conversion to this unit.
const UNITS: &[(&str, &str, UnitConversion)] = &[
    ("c degc celsius", "°C", UnitConversion::Same),
    ("f degf fahrenheit", "°C", FAHRENHEIT),
    ("pct percent", "%", UnitConversion::Same),
    ("v volts", "V", UnitConversion::Same),
    ("mv", "V", MILLI),
    ("a amps", "A", UnitConversion::Same),
    ("ma", "A", MILLI),
    ("w watt watts", "W", UnitConversion::Same),
    ("kw", "W", KILO),
    ("va", "VA", UnitConversion::Same),
    ("kva", "VA", KILO),
    ("var", "var", UnitConversion::Same),
    ("kvar", "var", KILO),
    ("hz", "Hz", UnitConversion::Same),
    // kPa and PSI are not here: they are used for the pressure of tyres.
    ("hpa mbar", "hPa", UnitConversion::Same),
    ("pa", "hPa", HUNDREDTH),
    ("inhg", "hPa", INCHES_OF_MERCURY),
    ("lux lx", "lx", UnitConversion::Same),
    ("klx", "lx", KILO),
    ("ppm", "ppm", UnitConversion::Same),
    ("ugm3", "µg/m³", UnitConversion::Same),
    ("ms mps", "m/s", UnitConversion::Same),
    ("kmh kph", "m/s", KILOMETRES_PER_HOUR),
    ("mih mph", "m/s", MILES_PER_HOUR),
    ("kn knots", "m/s", KNOTS),
    ("deg", "°", UnitConversion::Same),
    ("mm", "mm", UnitConversion::Same),
    ("in", "mm", INCHES),
    ("mmh", "mm/h", UnitConversion::Same),
    ("inh", "mm/h", INCHES),
    ("cm", "cm", UnitConversion::Same),
    ("mm", "cm", TENTH),
    ("m", "cm", HUNDREDFOLD),
    ("km", "km", UnitConversion::Same),
    ("dbm", "dBm", UnitConversion::Same),
];

/// Names of quantities, each with its metric. A unit follows such a name.
const QUANTITIES: &[(&str, &str)] = &[
    ("temperature temp", "temperature"),
    ("device_temperature cpu_temperature cpu_temp chip_temperature", "device_temperature"),
    ("dew_point dewpoint", "dew_point"),
    ("setpoint set_temperature target_temperature", "set_temperature"),
    ("humidity relative_humidity", "humidity"),
    ("soil_moisture", "soil_moisture"),
    ("battery battery_level", "battery"),
    ("battery battery_voltage bat batt", "battery_voltage"),
    ("voltage", "voltage"),
    ("current", "current"),
    ("power", "current_w"),
    ("apparent_power", "apparent_power"),
    ("reactive_power", "reactive_power"),
    ("frequency", "frequency"),
    ("pressure barometric_pressure air_pressure", "pressure"),
    ("illuminance light", "illuminance"),
    ("co2 carbon_dioxide", "co2"),
    ("pm1 pm1_0", "pm1"),
    ("pm2_5 pm25", "pm2_5"),
    ("pm10 pm10_0", "pm10"),
    ("wind_speed wind_avg", "wind_speed"),
    ("wind_gust wind_max", "wind_gust"),
    ("wind_dir wind_direction", "wind_direction"),
    ("rain", "rain"),
    ("rain_rate", "rain_rate"),
    ("distance depth", "distance"),
    ("storm_dist lightning_distance", "lightning_distance"),
    ("rssi signal", "signal_strength"),
];

/// Names without a unit that still mean a metric: AirGradient's names, and the UV index.
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

/// The ending for the first phase in names of a three-phase meter. The ending is not a unit.
const PHASE: &str = "_a";

/// The metric that a name means, and the conversion to the metric's unit. `name` is in snake case, such as `power_k_w`.
/// `written` is as the sender wrote it: `current_A` is in amperes, `current_a` is of the first of three phases.
pub(crate) fn of_name(name: &str, written: &str) -> Option<(&'static str, UnitConversion)> {
    if written.ends_with(PHASE) {
        return None;
    }
    if let Some((_, metric)) = SYNONYMS.iter().find(|(known, _)| *known == name) {
        return Some((metric, UnitConversion::Same));
    }
    let borders = name.char_indices().filter(|(_, c)| *c == '_').map(|(at, _)| at);
    borders.into_iter().find_map(|at| {
        let (quantity, unit) = (&name[..at], name[at + 1..].replace('_', ""));
        let mut meant = QUANTITIES.iter().filter(|(names, _)| has_word(names, quantity));
        meant.find_map(|(_, metric)| Some((*metric, conversion(&unit, metric)?)))
    })
}

/// The conversion to a metric's unit from the unit at the end of a sender's name.
fn conversion(unit: &str, metric: &str) -> Option<UnitConversion> {
    let (_, of_metric) = vocabulary::meaning(metric)?;
    let of_metric = of_metric.as_ref().map(Unit::as_str);
    let (.., conversion) =
        UNITS.iter().find(|(words, to, _)| Some(*to) == of_metric && has_word(words, unit))?;
    Some(*conversion)
}

fn has_word(words: &str, wanted: &str) -> bool {
    words.split(' ').any(|word| word == wanted)
}

/// The metrics to which senders' names are mapped.
#[cfg(test)]
pub(crate) fn metrics() -> impl Iterator<Item = &'static str> {
    let synonyms = SYNONYMS.iter().map(|(_, metric)| *metric);
    QUANTITIES.iter().map(|(_, metric)| *metric).chain(synonyms)
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
