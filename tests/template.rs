//! `template.yaml` against the code: names, routes, filters, environments, permissions. Deploys nothing;
//! whether the template is a sound one is for `sam validate --lint`.

mod front;
mod mqtt;
mod take_over;
mod watching;

use std::collections::{BTreeMap, BTreeSet};

use dynamodb::DynamoStore;
use local::table_definition::TableDefinition;
use local::template::Template;
use serde_json::{Map, Value, json};
use table::layout::{
    ATTRIBUTE_INDEX, CONDITIONS_ATTRIBUTES, CONDITIONS_INDEX, Index, Layout, ROOM_INDEX,
};
use table::{Action, Permission, Target, keys};

use crate::architecture::rust_files;
use crate::generated::assert_is;
use crate::source::Source;

/// The packages that are deployed.
const PACKAGES: [&str; 5] = ["alerting", "ingest", "query", "registry", "rollup"];
/// Those of them that consume the table's stream.
const CONSUMERS: [&str; 2] = ["registry", "rollup"];

/// What a function asks of the table, by the ports of its store.
fn permissions(package: &str) -> BTreeSet<Permission> {
    let ports = match package {
        "alerting" => <DynamoStore as alerting::Store>::PERMISSIONS,
        "ingest" => <DynamoStore as ingest::Store>::PERMISSIONS,
        "query" => <DynamoStore as query::Store>::PERMISSIONS,
        "registry" => <DynamoStore as registry::Store>::PERMISSIONS,
        "rollup" => <DynamoStore as rollup::Store>::PERMISSIONS,
        other => panic!("no function {other}"),
    };
    ports.iter().copied().flatten().copied().collect()
}

// ---- The table ---------------------------------------------------------------------------------

#[test]
fn the_table_has_the_keys_of_the_code() {
    let table = TableDefinition::own().expect("the template describes a table");
    let key = |parts: &[(&str, &str)]| -> Vec<(String, String)> {
        parts.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned())).collect()
    };
    let of = |schema: &[local::table_definition::KeyElement]| -> Vec<(String, String)> {
        schema.iter().map(|part| (part.attribute_name.clone(), part.key_type.clone())).collect()
    };
    assert_eq!(of(&table.key_schema), key(&[(keys::PK, "HASH"), (keys::SK, "RANGE")]));
    let types: BTreeMap<_, _> = table
        .attribute_definitions
        .iter()
        .map(|attribute| (attribute.attribute_name.as_str(), attribute.attribute_type.as_str()))
        .collect();
    assert_eq!(types, BTreeMap::from([(keys::PK, "S"), (keys::SK, "S"), (keys::ROOM, "S")]));

    assert_eq!(table.layout(), Layout::default());
    let coded: Vec<&Index> = table.layout().indexes().collect();
    assert_eq!(table.global_secondary_indexes.len(), coded.len());
    for (deployed, index) in table.global_secondary_indexes.iter().zip(coded) {
        assert_eq!(deployed.index_name, index.name);
        let expected = key(&[(index.partition_key, "HASH"), (index.sort_key, "RANGE")]);
        assert_eq!(of(&deployed.key_schema), expected);
        assert_eq!(deployed.projection.projection_type, index.projection);
    }

    assert_eq!(table.stream_specification.stream_view_type, "NEW_AND_OLD_IMAGES");
    assert_eq!(table.time_to_live_specification.attribute_name, keys::TTL);
    assert!(table.time_to_live_specification.enabled);
}

#[test]
fn the_index_of_attributes_is_there_for_whom_it_is_switched_on() {
    let on = [("AttributeIndex", "on")];
    let table = TableDefinition::from_template(template(), &on).expect("a table");
    assert_eq!(table.layout(), Layout { attribute_index: true, ..Layout::default() });
    let deployed = table.global_secondary_indexes.last().expect("an index");
    assert_eq!(deployed.index_name, ATTRIBUTE_INDEX.name);
    let parts: Vec<_> = deployed.key_schema.iter().map(|it| it.attribute_name.as_str()).collect();
    assert_eq!(parts, [ATTRIBUTE_INDEX.partition_key, ATTRIBUTE_INDEX.sort_key]);
    assert_eq!(deployed.projection.projection_type, ATTRIBUTE_INDEX.projection);
    let resources = template().resources(&on).expect("resources");
    assert_eq!(environment(&resources, "query")["ATTRIBUTE_INDEX"], "on");
}

#[test]
fn the_table_costs_by_use_up_to_a_ceiling_or_stays_in_the_free_tier() {
    let on_demand = template().resources(&[("Billing", "on-demand")]).expect("resources");
    let (_, table) = only(&on_demand, "AWS::DynamoDB::Table");
    let table = &table["Properties"];
    assert_eq!(table["BillingMode"], "PAY_PER_REQUEST");
    for throughput in [table, &table["GlobalSecondaryIndexes"][0]] {
        let ceiling = &throughput["OnDemandThroughput"];
        assert!(ceiling["MaxWriteRequestUnits"].is_string(), "{throughput}");
        assert!(ceiling["MaxReadRequestUnits"].is_string(), "{throughput}");
        assert_eq!(throughput.get("ProvisionedThroughput"), None);
    }

    let provisioned = resources();
    let (_, table) = only(&provisioned, "AWS::DynamoDB::Table");
    assert_eq!(table["Properties"]["BillingMode"], "PROVISIONED", "what a new stack has");
}

