//! `template.yaml` against the code: names, routes, filters, environments, permissions. Deploys nothing;
//! whether the template is a sound one is for `sam validate --lint`.

use std::collections::{BTreeMap, BTreeSet};

use local::table::TableDefinition;
use local::template::Template;
use serde_json::{Map, Value, json};
use shared::http::routes::{Function, ROUTES};
use shared::store::keys;

use crate::architecture::{is_product, rust_files};
use crate::source::Source;

/// The packages that are deployed.
const PACKAGES: [&str; 3] = ["ingest", "query", "registry"];

/// The methods of the store's ports, each with the action on the table that it takes.
const PORTS: [(&str, &str); 14] = [
    ("token", "GetItem"),
    ("put_readings", "BatchWriteItem"),
    ("device_readings", "Query"),
    ("room_readings", "Query"),
    ("devices", "Query"),
    ("rooms", "Query"),
    ("device", "GetItem"),
    ("room", "GetItem"),
    ("register_device", "PutItem"),
    ("register_room", "PutItem"),
    ("learn_device", "UpdateItem"),
    ("learn_room", "UpdateItem"),
    ("edit_device", "UpdateItem"),
    ("edit_room", "UpdateItem"),
];

// ---- The table ---------------------------------------------------------------------------------

#[test]
fn the_table_has_the_keys_of_the_code() {
    let table = TableDefinition::own().expect("the template describes a table");
    let key = |parts: &[(&str, &str)]| -> Vec<(String, String)> {
        parts.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned())).collect()
    };
    let of = |schema: &[local::table::KeyElement]| -> Vec<(String, String)> {
        schema.iter().map(|part| (part.attribute_name.clone(), part.key_type.clone())).collect()
    };
    assert_eq!(of(&table.key_schema), key(&[(keys::PK, "HASH"), (keys::SK, "RANGE")]));
    let types: BTreeMap<_, _> = table
        .attribute_definitions
        .iter()
        .map(|attribute| (attribute.attribute_name.as_str(), attribute.attribute_type.as_str()))
        .collect();
    assert_eq!(types, BTreeMap::from([(keys::PK, "S"), (keys::SK, "S"), (keys::ROOM, "S")]));

    let [index] = table.global_secondary_indexes.as_slice() else { panic!("one index: {table:?}") };
    assert_eq!(index.index_name, keys::ROOM_INDEX);
    assert_eq!(of(&index.key_schema), key(&[(keys::ROOM, "HASH"), (keys::SK, "RANGE")]));
    assert_eq!(index.projection.projection_type, "ALL");

    assert_eq!(table.stream_specification.stream_view_type, "NEW_AND_OLD_IMAGES");
    assert_eq!(table.time_to_live_specification.attribute_name, keys::TTL);
    assert!(table.time_to_live_specification.enabled);
    assert_eq!(table.billing_mode, "PAY_PER_REQUEST");
}

#[test]
fn without_the_index_nothing_of_it_is_left() {
    let off = [("RoomIndex", "off")];
    let table = TableDefinition::from_template(&template(), &off).expect("a table");
    assert!(table.global_secondary_indexes.is_empty());
    let names: Vec<_> =
        table.attribute_definitions.iter().map(|it| it.attribute_name.as_str()).collect();
    assert_eq!(names, [keys::PK, keys::SK]);
    let resources = template().resources(&off).expect("resources");
    assert_eq!(environment(&resources, "query")["ROOM_INDEX"], "off");
}

#[test]
fn the_readings_outlive_the_stack_and_mistakes() {
    let resources = resources();
    let (_, table) = only(&resources, "AWS::DynamoDB::Table");
    assert_eq!(
        (&table["DeletionPolicy"], &table["UpdateReplacePolicy"]),
        (&json!("Retain"), &json!("Retain"))
    );
    let recovery = &table["Properties"]["PointInTimeRecoverySpecification"];
    assert_eq!(recovery["PointInTimeRecoveryEnabled"], true);
    assert_eq!(
        table["Properties"].get("TableName"),
        None,
        "a fixed name cannot be kept and made anew"
    );
}

