//! Parses the topics on which devices publish their own payloads: format, device, and whether there are readings.

use api::Problem;
use domain::text_id::id_of;
use domain::{DeviceId, Label};

use crate::formats::{PayloadReader, unknown_format};

/// The format and the device of a topic's messages.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) reader: PayloadReader,
    pub(crate) device: DeviceId,
    /// The device's name in the topic, if the id was made from it and differs.
    pub(crate) name: Option<Label>,
}

/// The format and the device of a topic such as `roomtide/tasmota/plug/tele/SENSOR`. Returns `None` for topics
/// that carry no readings: commands, availability, the state of a bridge.
pub(crate) fn read(topic: &str) -> Result<Option<Topic>, Problem> {
    let (_, rest) = topic.split_once('/').unwrap_or_default();
    let (format, rest) = rest.split_once('/').unwrap_or_default();
    let Some(reader) = PayloadReader::of_topic(format) else {
        let why = unknown_format(format, PayloadReader::topics());
        return Err(Problem::field("topic", format!("{why} as the second level")));
    };

    let Some(name) = reader.device_of(rest) else { return Ok(None) };
    let named = id_of(name).map_err(|why| Problem::field("topic", format!("its device {why}")));
    let (device, name) = named?;
    Ok(Some(Topic { reader, device, name }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(topic: &str) -> String {
        match read(topic) {
            Ok(Some(Topic { reader, device, .. })) => {
                format!("{} {}", reader.endpoint.operation.name(), device.as_str())
            }
            Ok(None) => "-".to_owned(),
            Err(problem) => problem.detail,
        }
    }

    #[test]
    fn a_topic_names_its_format_and_its_device() {
        for (topic, expected) in [
            ("roomtide/tasmota/plug/tele/SENSOR", "PostTasmota plug"),
            ("roomtide/tasmota/plug/tele/STATE", "PostTasmota plug"),
            ("roomtide/tasmota/plug/stat/STATUS8", "PostTasmota plug"),
            ("roomtide/shelly/ht/events/rpc", "PostShelly ht"),
            ("roomtide/ttn/v3/home@ttn/devices/attic/up", "PostThingsStack attic"),
            ("roomtide/chirpstack/application/7/device/24e1/event/up", "PostChirpStack 24e1"),
            ("roomtide/zigbee2mqtt/0x00158d0001dc126a", "PostZigbee2Mqtt 0x00158d0001dc126a"),
            ("roomtide/zigbee2mqtt/attic/Probe 1", "PostZigbee2Mqtt attic:Probe_1"),
        ] {
            assert_eq!(shown(topic), expected, "{topic}");
        }
    }

    #[test]
    fn what_has_no_readings_is_left_alone() {
        for topic in [
            "roomtide/tasmota/plug/tele/LWT",
            "roomtide/tasmota/plug/cmnd/POWER",
            "roomtide/tasmota/plug/stat/RESULT",
            "roomtide/tasmota/plug",
            "roomtide/shelly/ht/online",
            "roomtide/shelly/ht/status/switch:0",
            "roomtide/shelly/ht",
            "roomtide/ttn/v3/home@ttn/devices/attic/join",
            "roomtide/ttn/v3/home@ttn/devices/attic/down/push",
            "roomtide/chirpstack/application/7/device/24e1/event/join",
            "roomtide/chirpstack/application/7/device/24e1/command/down",
            "roomtide/zigbee2mqtt/bridge/state",
            "roomtide/zigbee2mqtt/bridge/devices",
            "roomtide/zigbee2mqtt/plug/availability",
            "roomtide/zigbee2mqtt/plug/set",
            "roomtide/zigbee2mqtt/plug/set/state",
            "roomtide/zigbee2mqtt/",
        ] {
            assert_eq!(shown(topic), "-", "{topic}");
        }
    }

    #[test]
    fn what_names_no_format_or_no_device_is_refused() {
        for (topic, expected) in [
            ("roomtide/boiler/x", "topic: \"boiler\" is not a format; expected tasmota,"),
            ("roomtide", "topic: \"\" is not a format"),
            ("roomtide/tasmota//tele/SENSOR", "topic: its device is empty"),
        ] {
            assert!(shown(topic).starts_with(expected), "{topic}: {}", shown(topic));
        }
    }
}
