//! Alarms, dashboard, saved queries and budget in `template.yaml`, and the page that says what to do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use super::{all, dead_letter_queue, only, template, text};
use crate::architecture::{root, rust_files};
use crate::source::Source;

/// What is free (<https://aws.amazon.com/cloudwatch/pricing/>).
const FREE_ALARMS: usize = 10;
const FREE_METRICS: usize = 10;
const FREE_METRICS_OF_A_DASHBOARD: usize = 50;

const CHOICES: [&[(&str, &str)]; 4] = [
    &[],
    &[("AlarmEmail", "a@example.org"), ("MonthlyBudget", "10")],
    &[("Front", "function-urls")],
    &[("Front", "http-api")],
];

/// The metrics that the functions count, from their code.
fn counted() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (path, text) in rust_files() {
        if path.starts_with("functions/") || path.starts_with("shared/") {
            found.extend(Source::shipped(&text).literals().into_iter().map(|it| it.text));
        }
    }
    found
}

/// The metrics that functions count by name. `AWS` bills each that a month has values of.
fn metrics_of_the_functions() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (path, text) in rust_files() {
        if !path.starts_with("functions/") && !path.starts_with("shared/") {
            continue;
        }
        for method in [".count(", ".count_of_stack(", ".seconds("] {
            for call in text.split(method).skip(1) {
                let name = call.trim_start().strip_prefix('"').and_then(|it| it.split_once('"'));
                found.extend(name.map(|(name, _)| name.to_owned()));
            }
        }
    }
    found
}

/// What an alarm or the dashboard reads of the system's own metrics.
fn metrics_that_are_read() -> BTreeSet<String> {
    let resources = template().resources(&[]).expect("resources");
    let alarms = all(&resources, "AWS::CloudWatch::Alarm").map(|(_, alarm)| &alarm["Properties"]);
    let mut read: BTreeSet<String> = alarms
        .filter(|alarm| alarm["Namespace"] == "Roomtide")
        .map(|alarm| text(&alarm["MetricName"]).to_owned())
        .collect();
    let (_, dashboard) = only(&resources, "AWS::CloudWatch::Dashboard");
    let body = text(&dashboard["Properties"]["DashboardBody"]["Fn::Sub"][0]);
    let body: Value = serde_json::from_str(body).expect("a body is JSON");
    for widget in body["widgets"].as_array().expect("widgets") {
        let metrics = widget["properties"]["metrics"].as_array().expect("metrics").iter();
        let own = metrics.filter(|metric| metric[0] == "Roomtide");
        read.extend(own.map(|metric| text(&metric[1]).to_owned()));
    }
    read
}

/// What nobody looks at is a field of the line in the log, which costs nothing more.
#[test]
fn each_metric_is_read_by_an_alarm_or_the_dashboard_and_all_are_free() {
    let (counted, read) = (metrics_of_the_functions(), metrics_that_are_read());
    assert!(counted.len() > 4, "{counted:?}");
    let unread: Vec<_> = counted.difference(&read).collect();
    assert!(unread.is_empty(), "fields, not metrics: {unread:?}");
    assert!(read.len() <= FREE_METRICS, "{read:?}");
}

