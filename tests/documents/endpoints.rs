//! docs/reference/api.md and api-parameters.md against the table of endpoints. Bodies are in the `OpenAPI` document.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use api::endpoints::{Access, ENDPOINTS, Endpoint, Kind};

use crate::generated::assert_documented;

/// The groups of endpoints, in the order of the page.
const GROUPS: [&str; 8] = [
    "Readings",
    "Devices",
    "Rooms",
    "Homes",
    "Everything",
    "Alerts",
    "The system",
    "Clients of InfluxDB and Grafana",
];

#[test]
fn the_endpoints_are_those_of_the_code() {
    let mut text = String::new();
    for group in GROUPS {
        write!(
            text,
            "### {group}\n\n| endpoint | token | what it does | parameters |\n| --- | --- | --- | --- |\n"
        )
        .expect("writing to memory does not fail");
        for endpoint in shown_endpoints().filter(|endpoint| group_of(endpoint) == group) {
            let Endpoint { method, path, summary, access, .. } = endpoint;
            let access = token(*access);
            let names: Vec<_> =
                endpoint.parameters.iter().map(|it| format!("`{}`", it.name)).collect();
            writeln!(text, "| `{method} {path}` | {access} | {summary} | {} |", names.join(", "))
                .expect("writing to memory does not fail");
        }
        text.push('\n');
    }
    assert_documented("docs/reference/api.md", "endpoints", &text);
}

#[test]
fn the_parameters_are_those_of_the_code() {
    let mut meanings: BTreeMap<&str, Vec<(String, Vec<&Endpoint>)>> = BTreeMap::new();
    for endpoint in ENDPOINTS {
        for parameter in endpoint.parameters {
            let cells = format!("{} | {}", values(parameter.kind), parameter.description);
            let known = meanings.entry(parameter.name).or_default();
            match known.iter_mut().find(|(text, _)| *text == cells) {
                Some((_, endpoints)) => endpoints.push(endpoint),
                None => known.push((cells, vec![endpoint])),
            }
        }
    }
    let mut text = "| parameter | values | meaning | of |\n| --- | --- | --- | --- |\n".to_owned();
    for (name, meanings) in meanings {
        for (cells, endpoints) in &meanings {
            // A parameter with one meaning has it wherever the table above names the parameter.
            let of = if meanings.len() == 1 { String::new() } else { places(endpoints) };
            writeln!(text, "| `{name}` | {cells} | {of} |")
                .expect("writing to memory does not fail");
        }
    }
    assert_documented("docs/reference/api-parameters.md", "parameters", &text);
}

/// The endpoints without those below `/influx`, which answer as the same path without it.
fn shown_endpoints() -> impl Iterator<Item = &'static Endpoint> {
    ENDPOINTS.iter().filter(|endpoint| !endpoint.path.starts_with("/influx/"))
}

/// The endpoints by the ends of their paths, each once.
fn places(endpoints: &[&Endpoint]) -> String {
    let mut ends = Vec::new();
    for endpoint in endpoints {
        let Endpoint { method, path, .. } = endpoint;
        let end = match path.split_once("/{id}/") {
            Some((_, end)) => format!("`{method} .../{end}`"),
            None => format!("`{method} {path}`"),
        };
        if !ends.contains(&end) {
            ends.push(end);
        }
    }
    ends.join(", ")
}

fn group_of(endpoint: &Endpoint) -> &'static str {
    if endpoint.dialect().is_some() {
        return "Clients of InfluxDB and Grafana";
    }
    match endpoint.path.split('/').nth(1) {
        Some("readings") => "Readings",
        Some("devices") => "Devices",
        Some("rooms") => "Rooms",
        Some("homes") => "Homes",
        Some("series" | "energy" | "cost") => "Everything",
        Some("alerts" | "acknowledge" | "channels") => "Alerts",
        _ => "The system",
    }
}

const fn token(access: Access) -> &'static str {
    match access {
        Access::Public => "none",
        Access::Formed | Access::Any => "any",
        Access::Read => "read",
        Access::Write => "write",
        Access::Address => "write, also without `--auth`",
        Access::Admin => "admin",
    }
}

/// The values of a parameter, for a cell of a table.
fn values(kind: Kind) -> String {
    let words = |of: &[&str]| of.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ");
    match kind {
        Kind::Timestamp => "a timestamp".to_owned(),
        Kind::Id => "an id".to_owned(),
        Kind::Metrics => "names of metrics".to_owned(),
        Kind::Cursor => "a cursor".to_owned(),
        Kind::Flag => "`1` or `true`, `0` or `false`".to_owned(),
        Kind::Zone => "a time zone".to_owned(),
        Kind::Count { default, max } => format!("1 to {max}; {default} by default"),
        Kind::Choice { of, default: Some(default) } => {
            format!("{}; `{default}` by default", words(of))
        }
        Kind::Choice { of, default: None } => words(of),
        Kind::Words { of } => format!("some of {}", words(of)),
        Kind::Format => "`json`, `ndjson`, `csv`".to_owned(),
        Kind::Age => "an age".to_owned(),
        Kind::Word => "a word".to_owned(),
        Kind::Like => "a text, or its beginning and `*`; may be repeated".to_owned(),
        Kind::Where => "a condition; may be repeated".to_owned(),
        Kind::Conditions => "a parameter for each metric".to_owned(),
        Kind::Values => "a parameter for each value".to_owned(),
    }
}
