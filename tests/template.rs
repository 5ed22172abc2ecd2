//! `template.yaml` against the code: names, routes, filters, environments, permissions. Deploys nothing;
//! whether the template is a sound one is for `sam validate --lint`.

mod deployment;
mod evaluator;
mod front;
mod mqtt;
mod take_over;
mod watching;

use std::collections::{BTreeMap, BTreeSet};

use domain::given::cases;
use dynamodb::DynamoStore;
use local::table_definition::{create_request, expiry_request};
use serde_json::{Map, Value, json};
use table::layout::{ATTRIBUTE_INDEX, CONDITIONS_INDEX, Index, Layout, ROOM_INDEX};
use table::{Action, Permission, Target, keys};

use crate::architecture::rust_files;
use crate::events::differs;
use crate::generated::assert_is;
use crate::source::Source;
pub(crate) use evaluator::Template;

/// The packages that are deployed.
const PACKAGES: [&str; 6] = ["alerting", "fetching", "ingest", "query", "registry", "rollup"];
/// Those of them that consume the table's stream.
const CONSUMERS: [&str; 2] = ["registry", "rollup"];

/// What a function asks of the table, by the ports of its store.
fn permissions(package: &str) -> BTreeSet<Permission> {
    let ports = match package {
        "alerting" => <DynamoStore as alerting::Store>::PERMISSIONS,
        "fetching" => <DynamoStore as fetching::Store>::PERMISSIONS,
        "ingest" => <DynamoStore as ingest::Store>::PERMISSIONS,
        "query" => <DynamoStore as query::Store>::PERMISSIONS,
        "registry" => <DynamoStore as registry::Store>::PERMISSIONS,
        "rollup" => <DynamoStore as rollup::Store>::PERMISSIONS,
        other => panic!("no function {other}"),
    };
    ports.iter().copied().flatten().copied().collect()
}

/// A case is the parameters of a stack. Its statements have the form of those in `tests/events/cases.txt`. They are about
/// resources by name, and about `Outputs`, `Rules` and `Parameters`; a role's `may` has what it allows, by service.
#[test]
fn the_template_says_what_its_cases_say() {
    for case in cases(include_str!("template/cases.txt")) {
        let pairs = case.given.split(' ').filter_map(|pair| pair.split_once('='));
        let document = document(&pairs.collect::<Vec<_>>());
        for statement in &case.expected {
            assert_eq!(differs(&document, statement), None, "{case}: {statement}");
        }
    }
}

/// What the cases are about.
fn document(parameters: &[(&str, &str)]) -> Value {
    let mut document = template().resources(parameters).expect("resources");
    let roles: Vec<_> = all(&document, "AWS::IAM::Role").map(|(name, _)| name.to_owned()).collect();
    for role in roles {
        let mut may: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for statement in statements_of(&document, &role) {
            may.entry(service(&statement)).or_default().push(statement);
        }
        document[&role]["may"] = json!(may);
    }

    for section in ["Parameters", "Rules"] {
        document.insert(section.to_owned(), template().source()[section].clone());
    }
    let outputs = template().outputs(parameters).expect("outputs");
    document.insert("Outputs".to_owned(), outputs.into());
    document.into()
}

// ---- The table ---------------------------------------------------------------------------------