/// The free units are an account's. No choice of an index changes those of the table.
#[test]
fn every_choice_of_indexes_fits_in_the_free_units() {
    let mut used = BTreeSet::new();
    for (room, conditions, attributes) in [
        ("on", "off", "off"),
        ("on", "on", "off"),
        ("on", "off", "on"),
        ("on", "on", "on"),
        ("off", "off", "off"),
        ("off", "on", "on"),
    ] {
        let chosen =
            [("RoomIndex", room), ("ConditionsIndex", conditions), ("AttributeIndex", attributes)];
        let resources = template().resources(&chosen).expect("resources");
        let (_, table) = only(&resources, "AWS::DynamoDB::Table");
        let table = &table["Properties"];
        let indexes = table["GlobalSecondaryIndexes"].as_array().expect("a list");
        let all: Vec<&Value> = indexes.iter().chain([table]).collect();
        assert!(all.iter().all(|it| it.get("OnDemandThroughput").is_none()), "{table}");
        for unit in ["ReadCapacityUnits", "WriteCapacityUnits"] {
            let sum: u64 = all.iter().map(|it| number(&it["ProvisionedThroughput"][unit])).sum();
            assert!((12..=25).contains(&sum), "{chosen:?}: {sum} {unit}");
            used.insert(sum);
        }
        // DynamoDB takes no change of units and of an index in one request:
        // https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateTable.html
        let own = &table["ProvisionedThroughput"];
        assert_eq!(number(&own["WriteCapacityUnits"]), 12, "{chosen:?}");
        assert_eq!(number(&own["ReadCapacityUnits"]), 12, "{chosen:?}");
        let environment = environment(&resources, "rollup");
        // The index by room has 11, and bulk work must leave room in both.
        let known = if room == "on" { "11" } else { "12" };
        assert_eq!(environment["MAX_WRITE_UNITS"], known);
        assert_eq!(environment["MAX_READ_UNITS"], known);
    }
    assert!(used.contains(&25), "{used:?}");
}

#[test]
fn without_the_index_nothing_of_it_is_left() {
    let off = [("RoomIndex", "off")];
    let table = TableDefinition::from_template(template(), &off).expect("a table");
    assert!(table.global_secondary_indexes.is_empty());
    assert_eq!(table.layout(), Layout { room_index: false, ..Layout::default() });
    let names: Vec<_> =
        table.attribute_definitions.iter().map(|it| it.attribute_name.as_str()).collect();
    assert_eq!(names, [keys::PK, keys::SK]);
    let resources = template().resources(&off).expect("resources");
    assert_eq!(environment(&resources, "query")["ROOM_INDEX"], "off");
}

#[test]
fn the_index_by_conditions_is_as_the_code_has_it_where_it_is_on() {
    let on = [("ConditionsIndex", "on")];
    let table = TableDefinition::from_template(template(), &on).expect("a table");
    assert_eq!(table.layout(), Layout { conditions_index: true, ..Layout::default() });
    let deployed = table.global_secondary_indexes.iter();
    let deployed = deployed.filter(|it| it.index_name == CONDITIONS_INDEX.name);
    let [index] = deployed.collect::<Vec<_>>()[..] else { panic!("one index") };
    let key: Vec<_> = index.key_schema.iter().map(|part| part.attribute_name.as_str()).collect();
    assert_eq!(key, [CONDITIONS_INDEX.partition_key, CONDITIONS_INDEX.sort_key]);
    assert_eq!(index.projection.projection_type, CONDITIONS_INDEX.projection);
    assert_eq!(index.projection.non_key_attributes, CONDITIONS_ATTRIBUTES);
    let kind = |name: &str| {
        let mut all = table.attribute_definitions.iter();
        all.find(|it| it.attribute_name == name).map(|it| it.attribute_type.as_str())
    };
    assert_eq!((kind(key[0]), kind(key[1])), (Some("S"), Some("B")));
    let resources = template().resources(&on).expect("resources");
    for package in ["query", "rollup"] {
        assert_eq!(environment(&resources, package)["CONDITIONS_INDEX"], "on");
    }
}

