//! docs/reference/limits.md: limits with the values that the source gives their constants. Limits of AWS are absent.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::architecture::{is_product, rust_files};
use crate::generated::assert_documented;

/// A limit: what it bounds, then the end of the path of the file with its constant, and the constant.
type Limit = (&'static str, &'static str, &'static str);

const REQUESTS: &[Limit] = &[
    ("Readings in a request", "request.rs", "MAX_READINGS"),
    ("Body of a request, as sent", "request.rs", "MAX_BODY: bytes"),
    ("Body of a request, inflated", "request.rs", "MAX_INFLATED: bytes"),
    ("Members of a gzip body", "request.rs", "MAX_MEMBERS"),
    ("Readings that an MQTT message stores", "assemble.rs", "MAX_OF_MESSAGE"),
    ("A device's own payload", "formats.rs", "MAX_PAYLOAD: bytes"),
    ("Body of an answer, as Lambda carries it", "response.rs", "MAX_CARRIED: bytes"),
    (
        "Refusals that an answer lists in full; further ones only by index",
        "problem.rs",
        "MAX_TOLD: bytes",
    ),
    ("Bad lines of line protocol that an answer names", "replies/influxdb.rs", "MAX_TOLD"),
    ("Rows or devices that a language model's tool answers", "mcp/shorten.rs", "MAX_BYTES: bytes"),
    ("Entries of a list beside these rows", "mcp/shorten.rs", "MAX_BESIDE"),
    ("Rooms that a language model's list of devices has", "mcp/answers.rs", "MAX_ROOMS"),
];

const READINGS: &[Limit] = &[
    ("Metrics of a reading", "domain/src/reading.rs", "MAX_METRICS"),
    ("Fields of a line of line protocol", "line.rs", "MAX_FIELDS"),
    ("Tags of a line of line protocol", "line.rs", "MAX_TAGS"),
    ("Characters of an id", "domain/src/id.rs", "MAX_LENGTH"),
    ("Characters of a name, kind or tag", "label.rs", "MAX_LENGTH"),
    ("Digits of a number", "decimal.rs", "MAX_DIGITS"),
    ("Time of a reading ahead of the server", "times.rs", "MAX_AHEAD"),
    ("Time of a point of line protocol ahead of the server", "line_points.rs", "MAX_AHEAD"),
    ("Error of a device's clock; beyond it the time of arrival counts", "moment.rs", "MAX_OFF"),
];

const REGISTRY: &[Limit] = &[
    (
        "Devices or rooms in a function's memory; beyond it lists page through the table",
        "listing.rs",
        "MAX_CACHED_ENTRIES",
    ),
    (
        "Metrics that the registry keeps of a device, and that rollups have",
        "metric_settings.rs",
        "MAX_KNOWN_METRICS",
    ),
    ("Rooms that a device introduces by its readings", "device.rs", "MAX_INTRODUCED_ROOMS"),
    ("Parts that a device introduces by MQTT", "introduced.rs", "MAX_PARTS"),
    ("Rooms that a rollup names", "domain/src/rollup.rs", "MAX_ROLLUP_ROOMS"),
    (
        "Devices that one request registers; the registry function adds further ones",
        "registration.rs",
        "MAX_REGISTERED",
    ),
    ("Tags of a device", "label.rs", "MAX_TAGS"),
    (
        "Values by which a device is found: name, kind, tags, attributes",
        "domain/src/attributes.rs",
        "MAX_SEARCH_ENTRIES",
    ),
    ("Exchanges, and verdicts, of a metric", "metric_settings.rs", "MAX_JUDGEMENTS"),
    ("Devices directly behind one meter", "meters.rs", "MAX_BEHIND"),
    ("Meters one above the other, above a device", "meters.rs", "MAX_METERS_ABOVE"),
    ("Metrics in one PATCH of a device", "patch.rs", "MAX_PATCHED_METRICS"),
    ("Body of a PATCH", "patch.rs", "MAX_PATCH: bytes"),
    ("Conditions in a search for devices", "question.rs", "MAX_CONDITIONS"),
    ("Devices whose newest values a search reads", "search/newest.rs", "MAX_DEVICES"),
];

const QUERIES: &[Limit] = &[
    ("Rows of a series", "grid.rs", "MAX_ROWS"),
    ("Devices in one answer of series, energy or conditions", "members.rs", "MAX_DEVICES"),
    (
        "Values that one answer in rows is made of: rows times the metrics of all devices",
        "budget.rs",
        "MAX_ROW_VALUES",
    ),
    (
        "Read units of one answer in rows of several devices, as estimated",
        "budget.rs",
        "MAX_ROW_UNITS",
    ),
    ("Range that one request reads from readings", "gather.rs", "MAX_READ"),
    ("Readings of a device that one request reads", "gather.rs", "MAX_READINGS"),
    ("Rollups of 15 minutes of a device that one request reads", "gather.rs", "MAX_ROLLUPS"),
    (
        "Rollups of 15 minutes that one request about conditions is about, over all devices",
        "conditions.rs",
        "MAX_QUARTERS",
    ),
    ("Events in an answer", "events.rs", "MAX_EVENTS"),
    ("Readings that one DELETE removes", "remove.rs", "MAX_DELETED"),
    ("Items that one DELETE of a device removes", "deletion.rs", "MAX_REMOVED"),
    (
        "Time without finds that ends the deletion of a device",
        "domain/src/deletion.rs",
        "DELETION_QUIET",
    ),
];

const METERS: &[Limit] = &[
    ("Largest power of a counter of energy without `max_w`, in W", "counter.rs", "DEFAULT_MAX_W"),
    ("Time for which a power holds without `hold`", "metric_rule.rs", "DEFAULT_HOLD"),
    ("Step of a counter beyond which a row is `estimated`", "domain/src/energy.rs", "MAX_MEASURED"),
];

const CONDITIONS: &[Limit] = &[
    ("Metrics of the schema", "conditions_schema.rs", "MAX_MEMBERS"),
    ("Bits of a metric", "curve.rs", "MAX_BITS"),
    ("Bits of a metric that names none", "conditions_schema.rs", "DEFAULT_BITS"),
    ("Bits of all metrics together", "curve.rs", "MAX_ADDRESS_BITS"),
    ("Quantiles in a domain", "schema.rs", "MAX_KNOTS"),
    ("Shortest range for which the index is used", "plan.rs", "MIN_RANGE"),
];

const INFLUXQL: &[Limit] = &[
    ("Text of a query", "parser.rs", "MAX_TEXT: bytes"),
    ("Statements of a query", "parser.rs", "MAX_STATEMENTS"),
    ("Columns of a statement", "compile.rs", "MAX_COLUMNS"),
    ("Depth of an expression", "expressions.rs", "MAX_DEPTH"),
    ("Operators in a chain", "expressions.rs", "MAX_CHAINED"),
    ("Subqueries of a query", "parser.rs", "MAX_SUBQUERIES"),
    ("Series of a statement", "bounds.rs", "MAX_SERIES"),
    ("Windows of a series", "bounds.rs", "MAX_WINDOWS"),
    ("Windows of a series of a subquery", "bounds.rs", "MAX_INNER_WINDOWS"),
    ("Values of a statement", "bounds.rs", "MAX_VALUES"),
    ("Read units of a statement, as estimated", "read.rs", "MAX_UNITS"),
];

#[test]
fn the_limits_are_those_of_the_code() {
    let source = Constants::read();
    let mut text = String::new();
    for (group, limits) in [
        ("Requests and answers", REQUESTS),
        ("Readings", READINGS),
        ("The registry", REGISTRY),
        ("Queries and deletions", QUERIES),
        ("Meters", METERS),
        ("The index by conditions", CONDITIONS),
        ("InfluxQL", INFLUXQL),
    ] {
        write!(text, "## {group}\n\n| limit | value | constant |\n| --- | --- | --- |\n")
            .expect("writing to memory does not fail");
        for (what, file, constant) in limits {
            let (name, unit) = constant.split_once(": ").unwrap_or((constant, ""));
            let value = shown(&source.value(file, name), unit);
            writeln!(text, "| {what} | {value} | `{name}` |")
                .expect("writing to memory does not fail");
        }
        text.push('\n');
    }
    assert_documented("docs/reference/limits.md", "limits", &text);
}

/// The constants of the product: by file, their names and what stands behind `=`.
struct Constants(BTreeMap<String, BTreeMap<String, String>>);

/// What a constant is: a number, or a number of a unit of time.
#[derive(Debug, PartialEq, Eq)]
enum Value {
    Number(i64),
    Time(i64, String),
}

impl Constants {
    fn read() -> Self {
        let files = rust_files().into_iter().filter(|(path, _)| is_product(path));
        Self(files.map(|(path, text)| (path, constants(&text))).collect())
    }

    /// The value of a constant of the one file that ends in `tail` and has it.
    fn value(&self, tail: &str, name: &str) -> Value {
        let end = format!("/{tail}");
        let files = self.0.iter().filter(|(path, _)| path.ends_with(&end));
        let found: Vec<_> =
            files.filter_map(|(path, all)| Some((path, all, all.get(name)?))).collect();
        let [(path, all, text)] = found[..] else {
            panic!("{} files {tail} have a constant {name}", found.len())
        };
        let value = evaluated(text, &|name| all.get(name).cloned().or_else(|| self.unique(name)));
        value.unwrap_or_else(|| panic!("{path}: {name} = {text} is not understood"))
    }

    /// What stands behind `=` of a constant that only one file has.
    fn unique(&self, name: &str) -> Option<String> {
        let mut found = self.0.values().filter_map(|all| all.get(name));
        found.next().filter(|_| found.next().is_none()).cloned()
    }
}

/// The constants of a file's text.
fn constants(text: &str) -> BTreeMap<String, String> {
    let parts = text.split("const ").skip(1);
    let parts = parts.filter_map(|part| {
        let (name, rest) = part.split_once(':')?;
        let (_, value) = rest.split_once(';')?.0.split_once('=')?;
        Some((name.to_owned(), value.split_whitespace().collect::<Vec<_>>().join(" ")))
    });
    parts.collect()
}

/// The value of `8 << 20`, `10_000`, `2 * MAX`, `2_000.0` or `TimeDelta::days(1)`.
fn evaluated(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Option<Value> {
    if let Some((unit, number)) = text.strip_suffix(')').and_then(|it| it.split_once('(')) {
        let Value::Number(number) = evaluated(number, lookup)? else { return None };
        return Some(Value::Time(number, unit.rsplit("::").next()?.to_owned()));
    }
    let number = |text: &str| match evaluated(text.trim(), lookup)? {
        Value::Number(number) => Some(number),
        Value::Time(..) => None,
    };
    if let Some((left, right)) = text.split_once("<<") {
        return Some(Value::Number(number(left)? << number(right)?));
    }
    if let Some((left, right)) = text.split_once('*') {
        return Some(Value::Number(number(left)? * number(right)?));
    }
    let digits = text.replace('_', "");
    let whole = digits.strip_suffix(".0").unwrap_or(&digits);
    if let Ok(number) = whole.parse() {
        return Some(Value::Number(number));
    }
    evaluated(&lookup(text)?, lookup)
}

/// A value for people.
fn shown(value: &Value, unit: &str) -> String {
    match (value, unit) {
        (Value::Time(1, unit), _) => format!("1 {}", unit.trim_end_matches('s')),
        (Value::Time(number, unit), _) => format!("{number} {unit}"),
        (Value::Number(number), "bytes") if number % (1 << 20) == 0 => {
            format!("{} MiB", number >> 20)
        }
        (Value::Number(number), "bytes") if number % 1024 == 0 => format!("{} KiB", number >> 10),
        (Value::Number(number), unit) => {
            let digits = number.to_string();
            let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(<[u8]>::to_vec).collect();
            let text = String::from_utf8(groups.join(&b',')).expect("digits");
            format!("{text} {unit}").trim_end().to_owned()
        }
    }
}

#[test]
fn constants_are_read_from_the_source() {
    let all = constants(
        "pub const A: usize = 8 << 20;\nconst B: X =\n    TimeDelta::days(1);\nconst C: usize = 2 * A;",
    );
    let value =
        |name: &str| evaluated(&all[name], &|name| all.get(name).cloned()).expect("a value");
    assert_eq!(shown(&value("A"), "bytes"), "8 MiB");
    assert_eq!(shown(&value("B"), ""), "1 day");
    assert_eq!(shown(&value("C"), ""), "16,777,216");
    assert_eq!(evaluated("f(x)", &|_| None), None);
    assert_eq!(evaluated("2_000.0", &|_| None), Some(Value::Number(2_000)));
    assert_eq!(shown(&Value::Number(131_072), "bytes"), "128 KiB");
}
