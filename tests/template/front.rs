//! Where requests arrive, in `template.yaml`: function URLs, the HTTP API, its domain and the outputs that name them.

use std::collections::{BTreeMap, BTreeSet};

use api::endpoints::{ENDPOINTS, Endpoint, Function};
use serde_json::{Map, Value, json};

use super::{PACKAGES, Template, all, environment, function, number, only, template, text};

/// The regions without function URLs. `tests/deploy/regions.py` compares those of the template with AWS's schemas.
const WITHOUT_FUNCTION_URLS: &str = "ap-south-2 ap-southeast-4 ap-southeast-5 ap-southeast-6 \
     ap-southeast-7 ap-east-2 ca-west-1 eu-south-2 eu-central-2 il-central-1 me-central-1 \
     mx-central-1 cn-northwest-1 us-gov-east-1 us-gov-west-1";

const FRONTS: [&str; 3] = ["both", "function-urls", "http-api"];
const METHODS: [&str; 6] = ["get", "head", "post", "put", "patch", "delete"];

/// What exists of the two fronts: numbers of function URLs and of HTTP APIs.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Fronts {
    urls: usize,
    apis: usize,
}

fn fronts(parameters: &[(&str, &str)]) -> Fronts {
    let resources = template().resources(parameters).expect("resources");
    let count = |kind| all(&resources, kind).count();
    let (urls, apis) = (count("AWS::Lambda::Url"), count("AWS::ApiGatewayV2::Api"));
    assert_eq!(count("AWS::ApiGatewayV2::Stage"), apis, "{parameters:?}");
    let told = &environment(&resources, "query")["INGEST_URL"];
    let expected = if urls == 2 { host("IngestFunction") } else { json!("") };
    assert_eq!(told, &expected, "{parameters:?}");
    Fronts { urls, apis }
}

/// A function's URL without the slash at its end.
fn host(function: &str) -> Value {
    let url = json!({"Fn::GetAtt": [format!("{function}Url"), "FunctionUrl"]});
    json!({"Fn::Sub": ["https://${Host}", {"Host": {"Fn::Select": [2, {"Fn::Split": ["/", url]}]}}]})
}

// ---- Which front there is ----------------------------------------------------------------------

/// A new parameter takes its default on an update too, so the default keeps the API of an older stack.
#[test]
fn a_stack_has_function_urls_and_the_api_unless_front_names_one() {
    let both = Fronts { urls: 2, apis: 1 };
    assert_eq!(fronts(&[]), both);
    for (front, expected) in [
        ("both", both),
        ("function-urls", Fronts { apis: 0, ..both }),
        ("http-api", Fronts { urls: 0, ..both }),
    ] {
        assert_eq!(fronts(&[("Front", front), ("AWS::Region", "eu-west-1")]), expected, "{front}");
    }
}

#[test]
fn a_region_without_function_urls_has_the_api_alone() {
    for region in WITHOUT_FUNCTION_URLS.split(' ') {
        for front in FRONTS {
            let chosen = [("Front", front), ("AWS::Region", region)];
            assert_eq!(fronts(&chosen), Fronts { urls: 0, apis: 1 }, "{chosen:?}");
        }
    }
}

/// CloudFormation refuses a template that refers to a resource which a condition leaves out.
#[test]
fn nothing_refers_to_what_is_left_out() {
    let choices: [(&str, [&str; 3]); 6] = [
        ("Front", FRONTS),
        ("AWS::Region", ["eu-west-1", "eu-south-2", "eu-west-1"]),
        ("DomainName", ["", "roomtide.example.org", ""]),
        ("IotTopic", ["", "roomtide", ""]),
        ("AlarmEmail", ["", "a@example.org", "a@example.org"]),
        ("MonthlyBudget", ["0", "10", "0"]),
    ];
    let template = template();
    let mut seen = BTreeSet::new();
    for n in 0..3_usize.pow(6) {
        let mut rest = n;
        let parameters: Vec<(&str, &str)> = choices
            .iter()
            .map(|(name, values)| {
                let value = values[rest % 3];
                rest /= 3;
                (*name, value)
            })
            .collect();
        if !seen.insert(parameters.clone()) {
            continue;
        }
        let resources = template.resources(&parameters).expect("resources");
        let outputs = template.outputs(&parameters).expect("outputs");
        for (name, value) in resources.iter().chain(&outputs) {
            for referred in references(value) {
                let known = resources.contains_key(&referred)
                    || referred.starts_with("AWS::")
                    || template.source()["Parameters"].get(&referred).is_some();
                assert!(known, "{name} refers to {referred} with {parameters:?}");
            }
        }
    }
}

