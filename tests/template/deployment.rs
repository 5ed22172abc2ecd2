//! What this machine takes for the deployed system, against `template.yaml`.

use std::time::Duration;

use chrono::TimeDelta;
use local::deployment::{
    ALERTING, DeployedFunction, FETCHING, QueueSource, REGISTRY_STREAM, ROLLUP, ROLLUP_QUEUE,
    ROLLUP_STREAM, ROOM_INDEX_UNITS, SCHEDULE_PERIOD, StreamSource, TABLE_UNITS,
};
use runtime::config::MaxUnits;
use serde_json::{Map, Value, json};

use super::{all, number, only, resources, template};

/// The events of this kind: the function, the event's logical id as SAM derives it, and the event's properties.
fn events(resources: &Map<String, Value>, kind: &str) -> Vec<(DeployedFunction, String, Value)> {
    let mut found = Vec::new();
    for (name, function) in all(resources, "AWS::Serverless::Function") {
        for (event, of_event) in function["Properties"]["Events"].as_object().into_iter().flatten()
        {
            if of_event["Type"] == kind {
                let known = [REGISTRY_STREAM.function, ROLLUP, ALERTING, FETCHING];
                let known = known.into_iter().find(|known| known.name == name);
                let known = known.unwrap_or_else(|| panic!("nothing here plays {name}"));
                let timeout = Duration::from_secs(number(&function["Properties"]["Timeout"]));
                assert_eq!(known.timeout, timeout, "{name}");
                found.push((known, format!("{name}{event}"), of_event["Properties"].clone()));
            }
        }
    }
    found
}

#[test]
fn the_stream_is_delivered_as_the_template_says() {
    let mappings = events(&resources(), "DynamoDB");
    assert_eq!(mappings.len(), 2);

    for (source, (function, name, mapping)) in
        [REGISTRY_STREAM, ROLLUP_STREAM].into_iter().zip(mappings)
    {
        assert_eq!((source.name, source.function.name), (&*name, function.name));
        assert_eq!(mapping["StartingPosition"], "TRIM_HORIZON");
        assert_eq!(mapping["FunctionResponseTypes"], json!(["ReportBatchItemFailures"]));
        assert_eq!(mapping["BisectBatchOnFunctionError"], true);
        assert_eq!(number(&mapping["BatchSize"]), source.batch_size as u64);
        assert_eq!(number(&mapping["MaximumRetryAttempts"]), u64::from(source.retries));
        let seconds = mapping["MaximumBatchingWindowInSeconds"].as_str().expect("a parameter");
        let seconds: u64 = seconds.parse().expect("a number");
        assert_eq!(Duration::from_secs(seconds / 60), source.window, "a minute is a second here");

        let [filter] = &mapping["FilterCriteria"]["Filters"].as_array().expect("filters")[..]
        else {
            panic!("{mapping}")
        };
        assert_is_filter(filter["Pattern"].as_str().expect("a pattern"), &source);
    }
}

/// Holds that the pattern asks for readings alone, with the kinds of changes of the source.
fn assert_is_filter(pattern: &str, source: &StreamSource) {
    let mut pattern: Value = serde_json::from_str(pattern).expect("JSON");
    let changes = pattern.as_object_mut().expect("an object").remove("eventName");
    let all = json!(["INSERT", "MODIFY", "REMOVE"]);
    assert_eq!(changes.unwrap_or(all), json!(source.changes));
    let readings = json!({"dynamodb": {"Keys": {"sk": {"S": [{"prefix": "TS#"}]}}}});
    assert_eq!(pattern, readings);
}

#[test]
fn a_source_accepts_the_changes_of_readings_that_its_filter_names() {
    let record = |change: &str, sk: &str| {
        let keys = json!({"pk": {"S": "remo-e"}, "sk": {"S": sk}});
        json!({"eventName": change, "dynamodb": {"Keys": keys}})
    };
    let reading = "TS#2026-01-11T16:00:00.000Z";
    for (change, sk, by_registry, by_rollup) in [
        ("INSERT", reading, true, true),
        ("MODIFY", reading, true, true),
        ("REMOVE", reading, false, true),
        ("INSERT", "M15#2026-01-11T16:00:00.000Z", false, false),
        ("INSERT", "remo-e", false, false),
    ] {
        let record = record(change, sk);
        assert_eq!(REGISTRY_STREAM.accepts(&record), by_registry, "{record}");
        assert_eq!(ROLLUP_STREAM.accepts(&record), by_rollup, "{record}");
    }
    assert!(!REGISTRY_STREAM.accepts(&json!({"eventName": "INSERT"})));
}

#[test]
fn the_queue_is_delivered_as_the_template_says() {
    let resources = resources();
    let sources = events(&resources, "SQS");
    let [(function, _, properties)] = &sources[..] else { panic!("{sources:?}") };
    let QueueSource { queue, function: known, batch_size, visibility_timeout, max_receives } =
        ROLLUP_QUEUE;
    assert_eq!(function.name, known.name);
    assert_eq!(properties["FunctionResponseTypes"], json!(["ReportBatchItemFailures"]));
    assert_eq!(number(&properties["BatchSize"]), batch_size as u64);
    assert_eq!(properties["Queue"], json!({"Fn::GetAtt": [queue, "Arn"]}));

    let of_queue = &resources[queue]["Properties"];
    assert_eq!(number(&of_queue["VisibilityTimeout"]), visibility_timeout.as_secs());
    assert_eq!(number(&of_queue["RedrivePolicy"]["maxReceiveCount"]), u64::from(max_receives));
    assert_eq!(visibility_timeout, function.timeout * 6, "as AWS advises");
}

#[test]
fn the_schedules_are_those_of_the_template() {
    assert_eq!(SCHEDULE_PERIOD, TimeDelta::minutes(1));
    let mut scheduled = Vec::new();
    for (function, name, properties) in events(&resources(), "Schedule") {
        assert_eq!(properties, json!({"Schedule": "rate(1 minute)"}), "{name}");
        scheduled.push(function.name);
    }
    scheduled.sort_unstable();
    assert_eq!(scheduled, [ALERTING.name, FETCHING.name, ROLLUP.name]);
    assert!(events(&resources(), "ScheduleV2").is_empty());
}

#[test]
fn the_model_of_provisioned_capacity_has_the_units_of_the_template() {
    let resources = template().resources(&[("Billing", "provisioned")]).expect("resources");
    let (_, table) = only(&resources, "AWS::DynamoDB::Table");
    let table = &table["Properties"];
    for (of, MaxUnits { read, write }) in
        [(table, TABLE_UNITS), (&table["GlobalSecondaryIndexes"][0], ROOM_INDEX_UNITS)]
    {
        let units = json!({"ReadCapacityUnits": read, "WriteCapacityUnits": write});
        assert_eq!(of["ProvisionedThroughput"], units);
    }
    // The units that a reading has are those of the index by room, which has fewer.
    const {
        assert!(ROOM_INDEX_UNITS.read < TABLE_UNITS.read);
        assert!(ROOM_INDEX_UNITS.write < TABLE_UNITS.write);
    }
}
