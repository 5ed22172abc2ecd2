//! The topics on which devices publish their own payloads: the format, the device, and what has no readings.

use api::Problem;
use domain::{DeviceId, Label};

use crate::formats::PayloadFormat;
use crate::formats::line_protocol::mapping::id_of;

/// What a topic tells of its messages.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) format: PayloadFormat,
    pub(crate) device: DeviceId,
    /// The device's name in the topic, where the id is not that.
    pub(crate) name: Option<Label>,
}

/// The format and the device of a topic such as `roomtide/tasmota/plug/tele/SENSOR`. Returns `None` for topics
/// that carry no readings: commands, availability, the state of a bridge.
pub(crate) fn read(topic: &str) -> Result<Option<Topic>, Problem> {
    let (_, rest) = topic.split_once('/').unwrap_or_default();
    let (format, rest) = rest.split_once('/').unwrap_or_default();
    let read = match format {
        "tasmota" => tasmota(rest).map(|device| (PayloadFormat::Tasmota, device)),
        "shelly" => shelly(rest).map(|device| (PayloadFormat::Shelly, device)),
        "zigbee2mqtt" => zigbee2mqtt(rest).map(|device| (PayloadFormat::Zigbee2Mqtt, device)),
        _ => {
            let message = format!(
                "{:?} is no format; expected tasmota, shelly or zigbee2mqtt as the second level",
                domain::excerpt(format)
            );
            return Err(Problem::field("topic", message));
        }
    };
    let Some((format, name)) = read else { return Ok(None) };
    let named = id_of(name).map_err(|why| Problem::field("topic", format!("its device {why}")));
    let (device, name) = named?;
    Ok(Some(Topic { format, device, name }))
}

/// `DEVICE/tele/SENSOR`: `FullTopic` is `roomtide/tasmota/%topic%/%prefix%/`.
fn tasmota(rest: &str) -> Option<&str> {
    let (device, message) = rest.split_once('/')?;
    matches!(message, "tele/SENSOR" | "tele/STATE" | "stat/STATUS8" | "stat/STATUS10")
        .then_some(device)
}

/// `DEVICE/events/rpc`: the MQTT prefix is `roomtide/shelly/DEVICE`. `status/` would say the same again.
fn shelly(rest: &str) -> Option<&str> {
    rest.strip_suffix("/events/rpc")
}

/// `FRIENDLY_NAME`, which may have several levels: `base_topic` is `roomtide/zigbee2mqtt`.
fn zigbee2mqtt(rest: &str) -> Option<&str> {
    let is_command = |level: &str| matches!(level, "set" | "get");
    let mut last = rest.rsplit('/');
    let is_silent = rest.is_empty()
        || rest.split('/').next() == Some("bridge")
        || last.next().is_some_and(|level| level == "availability" || is_command(level))
        || last.next().is_some_and(is_command);
    (!is_silent).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(topic: &str) -> String {
        match read(topic) {
            Ok(Some(Topic { format, device, .. })) => format!("{format:?} {}", device.as_str()),
            Ok(None) => "-".to_owned(),
            Err(problem) => problem.detail,
        }
    }

    #[test]
    fn a_topic_names_its_format_and_its_device() {
        for (topic, expected) in [
            ("roomtide/tasmota/plug/tele/SENSOR", "Tasmota plug"),
            ("roomtide/tasmota/plug/tele/STATE", "Tasmota plug"),
            ("roomtide/tasmota/plug/stat/STATUS8", "Tasmota plug"),
            ("roomtide/shelly/ht/events/rpc", "Shelly ht"),
            ("roomtide/zigbee2mqtt/0x00158d0001dc126a", "Zigbee2Mqtt 0x00158d0001dc126a"),
            ("roomtide/zigbee2mqtt/attic/Probe 1", "Zigbee2Mqtt attic:Probe_1"),
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
            ("roomtide/boiler/x", "topic: \"boiler\" is no format; expected tasmota,"),
            ("roomtide", "topic: \"\" is no format"),
            ("roomtide/tasmota//tele/SENSOR", "topic: its device is empty"),
        ] {
            assert!(shown(topic).starts_with(expected), "{topic}: {}", shown(topic));
        }
    }
}
