//! A sender with a limit of the devices that it introduces. Counts no device.

use domain::{DeviceId, TokenHash};
use runtime::authentication::Grant;

use crate::event::FetchedMessage;
use crate::intake::sender::RequestSender;
use crate::intake::submission::Submission;
use crate::readings::MAX_FETCHED_DEVICES;
use crate::settings::Settings;

/// The largest number of parts that one MQTT device may introduce. A part is a separate device, such as `plug:SI7021`.
pub(crate) const MAX_PARTS: usize = 32;
/// The prefixes in the names of an MQTT sender and of a source. The holder of a token is named by the beginning of the
/// token's hash.
const TOPIC: &str = "mqtt:";
const SOURCE: &str = "source:";

/// The API whose words a refusal uses.
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
    /// The beginning of a token's hash, the device of a topic, or a source; see [`domain::Source::introduced_by`].
    pub(crate) name: String,
    /// The word for the sender in a refusal.
    kind: &'static str,
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
        Some(Self { name: TokenHash::short(token), kind: "token", own: None, limit, dialect })
    }

    /// The device that publishes on a topic, or the source of a fetched body. The device for a source's own state is
    /// not counted.
    pub(crate) fn of_message(submission: &Submission<'_>, settings: &Settings) -> Option<Self> {
        let dialect = ReplyDialect::Native;
        if let Some(FetchedMessage { of, own, .. }) = submission.fetched {
            let (name, limit) = (format!("{SOURCE}{of}"), MAX_FETCHED_DEVICES);
            return (!own).then_some(Self { name, kind: "source", own: None, limit, dialect });
        }

        let RequestSender::Topic(device) = &submission.sender else { return None };
        let limit = MAX_PARTS.min(settings.max_devices_per_token as usize);
        let (name, own) = (format!("{TOPIC}{device}"), Some(device.clone()));
        Some(Self { name, kind: "device", own, limit, dialect })
    }

    /// Whether a device is the sender itself.
    pub(super) fn is(&self, id: &DeviceId) -> bool {
        self.own.as_ref() == Some(id)
    }

    /// Why a further device is refused.
    pub(super) fn refusal(&self) -> String {
        let Self { limit, kind, .. } = self;

        match (self.dialect, &self.own) {
            (ReplyDialect::InfluxDb, _) => {
                format!(
                    "is new, and max-values-per-tag limit exceeded ({limit}/{limit}): the {kind} may introduce no \
                     more devices"
                )
            }
            (ReplyDialect::Native, None) => {
                format!(
                    "is new, and the {kind} has introduced {limit} devices already; it may introduce no more"
                )
            }
            (ReplyDialect::Native, Some(own)) => {
                format!(
                    "is new, and {:?} has introduced {limit} parts by MQTT already; it may introduce no more",
                    own.as_str()
                )
            }
        }
    }
}
