//! MQTT in `template.yaml`: which topic reaches which rule, what a thing may do, where failed messages go.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use super::{actions, all, matches_pattern, resources, template, text};
use crate::architecture::root;

const MQTT: [(&str, &str); 1] = [("IotTopic", "roomtide")];
/// Each rule with what it selects of a message and the topics that it takes.
const RULES: [(&str, &str, &str); 3] = [
    ("IotRule", "topic(2) AS device_id", "+"),
    ("IotPayloadRule", "topic() AS topic", "+/+/#"),
    ("IotZigbeeRule", "topic() AS topic", "zigbee2mqtt/+"),
];

#[test]
fn an_mqtt_message_s_device_is_the_topic_s_and_its_payload_is_passed_on_unread() {
    assert_eq!(all(&resources(), "AWS::IoT::TopicRule").count(), 0, "only who asks for it");
    let resources = template().resources(&MQTT).expect("resources");
    let ingest = all(&resources, "AWS::Serverless::Function")
        .find(|(_, function)| function["Properties"]["CodeUri"] == "functions/ingest")
        .map(|(name, _)| name)
        .expect("ingest is deployed");
    // The only members that ingest reads; whatever else the SQL took from the payload could name a device.
    for (name, selected, topics) in RULES {
        let rule = &resources[name]["Properties"]["TopicRulePayload"];
        let sql = text(&rule["Sql"]["Fn::Sub"]);
        let expected = format!(
            "SELECT {selected}, timestamp() AS timestamp, encode(*, 'base64') AS data \
             FROM '${{IotTopic}}/{topics}'"
        );
        assert_eq!(sql, expected);
        assert_eq!(rule["AwsIotSqlVersion"], "2016-03-23");
        let action = &rule["Actions"][0]["Lambda"]["FunctionArn"];
        assert_eq!(action, &json!({"Fn::GetAtt": [ingest, "Arn"]}));
        let permission = &resources[format!("{name}Permission").as_str()]["Properties"];
        assert_eq!(permission["Principal"], "iot.amazonaws.com");
        assert_eq!(permission["FunctionName"], json!({"Ref": ingest}));
        assert_eq!(permission["SourceArn"], json!({"Fn::GetAtt": [name, "Arn"]}));
    }
    assert_eq!(all(&resources, "AWS::IoT::TopicRule").count(), RULES.len());
    let permissions = all(&resources, "AWS::Lambda::Permission");
    let iot = permissions.filter(|(_, it)| it["Properties"]["Principal"] == "iot.amazonaws.com");
    assert_eq!(iot.count(), RULES.len());
    let own = template().source()["Parameters"]["IotTopic"]["AllowedPattern"].clone();
    assert_eq!(own, "[A-Za-z0-9_-]*", "one level, and nothing that would end the SQL's text");
}

// ---- Topics ------------------------------------------------------------------------------------

/// Whether a rule's filter takes a topic, as AWS IoT does it: `+` is one level, and `#` is one or more, which
/// differs from MQTT: "The parent topic is not matched"
/// (<https://docs.aws.amazon.com/iot/latest/developerguide/mqtt.html#mqtt-differences>).
fn takes(filter: &str, topic: &str) -> bool {
    let (filter, topic): (Vec<_>, Vec<_>) =
        (filter.split('/').collect(), topic.split('/').collect());
    let (levels, is_open) = match filter.split_last() {
        Some((&"#", levels)) => (levels, true),
        _ => (filter.as_slice(), false),
    };
    let has_length = if is_open { topic.len() > levels.len() } else { topic.len() == levels.len() };
    has_length && levels.iter().zip(&topic).all(|(level, it)| *level == "+" || level == it)
}

