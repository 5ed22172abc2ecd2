//! Decides whether a metric describes the air of a room. The values of a freezer, of soil or of a chip in the room do
//! not. Combines no values.
//!
//! This is decided when a request is answered, not when a reading is stored. So a change applies to everything that is
//! stored.

use super::{Device, MetricName, MetricRule};
use serde::Serialize;

/// The reason for which the means of rooms leave out a metric of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "NotOfRoomReason"))]
pub enum NotOfRoom {
    /// A person decided to leave it out.
    Person,
    /// The kind of device measures inside a thing, such as a freezer, or the device is a chip.
    Kind,
    /// The metric is named after a thing, such as soil or a processor.
    Metric,
}

/// Words in the kinds of devices that measure something closed, wet or hot, and not the air of a room.
const KINDS: [&str; 22] = [
    "aquarium",
    "boiler",
    "compost",
    "dryer",
    "freezer",
    "fridge",
    "grill",
    "incubator",
    "kettle",
    "kiln",
    "oven",
    "pipe",
    "pond",
    "pool",
    "refrigerator",
    "sauna",
    "soil",
    "spa",
    "stove",
    "tank",
    "terrarium",
    "vivarium",
];

/// The end of the id of a device's processor, which is stored as a part of the device.
const PROCESSOR: &str = ":ESP32";

/// Things whose `..._temperature` is not the temperature of a room.
const THINGS: [&str; 20] = [
    "board",
    "boiler",
    "chip",
    "cpu",
    "device",
    "esp32",
    "flow",
    "freezer",
    "fridge",
    "internal",
    "oven",
    "pool",
    "processor",
    "return",
    "soc",
    "soil",
    "supply",
    "surface",
    "tank",
    "water",
];

impl Device {
    /// The reason why the means of rooms, of homes and of all devices leave out a metric of this device; `None` if the
    /// means include the metric.
    ///
    /// The first of these that applies decides: a person's choice for the metric, the name of a thing in the metric or
    /// the device's id, a person's choice for the device, the kind of device. Powers and counters are added up and
    /// never left out: the fridge's plug uses the room's energy.
    pub fn not_of_room(&self, metric: &MetricName) -> Option<NotOfRoom> {
        let info = self.metrics().get(metric)?;
        if MetricRule::of(info) != MetricRule::Gauge {
            return None;
        }

        let said = |is_in: bool| (!is_in).then_some(NotOfRoom::Person);
        if let Some(is_in) = info.in_room_means {
            return said(is_in);
        }
        if metric.is_of_thing() || self.is_named_after_thing(metric) {
            return Some(NotOfRoom::Metric);
        }

        match self.in_room_means() {
            Some(is_in) => said(is_in),
            None => self.has_inside().then_some(NotOfRoom::Kind),
        }
    }

    /// Whether the device's id ends with the name of a thing whose temperature is measured. Home Assistant names the
    /// entity of a chip in this way: `sensor.gateway_cpu_temperature`.
    fn is_named_after_thing(&self, metric: &MetricName) -> bool {
        let name = self.id().as_str().rsplit(['.', ':']).next().unwrap_or_default();
        let thing = name.strip_suffix("_temperature").and_then(|word| word.rsplit('_').next());
        metric.as_str().starts_with("temperature")
            && thing.is_some_and(|word| THINGS.contains(&word))
    }

    /// Whether the device measures inside a thing. A word in its kind says so, in any letter case: `Deep freezer`. A
    /// processor does too: an earlier version stored the processor of a Tasmota as a part of the device.
    fn has_inside(&self) -> bool {
        let kind = self.kind().map(|kind| kind.as_str().to_lowercase()).unwrap_or_default();
        kind.split(|c: char| !c.is_alphanumeric()).any(|word| KINDS.contains(&word))
            || self.id().as_str().ends_with(PROCESSOR)
    }
}