/// The logical ids that a value refers to.
fn references(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    match value {
        Value::Array(values) => values.iter().for_each(|it| found.extend(references(it))),
        Value::Object(object) => {
            for (name, argument) in object {
                match (name.as_str(), argument) {
                    ("Ref", Value::String(id)) => found.push(id.clone()),
                    ("Fn::GetAtt", Value::Array(parts)) => found.push(text(&parts[0]).to_owned()),
                    ("Fn::Sub", Value::String(pattern)) => found.extend(variables(pattern)),
                    ("Fn::Sub", Value::Array(parts)) => {
                        let own = parts[1].as_object().expect("variables");
                        let named = variables(text(&parts[0])).into_iter();
                        found.extend(named.filter(|it| !own.contains_key(it)));
                        found.extend(references(&parts[1]));
                    }
                    ("DependsOn", _) => panic!("this test does not know DependsOn"),
                    _ => found.extend(references(argument)),
                }
            }
        }
        _ => {}
    }
    found
}

/// The logical ids in a pattern of `Fn::Sub`.
fn variables(pattern: &str) -> Vec<String> {
    let parts = pattern.split("${").skip(1).filter_map(|part| part.split_once('}'));
    let names = parts.map(|(name, _)| name).filter(|name| !name.starts_with('!'));
    names.map(|name| name.split('.').next().unwrap_or(name).to_owned()).collect()
}

// ---- Function URLs -----------------------------------------------------------------------------

#[test]
fn the_function_urls_are_open_to_everybody_and_answer_other_pages() {
    let resources = template().resources(&[]).expect("resources");
    let (_, api) = only(&resources, "AWS::ApiGatewayV2::Api");
    let api = &api["Properties"]["Body"]["x-amazon-apigateway-cors"];
    // The API's members begin with small letters.
    let mut expected = Map::new();
    for (name, value) in api.as_object().expect("an object") {
        expected.insert(name[..1].to_uppercase() + &name[1..], value.clone());
    }
    let mut functions = BTreeSet::new();
    for (name, url) in all(&resources, "AWS::Lambda::Url") {
        let url = &url["Properties"];
        assert_eq!(url["AuthType"], "NONE", "{name}: the functions check tokens themselves");
        assert_eq!(url["InvokeMode"], "BUFFERED", "{name}");
        assert_eq!(url["Cors"], Value::Object(expected.clone()), "{name}");
        functions.insert(text(&url["TargetFunctionArn"]["Ref"]).to_owned());
    }
    assert_eq!(functions, BTreeSet::from(["IngestFunction".to_owned(), "QueryFunction".into()]));
    // Lambda's own limits: https://docs.aws.amazon.com/lambda/latest/api/API_Cors.html
    let methods = expected["AllowMethods"].as_array().expect("a list");
    assert!(methods.len() <= 6 && methods.iter().all(|it| text(it).len() <= 6), "{methods:?}");
}

/// Two for each URL; the emulator answers without any
/// (<https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html>).
#[test]
fn only_ingest_and_query_are_public_and_only_by_their_urls() {
    for front in FRONTS {
        let resources = template().resources(&[("Front", front)]).expect("resources");
        let permissions = all(&resources, "AWS::Lambda::Permission");
        let open: BTreeSet<String> = permissions
            .map(|(_, it)| &it["Properties"])
            .filter(|it| it["Principal"] == "*")
            .map(Value::to_string)
            .collect();
        let expected = ["IngestFunction", "QueryFunction"].iter().flat_map(|name| {
            [
                json!({
                    "Action": "lambda:InvokeFunctionUrl", "FunctionName": {"Ref": name},
                    "Principal": "*", "FunctionUrlAuthType": "NONE",
                }),
                json!({
                    "Action": "lambda:InvokeFunction", "FunctionName": {"Ref": name},
                    "Principal": "*", "InvokedViaFunctionUrl": true,
                }),
            ]
        });
        let expected = expected.filter(|_| front != "http-api").map(|it| it.to_string());
        assert_eq!(open, expected.collect(), "{front}");
    }
}

