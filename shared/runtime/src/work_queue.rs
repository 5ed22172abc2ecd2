//! The work queue: the port by which a function leaves work for later. Does no work.

use domain::{DeviceId, IdError, QuarterHour, Timestamp, TimestampError};
use serde::{Deserialize, Serialize};
use table::Invocation;

pub use crate::not_sent::NotSent;

/// A message that asks for the readings of a device in a quarter of an hour to be folded again.
///
/// The message contains no values, so it stays correct however late and often it arrives. As JSON:
/// `{"device":"remo-e","quarter":"2026-01-11T16:00:00.000Z"}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "WorkMessage", into = "WorkMessage")]
pub struct FoldRequest {
    /// The device.
    pub device: DeviceId,
    /// The quarter of an hour.
    pub quarter: QuarterHour,
}

/// The queue of work that is left for later. A message is delivered at least once, in any order.
pub trait WorkQueue: Send + Sync {
    /// Sends all messages. After an error some may have been sent, and all may be sent again.
    fn send(
        &self,
        messages: &[FoldRequest],
        invocation: &Invocation,
    ) -> impl Future<Output = Result<(), NotSent>> + Send;
    /// Counts the messages that wait or are being worked on. SQS counts approximately.
    fn depth(&self, invocation: &Invocation) -> impl Future<Output = Result<u64, NotSent>> + Send;
}

/// The JSON form of a message.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkMessage {
    device: String,
    quarter: String,
}

/// The reason why a message is invalid.
#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error("device: {0}")]
    Device(#[source] IdError),
    #[error("quarter: {0}")]
    Timestamp(#[source] TimestampError),
    #[error("quarter: {0} is not the beginning of a quarter of an hour")]
    QuarterHour(Timestamp),
}

impl TryFrom<WorkMessage> for FoldRequest {
    type Error = BodyError;

    fn try_from(WorkMessage { device, quarter }: WorkMessage) -> Result<Self, BodyError> {
        let start = Timestamp::parse_absolute(&quarter).map_err(BodyError::Timestamp)?;
        Ok(Self {
            device: device.parse().map_err(BodyError::Device)?,
            quarter: QuarterHour::starting_at(start).ok_or(BodyError::QuarterHour(start))?,
        })
    }
}

impl From<FoldRequest> for WorkMessage {
    fn from(request: FoldRequest) -> Self {
        let FoldRequest { device, quarter } = request;
        Self { device: device.to_string(), quarter: quarter.start().to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_its_key_in_json() {
        let text = r#"{"device":"remo-e","quarter":"2026-01-11T16:00:00.000Z"}"#;
        let request: FoldRequest = serde_json::from_str(text).expect("a message");
        assert_eq!(request.device.as_str(), "remo-e");
        assert_eq!(request.quarter.start().to_string(), "2026-01-11T16:00:00.000Z");
        assert_eq!(serde_json::to_string(&request).expect("JSON"), text);
    }

    #[test]
    fn another_message_is_refused_with_what_is_wrong() {
        for (text, why) in [
            ("{", "EOF"),
            (r#"{"device":"d"}"#, "missing field `quarter`"),
            (r#"{"device":"d","quarter":"2026-01-11T16:00:00Z","n":1}"#, "unknown field `n`"),
            (r#"{"device":"a#b","quarter":"2026-01-11T16:00:00Z"}"#, "device: "),
            (r#"{"device":"d","quarter":"yesterday"}"#, "quarter: "),
            (
                r#"{"device":"d","quarter":"2026-01-11T16:01:00Z"}"#,
                "2026-01-11T16:01:00.000Z is not",
            ),
        ] {
            let error = serde_json::from_str::<FoldRequest>(text).expect_err(text).to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