impl MetricName {
    /// Whether the metric is named after a thing: `soil_...`, or the temperature of a chip, of water and the like.
    pub fn is_of_thing(&self) -> bool {
        let name = self.as_str();
        let thing = name.strip_suffix("_temperature");
        name.starts_with("soil_") || thing.is_some_and(|thing| THINGS.contains(&thing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::given::{self, label, number};
    use crate::{DeviceObservation, MetricKind, Reading, Timestamp};

    fn device(metrics: &[&str]) -> Device {
        let name = |name: &&str| (given::metric(name), number("1"));
        let id = || given::device("d");
        let metrics = metrics.iter().map(name).collect();
        let reading = Reading::new(id(), Timestamp::MIN, None, metrics).expect("a reading");
        DeviceObservation::of(&reading).new_device(id(), |_| false)
    }

    fn reason(device: &Device, metric: &str) -> Option<NotOfRoom> {
        device.not_of_room(&given::metric(metric))
    }

    #[test]
    fn kinds_and_names_of_things_are_known() {
        let mut thing = device(&["temperature", "humidity"]);
        for (kind, expected) in [
            ("freezer", Some(NotOfRoom::Kind)),
            ("Deep-Freezer 2", Some(NotOfRoom::Kind)),
            ("fridge/freezer", Some(NotOfRoom::Kind)),
            ("thermometer", None),
            ("ovenbird", None),
        ] {
            thing.0.kind = Some(label(kind));
            assert_eq!(reason(&thing, "temperature"), expected, "{kind}");
            assert_eq!(reason(&thing, "humidity"), expected, "{kind}");
        }
        thing.0.kind = None;
        for (id, expected) in [("plug:ESP32", Some(NotOfRoom::Kind)), ("ESP32", None)] {
            thing.0.id = given::device(id);
            assert_eq!(reason(&thing, "temperature"), expected, "{id}");
        }
        for (id, expected) in [
            ("sensor.gateway_cpu_temperature", Some(NotOfRoom::Metric)),
            ("sensor.device_temperature", Some(NotOfRoom::Metric)),
            ("sensor.boiler_flow_temperature", Some(NotOfRoom::Metric)),
            ("sensor.living_temperature", None),
            ("sensor.cpu_room_temperature", None),
        ] {
            thing.0.id = given::device(id);
            assert_eq!(reason(&thing, "temperature"), expected, "{id}");
            assert_eq!(reason(&thing, "humidity"), None, "{id}");
        }
        for (metric, is_of_thing) in [
            ("device_temperature", true),
            ("soil_moisture", true),
            ("water_temperature", true),
            ("temperature", false),
            ("set_temperature", false),
            ("water_leak", false),
            ("dew_point", false),
        ] {
            let name: MetricName = given::metric(metric);
            assert_eq!(name.is_of_thing(), is_of_thing, "{metric}");
        }
    }

    #[test]
    fn the_nearest_word_counts() {
        // Of the metric's own word, its name, the device's word and its kind.
        for bits in 0..36_u8 {
            let word = |n: u8| [None, Some(false), Some(true)][usize::from(n % 3)];
            let (metric, of_device) = (word(bits), word(bits / 3));
            let (is_thing, has_kind) = (bits / 9 % 2 == 1, bits / 18 == 1);
            let name = if is_thing { "device_temperature" } else { "temperature" };
            let mut it = device(&[name]);
            it.0.in_room_means = of_device;
            it.0.kind = has_kind.then(|| "fridge".parse().expect("a label"));
            it.0.metrics.values_mut().for_each(|info| info.in_room_means = metric);
            let expected = match (metric, is_thing, of_device, has_kind) {
                (Some(true), ..) | (None, false, Some(true), _) | (None, false, None, false) => {
                    None
                }
                (Some(false), ..) | (None, false, Some(false), _) => Some(NotOfRoom::Person),
                (None, true, ..) => Some(NotOfRoom::Metric),
                (None, false, None, true) => Some(NotOfRoom::Kind),
            };
            assert_eq!(
                reason(&it, name),
                expected,
                "{metric:?} {is_thing} {of_device:?} {has_kind}"
            );
        }
    }

    #[test]
    fn what_is_added_up_is_never_left_out() {
        let mut plug = device(&["current_w", "cumulative_kwh_p", "water", "temperature"]);
        plug.0.kind = Some(label("fridge"));
        plug.0.in_room_means = Some(false);
        let water: MetricName = given::metric("water");
        plug.0.metrics.get_mut(&water).expect("it has sent it").kind = MetricKind::Counter;
        plug.0.metrics.values_mut().for_each(|info| info.in_room_means = Some(false));
        for metric in ["current_w", "cumulative_kwh_p", "water", "unknown"] {
            assert_eq!(reason(&plug, metric), None, "{metric}");
        }
        assert_eq!(reason(&plug, "temperature"), Some(NotOfRoom::Person));
    }
}