#[test]
fn the_table_has_the_keys_and_the_indexes_of_the_code() {
    let default = Layout::default();
    for (chosen, layout) in [
        (&[][..], default),
        (&[("AttributeIndex", "on")], Layout { attribute_index: true, ..default }),
        (&[("ConditionsIndex", "on")], Layout { conditions_index: true, ..default }),
        (&[("RoomIndex", "off")], Layout { room_index: false, ..default }),
    ] {
        let resources = template().resources(chosen).expect("resources");
        let (_, deployed) = only(&resources, "AWS::DynamoDB::Table");
        let mut deployed = deployed["Properties"].clone();
        for index in deployed["GlobalSecondaryIndexes"].as_array_mut().expect("a list") {
            let units = index.as_object_mut().expect("an index").remove("ProvisionedThroughput");
            assert!(units.is_some(), "{index}");
        }
        let definitions = deployed["AttributeDefinitions"].as_array_mut().expect("a list");
        definitions.sort_by_key(|definition| definition["AttributeName"].to_string());

        let request = create_request("name", layout);
        for member in ["AttributeDefinitions", "KeySchema"] {
            assert_eq!(request[member], deployed[member], "{chosen:?}");
        }
        let indexes = request.get("GlobalSecondaryIndexes").cloned();
        assert_eq!(indexes.unwrap_or(json!([])), deployed["GlobalSecondaryIndexes"], "{chosen:?}");
        let view = |stream: &Value| stream["StreamViewType"].clone();
        let streams = [&request, &deployed].map(|table| view(&table["StreamSpecification"]));
        assert_eq!(streams[0], streams[1]);
        let expiry = &expiry_request("name")["TimeToLiveSpecification"];
        assert_eq!(*expiry, deployed["TimeToLiveSpecification"]);
    }
    let shards = template().parameter("DeviceShards", &[]).expect("a parameter");
    assert_eq!(shards.parse(), Ok(default.shards));
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

// ---- The functions -----------------------------------------------------------------------------

#[test]
fn every_function_is_a_package_built_for_lambda() {
    let globals = &template().source()["Globals"]["Function"];
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
    // What begins with AWS_ is set by Lambda, or by whoever uses an emulator. The command alone reads TZ.
    let door = Source::shipped(include_str!("../shared/runtime/src/config.rs"));
    let read: BTreeSet<_> = door
        .literals()
        .into_iter()
        .map(|literal| literal.text)
        .filter(|text| text.len() > 1 && text.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
        .filter(|name| !name.starts_with("AWS_") && name != "TZ")
        .collect();
    assert_eq!(set, read);
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
            let text = prefixes().fold(statement.to_string(), |text, prefix| {
                text.replace(&format!("\"{prefix}#*\""), "")
            });
            // Readings are in the partitions without a "#".
            let text = text.replace(r#""*#*""#, "");
            assert!(!text.contains('*'), "{package}: a wildcard of no partition here: {statement}");
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
    // Two, because a batch or a transaction may name several. A partition with itself comes first, so that a failure
    // names the one that is wrong.
    let mut pairs: Vec<_> = PARTITIONS
        .iter()
        .flat_map(|one| PARTITIONS.iter().map(move |other| (one, other)))
        .collect();
    pairs.sort_by_key(|(one, other)| one != other);
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
                let expected = are_needed && !(is_mixed && is_split);
                assert!(
                    may(&statements, action, &[pk, other_pk]) == expected,
                    "the role of {package} {} {action:?} on {pk} and {other_pk}",
                    if expected { "has to allow" } else { "has to refuse" }
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
const PARTITIONS: [(Target, &str); 25] = [
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
    (Target::Sources, keys::SOURCES),
    (Target::SourceSecrets, keys::SOURCE_SECRETS),
    (Target::Tariffs, keys::TARIFFS),
];

/// What stands before `#` in the name of each partition with a `#` inside.
fn prefixes() -> impl Iterator<Item = &'static str> {
    let parts = PARTITIONS.iter().filter_map(|(_, key)| key.split_once('#'));
    parts.filter(|(_, rest)| !rest.is_empty()).map(|(prefix, _)| prefix)
}

/// The tests above ask about these partitions only.
#[test]
fn each_kind_of_item_that_a_function_asks_for_has_a_partition_here() {
    let indexes = [Target::RoomIndex, Target::ConditionsIndex, Target::AttributeIndex];
    let known: BTreeSet<Target> =
        PARTITIONS.iter().map(|(target, _)| *target).chain(indexes).collect();
    for (_, target) in PACKAGES.iter().flat_map(|package| permissions(package)) {
        assert!(known.contains(&target), "PARTITIONS has no partition of {target:?}");
    }
}

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

/// A secret is what other services trust: whoever sends or asks reads it, and nobody else.
#[test]
fn only_who_needs_a_secret_reads_it() {
    for (secret, reader) in
        [(Target::AlertSecrets, "alerting"), (Target::SourceSecrets, "fetching")]
    {
        let readers = PACKAGES.into_iter().filter(|package| {
            let permissions = permissions(package);
            permissions.iter().any(|(action, target)| READS.contains(action) && *target == secret)
        });
        assert_eq!(readers.collect::<Vec<_>>(), [reader]);
    }
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
