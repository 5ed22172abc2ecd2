//! docs/deploy/costs.md, and the figures of README and `./deploy`: what a home and an abuser cost in a month. Prices are
//! those of us-east-1 as AWS lists them; units are those that other tests count. A fleet is in `tests/fleet.rs`.
//!
//! Sources: <https://aws.amazon.com/dynamodb/pricing/>, <https://aws.amazon.com/lambda/pricing/>,
//! <https://aws.amazon.com/api-gateway/pricing/>, <https://aws.amazon.com/cloudwatch/pricing/>. 100 bytes are billed with
//! each item and each entry of an index:
//! <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html>. A queue that invokes a
//! function is asked by five long polls of 20 seconds: <https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html>.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::architecture::root;
use crate::generated::{assert_documented, assert_is};
use crate::template::Template;

// Dollars for a million, or for a GB.
const WRITE_UNIT: f64 = 0.625;
const READ_UNIT: f64 = 0.125;
const API_REQUEST: f64 = 1.00;
const LAMBDA_REQUEST: f64 = 0.20;
const GB_SECOND_ARM: f64 = 13.3334;
const LOG_GB: f64 = 0.50;
const EGRESS_GB: f64 = 0.09;
const STORED_GB: f64 = 0.25;
const RECOVERED_GB: f64 = 0.20;
const QUEUE_REQUEST: f64 = 0.40;

// Dollars of one in a month.
const ALARM: f64 = 0.10;
const DASHBOARD: f64 = 3.00;
const METRIC: f64 = 0.30;
/// The system's own metrics that a home has values of in each month: readings accepted, and the ages that rollup and
/// alerting tell each minute. Each further one is of something that went wrong.
const METRICS: f64 = 3.0;

// What is free each month for ever: millions of requests, millions of GB seconds, GB.
const FREE_REQUESTS: f64 = 1.0;
const FREE_GB_SECONDS: f64 = 0.4;
const FREE_LOG_GB: f64 = 5.0;
const FREE_STORED_GB: f64 = 25.0;
const FREE_EGRESS_GB: f64 = 100.0;
const FREE_QUEUE_REQUESTS: f64 = 1.0;
const FREE_ALARMS: f64 = 10.0;
const FREE_DASHBOARDS: f64 = 3.0;
const FREE_METRICS: f64 = 10.0;

/// Millions of requests a month by which `RollupQueue` is asked, also while it is empty.
const POLLS: f64 = 5.0 * 3.0 * MINUTES;

/// Bytes that are billed of a reading with two metrics, and of its entry in the index by room.
const READING: f64 = 180.0;
/// Those of a rollup of a device with two metrics, and the rollups for a reading that is one of 15.
const ROLLUP: f64 = 320.0;
const ROLLUPS: f64 = 0.07;
/// Bytes of a function's line in the log with the 26 of `CloudWatch`, of the API's own line, and of an answer.
const LINE: f64 = 720.0;
const ACCESS_LINE: f64 = 360.0;
const ANSWER: f64 = 400.0;

// Dollars of a provisioned unit in a month of 730 hours.
const PROVISIONED_WRITE_UNIT: f64 = 0.000_65 * 730.0;
const PROVISIONED_READ_UNIT: f64 = 0.000_13 * 730.0;
/// The units of the table and its index by room.
const PROVISIONED_UNITS: f64 = 23.0;

/// Millions of minutes of a month.
const MINUTES: f64 = 0.0432;

