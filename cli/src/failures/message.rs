//! The kinds of messages in the dead-letter queue: the subject of each, and how to replay it. Sends nothing.

use std::fmt;

use clap::ValueEnum;
use runtime::work_queue::FoldRequest;
use serde::Deserialize;
use serde_json::{Value, json};

/// The kind of a message, by who sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    /// An MQTT message that ingest did not store, from Lambda
    Mqtt,
    /// An MQTT message that Lambda did not take, from IoT Core
    Rule,
    /// A quarter of an hour that could not be rolled up, from the work queue
    Fold,
    /// Records of the stream that failed in every attempt, from Lambda
    Stream,
    /// An item that can never be applied, from a function
    Item,
    /// Something else
    Unknown,
}

/// How to replay a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Replay {
    /// Invoke the function ingest with an event, as `IoT` Core does. The function's name is not always known.
    Invoke { function: Option<String>, event: Value },
    /// Send the message back to the work queue.
    Fold(String),
    /// No replay is possible. The text says what to do instead.
    Impossible(&'static str),
}

/// A parsed message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FailureMessage {
    pub(super) kind: Kind,
    /// The subject of the message, and why the message is in the queue, for people.
    pub(super) about: String,
    pub(super) replay: Replay,
}

/// The advice for records that the registry function gave up. Their devices and readings are in the table.
const REGISTRY_RECORDS: &str = "\
the readings are stored; the next reading of each device tells the registry of it, its metrics and its room. A stay \
in a room that began with these records may be missing";
/// The advice for records that the rollup function gave up.
const ROLLUP_RECORDS: &str = "\
the readings are stored; `roomtide rollups verify` finds what the rollups lack and `roomtide rollups rebuild` makes it";
const RECORDS: &str = "the records are in the table; the stream keeps them for a day";
/// The advice for an item that no function can apply.
const ITEM: &str = "the item stays in the table and no function reads it; mend or delete it there, then drop the message";
const UNKNOWN: &str = "Roomtide sends no such message";

