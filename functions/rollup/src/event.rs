//! The events that invoke the function (stream records, queue messages and the schedule) and the replies. Applies no
//! event.

use std::error::Error;

use aws_lambda_events::event::dynamodb;
use aws_lambda_events::event::streams::DynamoDbEventResponse;
use runtime::clock::{Clock, Deadline};
use runtime::dead_letters::DeadLetterQueue;
use runtime::queue::{SqsBatchResponse, SqsEvent};
use runtime::work_queue::WorkQueue;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::{Rollup, Store};

/// An event that AWS sends to the function.
#[derive(Debug, Clone)]
pub enum Event {
    /// Records of the table's stream.
    Stream(dynamodb::Event),
    /// Messages of the work queue.
    Queue(SqsEvent),
    /// The schedule, which invokes the function every minute.
    Schedule,
}

/// The function's reply to AWS.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Reply {
    /// The first stream record to deliver again, if there is one.
    Stream(DynamoDbEventResponse),
    /// The messages to deliver again.
    Queue(SqsBatchResponse),
    /// An empty reply.
    Schedule,
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct EventOrigin {
            #[serde(rename = "Records", default)]
            records: Vec<Record>,
            source: Option<String>,
        }

        #[derive(Deserialize)]
        struct Record {
            #[serde(rename = "eventSource")]
            source: String,
        }

        let text = Box::<RawValue>::deserialize(deserializer)?;
        let EventOrigin { records, source } =
            serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        let source = records.first().map(|record| &record.source).or(source.as_ref());

        let event = match source.map(String::as_str) {
            Some("aws:dynamodb") => serde_json::from_str(text.get()).map(Self::Stream),
            Some("aws:sqs") => serde_json::from_str(text.get()).map(Self::Queue),
            Some("aws.events") => return Ok(Self::Schedule),
            other => {
                let other = other.unwrap_or("no source");
                return Err(D::Error::custom(format_args!(
                    "the event is of {other}; expected aws:dynamodb, aws:sqs or aws.events"
                )));
            }
        };
        event.map_err(D::Error::custom)
    }
}

impl<S: Store, W: WorkQueue, Q: DeadLetterQueue, C: Clock> Rollup<S, W, Q, C> {
    /// Handles any event. If the schedule's work fails, its next event tries again.
    pub async fn handle(
        &self,
        event: Event,
        deadline: Deadline,
    ) -> Result<Reply, Box<dyn Error + Send + Sync>> {
        Ok(match event {
            Event::Stream(event) => Reply::Stream(self.handle_stream(event, deadline).await),
            Event::Queue(event) => Reply::Queue(self.handle_queue(event, deadline).await),
            Event::Schedule => {
                self.handle_schedule(deadline).await?;
                Reply::Schedule
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_told_by_its_source() {
        let text = include_str!("../../../events/rollup/late-reading.json");
        let event = serde_json::from_str(text).expect("records");
        assert!(matches!(event, Event::Stream(event) if event.records.len() == 1));
        let message = json!({"eventSource": "aws:sqs", "messageId": "m", "body": "{}"});
        let event =
            serde_json::from_value(json!({"Records": [message, message]})).expect("messages");
        assert!(matches!(event, Event::Queue(event) if event.records.len() == 2));
        let due = json!({"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}});
        assert!(matches!(serde_json::from_value(due).expect("due"), Event::Schedule));
    }

    #[test]
    fn another_event_is_refused_by_its_source() {
        for (event, why) in [
            (json!({"Records": [{"eventSource": "aws:s3"}]}), "of aws:s3; expected"),
            (json!({"Records": []}), "of no source; expected"),
            (json!({"source": "aws.ec2"}), "of aws.ec2; expected"),
            (json!({"Records": [{}]}), "missing field `eventSource`"),
        ] {
            let error = serde_json::from_value::<Event>(event).expect_err(why).to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