#[test]
fn the_readings_outlive_the_stack_and_mistakes() {
    let resources = resources();
    let (_, table) = only(&resources, "AWS::DynamoDB::Table");
    assert_eq!(
        (&table["DeletionPolicy"], &table["UpdateReplacePolicy"]),
        (&json!("Retain"), &json!("Retain"))
    );
    assert_eq!(table["Properties"]["DeletionProtectionEnabled"], true);
    let recovery = &table["Properties"]["PointInTimeRecoverySpecification"];
    assert_eq!(recovery["PointInTimeRecoveryEnabled"], true);
    let off = template().resources(&[("PointInTimeRecovery", "off")]).expect("resources");
    let (_, off) = only(&off, "AWS::DynamoDB::Table");
    let recovery = &off["Properties"]["PointInTimeRecoverySpecification"];
    assert_eq!(recovery["PointInTimeRecoveryEnabled"], false);
    assert_eq!(
        table["Properties"].get("TableName"),
        None,
        "a fixed name cannot be kept and made anew"
    );
}

// ---- The functions -----------------------------------------------------------------------------

#[test]
fn every_function_is_a_package_built_for_lambda() {
    let source = template().source().clone();
    assert_eq!(source["Parameters"]["Architecture"]["Default"], "arm64");
    let globals = &source["Globals"]["Function"];
    assert_eq!(globals["Architectures"], json!([{"Ref": "Architecture"}]));
    assert_eq!(globals["Runtime"], "provided.al2023");
    let resources = resources();
    let deployed = all(&resources, "AWS::Serverless::Function").count();
    assert_eq!(deployed, PACKAGES.len());
    let files = rust_files();
    for package in PACKAGES {
        // A main that returns at once builds, deploys and answers nothing.
        let main = Source::shipped(&files[&format!("functions/{package}/src/main.rs")]).code();
        assert!(main.contains("lambda_runtime::run("), "{package} does not ask Lambda for events");
        let resource = function_resource(&resources, package);
        assert_eq!(resource["Metadata"]["BuildMethod"], "rust-cargolambda", "{package}");
    }
}