/// The message that Lambda sends to an on-failure destination.
///
/// Sources: <https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html>,
/// <https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html>
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LambdaFailure {
    request_context: RequestContext,
    request_payload: Option<Value>,
    response_payload: Option<Value>,
    #[serde(rename = "DDBStreamBatchInfo")]
    batch: Option<Batch>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestContext {
    function_arn: String,
    condition: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Batch {
    shard_id: String,
    start_sequence_number: String,
    end_sequence_number: String,
    approximate_arrival_of_first_record: String,
    approximate_arrival_of_last_record: String,
    #[serde(rename = "batchSize")]
    records: u64,
}

/// The message that `IoT` Core sends to a rule's error action.
///
/// Source: <https://docs.aws.amazon.com/iot/latest/developerguide/rule-error-handling.html>
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RuleError {
    topic: String,
    base64_original_payload: String,
    failures: Vec<ActionError>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ActionError {
    failed_resource: String,
    error_message: String,
}

/// The message that a stream function sends about an item that it cannot apply.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    pk: String,
    sk: String,
    reason: String,
}

impl FailureMessage {
    /// Parses a message that was sent to the queue at `sent`, in milliseconds since 1970.
    pub(super) fn of(body: &str, sent: i64) -> Self {
        if let Ok(FoldRequest { device, quarter }) = serde_json::from_str(body) {
            return Self {
                kind: Kind::Fold,
                about: format!("{device}, the 15 minutes from {}", quarter.start()),
                replay: Replay::Fold(body.to_owned()),
            };
        }

        if let Ok(Item { pk, sk, reason }) = serde_json::from_str(body) {
            let about = format!("the item {pk} {sk}: {reason}");
            return Self { kind: Kind::Item, about, replay: Replay::Impossible(ITEM) };
        }

        if let Ok(error) = serde_json::from_str(body) {
            return Self::of_rule(error, sent);
        }
        if let Ok(invocation) = serde_json::from_str(body) {
            return Self::of_lambda(invocation, body);
        }
        Self::unknown(body)
    }

    /// The subject without the line breaks of other programs' texts, which would make it look like several messages.
    pub(super) fn about_in_one_line(&self) -> String {
        self.about.replace('\n', "\\n")
    }

    fn of_rule(error: RuleError, sent: i64) -> Self {
        let RuleError { topic, base64_original_payload: data, failures } = error;
        // With Basic Ingest, the rule's name precedes the topic here, but not in the rule's function `topic()`. Source:
        // https://docs.aws.amazon.com/iot/latest/developerguide/iot-basic-ingest.html
        let basic = topic.strip_prefix("$aws/rules/").and_then(|rule| rule.split_once('/'));
        let topic = basic.map_or(&*topic, |(_, topic)| topic);

        // The same event as the rules of template.yaml make: a topic of two levels names a device, a longer one is a
        // device's own. The message lacks the broker's time; it was sent as soon as the action had failed, so its time
        // is close.
        let event = match topic.split_once('/') {
            Some((_, device)) if !device.contains('/') => {
                json!({"device_id": device, "timestamp": sent, "data": data})
            }
            _ => json!({"topic": topic, "timestamp": sent, "data": data}),
        };

        let why = failures.first().map_or("no reason", |failure| &failure.error_message);
        let about = format!("the topic {topic}: {why}");
        let function = failures.iter().find_map(|failure| function_of(&failure.failed_resource));
        Self { kind: Kind::Rule, about, replay: Replay::Invoke { function, event } }
    }

    fn of_lambda(invocation: LambdaFailure, body: &str) -> Self {
        let LambdaFailure { request_context, request_payload, response_payload, batch } =
            invocation;
        let RequestContext { function_arn, condition } = request_context;
        let function = function_of(&function_arn);
        let name = function.as_deref().unwrap_or(&function_arn);

        if let Some(batch) = batch {
            let todo = match name {
                it if it.contains("Registry") => REGISTRY_RECORDS,
                it if it.contains("Rollup") => ROLLUP_RECORDS,
                _ => RECORDS,
            };
            let about = format!(
                "{} records for {name}, {} to {}, numbers {} to {} of {}: {condition}",
                batch.records,
                batch.approximate_arrival_of_first_record,
                batch.approximate_arrival_of_last_record,
                batch.start_sequence_number,
                batch.end_sequence_number,
                batch.shard_id
            );
            return Self { kind: Kind::Stream, about, replay: Replay::Impossible(todo) };
        }

        let Some(event) = request_payload else { return Self::unknown(body) };
        let sender = event.get("topic").or(event.get("device_id")).and_then(Value::as_str);
        let payload = response_payload.unwrap_or_default();
        let why = payload["errorMessage"].as_str().unwrap_or(&condition).to_owned();
        let about = format!("from {}: {why}", sender.unwrap_or("nobody"));
        Self { kind: Kind::Mqtt, about, replay: Replay::Invoke { function, event } }
    }

    fn unknown(body: &str) -> Self {
        let about = body.chars().take(80).collect();
        Self { kind: Kind::Unknown, about, replay: Replay::Impossible(UNKNOWN) }
    }
}

/// The function's name in an ARN `arn:aws:lambda:REGION:ACCOUNT:function:NAME`, which may end with a version.
fn function_of(arn: &str) -> Option<String> {
    let (_, name) = arn.split_once(":function:")?;
    name.split(':').next().map(str::to_owned)
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value().expect("no kind is hidden");
        f.pad(value.get_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: i64 = 1_768_147_200_000;

    fn understood(file: &str) -> FailureMessage {
        FailureMessage::of(file, SENT)
    }

    #[test]
    fn an_mqtt_message_is_invoked_again_as_it_was() {
        let message = understood(include_str!("samples/mqtt.json"));
        assert_eq!(message.kind, Kind::Mqtt);
        assert_eq!(message.about, "from remo-e: 1 readings are not stored");
        let event = json!({"device_id": "remo-e", "timestamp": SENT, "data": "eyJ0IjogMX0="});
        let function = Some("roomtide-IngestFunction-AbC".to_owned());
        assert_eq!(message.replay, Replay::Invoke { function, event });
    }

    #[test]
    fn a_message_of_a_rule_becomes_the_event_that_the_rule_makes() {
        let sample = include_str!("samples/rule.json");
        let message = understood(sample);
        assert_eq!(message.kind, Kind::Rule);
        assert!(message.about.starts_with("the topic roomtide/remo-e: "), "{}", message.about);
        let function = Some("roomtide-IngestFunction-AbC".to_owned());
        let event = json!({"device_id": "remo-e", "timestamp": SENT, "data": "eyJ0IjogMX0="});
        assert_eq!(message.replay, Replay::Invoke { function: function.clone(), event });
        for (topic, told) in [
            ("roomtide/zigbee2mqtt/plug", "roomtide/zigbee2mqtt/plug"),
            ("$aws/rules/rt_IotPayloadRule/roomtide/tasmota/a/SENSOR", "roomtide/tasmota/a/SENSOR"),
        ] {
            let message = understood(&sample.replace("roomtide/remo-e", topic));
            let event = json!({"topic": told, "timestamp": SENT, "data": "eyJ0IjogMX0="});
            assert_eq!(message.replay, Replay::Invoke { function: function.clone(), event });
        }
        let basic = understood(&sample.replace("roomtide/", "$aws/rules/rt_IotRule/roomtide/"));
        assert_eq!(basic, message, "Basic Ingest");
    }

    #[test]
    fn a_fold_request_goes_back_as_it_is() {
        let body = r#"{"device":"remo-e","quarter":"2026-01-11T16:00:00.000Z"}"#;
        let message = understood(body);
        assert_eq!(message.kind, Kind::Fold);
        assert_eq!(message.about, "remo-e, the 15 minutes from 2026-01-11T16:00:00.000Z");
        assert_eq!(message.replay, Replay::Fold(body.to_owned()));
    }

    #[test]
    fn what_cannot_be_done_again_says_what_to_do() {
        let sample = include_str!("samples/stream.json");
        let message = understood(sample);
        assert_eq!(message.kind, Kind::Stream);
        assert!(message.about.starts_with("3 records for roomtide-RollupFunction-AbC, 2026-"));
        assert_eq!(message.replay, Replay::Impossible(ROLLUP_RECORDS));
        let registry = understood(&sample.replace("Rollup", "Registry"));
        assert_eq!(registry.replay, Replay::Impossible(REGISTRY_RECORDS));
        let letter = r#"{"pk":"visitor","sk":"TS when","reason":"sk is not a timestamp"}"#;
        let message = understood(letter);
        assert_eq!((message.kind, &message.replay), (Kind::Item, &Replay::Impossible(ITEM)));
        assert_eq!(message.about, "the item visitor TS when: sk is not a timestamp");
        for body in ["", "{}", r#"{"device":"d","quarter":"yesterday"}"#, "hello"] {
            assert_eq!(understood(body).kind, Kind::Unknown, "{body}");
        }
    }

    /// What the functions send is what is understood here.
    #[test]
    fn the_functions_own_messages_are_known() {
        use runtime::dead_letters::DeadLetter;
        let text = |it: &str| it.to_owned();
        let letter = DeadLetter { pk: text("a"), sk: text("b"), reason: text("c") };
        let letter = serde_json::to_string(&letter).unwrap();
        assert_eq!(understood(&letter).kind, Kind::Item);
    }
}