#[test]
fn a_filter_takes_topics_by_the_grammar_of_aws() {
    for (filter, topic, expected) in [
        ("sensor/#", "sensor", false),
        ("sensor/#", "sensor/", true),
        ("sensor/#", "sensor/temperature/room1", true),
        ("sensor/+", "sensor/temperature", true),
        ("sensor/+", "sensor/temperature/room1", false),
        ("sensor/+/room1", "sensor/temperature/room1", true),
        ("sensor/+/room1", "sensor/temperature/room2", false),
    ] {
        assert_eq!(takes(filter, topic), expected, "{filter} {topic}");
    }
}

/// A topic that no rule takes is acknowledged and lost; one that two take is stored twice.
#[test]
fn each_topic_of_the_documents_reaches_one_rule_and_is_permitted() {
    let resources = template().resources(&MQTT).expect("resources");
    let rules = RULES.map(|(name, ..)| {
        let sql = &resources[name]["Properties"]["TopicRulePayload"]["Sql"]["Fn::Sub"];
        let filter = text(sql).split('\'').rev().nth(1).expect("FROM 'filter'");
        (name, filter.replace("${IotTopic}", "roomtide"))
    });
    let documented = documented_topics();
    assert!(documented.len() >= 6, "{documented:?}");
    let mut reached = BTreeSet::new();
    for (topic, policy) in documented.iter().chain(&event_topics()) {
        let taking: Vec<&str> =
            rules.iter().filter(|(_, filter)| takes(filter, topic)).map(|it| it.0).collect();
        let [rule] = taking[..] else { panic!("{topic} is taken by {taking:?}") };
        reached.insert(rule);
        for policy in [policy.as_str(), "MqttBridgePolicy"] {
            assert!(may(policy, "Publish", &format!("topic/{topic}")), "{policy}: {topic}");
        }
    }
    assert_eq!(reached, RULES.map(|(name, ..)| name).into(), "a rule without a topic");
}

/// The topics in the tables of the documents, each with the policy beside it.
fn documented_topics() -> Vec<(String, String)> {
    let text = fs::read_to_string(root().join("docs/connect/mqtt.md")).expect("a page");
    let cells =
        |line: &str| line.split('|').map(|it| it.trim().replace('`', "")).collect::<Vec<_>>();
    let rows = text.lines().filter(|line| line.starts_with('|')).map(cells);
    let rows = rows.filter_map(|row| match &row[..] {
        [.., policy, topic, _] if topic.starts_with("roomtide/") => {
            Some((topic.clone(), policy.clone()))
        }
        _ => None,
    });
    // The topic in the first example is its thing's.
    let example = text.lines().find_map(|line| line.trim().strip_prefix("-t ")?.split_once(' '));
    let example = (example.expect("an example").0.to_owned(), "MqttPolicy".to_owned());
    rows.chain([example]).collect()
}

fn event_topics() -> Vec<(String, String)> {
    let folder = fs::read_dir(root().join("events/ingest")).expect("a folder");
    let files = folder.map(|file| file.expect("a file").path());
    let of_topics = files.filter(|path| {
        path.file_name().is_some_and(|it| it.to_string_lossy().starts_with("topic-"))
    });
    let found: Vec<_> = of_topics
        .map(|path| {
            let event = fs::read_to_string(&path).expect("UTF-8");
            let event: Value = serde_json::from_str(&event).expect("JSON");
            (text(&event["topic"]).to_owned(), "MqttBridgePolicy".to_owned())
        })
        .collect();
    assert!(found.len() > 5, "{found:?}");
    found
}

// ---- Policies ----------------------------------------------------------------------------------