#[test]
fn the_environment_is_what_the_code_reads() {
    let resources = resources();
    let mut set = BTreeSet::new();
    for package in PACKAGES {
        let variables = environment(&resources, package);
        assert!(variables.contains_key("TABLE_NAME"), "{package}");
        // Lambda takes texts only, and a choice between numbers is one.
        let is_number = |it: &&Value| it.is_number();
        assert_eq!(variables.values().find(is_number), None, "{package}");
        // The C library reads its own.
        set.extend(variables.keys().filter(|it| !it.starts_with("MALLOC_")).cloned());
    }
    // What begins with AWS_ is set by Lambda, or by whoever uses an emulator.
    let door = Source::shipped(include_str!("../shared/runtime/src/config.rs"));
    let read: BTreeSet<_> = door
        .literals()
        .into_iter()
        .map(|literal| literal.text)
        .filter(|text| text.len() > 1 && text.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
        .filter(|name| !name.starts_with("AWS_"))
        .collect();
    assert_eq!(set, read);
    let chosen = template().resources(&[("LogEvery", "50")]).expect("resources");
    let variables = environment(&chosen, "query");
    assert_eq!(variables["STACK_NAME"], json!({"Ref": "AWS::StackName"}));
    assert_eq!(variables["LOG_EVERY"], "50");
}

#[test]
fn every_function_logs_to_its_own_group_for_a_while() {
    let resources = resources();
    let mut groups = BTreeSet::new();
    for package in PACKAGES {
        let group = text(&function(&resources, package)["LoggingConfig"]["LogGroup"]["Ref"]);
        assert!(groups.insert(group), "{group} is shared");
        let logs: Vec<_> =
            statements(&resources, package).filter(|it| service(it) == "logs").collect();
        let [logs] = logs.as_slice() else { panic!("{package}: {logs:?}") };
        assert_eq!(logs["Resource"], json!({"Fn::GetAtt": [group, "Arn"]}));
    }
    let (_, stage) = only(&resources, "AWS::ApiGatewayV2::Stage");
    groups
        .insert(text(&stage["Properties"]["AccessLogSettings"]["DestinationArn"]["Fn::GetAtt"][0]));
    let found: BTreeSet<_> = all(&resources, "AWS::Logs::LogGroup").map(|(name, _)| name).collect();
    assert_eq!(found, groups);
    for group in groups {
        let days = number(&resources[group]["Properties"]["RetentionInDays"]);
        assert!((1..=365).contains(&days), "{group}: {days} days");
    }
}

#[test]
fn memory_and_concurrency_are_the_owner_s_to_choose() {
    let globals = template().source()["Globals"]["Function"].clone();
    assert_eq!(globals["MemorySize"], json!({"Ref": "MemorySize"}));
    // Its time is CPU, whose share grows with the memory.
    assert_eq!(function(&resources(), "query")["MemorySize"], "1024");
    let chosen = template().resources(&[("ReservedConcurrency", "7")]).expect("resources");
    for package in ["ingest", "query"] {
        let reserved = "ReservedConcurrentExecutions";
        assert_eq!(function(&chosen, package)[reserved], "7");
        // A new account has 10, and all must stay unreserved.
        assert_eq!(function(&resources(), package).get(reserved), None);
    }
}

// ---- Permissions -------------------------------------------------------------------------------

#[test]
fn every_role_is_one_function_s_and_has_no_wildcard() {
    let resources = resources();
    let mut roles = BTreeSet::new();
    for package in PACKAGES {
        let role = role(&resources, package);
        assert!(roles.insert(role), "{role} is shared");
        assert_eq!(resources[role]["Properties"].get("ManagedPolicyArns"), None, "{role}");
        assert_eq!(function(&resources, package).get("Policies"), None, "{package}");
        for statement in statements(&resources, package) {
            // It names streams, and takes no resource.
            if statement["Action"] == json!(["dynamodb:ListStreams"]) {
                continue;
            }
            // Prefixes of partitions say to which items a role may do something, not what it may do.
            let prefixes = [
                "DEVICE#",
                keys::ROLLUP_PREFIX,
                keys::STAYS_OF_PREFIX,
                keys::STAYS_IN_PREFIX,
                keys::SEEN_IN_PREFIX,
                keys::ATTRIBUTE_PREFIX,
                keys::ALERT_PREFIX,
            ];
            let text = prefixes.iter().fold(statement.to_string(), |text, prefix| {
                text.replace(&format!("\"{prefix}*\""), "")
            });
            // Readings are in the partitions without a "#".
            let text = text.replace(r#""*#*""#, "");
            assert!(!text.contains('*'), "{package}: {statement}");
            assert!(!statement.to_string().contains("Scan"), "{package}: {statement}");
        }
    }
    assert_eq!(all(&resources, "AWS::IAM::Role").count(), roles.len());
}

#[test]
fn every_role_allows_what_its_function_asks_of_the_store_and_no_more() {
    let resources = resources();
    let (table, _) = only(&resources, "AWS::DynamoDB::Table");
    let whole = json!({"Fn::GetAtt": [table, "Arn"]});
    let index =
        |it: &Index| json!({"Fn::Sub": format!("${{{table}.Arn}}/index/{}", it.name)}).to_string();
    let stream = json!({"Fn::GetAtt": [table, "StreamArn"]});
    for package in PACKAGES {
        let mut allowed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for statement in statements(&resources, package)
            .filter(|it| service(it) == "dynamodb" && it["Effect"] == "Allow")
        {
            let resource = statement["Resource"].to_string();
            allowed.entry(resource).or_default().extend(actions(&statement).map(str::to_owned));
        }
        let set = |names: &[&str]| names.iter().map(|name| format!("dynamodb:{name}")).collect();
        let mut expected: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (action, place) in permissions(package) {
            let resource = match place {
                Target::RoomIndex => index(&ROOM_INDEX),
                Target::AttributeIndex => index(&ATTRIBUTE_INDEX),
                Target::ConditionsIndex => index(&CONDITIONS_INDEX),
                _ => whole.to_string(),
            };
            let actions = expected.entry(resource).or_default();
            actions.insert(format!("dynamodb:{action:?}"));
        }
        if CONSUMERS.contains(&package) {
            // Lambda refuses a mapping whose role lacks one of the four:
            // https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/iam-policy-example-lamda-process-dynamodb-streams.html
            let reads = ["DescribeStream", "GetRecords", "GetShardIterator"];
            expected.insert(stream.to_string(), set(&reads));
            expected.insert(json!("*").to_string(), set(&["ListStreams"]));
        }
        assert_eq!(allowed, expected, "{package}");
    }
}

#[test]
fn every_role_reaches_the_partitions_that_its_function_needs_and_no_other() {
    let resources = resources();
    let (table, _) = only(&resources, "AWS::DynamoDB::Table");
    let whole = json!({"Fn::GetAtt": [table, "Arn"]});
    // Two, because a batch or a transaction may name several.
    let pairs: Vec<_> = PARTITIONS
        .iter()
        .flat_map(|one| PARTITIONS.iter().map(move |other| (one, other)))
        .collect();
    for package in PACKAGES {
        let needed = permissions(package);
        let statements = statements_on(&resources, package, &whole);
        for action in actions_of_all() {
            for ((one, pk), (other, other_pk)) in &pairs {
                let are_needed =
                    needed.contains(&(action, *one)) && needed.contains(&(action, *other));
                // No request of these names readings and other items at once.
                let is_mixed = pk.contains('#') != other_pk.contains('#');
                let is_split = !READS.contains(&action)
                    && (package == "ingest" || action == Action::DeleteItem);
                assert_eq!(
                    may(&statements, action, &[pk, other_pk]),
                    are_needed && !(is_mixed && is_split),
                    "{package}: {action:?} on {one:?} and {other:?}"
                );
            }
        }
    }
}

/// A role that names what it may not write would let a function write each kind of item that comes later.
#[test]
fn no_role_may_write_a_new_kind_of_item() {
    let resources = resources();
    let (table, _) = only(&resources, "AWS::DynamoDB::Table");
    let whole = json!({"Fn::GetAtt": [table, "Arn"]});
    for package in PACKAGES {
        let statements = statements_on(&resources, package, &whole);
        for action in actions_of_all().into_iter().filter(|action| !READS.contains(action)) {
            for partition in ["NEW#", "NEW#some-device"] {
                assert!(!may(&statements, action, &[partition]), "{package}: {action:?}");
            }
        }
    }
}

fn statements_on(resources: &Map<String, Value>, package: &str, resource: &Value) -> Vec<Value> {
    let of_resource = |statement: &Value| statement["Resource"] == *resource;
    statements(resources, package).filter(of_resource).collect()
}

/// Every action that a function needs.
fn actions_of_all() -> BTreeSet<Action> {
    PACKAGES.iter().flat_map(|package| permissions(package)).map(|(action, _)| action).collect()
}

/// The actions that change nothing.
const READS: [Action; 3] = [Action::GetItem, Action::BatchGetItem, Action::Query];

/// The places of the table itself, each with the key of a partition.
const PARTITIONS: [(Target, &str); 22] = [
    (Target::Attributes, "ATTR#some-device"),
    (Target::Readings, "some-device"),
    (Target::Devices, keys::DEVICES),
    (Target::Devices, "DEVICE#3"),
    (Target::Rooms, keys::ROOMS),
    (Target::Tokens, keys::TOKENS),
    (Target::Rollups, "ROLLUP#some-device"),
    (Target::RollupState, keys::STATE),
    (Target::LateChanges, keys::LATE),
    (Target::ConditionsSchema, keys::CONDITIONS),
    (Target::Stays, "STAYS_OF#some-device"),
    (Target::Stays, "STAYS_IN#some-room"),
    (Target::SeenIn, "SEEN_IN#some-room"),
    (Target::Annotations, keys::ANNOTATIONS),
    (Target::AlertRules, keys::ALERT_RULES),
    (Target::AlertChannels, keys::ALERT_CHANNELS),
    (Target::AlertSecrets, keys::ALERT_SECRETS),
    (Target::AlertStates, keys::ALERT_STATES),
    (Target::AlertTold, keys::ALERT_TOLD),
    (Target::AlertWaiting, keys::ALERT_WAITING),
    (Target::AlertRechecks, keys::ALERT_RECHECKS),
    (Target::AlertRunning, keys::ALERT_RUNNING),
];

/// `tests/deploy/policies.py` has these calls evaluated by a simulator of IAM that is not ours.
#[test]
fn what_each_function_asks_of_the_table_is_written_for_the_simulator() {
    let needed = |package: &&str| -> BTreeSet<String> {
        permissions(package)
            .iter()
            .map(|(action, target)| format!("{action:?} {target:?}"))
            .collect()
    };
    let functions: BTreeMap<_, _> =
        PACKAGES.iter().map(|package| (*package, needed(package))).collect();
    let mut partitions: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (target, key) in PARTITIONS {
        partitions.entry(format!("{target:?}")).or_default().push(key);
    }
    let indexes = BTreeMap::from([
        ("AttributeIndex", ATTRIBUTE_INDEX.name),
        ("ConditionsIndex", CONDITIONS_INDEX.name),
        ("RoomIndex", ROOM_INDEX.name),
    ]);

    let calls = json!({"functions": functions, "indexes": indexes, "partitions": partitions});
    let expected = format!("{calls:#}\n");
    assert_is("tests/deploy/calls.json", &expected);
}

/// A secret is what other services trust: whoever sends reads it, and nobody else.
#[test]
fn only_who_sends_reads_what_is_secret_of_a_channel() {
    let readers = PACKAGES.into_iter().filter(|package| {
        permissions(package).iter().any(|(action, target)| {
            let is_read = [Action::GetItem, Action::Query, Action::BatchGetItem].contains(action);
            is_read && *target == Target::AlertSecrets
        })
    });
    assert_eq!(readers.collect::<Vec<_>>(), ["alerting"]);
}

#[test]
fn messages_are_sent_every_minute_and_when_registry_asks() {
    let resources = resources();
    let events: Vec<_> = events(&resources, "alerting").collect();
    let [event] = events[..] else { panic!("one event: {events:?}") };
    assert_eq!(event["Type"], "Schedule");
    assert_eq!(event["Properties"]["Schedule"], "rate(1 minute)");
    let function = function(&resources, "alerting");
    assert!(number(&function["Timeout"]) < 60, "no two minutes at once");
    assert_eq!(function["EventInvokeConfig"]["MaximumRetryAttempts"], 0);
    let name = &environment(&resources, "registry")["ALERTING_FUNCTION"];
    let name = text(&name["Ref"]);
    assert_eq!(resources[name]["Properties"]["CodeUri"], "functions/alerting");
    let own: Vec<_> =
        statements(&resources, "registry").filter(|it| service(it) == "lambda").collect();
    let [hint] = &own[..] else { panic!("{own:?}") };
    assert_eq!(hint["Action"], json!(["lambda:InvokeFunction"]));
    assert_eq!(hint["Resource"], json!({"Fn::GetAtt": [name, "Arn"]}));
}

#[test]
fn alerts_go_to_an_address_of_their_own() {
    let topic = |parameters: &[(&str, &str)]| {
        let resources = template().resources(parameters).expect("resources");
        let topic = resources.get("AlertTopic").cloned();
        let publishes: Vec<_> =
            statements(&resources, "alerting").filter(|it| service(it) == "sns").collect();
        (topic, publishes)
    };
    let (none, publishes) = topic(&[]);
    assert_eq!((none, publishes.len()), (None, 0));
    let (topic, publishes) = topic(&[("AlertEmail", "a@example.org")]);
    let subscription = json!([{"Protocol": "email", "Endpoint": "a@example.org"}]);
    assert_eq!(topic.expect("a topic")["Properties"]["Subscription"], subscription);
    let [publish] = &publishes[..] else { panic!("{publishes:?}") };
    assert_eq!(publish["Action"], json!(["sns:Publish"]));
    assert_eq!(publish["Resource"], json!({"Ref": "AlertTopic"}));

    let known = |parameters: &[(&str, &str)]| {
        let resources = template().resources(parameters).expect("resources");
        environment(&resources, "query")["ALERT_TOPIC"].clone()
    };
    assert_eq!(known(&[("AlertEmail", "a@example.org")]), json!({"Ref": "AlertTopic"}));
    assert_eq!(known(&[]), "", "query refuses every topic then");
}

/// Whether statements about one resource permit an action on the partitions that a request names.
fn may(statements: &[Value], action: Action, partitions: &[&str]) -> bool {
    let action = format!("dynamodb:{action:?}");
    let concerned = |effect: &str| {
        statements.iter().any(|it| {
            it["Effect"] == effect
                && actions(it).any(|named| named == action)
                && applies(&it["Condition"], partitions)
        })
    };
    concerned("Allow") && !concerned("Deny")
}

/// Whether a condition on `dynamodb:LeadingKeys` holds of a request that names these partitions.
fn applies(condition: &Value, partitions: &[&str]) -> bool {
    condition.as_object().into_iter().flatten().all(|(operator, keys)| {
        let expected = &keys["dynamodb:LeadingKeys"];
        let equals = |it: &&str| {
            expected.as_array().is_some_and(|all| all.iter().any(|expected| expected == it))
        };
        let is_like = |it: &&str| {
            let all = expected.as_array().expect("a list of patterns");
            all.iter().map(text).any(|pattern| matches_pattern(it, pattern))
        };
        match operator.as_str() {
            "ForAnyValue:StringEquals" => partitions.iter().any(equals),
            "ForAllValues:StringEquals" => partitions.iter().all(equals),
            "ForAnyValue:StringLike" => partitions.iter().any(is_like),
            "ForAllValues:StringLike" => partitions.iter().all(is_like),
            "ForAllValues:StringNotLike" => !partitions.iter().any(is_like),
            "Null" => (expected == "true") == partitions.is_empty(),
            other => panic!("a condition that this test does not know: {other}"),
        }
    })
}

/// Whether a text is like a pattern, in which `*` stands for any text.
fn matches_pattern(text: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => text == pattern,
        Some((before, behind)) => text.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).any(|skipped| matches_pattern(&rest[skipped..], behind))
        }),
    }
}

