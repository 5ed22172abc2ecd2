//! Devices of one import that may count the same energy. Asks nobody.

use std::collections::BTreeMap;

use domain::{Meter, MetricInfo, MetricName};

/// The most devices that are named.
const MAX_NAMED: usize = 8;

/// Whether a device with these metrics counts in a sum by counters of what is used.
pub(super) fn is_meter(metrics: &BTreeMap<MetricName, MetricInfo>) -> bool {
    Meter::of(metrics).is_some_and(|meter| meter.is_counter && !meter.used.is_empty())
}

/// Returns what is said of the devices that count and are behind no other; nothing of one alone.
pub(super) fn said(meters: &[&str]) -> String {
    let [first, second, ..] = meters else { return String::new() };
    let named = meters.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = if meters.len() > MAX_NAMED { ", ..." } else { "" };
    format!(
        "\n{} devices have counters of energy, and none is behind another: {named}{more}\n  \
         a sum counts all of them: if {second} measures a part of what {first} measures, PATCH /devices/{second} with\n  \
         {{\"behind\": \"{first}\"}}; a copy of another meter gets the role none (docs/guide/energy.md)",
        meters.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(names: &[&str]) -> BTreeMap<MetricName, MetricInfo> {
        let names = names.iter().map(|name| name.parse::<MetricName>().unwrap());
        names.map(|name| (name.clone(), MetricInfo::from(&name))).collect()
    }

    #[test]
    fn what_is_sold_produced_or_a_power_is_no_meter_of_what_is_used() {
        for (names, expected) in [
            (&["cumulative_kwh_p"][..], true),
            (&["cumulative_kwh_p", "cumulative_kwh_n"], true),
            (&["cumulative_kwh_n"], false),
            (&["current_w"], false),
            (&["temperature"], false),
        ] {
            assert_eq!(is_meter(&metrics(names)), expected, "{names:?}");
        }
    }

    #[test]
    fn one_meter_alone_is_nothing_to_say() {
        assert_eq!(said(&["a"]), "");
        let text = said(&["main", "plug"]);
        assert!(text.starts_with("\n2 devices have counters of energy"), "{text}");
        assert!(
            text.contains(
                r#"PATCH /devices/plug with
  {"behind": "main"}"#
            ),
            "{text}"
        );
        assert!(said(&["m"; 9]).contains(", ...\n"));
    }
}
