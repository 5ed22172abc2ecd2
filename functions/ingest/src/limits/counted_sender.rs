//! A sender with a limit of the devices that it introduces. Counts no device.

use domain::{DeviceId, TokenHash};
use runtime::authentication::Grant;

use crate::intake::sender::Sender;
use crate::settings::Settings;

/// The largest number of parts that one MQTT device may introduce. A part is a separate device, such as `plug:SI7021`.
pub(crate) const MAX_PARTS: usize = 32;
/// The prefix in the name of an MQTT sender. The holder of a token is named by the beginning of the token's hash.
const TOPIC: &str = "mqtt:";

/// The API in whose words a refusal is written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum ReplyDialect {
    #[default]
    Native,
    /// InfluxDB's words, by which its clients recognize that sending again is useless.
    InfluxDb,
}

/// A sender whose new devices are counted.
#[derive(Debug)]
pub(crate) struct CountedSender {
    /// The beginning of a token's hash, or the device of a topic; see [`domain::Source::introduced_by`].
    pub(crate) name: String,
    /// The device of the topic, which is the sender itself and is not counted.
    own: Option<DeviceId>,
    pub(super) limit: usize,
    dialect: ReplyDialect,
}

impl CountedSender {
    /// The holder of a write token; `None` if the grant limits no devices.
    pub(crate) fn of(grant: &Grant, settings: &Settings, dialect: ReplyDialect) -> Option<Self> {
        let token = grant.writing().and_then(|_| grant.token())?;
        let limit = settings.max_devices_per_token as usize;
        Some(Self { name: TokenHash::short(token), own: None, limit, dialect })
    }

    /// The device that publishes on a topic.
    pub(crate) fn of_topic(sender: &Sender<'_>, settings: &Settings) -> Option<Self> {
        let Sender::Topic(device) = sender else { return None };
        let limit = MAX_PARTS.min(settings.max_devices_per_token as usize);
        let (name, own) = (format!("{TOPIC}{device}"), Some(device.clone()));
        Some(Self { name, own, limit, dialect: ReplyDialect::Native })
    }

    /// Whether a device is the sender itself.
    pub(super) fn is(&self, id: &DeviceId) -> bool {
        self.own.as_ref() == Some(id)
    }

    /// Why a further device is refused.
    pub(super) fn refusal(&self) -> String {
        let limit = self.limit;
        match (self.dialect, &self.own) {
            (ReplyDialect::InfluxDb, _) => {
                format!(
                    "is new, and max-values-per-tag limit exceeded ({limit}/{limit}); the token introduces no \
                     further device"
                )
            }
            (ReplyDialect::Native, None) => {
                format!(
                    "is new, and there are {limit} that the token has introduced; the token introduces no \
                     further device"
                )
            }
            (ReplyDialect::Native, Some(own)) => {
                format!(
                    "is new, and there are {limit} parts that {:?} has introduced by MQTT; it introduces no \
                     further one",
                    own.as_str()
                )
            }
        }
    }
}