/// `ForAllValues` holds of nothing: a request whose keys IAM does not know would be allowed.
#[test]
fn what_is_allowed_by_partition_is_not_allowed_without_one() {
    let resources = resources();
    for package in PACKAGES {
        for statement in statements(&resources, package) {
            let condition = statement["Condition"].as_object().into_iter().flatten();
            if condition.map(|(operator, _)| operator).any(|it| it.starts_with("ForAllValues:")) {
                assert!(!applies(&statement["Condition"], &[]), "{package}: {statement}");
            }
        }
    }
}

// ---- The stream --------------------------------------------------------------------------------

#[test]
fn each_consumer_follows_readings_only() {
    let resources = resources();
    let (table, _) = only(&resources, "AWS::DynamoDB::Table");
    let readings = json!({"Keys": {keys::SK: {"S": [{"prefix": keys::READING_PREFIX}]}}});
    for (package, expected) in [
        ("registry", json!({"eventName": ["INSERT", "MODIFY"], "dynamodb": readings})),
        ("rollup", json!({"dynamodb": readings})),
    ] {
        let mapping = mapping(&resources, package);
        assert_eq!(mapping["Stream"], json!({"Fn::GetAtt": [table, "StreamArn"]}));
        let filters = mapping["FilterCriteria"]["Filters"].as_array().cloned().unwrap_or_default();
        let [filter] = filters.as_slice() else { panic!("one filter: {filters:?}") };
        let pattern: Value =
            serde_json::from_str(text(&filter["Pattern"])).expect("a pattern is JSON");
        assert_eq!(pattern, expected, "{package}");
    }
}