// ---- The API -----------------------------------------------------------------------------------

#[test]
fn the_template_has_the_routes_of_the_code_and_no_other() {
    let resources = resources();
    let (api, _) = only(&resources, "AWS::Serverless::HttpApi");
    let mut deployed = BTreeSet::new();
    for package in PACKAGES {
        for event in events(&resources, package).filter(|event| event["Type"] == "HttpApi") {
            let route = &event["Properties"];
            assert_eq!(route["ApiId"], json!({"Ref": api}), "{route}");
            let new = deployed.insert((text(&route["Method"]), text(&route["Path"]), package));
            assert!(new, "twice: {route}");
        }
    }
    let coded = ROUTES.iter().map(|route| {
        let package = match route.function {
            Function::Ingest => "ingest",
            Function::Query => "query",
        };
        (route.method, route.path, package)
    });
    assert_eq!(deployed, coded.collect());
}

#[test]
fn the_api_is_throttled_and_answers_before_it_gives_up() {
    let resources = resources();
    let (_, api) = only(&resources, "AWS::Serverless::HttpApi");
    let limits = &api["Properties"]["DefaultRouteSettings"];
    assert!(
        number(&limits["ThrottlingRateLimit"]) > 0 && number(&limits["ThrottlingBurstLimit"]) > 0
    );
    for package in ["ingest", "query"] {
        assert!(
            number(&function(&resources, package)["Timeout"]) < 30,
            "an HTTP API waits 30 seconds"
        );
    }
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
        let main = Source::read(&files[&format!("functions/{package}/src/main.rs")]).code;
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
        set.extend(variables.keys().cloned());
    }
    // What begins with AWS_ is set by Lambda, or by whoever uses an emulator.
    let door = Source::read(include_str!("../shared/src/config.rs")).without_tests();
    let read: BTreeSet<_> = door
        .literals
        .into_iter()
        .map(|literal| literal.text)
        .filter(|text| text.len() > 1 && text.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
        .filter(|name| !name.starts_with("AWS_"))
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
        let days = number(&resources[group]["Properties"]["RetentionInDays"]);
        assert!((1..=365).contains(&days), "{group}: {days} days");
        let logs: Vec<_> =
            statements(&resources, package).filter(|it| service(it) == "logs").collect();
        let [logs] = logs.as_slice() else { panic!("{package}: {logs:?}") };
        assert_eq!(logs["Resource"], json!({"Fn::GetAtt": [group, "Arn"]}));
    }
    assert_eq!(all(&resources, "AWS::Logs::LogGroup").count(), groups.len());
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
            assert!(!statement.to_string().contains('*'), "{package}: {statement}");
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
    let index = json!({"Fn::Sub": format!("${{{table}.Arn}}/index/{}", keys::ROOM_INDEX)});
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
        let methods = asked(&code(&format!("functions/{package}/src/")));
        let needed: Vec<&str> =
            PORTS.iter().filter(|(method, _)| methods.contains(method)).map(|it| it.1).collect();
        assert!(!needed.is_empty(), "{package} asks nothing of the store");
        let mut expected = BTreeMap::from([(whole.to_string(), set(&needed))]);
        if methods.contains("room_readings") {
            expected.insert(index.to_string(), set(&["Query"]));
        }
        if package == "registry" {
            let reads = ["DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"];
            expected.insert(stream.to_string(), set(&reads));
        }
        assert_eq!(allowed, expected, "{package}");
    }
}