/// Lines of a bill.
#[derive(Default)]
struct Bill(Vec<(&'static str, f64)>);

impl Bill {
    fn line(mut self, name: &'static str, dollars: f64) -> Self {
        self.0.push((name, dollars));
        self
    }

    fn together(&self) -> f64 {
        self.0.iter().map(|(_, dollars)| dollars).sum()
    }
}

/// Millions of GB seconds of so many million invocations.
fn gb_seconds(invocations: f64, milliseconds: f64, megabytes: f64) -> f64 {
    invocations * milliseconds / 1_000.0 * megabytes / 1_024.0
}

fn beyond(used: f64, free: f64) -> f64 {
    (used - free).max(0.0)
}

/// The bytes of the page's largest file as it is sent.
fn largest_file() -> f64 {
    let folders = ["web", "web/data", "web/parts", "web/views", "web/words", "web/vendor"];
    let folders = folders.map(|it| fs::read_dir(root().join(it)).expect("a folder"));
    let files = folders.into_iter().flatten().map(|entry| entry.expect("an entry").path());
    let sent = files.filter(|path| path.extension().is_some_and(|it| it == "js" || it == "css"));
    let compressed = sent.map(|path| {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(&fs::read(path).expect("a file")).expect("memory takes everything");
        gzip.finish().expect("memory takes everything").len()
    });
    let bytes = compressed.max().expect("the page has files");
    f64::from(u32::try_from(bytes).expect("a page is small"))
}

/// How a stack is set up.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a parameter of its own")]
struct Setup {
    /// Devices with a reading a minute.
    devices: f64,
    readings_in_a_request: f64,
    is_provisioned: bool,
    has_recovery: bool,
    uses_api: bool,
    /// Whether nothing else in the account uses what is free.
    has_free_parts: bool,
    /// Years of readings that are kept.
    years: f64,
}

const DEFAULT: Setup = Setup {
    devices: 10.0,
    readings_in_a_request: 1.0,
    is_provisioned: true,
    has_recovery: true,
    uses_api: false,
    has_free_parts: true,
    years: 0.0,
};

/// The number of resources of a type in a stack with the defaults.
fn resources_of(kind: &str) -> f64 {
    let resources =
        Template::own().and_then(|it| it.resources(&[])).expect("template.yaml has resources");
    let found = resources.values().filter(|resource| resource["Type"] == kind).count();
    f64::from(u32::try_from(found).expect("few"))
}

/// A month.
fn bill(setup: Setup) -> Bill {
    let beyond =
        |used: f64, free: f64| if setup.has_free_parts { beyond(used, free) } else { used };
    let readings = setup.devices * MINUTES;
    let requests = readings / setup.readings_in_a_request;
    // The registry's window is 10 seconds, the rollup function's 60, and the schedules of that, of
    // alerting and of fetching a minute.
    let registry = requests.min(MINUTES * 6.0);
    let rollup = requests.min(MINUTES) + MINUTES;
    let (alerting, fetching) = (MINUTES, MINUTES);
    let seconds = gb_seconds(requests, 8.0, 256.0)
        + gb_seconds(registry, 4.0, 256.0)
        + gb_seconds(rollup, 30.0, 256.0)
        + gb_seconds(alerting, 20.0, 256.0)
        + gb_seconds(fetching, 4.0, 256.0);
    let invocations = requests + registry + rollup + alerting + fetching;
    let lambda = beyond(invocations, FREE_REQUESTS) * LAMBDA_REQUEST
        + beyond(seconds, FREE_GB_SECONDS) * GB_SECOND_ARM;
    let logs = invocations * LINE / 1_000.0
        + if setup.uses_api { requests * ACCESS_LINE / 1_000.0 } else { 0.0 };
    // Each reading is in the index by room too.
    // Without a rule alerting reads rules and channels each minute, and notes every fifth that it runs.
    let alerts = alerting * (2.2 * READ_UNIT + 0.2 * WRITE_UNIT);
    // Without a source fetching reads an empty partition.
    let sources = fetching * 0.5 * READ_UNIT;
    let units = (readings * (2.0 + ROLLUPS) + MINUTES) * WRITE_UNIT
        + registry * 2.0 * READ_UNIT
        + alerts
        + sources;
    let used = match (setup.is_provisioned, setup.has_free_parts) {
        (false, _) => units,
        (true, true) => 0.0,
        (true, false) => PROVISIONED_UNITS * (PROVISIONED_WRITE_UNIT + PROVISIONED_READ_UNIT),
    };
    let table_gb = 12.0 * setup.years * readings * (READING + ROLLUPS * ROLLUP) / 1_000.0;
    let index_gb = 12.0 * setup.years * readings * READING / 1_000.0;
    Bill::default()
        .line("DynamoDB: reads and writes", used)
        .line("DynamoDB: storage", beyond(table_gb + index_gb, FREE_STORED_GB) * STORED_GB)
        .line(
            "point-in-time recovery",
            if setup.has_recovery { table_gb * RECOVERED_GB } else { 0.0 },
        )
        .line("requests", if setup.uses_api { requests * API_REQUEST } else { 0.0 })
        .line("functions", lambda)
        .line("logs", beyond(logs, FREE_LOG_GB) * LOG_GB)
        .line(
            "alarms, dashboard, metrics",
            beyond(resources_of("AWS::CloudWatch::Alarm"), FREE_ALARMS) * ALARM
                + beyond(resources_of("AWS::CloudWatch::Dashboard"), FREE_DASHBOARDS) * DASHBOARD
                + beyond(METRICS, FREE_METRICS) * METRIC,
        )
        .line("queue", beyond(POLLS, FREE_QUEUE_REQUESTS) * QUEUE_REQUEST)
}

/// Where an abuser's requests arrive, and how many a second are let through.
enum Door {
    /// A function URL: ten for each instance.
    FunctionUrl { instances: f64 },
    /// The HTTP API, and as many instances as its requests need.
    Api { requests: f64 },
}

/// A month of requests without a token for the largest thing that is answered without one, a file of the page, to
/// query, which has the most memory.
fn abuse(door: &Door) -> Bill {
    let (a_second, is_api) = match door {
        Door::FunctionUrl { instances } => (instances * 10.0, false),
        Door::Api { requests } => (*requests, true),
    };
    let requests = a_second * 86_400.0 * 30.0 / 1e6;
    let seconds = gb_seconds(requests, 5.0, 1_024.0);
    let line = LINE + if is_api { ACCESS_LINE } else { 0.0 };
    // A made-up token of the old form costs a read unit, and the answer is small.
    assert!(READ_UNIT + ANSWER / 1_000.0 * EGRESS_GB < largest_file() / 1_000.0 * EGRESS_GB);
    Bill::default()
        .line("requests", if is_api { requests * API_REQUEST } else { 0.0 })
        .line(
            "functions",
            beyond(requests, FREE_REQUESTS) * LAMBDA_REQUEST
                + beyond(seconds, FREE_GB_SECONDS) * GB_SECOND_ARM,
        )
        .line("logs", beyond(requests * line / 1_000.0, FREE_LOG_GB) * LOG_GB)
        .line("answers", beyond(requests * largest_file() / 1_000.0, FREE_EGRESS_GB) * EGRESS_GB)
}

/// A table of bills, a column each.
fn table(head: &str, bills: &[Bill], digits: usize) -> String {
    let mut text = format!("| | {head} |\n|{}\n", " --- |".repeat(bills.len() + 1));
    let row = |name: &str, dollars: &mut dyn Iterator<Item = f64>| {
        let mut row = format!("| {name} |");
        dollars.for_each(|it| write!(row, " {it:.digits$} |").expect("a text takes everything"));
        row + "\n"
    };
    for (n, (name, _)) in bills[0].0.iter().enumerate() {
        text += &row(name, &mut bills.iter().map(|bill| bill.0[n].1));
    }
    text + &row("**together**", &mut bills.iter().map(Bill::together))
}

/// Ten readings a second, about as many as the default table bears.
const BUSY: Setup = Setup { devices: 600.0, ..DEFAULT };
const AFTER_A_YEAR: Setup = Setup { years: 1.0, ..DEFAULT };
const ON_DEMAND: Setup = Setup { is_provisioned: false, ..AFTER_A_YEAR };

#[test]
fn a_home_s_costs_are_documented() {
    let setups = [
        Setup { years: 1.0 / 12.0, ..DEFAULT },
        AFTER_A_YEAR,
        Setup { years: 5.0, ..DEFAULT },
        Setup { has_recovery: false, years: 5.0, ..DEFAULT },
        Setup { uses_api: true, ..AFTER_A_YEAR },
        Setup { uses_api: true, ..ON_DEMAND },
    ];
    let head = "first month | after a year | after five years | the same without recovery | after a year, by the HTTP API | that and `Billing=on-demand`";
    assert_documented("docs/deploy/costs.md", "home", &table(head, &setups.map(bill), 2));
}

#[test]
fn a_home_s_costs_beside_other_things_are_documented() {
    let used_up = Setup { has_free_parts: false, ..AFTER_A_YEAR };
    let setups = [used_up, Setup { is_provisioned: false, ..used_up }];
    let head = "`Billing=provisioned` | `Billing=on-demand`";
    assert_documented(
        "docs/deploy/costs.md",
        "home beside other things",
        &table(head, &setups.map(bill), 2),
    );
}

#[test]
fn the_costs_of_ten_readings_a_second_are_documented() {
    let setups = [
        Setup { years: 1.0 / 12.0, ..BUSY },
        Setup { years: 1.0, ..BUSY },
        Setup { years: 5.0, ..BUSY },
        Setup { years: 1.0, readings_in_a_request: 10.0, ..BUSY },
    ];
    let head =
        "first month | after a year | after five years | after a year, ten readings in a request";
    assert_documented("docs/deploy/costs.md", "busy", &table(head, &setups.map(bill), 2));
}

#[test]
fn the_costs_of_an_abuse_are_documented() {
    let head = "1: 10 requests a second | 10, or 0 in an account of 10: 100 a second | 100: 1,000 a second | 0 in an account of 1,000: 10,000 a second | the HTTP API of a home: 20 a second | of a stack on demand: 200 a second";
    let urls = [1.0, 10.0, 100.0, 1_000.0].map(|instances| Door::FunctionUrl { instances });
    let apis = [20.0, 200.0].map(|requests| Door::Api { requests });
    let bills: Vec<_> = urls.iter().chain(&apis).map(abuse).collect();
    assert_documented("docs/deploy/costs.md", "abuse", &table(head, &bills, 0));
}

/// By units of `docs/develop/access-patterns.md`, 24a, 24c and 24d, on demand: each run writes two for the state of its
/// source, and each new reading one and one for the index by room.
#[test]
fn the_costs_of_sources_are_documented() {
    const HOURS: f64 = MINUTES / 60.0;
    // Remo each minute, weather and prices each hour.
    let runs = MINUTES + 2.0 * HOURS;
    // Devices and a meter that change each minute, quarters of weather and prices, and whether each source fails.
    let readings = 2.0 * MINUTES + 8.0 * HOURS + 3.0 * HOURS;
    let writes = (2.0 * runs + 2.0 * readings) * WRITE_UNIT;
    let without = 0.5 * MINUTES * READ_UNIT;
    let reads = without + runs * READ_UNIT;
    let text = format!(
        "Nature Remo with a meter each minute, weather and prices cost {:.2} dollars a month with \
         `Billing=on-demand`: {:.0},000 write units for the state of the sources, and {:.0},000 for readings. \
         Without a source it is {without:.3}. With `Billing=provisioned` it is nothing.",
        writes + reads,
        2_000.0 * runs,
        2_000.0 * readings,
    );
    assert_documented("docs/deploy/costs.md", "sources", &text);
}

#[test]
fn a_home_pays_less_than_twenty_cents_on_average_in_its_first_year() {
    let months = (1..=12).map(|month| bill(Setup { years: f64::from(month) / 12.0, ..DEFAULT }));
    let average = months.map(|bill| bill.together()).sum::<f64>() / 12.0;
    assert!(average < 0.20, "{average}");
    let free: Vec<_> = bill(Setup { has_recovery: false, years: 10.0, ..DEFAULT }).0;
    assert!(free.iter().all(|(_, dollars)| *dollars < 0.005), "{free:?}");
}

/// AWS says of the stage's limit that it is a default of routes, so the documents name their number.
#[test]
fn the_routes_of_the_http_api_are_counted_in_the_documents() {
    let resources =
        Template::own().and_then(|it| it.resources(&[])).expect("template.yaml has resources");
    let paths = resources["Api"]["Properties"]["Body"]["paths"].as_object().expect("paths");
    let routes: usize = paths.values().filter_map(|methods| Some(methods.as_object()?.len())).sum();

    for page in ["aws", "costs", "fleet"] {
        let page = format!("docs/deploy/{page}.md");
        let text = fs::read_to_string(root().join(&page)).expect("UTF-8");
        let (before, rest) = text.split_once("each of its ").expect("the document tells a number");
        let (_, after) = rest.split_once(" routes").expect("a number of routes");
        let expected = format!("{before}each of its {routes} routes{after}");
        assert_is(&page, &expected);
    }
}

/// README and the script say the same in words.
#[test]
fn the_figures_elsewhere_are_those_of_the_tables() {
    let year = bill(AFTER_A_YEAR).together();
    let on_demand = bill(Setup { uses_api: true, ..ON_DEMAND });
    let requests = bill(Setup { uses_api: true, ..DEFAULT }).0[3].1;
    let first = bill(Setup { years: 1.0 / 12.0, ..DEFAULT }).together();
    let readme = fs::read_to_string(root().join("README.md")).expect("UTF-8");
    for figure in [first, year, requests, on_demand.together()] {
        assert!(readme.contains(&format!("{figure:.2}")), "README.md lacks {figure:.2}");
    }
    let script = fs::read_to_string(root().join("deploy")).expect("UTF-8");
    for figure in [first, year, requests, on_demand.0[0].1] {
        assert!(script.contains(&format!("{figure:.2}")), "deploy lacks {figure:.2}");
    }
}