#[test]
fn a_poison_record_blocks_no_shard_and_is_not_lost_in_silence() {
    let resources = resources();
    let queue = dead_letter_queue(&resources);
    let arn = json!({"Fn::GetAtt": [queue, "Arn"]});
    for package in CONSUMERS {
        let mapping = mapping(&resources, package);
        assert_eq!(mapping["StartingPosition"], "TRIM_HORIZON");
        assert_eq!(mapping["BisectBatchOnFunctionError"], true);
        assert_eq!(mapping["FunctionResponseTypes"], json!(["ReportBatchItemFailures"]));
        // The functions put aside what can never be applied; whatever else fails may go on in some hours.
        let retries = number(&mapping["MaximumRetryAttempts"]);
        let age = number(&mapping["MaximumRecordAgeInSeconds"]);
        assert_eq!((retries, age), (1_000, 86_400));
        if package == "registry" {
            assert_eq!(number(&mapping["BatchSize"]), 100);
            // 259,200 invocations a month of the million that are free.
            assert_eq!(mapping["MaximumBatchingWindowInSeconds"], "10");
        } else {
            assert_eq!(number(&mapping["BatchSize"]), 500);
            assert_eq!(mapping["MaximumBatchingWindowInSeconds"], "60");
        }
        assert_eq!(mapping["DestinationConfig"]["OnFailure"]["Destination"], arn);
        assert!(queues_of(&resources, package).contains(&arn), "{package}");
        let variable = &environment(&resources, package)["DEAD_LETTER_QUEUE_URL"];
        assert_eq!(variable, &json!({"Ref": queue}), "what is no reading goes there too");
    }
    assert_eq!(sends(&resources, "registry"), arn);
}