/// What a role may be allowed and is denied all the same, by partition.
#[test]
fn no_role_reaches_into_partitions_that_are_not_its_business() {
    let resources = resources();
    let denied = |package: &str, partition: &str| -> BTreeSet<String> {
        let concerns = |it: &Value| {
            let keys = &it["Condition"]["ForAnyValue:StringEquals"]["dynamodb:LeadingKeys"];
            it["Effect"] == "Deny"
                && keys.as_array().is_some_and(|keys| keys.iter().any(|key| key == partition))
        };
        let concerned: Vec<Value> = statements(&resources, package).filter(concerns).collect();
        concerned.iter().flat_map(actions).map(str::to_owned).collect()
    };
    let set = |names: &[&str]| -> BTreeSet<String> {
        names.iter().map(|name| format!("dynamodb:{name}")).collect()
    };
    assert_eq!(denied("ingest", keys::TOKENS), set(&["BatchWriteItem", "PutItem", "Query"]));
    for partition in [keys::DEVICES, keys::ROOMS] {
        assert_eq!(denied("ingest", partition), set(&["BatchWriteItem"]));
    }
    for package in ["query", "registry"] {
        assert_eq!(denied(package, keys::TOKENS), set(&["PutItem", "Query", "UpdateItem"]));
    }
}

#[test]
fn the_actions_of_the_ports_are_those_that_the_store_takes() {
    let store = dense(&code("shared/src/store/dynamodb"));
    let taken: BTreeSet<&str> =
        CALLS.iter().filter(|(call, _)| store.contains(call)).map(|(_, action)| *action).collect();
    assert_eq!(taken, PORTS.iter().map(|(_, action)| *action).collect());
}

/// The methods of the store that a function's code calls. A store that is handed on could be asked
/// anything, so it may be handed to the registry's cache alone, which lists.
fn asked(code: &str) -> BTreeSet<&'static str> {
    let code = dense(code);
    let mut found = BTreeSet::new();
    for (at, mark) in code.match_indices("self.store") {
        let after = &code[at + mark.len()..];
        let known = PORTS.iter().find(|(method, _)| after.starts_with(&format!(".{method}(")));
        if let Some((method, _)) = known {
            found.insert(*method);
        } else if code[..at].ends_with(".admit(call.request,&")
            || code[..at].ends_with(".admit(request,&")
        {
            found.insert("token");
        } else if [".snapshot(&", ".refresh(&"].iter().any(|cache| code[..at].ends_with(cache)) {
            found.extend(["devices", "rooms"]);
        } else if after.starts_with('.') || code[..at].ends_with('&') {
            panic!(
                "the store is asked or handed on: self.store{}",
                &after.chars().take(40).collect::<String>()
            );
        }
    }
    found
}

#[test]
fn what_is_asked_of_the_store_is_seen() {
    let code =
        "self.registry.snapshot(&self.store, b); self\n .store\n .device(&id); self.store_all();";
    assert_eq!(asked(code), BTreeSet::from(["device", "devices", "rooms"]));
    for unseen in ["helper(&self.store)", "self.store.drop_everything()"] {
        assert!(std::panic::catch_unwind(|| asked(unseen)).is_err(), "{unseen}");
    }
}

/// What the SDK's client can be asked about items, and the action that allows it.
const CALLS: [(&str, &str); 12] = [
    (".batch_execute_statement()", "PartiQL"),
    (".batch_get_item()", "BatchGetItem"),
    (".batch_write_item()", "BatchWriteItem"),
    (".delete_item()", "DeleteItem"),
    (".execute_statement()", "PartiQL"),
    (".get_item()", "GetItem"),
    (".put_item()", "PutItem"),
    (".query()", "Query"),
    (".scan()", "Scan"),
    (".transact_get_items()", "TransactGetItems"),
    (".transact_write_items()", "TransactWriteItems"),
    (".update_item()", "UpdateItem"),
];

// ---- The stream --------------------------------------------------------------------------------

#[test]
fn the_registry_follows_readings_only() {
    let resources = resources();
    let (table, _) = only(&resources, "AWS::DynamoDB::Table");
    let mapping = mapping(&resources);
    assert_eq!(mapping["Stream"], json!({"Fn::GetAtt": [table, "StreamArn"]}));
    let filters = mapping["FilterCriteria"]["Filters"].as_array().cloned().unwrap_or_default();
    let [filter] = filters.as_slice() else { panic!("one filter: {filters:?}") };
    let pattern: Value = serde_json::from_str(text(&filter["Pattern"])).expect("a pattern is JSON");
    assert_eq!(
        pattern,
        json!({
            "eventName": ["INSERT", "MODIFY"],
            "dynamodb": {"Keys": {keys::SK: {"S": [{"prefix": keys::READING_PREFIX}]}}},
        })
    );
}