/// SAM's own events and URLs make `sam deploy --guided` ask about each of them, and No ends it.
#[test]
fn no_event_of_a_function_is_a_request() {
    let resources = template().resources(&[]).expect("resources");
    for package in PACKAGES {
        let function = function(&resources, package);
        assert_eq!(function.get("FunctionUrlConfig"), None, "{package}");
        for (name, event) in function["Events"].as_object().into_iter().flatten() {
            let kind = text(&event["Type"]);
            assert!(["DynamoDB", "Schedule", "SQS"].contains(&kind), "{package}: {name} is {kind}");
        }
    }
}

// ---- The API -----------------------------------------------------------------------------------

/// The routes of an API's body as `METHOD /path`, each with its integration.
fn routes(body: &Value) -> BTreeMap<String, Value> {
    let mut routes = BTreeMap::new();
    let mut add = |route: String, integration: &Value| {
        let named = integration["$ref"].as_str().map(|name| {
            let pointer = name.strip_prefix('#').expect("of this document");
            body.pointer(pointer).unwrap_or_else(|| panic!("no {name}"))
        });
        let integration = named.unwrap_or(integration).clone();
        assert_eq!(routes.insert(route, integration), None, "a route is there twice");
    };
    for (path, operations) in body["paths"].as_object().expect("paths") {
        for (method, operation) in operations.as_object().expect("methods") {
            let integration = &operation["x-amazon-apigateway-integration"];
            if operation["isDefaultRoute"] == true {
                assert_eq!((path.as_str(), method.as_str()), DEFAULT);
                add("$default".to_owned(), integration);
            } else {
                assert!(METHODS.contains(&method.as_str()), "{method} {path}");
                add(format!("{} {path}", method.to_uppercase()), integration);
            }
        }
    }
    routes
}

const DEFAULT: (&str, &str) = ("/$default", "x-amazon-apigateway-any-method");

fn body() -> Value {
    let resources = template().resources(&[]).expect("resources");
    only(&resources, "AWS::ApiGatewayV2::Api").1["Properties"]["Body"].clone()
}

fn integration(function: &str) -> Value {
    let uri = format!(
        "arn:${{AWS::Partition}}:apigateway:${{AWS::Region}}:lambda:path/2015-03-31/functions/${{{function}.Arn}}/invocations"
    );
    json!({
        "type": "aws_proxy", "httpMethod": "POST", "payloadFormatVersion": "2.0",
        "uri": {"Fn::Sub": uri},
    })
}

#[test]
fn ingest_has_its_endpoints_as_routes_and_query_has_every_other_request() {
    let ingest = ENDPOINTS.iter().filter(|endpoint| endpoint.function == Function::Ingest);
    let mut expected: BTreeMap<String, Value> = ingest
        .flat_map(|it| it.methods().map(move |method| format!("{method} {}", it.path)))
        .map(|route| (route, integration("IngestFunction")))
        .collect();
    expected.insert("$default".to_owned(), integration("QueryFunction"));
    assert_eq!(routes(&body()), expected);
}

#[test]
fn the_api_may_call_both_functions() {
    let resources = template().resources(&[]).expect("resources");
    let (api, _) = only(&resources, "AWS::ApiGatewayV2::Api");
    let source = format!(
        "arn:${{AWS::Partition}}:execute-api:${{AWS::Region}}:${{AWS::AccountId}}:${{{api}}}/*"
    );
    let permissions = all(&resources, "AWS::Lambda::Permission").map(|(_, it)| &it["Properties"]);
    let permissions = permissions.filter(|it| it["Principal"] == "apigateway.amazonaws.com");
    let expected = ["IngestFunction", "QueryFunction"].map(|function| {
        json!({
            "Action": "lambda:InvokeFunction", "FunctionName": {"Ref": function},
            "Principal": "apigateway.amazonaws.com", "SourceArn": {"Fn::Sub": source},
        })
    });
    assert_eq!(permissions.cloned().collect::<Vec<_>>(), expected);
}