#[test]
fn every_function_that_ends_in_an_error_is_on_the_dashboard() {
    let resources = template().resources(&[]).expect("resources");
    let (_, dashboard) = only(&resources, "AWS::CloudWatch::Dashboard");
    let body = text(&dashboard["Properties"]["DashboardBody"]["Fn::Sub"][0]);
    for (name, _) in all(&resources, "AWS::Serverless::Function") {
        let metric = format!(r#"["AWS/Lambda", "Errors", "FunctionName", "${{{name}}}""#);
        assert!(body.contains(&metric), "{name}");
    }
}

#[test]
fn alarms_are_always_there_and_free() {
    for parameters in CHOICES {
        let resources = template().resources(parameters).expect("resources");
        let (topic, subscribed) = only(&resources, "AWS::SNS::Topic");
        let address = parameters.iter().find(|(name, _)| *name == "AlarmEmail");
        let expected = address.map(|(_, it)| json!([{"Protocol": "email", "Endpoint": it}]));
        assert_eq!(subscribed["Properties"].get("Subscription"), expected.as_ref());
        let mut alarms = 0;
        for (name, alarm) in all(&resources, "AWS::CloudWatch::Alarm") {
            let alarm = &alarm["Properties"];
            assert_eq!(alarm["AlarmActions"], json!([{"Ref": topic}]), "{name}");
            assert_eq!(alarm.get("Metrics"), None, "{name}: metric math is billed by metric");
            assert!(alarm["Statistic"].is_string(), "{name}");
            alarms += 1;
        }
        assert!((6..=FREE_ALARMS).contains(&alarms), "{alarms} alarms with {parameters:?}");
    }
}

/// The metric of each alarm, with its dimensions.
#[test]
fn each_alarm_watches_a_metric_that_there_is() {
    let resources = template().resources(&[]).expect("resources");
    let (api, _) = only(&resources, "AWS::ApiGatewayV2::Api");
    let queue = dead_letter_queue(&resources);
    let function = |name: &str| json!({"FunctionName": {"Ref": name}});
    let stack = json!({"Ref": "AWS::StackName"});
    let expected = BTreeMap::from([
        ("readings.not_stored", vec![json!({"stack": stack, "function": "ingest"})]),
        ("requests.throttled", vec![json!({"stack": stack})]),
        ("requests.refused", vec![json!({"stack": stack})]),
        ("alerting.undelivered_seconds", vec![json!({"stack": stack, "function": "alerting"})]),
        ("rollup.oldest_unfinished_seconds", vec![json!({"stack": stack, "function": "rollup"})]),
        ("Url5xxCount", vec![function("IngestFunction"), function("QueryFunction")]),
        ("5xx", vec![json!({"ApiId": {"Ref": api}})]),
        ("IteratorAge", vec![function("RegistryFunction")]),
        (
            "ApproximateNumberOfMessagesVisible",
            vec![json!({"QueueName": {"Fn::GetAtt": [queue, "QueueName"]}})],
        ),
    ]);
    let mut watched: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for (_, alarm) in all(&resources, "AWS::CloudWatch::Alarm") {
        let alarm = &alarm["Properties"];
        let dimensions = alarm["Dimensions"].as_array().expect("a list");
        let dimensions =
            dimensions.iter().map(|it| (text(&it["Name"]).to_owned(), it["Value"].clone()));
        let own = alarm["Namespace"] == "Roomtide";
        let metric = text(&alarm["MetricName"]);
        assert_eq!(own, metric.contains('.'), "{metric}");
        watched.entry(metric).or_default().push(Value::Object(dimensions.collect()));
    }
    watched.values_mut().for_each(|it| it.sort_by_key(Value::to_string));
    assert_eq!(watched, expected);
}

/// Somebody who is woken follows the description to a section, and finds each alarm there.
#[test]
fn each_alarm_names_its_section_of_the_operations_page() {
    let page = fs::read_to_string(root().join("docs/operations.md")).expect("a page");
    let headings: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .map(|heading| heading.to_lowercase().replace(' ', "-"))
        .collect();
    let resources = template().resources(&[]).expect("resources");
    for (name, alarm) in all(&resources, "AWS::CloudWatch::Alarm") {
        let told = text(&alarm["Properties"]["AlarmDescription"]);
        let (_, section) = told.split_once(" See docs/operations.md#").expect("a section");
        assert!(headings.contains(section), "{name}: {section} of {headings:?}");
        assert!(page.contains(&format!("`{name}`")), "the page does not name {name}");
    }
}

#[test]
fn the_dashboard_is_one_that_is_free() {
    for parameters in CHOICES {
        let resources = template().resources(parameters).expect("resources");
        let (_, dashboard) = only(&resources, "AWS::CloudWatch::Dashboard");
        let body = &dashboard["Properties"]["DashboardBody"]["Fn::Sub"];
        let body: Value = serde_json::from_str(text(&body[0])).expect("a body is JSON");
        let widgets = body["widgets"].as_array().expect("widgets");
        let counted = counted();
        let mut metrics = 0;
        for widget in widgets {
            assert_eq!(widget["properties"]["region"], "${AWS::Region}");
            for metric in widget["properties"]["metrics"].as_array().expect("metrics") {
                metrics += 1;
                if metric[0] == "Roomtide" {
                    let name = text(&metric[1]);
                    assert!(counted.contains(name), "{name}");
                    assert_eq!(
                        (&metric[2], &metric[3]),
                        (&json!("stack"), &json!("${AWS::StackName}"))
                    );
                }
            }
        }
        assert!((10..=FREE_METRICS_OF_A_DASHBOARD).contains(&metrics), "{metrics} metrics");
    }
}

#[test]
fn the_saved_queries_ask_the_functions_logs() {
    let resources = template().resources(&[]).expect("resources");
    let fields = counted();
    let mut queries = 0;
    for (name, query) in all(&resources, "AWS::Logs::QueryDefinition") {
        let query = &query["Properties"];
        let groups = query["LogGroupNames"].as_array().expect("a list");
        assert!(groups.iter().all(|it| resources.contains_key(text(&it["Ref"]))), "{name}");
        assert!(text(&query["Name"]["Fn::Sub"]).starts_with("${AWS::StackName}/"), "{name}");
        let words = text(&query["QueryString"]).split([' ', ',', '(', ')', '\n']);
        for field in words.filter(|it| it.contains('.') && !it.starts_with('@')) {
            assert!(fields.contains(field), "{name}: {field}");
        }
        queries += 1;
    }
    assert_eq!(queries, 4);
}