#[test]
fn a_poison_record_blocks_no_shard_and_is_not_lost_in_silence() {
    let resources = resources();
    let mapping = mapping(&resources);
    assert_eq!(mapping["StartingPosition"], "TRIM_HORIZON");
    assert_eq!(mapping["BisectBatchOnFunctionError"], true);
    assert_eq!(mapping["FunctionResponseTypes"], json!(["ReportBatchItemFailures"]));
    assert_eq!(number(&mapping["BatchSize"]), 100);
    assert!((1..=5).contains(&number(&mapping["MaximumBatchingWindowInSeconds"])));
    // Without bounds a record is tried for the 24 hours that the stream keeps it.
    assert!((1..=100).contains(&number(&mapping["MaximumRetryAttempts"])));
    assert!((60..=43_200).contains(&number(&mapping["MaximumRecordAgeInSeconds"])));

    let (queue, _) = only(&resources, "AWS::SQS::Queue");
    let arn = json!({"Fn::GetAtt": [queue, "Arn"]});
    assert_eq!(mapping["DestinationConfig"]["OnFailure"]["Destination"], arn);
    let sends: Vec<_> =
        statements(&resources, "registry").filter(|it| service(it) == "sqs").collect();
    let [send] = sends.as_slice() else { panic!("{sends:?}") };
    assert_eq!((&send["Action"], &send["Resource"]), (&json!(["sqs:SendMessage"]), &arn));
}

#[test]
fn whoever_deploys_learns_where_it_is() {
    let source = template().source().clone();
    for output in ["ApiUrl", "TableName", "TryIt"] {
        assert!(source["Outputs"][output]["Value"].is_object(), "{output}");
    }
    let line = text(&source["Outputs"]["TryIt"]["Value"]["Fn::Sub"]);
    assert!(line.starts_with("curl ") && line.contains("/readings"), "{line}");
}

// ---- Reading the template ----------------------------------------------------------------------

fn template() -> Template {
    Template::own().expect("template.yaml can be read")
}

/// The resources as deployed with the defaults.
fn resources() -> Map<String, Value> {
    template().resources(&[]).expect("template.yaml has resources")
}

/// The code of a folder or a module, without its tests.
fn code(beginning: &str) -> String {
    let files = rust_files();
    let inside = files.iter().filter(|(path, _)| path.starts_with(beginning) && is_product(path));
    inside.map(|(_, text)| Source::read(text).without_tests().code).collect()
}

/// Without white space: a chain of calls reads the same on one line and on five.
fn dense(code: &str) -> String {
    code.split_whitespace().collect()
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

/// A function's variables: its own and those of all.
fn environment(resources: &Map<String, Value>, package: &str) -> Map<String, Value> {
    let variables =
        |of: &Value| of["Environment"]["Variables"].as_object().cloned().unwrap_or_default();
    let mut all = variables(&template().source()["Globals"]["Function"]);
    all.extend(variables(function(resources, package)));
    all
}

fn events<'a>(resources: &'a Map<String, Value>, package: &str) -> impl Iterator<Item = &'a Value> {
    function(resources, package)["Events"].as_object().into_iter().flatten().map(|(_, event)| event)
}

/// What the stream's event source mapping is told.
fn mapping(resources: &Map<String, Value>) -> &Value {
    let found: Vec<_> = events(resources, "registry").collect();
    let [event] = found.as_slice() else { panic!("one event: {found:?}") };
    assert_eq!(event["Type"], "DynamoDB");
    &event["Properties"]
}

fn role<'a>(resources: &'a Map<String, Value>, package: &str) -> &'a str {
    text(&function(resources, package)["Role"]["Fn::GetAtt"][0])
}

fn statements(resources: &Map<String, Value>, package: &str) -> impl Iterator<Item = Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let policies = list(&resources[role(resources, package)]["Properties"]["Policies"]);
    assert!(!policies.is_empty(), "{package} may do nothing");
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
