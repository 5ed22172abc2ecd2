//! Metrics: their names, kinds and units. Holds no values.

use serde::Deserialize;

use super::parsed_text::parsed_text;
use super::{Unit, excerpt};

/// Names that mean something else in a reading's body or in its item in the table. Every other attribute of the item
/// begins with `_`, which no metric name does.
const RESERVED: [&str; 6] = ["pk", "sk", "room", "exp", "device_id", "timestamp"];

/// The reasons for which a text is not a [`MetricName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetricNameError {
    /// The text does not have the form of a name.
    #[error("{0:?} is not a metric name; write 1 to 64 of a-z, 0-9 and _, beginning with a letter")]
    Form(String),
    /// The name is reserved.
    #[error("{0:?} is a reserved name")]
    Reserved(String),
}

parsed_text! {
    /// The name of a metric: `[a-z][a-z0-9_]{0,63}`, and not a reserved name.
    MetricName, check, MetricNameError
}

fn check(text: &str) -> Result<(), MetricNameError> {
    if !has_form_of_name(text) {
        return Err(MetricNameError::Form(excerpt(text)));
    }
    if RESERVED.contains(&text) {
        return Err(MetricNameError::Reserved(text.to_owned()));
    }
    Ok(())
}

/// Whether a text is 1 to 64 of a-z, 0-9 and `_`, beginning with a letter.
pub(super) fn has_form_of_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

impl MetricName {
    /// The kind and the unit of a metric of this name. A metric that is not well known is a gauge without
    /// a unit.
    pub fn well_known(&self) -> (MetricKind, Option<Unit>) {
        let unit = |text: &str| Some(text.parse().expect("one short line"));
        let known = match self.as_str() {
            "current_w" => "W",
            "cumulative_kwh_p" | "cumulative_kwh_n" => return (MetricKind::Counter, unit("kWh")),
            "temperature" => "°C",
            "humidity" | "battery" => "%",
            "co2" => "ppm",
            "illuminance" => "lx",
            "pressure" => "hPa",
            _ => return (MetricKind::Gauge, None),
        };
        (MetricKind::Gauge, unit(known))
    }

    /// Whether the values are prices, which are known in advance: the name is `price` or begins with `price_`.
    pub fn is_price(&self) -> bool {
        let rest = self.as_str().strip_prefix("price");
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    }

    /// Whether all names are of prices, and there is at least one name.
    pub fn are_prices<'a>(names: impl IntoIterator<Item = &'a Self>) -> bool {
        let mut names = names.into_iter().peekable();
        names.peek().is_some() && names.all(Self::is_price)
    }
}

crate::words! {
    /// The meaning of a metric's values.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
    pub enum MetricKind {
        /// A level at a point in time, such as a temperature or a power.
        Gauge = "gauge",
        /// A total that rises until it is reset or wraps, such as a meter's kWh.
        Counter = "counter",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_metrics_have_a_kind_and_a_unit() {
        let known = |name: &str| {
            let (kind, unit) = name.parse::<MetricName>().expect("a name").well_known();
            (kind, unit.map(String::from))
        };
        assert_eq!(known("current_w"), (MetricKind::Gauge, Some("W".to_owned())));
        assert_eq!(known("cumulative_kwh_n"), (MetricKind::Counter, Some("kWh".to_owned())));
        assert_eq!(known("pm2_5"), (MetricKind::Gauge, None));
    }

    #[test]
    fn prices_are_known_by_the_first_word_of_their_name() {
        for (name, is_price) in [
            ("price", true),
            ("price_net", true),
            ("price_", true),
            ("prices", false),
            ("pricey_thing", false),
            ("net_price", false),
        ] {
            assert_eq!(name.parse::<MetricName>().expect("a name").is_price(), is_price, "{name}");
        }
        let [price, net, other] = ["price", "price_net", "t"].map(crate::given::metric);
        assert!(MetricName::are_prices([&price, &net]));
        assert!(!MetricName::are_prices([&price, &other]));
        assert!(!MetricName::are_prices([]), "nothing is no price");
    }
}