#[test]
fn the_rollup_function_is_invoked_every_minute_and_by_its_own_queue() {
    let resources = resources();
    let event = |kind: &str| {
        let mut found = events(&resources, "rollup").filter(|event| event["Type"] == kind);
        let event = found.next().unwrap_or_else(|| panic!("no {kind}"));
        assert!(found.next().is_none(), "one {kind}");
        &event["Properties"]
    };
    assert_eq!(event("Schedule")["Schedule"], "rate(1 minute)");

    let url = &environment(&resources, "rollup")["ROLLUP_QUEUE_URL"];
    let name = text(&url["Ref"]);
    let dead_letters = dead_letter_queue(&resources);
    assert_ne!(name, dead_letters);
    let queued = event("SQS");
    assert_eq!(queued["Queue"], json!({"Fn::GetAtt": [name, "Arn"]}));
    assert_eq!(queued["FunctionResponseTypes"], json!(["ReportBatchItemFailures"]));
    assert!((1..=10).contains(&number(&queued["BatchSize"])));
    let queue = &resources[name]["Properties"];
    let timeout = number(&function(&resources, "rollup")["Timeout"]);
    assert_eq!(number(&queue["VisibilityTimeout"]), 6 * timeout);
    let redrive = json!({
        "deadLetterTargetArn": {"Fn::GetAtt": [dead_letters, "Arn"]}, "maxReceiveCount": 8,
    });
    assert_eq!(queue["RedrivePolicy"], redrive);

    let own = statements(&resources, "rollup").filter(|it| service(it) == "sqs");
    let own: Vec<_> = own.filter(|it| it["Resource"] == queued["Queue"]).collect();
    let needed = ["DeleteMessage", "GetQueueAttributes", "ReceiveMessage", "SendMessage"];
    let needed = needed.map(|action| format!("sqs:{action}"));
    let [statement] = own.as_slice() else { panic!("{own:?}") };
    assert_eq!(actions(statement).collect::<Vec<_>>(), needed);
}

#[test]
fn the_functions_know_the_ceilings_of_the_table_and_of_its_index() {
    let ceilings = |parameters: &[(&str, &str)]| {
        let resources = template().resources(parameters).expect("resources");
        let of = |package| {
            let environment = environment(&resources, package);
            ["MAX_READ_UNITS", "MAX_WRITE_UNITS"].map(|name| environment[name].clone())
        };
        assert!(PACKAGES.iter().all(|package| of(package) == of("rollup")));
        of("rollup")
    };
    let chosen = [("Billing", "on-demand"), ("MaxReadUnits", "40"), ("MaxWriteUnits", "30")];
    assert_eq!(ceilings(&chosen), [json!("40"), json!("30")]);
    assert_eq!(ceilings(&[]), [json!("11"), json!("11")]);
    assert_eq!(ceilings(&[("RoomIndex", "off")]), [json!("12"), json!("12")]);
}

