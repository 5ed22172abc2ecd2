//! For makers that list their devices and answer for each device separately: the list, and which of its devices a round
//! of requests has reached. Reads no clock.

use chrono::TimeDelta;
use domain::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The maximum number of devices that one run requests. A run has time for them if each takes ten seconds.
const MAX_STATES: usize = 16;

/// How a kind requests devices: its first request lists them, and its second request is made for each device.
pub struct DeviceDirectory {
    /// How long a list is used.
    pub(crate) every: TimeDelta,
    /// Reads the list.
    pub(crate) read: fn(&Value) -> Vec<DirectoryDevice>,
}

/// A device in a maker's list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct DirectoryDevice {
    /// The device's id in requests.
    pub id: String,
    /// The name that a person gave the device.
    pub name: String,
    /// Whether the device's state had no number. Such a device is skipped until the next list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_silent: bool,
}

/// A request of a source, and the listed device that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The index among the requests of the source.
    pub position: usize,
    /// The listed device.
    pub device: Option<DirectoryDevice>,
}

/// The list of a source's devices.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct DirectoryListing {
    /// When the list was requested.
    pub at: Timestamp,
    /// The devices.
    pub devices: Vec<DirectoryDevice>,
    /// The id of the device that was requested last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
}

impl DirectoryListing {
    /// Whether the list is to be read again: it is too old, or its time is ahead of the clock. A round of requests that
    /// has begun is finished first.
    pub(crate) fn is_due(&self, every: TimeDelta, now: Timestamp) -> bool {
        let is_good = (TimeDelta::zero()..every).contains(&now.since(self.at));
        !is_good && !self.is_in_round()
    }

    /// The requests of the next run, for at most 16 devices after the last requested one. A new round begins after the
    /// last device of the list.
    pub fn questions(&self) -> Vec<Question> {
        let devices = if self.is_in_round() { self.behind_last() } else { &self.devices };
        let asked = devices.iter().filter(|device| !device.is_silent).take(MAX_STATES);
        asked.map(|device| Question { position: 1, device: Some(device.clone()) }).collect()
    }

    /// Notes that a device was requested. A device whose state had no number, such as a hub, is silent.
    pub fn note(&mut self, id: &str, is_silent: bool) {
        let known = self.devices.iter_mut().find(|known| known.id == id);
        known.into_iter().for_each(|known| known.is_silent |= is_silent);
        self.last = Some(id.to_owned());
    }

    /// Whether a round of requests is under way: some devices were requested, others are left.
    pub fn is_in_round(&self) -> bool {
        self.last.is_some() && self.behind_last().iter().any(|device| !device.is_silent)
    }

    fn behind_last(&self) -> &[DirectoryDevice] {
        let last = self.devices.iter().position(|device| Some(&device.id) == self.last.as_ref());
        &self.devices[last.map_or(0, |last| last + 1)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::at;

    fn ids(listed: &DirectoryListing) -> Vec<String> {
        let devices = listed.questions().into_iter().filter_map(|question| question.device);
        devices.map(|device| device.id).collect()
    }

    #[test]
    fn a_round_asks_for_each_device_once_in_several_runs_and_is_ended_before_the_next_list() {
        let device = |n: usize| DirectoryDevice {
            id: n.to_string(),
            name: String::new(),
            is_silent: n == 17,
        };
        let now = at("2026-03-10T12:00:00Z");
        let mut listed =
            DirectoryListing { at: now, devices: (0..35).map(device).collect(), last: None };
        let later = now.saturating_add(TimeDelta::hours(2));
        for (count, first) in [(16, "0"), (16, "16"), (2, "33"), (16, "0")] {
            let asked = ids(&listed);
            assert_eq!((asked.len(), asked[0].as_str()), (count, first));
            assert_eq!(listed.is_due(TimeDelta::hours(1), later), first == "0");
            for id in asked {
                listed.note(&id, false);
            }
        }

        // Those that are left have no number.
        for n in 16..35 {
            listed.note(&n.to_string(), true);
        }
        listed.last = Some("15".to_owned());
        assert!(!listed.is_in_round());
        assert_eq!(ids(&listed)[0], "0");
        assert!(listed.is_due(TimeDelta::hours(1), now.saturating_add(-TimeDelta::seconds(1))));
        assert!(!listed.is_due(TimeDelta::hours(1), now));
    }
}