/// What the policy in an output allows: action and place, with `THING` for the name of the thing. A connection with
/// attributes is `Connect LastWill PersistentConnect`.
fn allowed(output: &str) -> BTreeSet<(String, String)> {
    let resources = template().resources(&MQTT).expect("resources");
    let outputs = template().outputs(&MQTT).expect("outputs");
    let policy = text(&outputs[output]["Value"]["Ref"]);
    let account = "arn:${AWS::Partition}:iot:${AWS::Region}:${AWS::AccountId}:";
    let document = &resources[policy]["Properties"]["PolicyDocument"];
    let mut allowed = BTreeSet::new();
    for statement in document["Statement"].as_array().expect("a list") {
        assert_eq!(statement["Effect"], "Allow");
        let attributes =
            &statement["Condition"]["ForAllValues:StringEquals"]["iot:ConnectAttributes"];
        let attributes: String = attributes
            .as_array()
            .into_iter()
            .flatten()
            .map(|it| format!(" {}", text(it)))
            .collect();
        assert_eq!(statement.get("Condition").is_some(), !attributes.is_empty(), "{statement}");
        let resources = match &statement["Resource"] {
            Value::Array(several) => several.clone(),
            one => vec![one.clone()],
        };
        for resource in &resources {
            let resource = text(&resource["Fn::Sub"]).strip_prefix(account);
            let resource = resource.expect("of this account");
            let resource = resource.replace("${!iot:Connection.Thing.ThingName}", "THING");
            let resource = resource.replace("${IotTopic}", "TOPIC").replace("${IotRule}", "RULE");
            let named = actions(statement).map(|it| format!("{it}{attributes}"));
            allowed.extend(named.map(|it| (it, resource.clone())));
        }
    }
    allowed
}

/// Whether the policy in an output allows an action of IoT on a place. The thing is called as the device.
fn may(output: &str, action: &str, place: &str) -> bool {
    let place = place.replace("DEVICE", "THING").replace("boiler", "THING");
    allowed(output).into_iter().any(|(allowed, pattern)| {
        let pattern = pattern.replace("TOPIC", "roomtide");
        allowed == format!("iot:{action}") && matches_pattern(&place, &pattern)
    })
}

/// So that a device cannot take another's topic either. Only a bridge publishes for others.
#[test]
fn a_thing_may_publish_to_its_own_topics_only() {
    let set = |pairs: &[(&str, &str)]| {
        let mut all = BTreeSet::new();
        for (names, place) in pairs {
            for action in names.split(", ") {
                all.insert((format!("iot:{action}"), (*place).to_owned()));
            }
        }
        all
    };
    assert_eq!(
        allowed("MqttPolicy"),
        set(&[
            ("Connect, Connect LastWill PersistentConnect", "client/THING"),
            ("Publish", "topic/$aws/rules/RULE/TOPIC/THING"),
            ("Publish, RetainPublish", "topic/TOPIC/THING"),
            ("Publish, RetainPublish, Receive", "topic/TOPIC/tasmota/THING/*"),
            ("Publish, RetainPublish, Receive", "topic/TOPIC/shelly/THING/*"),
            ("Subscribe", "topicfilter/TOPIC/tasmota/THING/*"),
            ("Subscribe", "topicfilter/TOPIC/shelly/THING/*"),
        ])
    );
    assert_eq!(
        allowed("MqttBridgePolicy"),
        set(&[
            ("Connect, Connect LastWill PersistentConnect", "client/THING"),
            ("Publish, RetainPublish, Receive", "topic/TOPIC/*"),
            ("Subscribe", "topicfilter/TOPIC/*"),
        ])
    );
}

/// IoT Core ends the connection of a device whose will or retained message it may not publish
/// (<https://docs.aws.amazon.com/iot/latest/developerguide/retained-message-policy-examples.html>).
#[test]
fn what_devices_do_first_is_permitted() {
    let first: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("MqttPolicy", &["tasmota/THING/tele/LWT", "shelly/THING/online"][..]),
        (
            "MqttBridgePolicy",
            &["zigbee2mqtt/bridge/state", "zigbee2mqtt/bridge/info", "zigbee2mqtt/bridge/devices"],
        ),
    ]);
    for (policy, topics) in first {
        assert!(may(policy, "Connect LastWill PersistentConnect", "client/THING"), "{policy}");
        for topic in topics {
            let place = format!("topic/roomtide/{topic}");
            assert!(
                may(policy, "Publish", &place) && may(policy, "RetainPublish", &place),
                "{place}"
            );
        }
    }
}