/// CloudFormation's rules compare for equality only; `config.rs` compares the numbers.
#[test]
fn nothing_is_kept_for_ever_whose_rollups_are_not() {
    let rules = template().source()["Rules"].clone();
    let for_ever = |parameter: &str| json!({"Fn::Equals": [{"Ref": parameter}, 0]});
    for (rule, finer, coarser) in [
        ("QuartersOutliveReadings", "RetentionDays", "QuarterRetentionDays"),
        ("DaysOutliveQuarters", "QuarterRetentionDays", "DayRetentionDays"),
    ] {
        let why = format!("{finer} is 0 (for ever), so {coarser} must be 0 too.");
        let assertion = json!({"Assert": for_ever(coarser), "AssertDescription": why});
        let expected = json!({"RuleCondition": for_ever(finer), "Assertions": [assertion]});
        assert_eq!(rules[rule], expected, "{rule}");
    }
}

/// The queue that a function may send to, and nothing else of it.
fn sends(resources: &Map<String, Value>, package: &str) -> Value {
    let sends: Vec<_> = statements(resources, package).filter(|it| service(it) == "sqs").collect();
    let [send] = sends.as_slice() else { panic!("{sends:?}") };
    assert_eq!(send["Action"], json!(["sqs:SendMessage"]));
    send["Resource"].clone()
}

/// The queues that a function may send to.
fn queues_of(resources: &Map<String, Value>, package: &str) -> Vec<Value> {
    let statements = statements(resources, package);
    let sends = statements.filter(|it| actions(it).any(|action| action == "sqs:SendMessage"));
    sends.map(|it| it["Resource"].clone()).collect()
}

// ---- Reading the template ----------------------------------------------------------------------

fn template() -> &'static Template {
    Template::own().expect("template.yaml can be read")
}

/// The resources as deployed with the defaults.
fn resources() -> Map<String, Value> {
    template().resources(&[]).expect("template.yaml has resources")
}

fn all<'a>(
    resources: &'a Map<String, Value>,
    kind: &'a str,
) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let named = resources.iter().map(|(name, resource)| (name.as_str(), resource));
    named.filter(move |(_, resource)| resource["Type"] == kind)
}

fn only<'a>(resources: &'a Map<String, Value>, kind: &'a str) -> (&'a str, &'a Value) {
    let found: Vec<_> = all(resources, kind).collect();
    let [one] = found.as_slice() else { panic!("one {kind}: {found:?}") };
    *one
}

fn function_resource<'a>(resources: &'a Map<String, Value>, package: &str) -> &'a Value {
    let folder = format!("functions/{package}");
    let mut found = all(resources, "AWS::Serverless::Function");
    let (_, resource) = found
        .find(|(_, resource)| resource["Properties"]["CodeUri"] == folder.as_str())
        .unwrap_or_else(|| panic!("no function is built from {folder}"));
    resource
}

fn function<'a>(resources: &'a Map<String, Value>, package: &str) -> &'a Value {
    &function_resource(resources, package)["Properties"]
}

/// A function's variables.
fn environment<'a>(resources: &'a Map<String, Value>, package: &str) -> &'a Map<String, Value> {
    function(resources, package)["Environment"]["Variables"].as_object().expect("variables")
}

fn events<'a>(resources: &'a Map<String, Value>, package: &str) -> impl Iterator<Item = &'a Value> {
    function(resources, package)["Events"].as_object().into_iter().flatten().map(|(_, event)| event)
}

/// What the stream's event source mapping to a function is told.
fn mapping<'a>(resources: &'a Map<String, Value>, package: &'a str) -> &'a Value {
    let found: Vec<_> =
        events(resources, package).filter(|event| event["Type"] == "DynamoDB").collect();
    let [event] = found.as_slice() else { panic!("one event: {found:?}") };
    &event["Properties"]
}

/// The queue that hands nothing on.
fn dead_letter_queue(resources: &Map<String, Value>) -> &str {
    let queues = all(resources, "AWS::SQS::Queue");
    let last: Vec<_> =
        queues.filter(|(_, queue)| queue["Properties"].get("RedrivePolicy").is_none()).collect();
    let [(name, _)] = last.as_slice() else { panic!("one queue: {last:?}") };
    name
}

fn role<'a>(resources: &'a Map<String, Value>, package: &str) -> &'a str {
    text(&function(resources, package)["Role"]["Fn::GetAtt"][0])
}

fn statements(resources: &Map<String, Value>, package: &str) -> impl Iterator<Item = Value> {
    statements_of(resources, role(resources, package))
}

fn statements_of(resources: &Map<String, Value>, role: &str) -> impl Iterator<Item = Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let policies = list(&resources[role]["Properties"]["Policies"]);
    assert!(!policies.is_empty(), "{role} may do nothing");
    policies.into_iter().flat_map(move |policy| list(&policy["PolicyDocument"]["Statement"]))
}

fn actions(statement: &Value) -> impl Iterator<Item = &str> {
    let actions = statement["Action"].as_array().expect("actions are a list");
    actions.iter().map(text)
}

fn service(statement: &Value) -> String {
    let of: BTreeSet<_> =
        actions(statement).filter_map(|action| action.split_once(':')).map(|it| it.0).collect();
    of.into_iter().collect::<Vec<_>>().join(" and ")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not text: {value}"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("not a number: {value}"))
}