/// An older stack as SAM expanded it: what holds data or an address keeps its logical id, or it is made anew.
#[test]
fn an_update_of_an_older_stack_keeps_its_address_and_its_data() {
    let older = Template::parse(include_str!("../deploy/older.json")).expect("a template");
    let mqtt = [("IotTopic", "roomtide"), ("AlarmEmail", "a@example.org")];
    let older = older.resources(&mqtt).expect("resources");
    let newer = template().resources(&mqtt).expect("resources");
    let kept = [
        "AWS::ApiGatewayV2::Api",
        "AWS::ApiGatewayV2::Stage",
        "AWS::DynamoDB::Table",
        "AWS::IoT::Policy",
        "AWS::Logs::LogGroup",
        "AWS::SNS::Topic",
        "AWS::SQS::Queue",
    ];
    let mut checked = 0;
    for (name, resource) in &older {
        let kind = text(&resource["Type"]);
        if kept.contains(&kind) {
            assert_eq!(newer[name.as_str()]["Type"], kind, "{name}");
            checked += 1;
        }
    }
    assert_eq!(checked, 13, "{:?}", older.keys());
    let [older, newer] = [&older, &newer].map(|it| &it["Api"]["Properties"]);
    assert_eq!(older["FailOnWarnings"], newer["FailOnWarnings"]);
    let [older, newer] = [&older["Body"], &newer["Body"]];
    let routes_now = routes(newer);
    for (route, integration) in routes(older) {
        assert_eq!(routes_now.get(&route), Some(&integration), "{route} of an older stack");
    }
    for member in ["openapi", "info"] {
        assert_eq!(older[member], newer[member]);
    }
    let cors = "x-amazon-apigateway-cors";
    for (member, value) in older[cors].as_object().expect("an object") {
        assert_eq!(value, &newer[cors][member], "{member}");
    }
}

#[test]
fn the_api_is_throttled_and_answers_before_it_gives_up() {
    let resources = template().resources(&[]).expect("resources");
    let (api, _) = only(&resources, "AWS::ApiGatewayV2::Api");
    let (_, stage) = only(&resources, "AWS::ApiGatewayV2::Stage");
    let stage = &stage["Properties"];
    assert_eq!(stage["StageName"], "$default", "so that no path begins with a stage");
    assert_eq!((&stage["AutoDeploy"], &stage["ApiId"]), (&json!(true), &json!({"Ref": api})));
    for (billing, rate, burst) in [("provisioned", 20, 100), ("on-demand", 200, 400)] {
        let resources = template().resources(&[("Billing", billing)]).expect("resources");
        let (_, stage) = only(&resources, "AWS::ApiGatewayV2::Stage");
        let limits = &stage["Properties"]["DefaultRouteSettings"];
        assert_eq!(number(&limits["ThrottlingRateLimit"]), rate, "{billing}");
        assert_eq!(number(&limits["ThrottlingBurstLimit"]), burst, "{billing}");
    }
    for package in ["ingest", "query"] {
        assert!(
            number(&function(&resources, package)["Timeout"]) < 30,
            "an HTTP API waits 30 seconds"
        );
    }
}

/// `$context` has members that hold the whole query string; what a log says is chosen one by one.
#[test]
fn the_access_log_knows_no_query_string_and_no_header() {
    let resources = template().resources(&[]).expect("resources");
    let (_, stage) = only(&resources, "AWS::ApiGatewayV2::Stage");
    let log = &stage["Properties"]["AccessLogSettings"];
    let group = text(&log["DestinationArn"]["Fn::GetAtt"][0]);
    assert_eq!(resources[group]["Type"], "AWS::Logs::LogGroup");
    let line: Value = serde_json::from_str(text(&log["Format"])).expect("a line is JSON");
    let allowed = "httpMethod identity.sourceIp integrationErrorMessage path requestId \
         requestTime responseLatency responseLength routeKey status";
    let allowed = allowed.split(' ').map(|name| format!("$context.{name}")).collect();
    let logged: BTreeSet<String> =
        line.as_object().expect("an object").values().map(|value| text(value).to_owned()).collect();
    assert_eq!(logged, allowed);
}

#[test]
fn a_page_elsewhere_may_ask_but_its_browser_sends_no_credentials() {
    let body = template().source()["Resources"]["Api"]["Properties"]["Body"].clone();
    let cors = &body["x-amazon-apigateway-cors"];
    assert_eq!(cors["allowOrigins"], json!({"Ref": "AllowedOrigins"}));
    assert_eq!(cors.get("allowCredentials"), None);
    let allowed: BTreeSet<&str> =
        cors["allowMethods"].as_array().expect("a list").iter().map(text).collect();
    assert_eq!(allowed, ENDPOINTS.iter().flat_map(Endpoint::methods).collect());
    let headers: BTreeSet<&str> =
        cors["allowHeaders"].as_array().expect("a list").iter().map(text).collect();
    let read = ["authorization", "content-encoding", "content-type", "if-none-match"];
    assert_eq!(headers, BTreeSet::from(read));
}
