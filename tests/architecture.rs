//! Layers of packages and doors of files, read from the source text.
//!
//! Says nothing of other people's crates: `deny.toml` does. Every rule is a function over one file,
//! and its own test shows what it refuses, so that none can go blind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::source::{self, Source};

/// The folders that hold what is built, in contrast to what tests it.
const PRODUCT: [&str; 4] = ["functions", "shared", "local", "cli"];

/// A rule: a path within the project and the file's text, to what is wrong with it.
type Rule = fn(&str, &str) -> Vec<String>;

const RULES: [(&str, Rule); 5] = [
    ("environment and time have one door each", doors),
    ("only keys.rs writes '#'", hash_signs),
    ("main.rs wires, lib.rs works", thin_main),
    ("no file is called mod.rs", no_mod_rs),
    ("the first line says what a file is", says_what_it_is),
];

#[test]
fn every_file_keeps_every_rule() {
    let files = rust_files();
    for known in ["shared/table/src/keys.rs", "functions/ingest/src/main.rs", "tests/main.rs"] {
        assert!(files.contains_key(known), "{known} was not read");
    }
    let broken: Vec<String> = RULES
        .iter()
        .flat_map(|(name, rule)| {
            files.iter().flat_map(move |(path, text)| {
                rule(path, text).into_iter().map(move |what| format!("{path}: {what} ({name})"))
            })
        })
        .collect();
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

#[test]
fn packages_depend_downwards_only() {
    let broken = upward_dependencies(&dependencies());
    assert!(broken.is_empty(), "{broken:#?}");
}

/// The functions whose answers somebody waits for build without the SDK of a queue that they do not have.
#[test]
fn only_a_consumer_of_the_stream_builds_the_queue() {
    let manifests = files("toml");
    let users = manifests.iter().filter(|(_, text)| text.contains("features = [\"sqs\"]"));
    let users: Vec<&str> = users.map(|(path, _)| path.as_str()).collect();
    assert_eq!(users, ["functions/registry/Cargo.toml", "functions/rollup/Cargo.toml"]);
}

/// The page's data come one way: what asks the server is in `data/`, what draws asks no request of it.
#[test]
fn what_draws_the_page_sends_no_request() {
    assert_eq!(
        requests_of("import { Failure, hasToken } from \"../data/api.js\";\n"),
        Vec::<String>::new()
    );
    assert_eq!(requests_of("import { Failure, get } from \"../data/api.js\";\n"), ["get"]);
    assert_eq!(requests_of("import {\n  get,\n} from \"../data/api.js\";\n"), ["get"]);
    assert_eq!(requests_of("import * as api from \"../data/api.js\";\n"), ["get"]);
    assert_eq!(requests_of("const { data } = await fetch(address);\n"), ["fetch"]);

    let drawing = project_files().filter(|path| {
        let is_script = Path::new(path).extension().is_some_and(|found| found == "js");
        let asks = ["web/data/", "web/vendor/", "web/worker.js"];
        path.starts_with("web/") && is_script && !asks.iter().any(|part| path.starts_with(part))
    });
    let drawing: Vec<String> = drawing.collect();
    assert!(drawing.len() > 30, "{drawing:?}");
    for path in drawing {
        let text = fs::read_to_string(root().join(&path)).expect("a script is text");
        assert!(requests_of(&text).is_empty(), "{path} sends {:?}", requests_of(&text));
    }
}

/// What a script of the page uses to send requests.
fn requests_of(script: &str) -> Vec<String> {
    let imports = script.split("import").skip(1).filter_map(|rest| rest.split_once(';'));
    let imported = imports.map(|(head, _)| head).filter(|head| head.contains("data/api.js\""));
    // Of an import that names nothing, any part may be used.
    let imported = imported.map(|head| head.split(['{', '}']).nth(1).unwrap_or("get"));
    let names = imported.flat_map(|names| names.split(',')).map(str::trim);
    let is_request = |name: &&str| {
        ["get", "list", "patch", "send", "store", "saveCsv", "url", "path"].contains(name)
    };

    let mut found: Vec<String> = names.filter(is_request).map(str::to_owned).collect();
    found.extend(script.contains("fetch(").then(|| "fetch".to_owned()));
    found
}

/// What makes schemas of types is in no function.
#[test]
fn only_the_tests_build_schemas() {
    let manifests = files("toml");
    let users = manifests.iter().filter(|(_, text)| text.contains("features = [\"schema\"]"));
    let users: Vec<&str> = users.map(|(path, _)| path.as_str()).collect();
    assert_eq!(users, ["tests/Cargo.toml"]);
}

#[test]
fn every_package_takes_its_versions_and_lints_from_the_workspace() {
    let manifests: Vec<_> =
        files("toml").into_iter().filter(|(path, _)| path != "Cargo.toml").collect();
    assert!(manifests.len() >= 6, "{manifests:?}");
    for (path, text) in manifests {
        let broken = own_versions_or_lints(&text);
        assert!(broken.is_empty(), "{path}: {broken:?}");
    }
}

// ---- The rules ---------------------------------------------------------------------------------

/// What reads the environment or the time stands in one file each.
fn doors(path: &str, text: &str) -> Vec<String> {
    const ENVIRONMENT: [&str; 6] =
        ["std::env", "env::var", "env::var_os", "env::vars", "env::vars_os", "env::args"];
    const TIME_OF_DAY: [&str; 4] =
        ["Utc::now", "Local::now", "SystemTime::now", "SystemTime::UNIX_EPOCH"];
    const MONOTONIC: [&str; 1] = ["Instant::now"];
    const CLOCK: &str = "shared/runtime/src/clock.rs";
    if !is_product(path) {
        return Vec::new();
    }
    let code = Source::shipped(text).code();
    let banned = |doors: &[&str], names: &[&str]| -> Vec<String> {
        let used = names.iter().filter(|name| !doors.contains(&path) && has_path(&code, name));
        used.map(|name| format!("`{name}` outside {}", doors.join(", "))).collect()
    };
    let mut broken = banned(&["shared/runtime/src/config.rs"], &ENVIRONMENT);
    broken.extend(banned(&[CLOCK], &TIME_OF_DAY));
    broken.extend(banned(&[CLOCK, "shared/table/src/deadline.rs"], &MONOTONIC));
    broken
}

/// `#` parts keys, so one file writes it. Elsewhere it may stand before a name in an expression of the
/// store (`#name`), before a path in JSON Schema (`#/components`), behind the path of an address (`/#`), before a
/// comment in a file of TOML (`# `), and in a format (`{:#}`). `address.rs` of `history` takes addresses apart.
fn hash_signs(path: &str, text: &str) -> Vec<String> {
    let writes_it = ["shared/table/src/keys.rs", "shared/history/src/address.rs"].contains(&path);
    if !is_product(path) || writes_it {
        return Vec::new();
    }
    let expressions = in_module(path, "shared/dynamodb/src");
    let literals = Source::shipped(text).literals();
    let broken = literals.into_iter().filter(|literal| {
        let plain = source::without_format_specs(&literal.text);
        plain.char_indices().filter(|(_, c)| *c == '#').any(|(at, _)| {
            let before = plain[..at].chars().next_back();
            let after = plain[at + 1..].chars().next();
            let placeholder = before.is_none_or(|c| !c.is_alphanumeric() && c != '}')
                && after.is_some_and(|c| c.is_ascii_lowercase());
            let pointer = before.is_none() && after == Some('/');
            // Before the fragment of an address.
            let fragment = before == Some('/') && after.is_none();
            let comment = before.is_none_or(|c| c == '\n') && after == Some(' ');
            !(expressions && placeholder || pointer || fragment || comment)
        })
    });
    broken.map(|literal| format!("line {}: '#' in {:?}", literal.line, literal.text)).collect()
}

/// What a `main` does no test can call.
fn thin_main(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().count();
    if path.starts_with("functions/") && path.ends_with("/main.rs") && lines > 25 {
        return vec![format!("{lines} lines; 25 wire a function")];
    }
    Vec::new()
}

/// `foo.rs` and `foo/`: a tab that says `mod.rs` says nothing.
fn no_mod_rs(path: &str, _: &str) -> Vec<String> {
    if path.ends_with("/mod.rs") { vec!["is called mod.rs".to_owned()] } else { Vec::new() }
}

/// A file that cannot be described in a line is two files.
fn says_what_it_is(_: &str, text: &str) -> Vec<String> {
    let first = text.lines().next().unwrap_or_default();
    if first.strip_prefix("//! ").is_some_and(|doc| !doc.trim().is_empty()) {
        return Vec::new();
    }
    vec![format!("begins with {first:?}")]
}

/// Which packages of the workspace a package may use. `tests` may use all, and nothing uses `tests`.
const LAYERS: [(&str, &[&str]); 26] = [
    ("domain", &[]),
    ("outgoing", &["domain"]),
    ("alerts", &["domain", "outgoing"]),
    ("polling", &["domain", "outgoing"]),
    ("sending", &["domain", "outgoing", "alerts"]),
    ("influxql", &["domain"]),
    ("tariffs", &["domain"]),
    ("ports", &[]),
    ("table", &["domain", "alerts", "outgoing", "polling", "ports"]),
    ("rollups", &["domain", "table"]),
    ("series", &["domain", "table", "rollups"]),
    ("judging", &["domain", "alerts", "table", "rollups", "series"]),
    ("aws", &[]),
    ("dynamodb", &["domain", "table", "aws"]),
    ("api", &["domain", "table"]),
    ("runtime", &["domain", "table", "aws", "api"]),
    ("influxdb", &["domain", "api", "influxql"]),
    ("ingest", &["domain", "table", "rollups", "aws", "dynamodb", "api", "runtime", "influxdb"]),
    (
        "query",
        &[
            "domain", "alerts", "outgoing", "polling", "table", "rollups", "aws", "dynamodb",
            "api", "runtime", "influxql", "influxdb", "series", "tariffs", "judging",
        ],
    ),
    ("registry", FUNCTION),
    (
        "fetching",
        &["domain", "table", "aws", "dynamodb", "api", "runtime", "outgoing", "polling", "sending"],
    ),
    (
        "alerting",
        &[
            "domain", "table", "rollups", "aws", "dynamodb", "api", "runtime", "alerts", "judging",
            "series", "outgoing", "sending",
        ],
    ),
    ("rollup", FUNCTION),
    (
        "local",
        &[
            "alerting", "fetching", "ingest", "query", "registry", "rollup", "domain", "alerts",
            "outgoing", "sending", "judging", "table", "aws", "dynamodb", "api", "runtime",
            "rollups",
        ],
    ),
    ("history", &["domain", "api", "ingest"]),
    (
        "roomtide",
        &[
            "local", "history", "domain", "alerts", "outgoing", "table", "rollups", "aws",
            "dynamodb", "api", "runtime",
        ],
    ),
];

/// A function names `dynamodb` where its `main` wires it, and nowhere else.
const FUNCTION: &[&str] =
    &["domain", "alerts", "table", "rollups", "judging", "aws", "dynamodb", "api", "runtime"];

/// Crates with which a layer would reach past its neighbours, and the packages that may use each.
const RESERVED: [(&str, &[&str]); 8] = [
    ("aws-sdk-dynamodb", &["dynamodb"]),
    // The command receives from the dead-letter queue, which no function does.
    ("aws-sdk-sqs", &["runtime", "roomtide"]),
    ("aws-smithy-http-client", &["aws"]),
    ("aws-types", &["aws"]),
    (
        "aws_lambda_events",
        &["api", "runtime", "ingest", "query", "registry", "rollup", "local", "roomtide", "tests"],
    ),
    ("lambda_runtime", &["alerting", "fetching", "ingest", "query", "registry", "rollup"]),
    ("dynoxide-rs", &["local"]),
    ("rusqlite", &["local", "history", "roomtide"]),
];

/// What a package depends on and may not.
fn upward_dependencies(dependencies: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let layer = |package: &str| LAYERS.iter().find(|(name, _)| *name == package).map(|it| it.1);
    let may_use = |package: &str, other: &str| {
        let reserved = RESERVED.iter().find(|(name, _)| *name == other);
        let is_ours = dependencies.contains_key(other);
        // A package's own tests may ask for one of its features and so name itself.
        package == other
            || reserved.is_none_or(|(_, users)| users.contains(&package))
                && (!is_ours
                    || package == "tests" && other != "tests"
                    || layer(package).is_some_and(|lower| lower.contains(&other)))
    };
    let broken = dependencies.iter().flat_map(|(package, used)| {
        let upward = used.iter().filter(move |other| !may_use(package, other));
        upward.map(move |other| format!("{package} depends on {other}"))
    });
    broken.collect()
}

/// A second place for a version or a lint is a second truth.
fn own_versions_or_lints(manifest: &str) -> Vec<String> {
    let mut broken: Vec<String> = manifest
        .lines()
        .filter(|line| {
            let compact: String = line.chars().filter(|c| !c.is_whitespace()).collect();
            compact.contains("version=")
                || compact.contains("path=\"..") && !compact.ends_with(".rs\"")
                || compact.contains("git=\"")
        })
        .map(|line| format!("{line:?} belongs into the workspace's manifest"))
        .collect();
    if !manifest.contains("[lints]\nworkspace = true") {
        broken.push("does not take the workspace's lints".to_owned());
    }
    broken
}

// ---- Reading the project -----------------------------------------------------------------------

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is in the project").to_owned()
}

/// The Rust files of every package: path within the project to text.
pub(crate) fn rust_files() -> BTreeMap<String, String> {
    files("rs")
}

/// The paths of all files that are tracked, or could be.
pub(crate) fn project_files() -> impl Iterator<Item = String> {
    let root = root();
    let mut folders = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the project can be read") {
            let path = entry.expect("a folder of the project can be read").path();
            let inside = path.strip_prefix(&root).expect("found within the project");
            let inside = inside.to_string_lossy().replace('\\', "/");
            if !path.is_dir() {
                found.push(inside);
            } else if !inside.starts_with('.')
                && !inside.ends_with("target")
                && !inside.ends_with("node_modules")
            {
                folders.push(path);
            }
        }
    }
    found.into_iter()
}

fn files(extension: &str) -> BTreeMap<String, String> {
    let root = root();
    let mut found = BTreeMap::new();
    let mut folders: Vec<PathBuf> =
        PRODUCT.iter().copied().chain(["tests"]).map(|folder| root.join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a package's folder can be read") {
            let path = entry.expect("a package's folder can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                let text = fs::read_to_string(&path).expect("sources are UTF-8");
                let inside = path.strip_prefix(&root).expect("found within the project");
                found.insert(inside.to_string_lossy().replace('\\', "/"), text);
            }
        }
    }
    found
}

/// The packages of the workspace and what each names as a dependency of any kind.
pub(crate) fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo runs where cargo test runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata writes JSON");
    let names = |list: &serde_json::Value| -> Vec<(String, serde_json::Value)> {
        let list = list.as_array().cloned().unwrap_or_default();
        list.into_iter()
            .map(|it| (it["name"].as_str().unwrap_or_default().to_owned(), it))
            .collect()
    };
    let packages: BTreeMap<_, BTreeSet<_>> = names(&metadata["packages"])
        .into_iter()
        .map(|(name, package)| {
            (name, names(&package["dependencies"]).into_iter().map(|(name, _)| name).collect())
        })
        .collect();
    assert!(packages.contains_key("table") && packages["ingest"].contains("table"), "{packages:?}");
    packages
}

/// Code that is shipped: the packages but for their tests.
pub(crate) fn is_product(path: &str) -> bool {
    let in_package = PRODUCT.iter().any(|folder| path.starts_with(&format!("{folder}/")));
    let is_test = path.ends_with("/tests.rs") || path.contains("/src/tests/");
    in_package && path.contains("/src/") && !is_test
}

/// `module.rs` or a file below `module/`.
fn in_module(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// Whether `name`, a path such as `Utc::now`, stands in `code` and is not the end of a longer word.
fn has_path(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        !code[..at].chars().next_back().is_some_and(word)
            && !code[at + name.len()..].chars().next().is_some_and(word)
    })
}

// ---- What the rules refuse ---------------------------------------------------------------------

const HANDLER: &str = "functions/ingest/src/lib.rs";
const EXPRESSION: &str = "shared/dynamodb/src/query.rs";

#[track_caller]
fn refuses(rule: Rule, path: &str, text: &str) {
    assert!(!rule(path, text).is_empty(), "nothing wrong with {path}: {text}");
}

#[track_caller]
fn accepts(rule: Rule, path: &str, text: &str) {
    assert_eq!(rule(path, text), Vec::<String>::new(), "{path}: {text}");
}

#[test]
fn a_stray_look_at_the_environment_or_the_clock_is_refused() {
    for code in [
        "let a = std::env::var(\"A\");",
        "use std::env;",
        "env::vars()",
        "chrono::Utc::now()",
        "let t = Instant::now();",
        "tokio::time::Instant::now()",
        "std::time::SystemTime::now()",
    ] {
        refuses(doors, HANDLER, code);
        accepts(doors, HANDLER, &format!("// {code}"));
        accepts(doors, HANDLER, &format!("#[cfg(test)]\nmod tests {{ fn f() {{ {code} }} }}"));
        refuses(doors, HANDLER, &format!("#[cfg(test)]\nmod tests {{ }}\n{code}"));
    }
    accepts(doors, "shared/runtime/src/config.rs", "std::env::var(name)");
    refuses(doors, "shared/runtime/src/config.rs", "Utc::now()");
    accepts(doors, "shared/runtime/src/clock.rs", "Utc::now()");
    refuses(doors, "shared/runtime/src/clock.rs", "std::env::var(name)");
    accepts(doors, "shared/table/src/deadline.rs", "Instant::now()");
    refuses(doors, "shared/table/src/deadline.rs", "Utc::now()");
    accepts(doors, HANDLER, "clock.now(); env!(\"CARGO_PKG_VERSION\"); say(\"Utc::now\")");
}

#[test]
fn a_stray_hash_sign_is_refused() {
    for code in [
        "format!(\"TS#{at}\")",
        "text.split('#')",
        "b'#'",
        "b\"#\"",
        "r\"TS#\"",
        "r##\"a\"#1\"##",
        "\"{:#}TS#\"",
        "\"\\u{23}\"",
        "'\\x23'",
        "\"a#b\"",
    ] {
        refuses(hash_signs, HANDLER, code);
        refuses(hash_signs, EXPRESSION, code);
        accepts(hash_signs, "shared/table/src/keys.rs", code);
        accepts(hash_signs, HANDLER, &format!("/* {code} */ // {code}"));
        accepts(
            hash_signs,
            HANDLER,
            &format!("#[cfg(test)] mod tests {{ const A: u8 = {code}; }}"),
        );
    }
    let placeholder = "const A: &str = \"#pk = :pk AND begins_with(#sk, :prefix)\";";
    accepts(hash_signs, EXPRESSION, placeholder);
    refuses(hash_signs, HANDLER, placeholder);
    accepts(
        hash_signs,
        HANDLER,
        "#[must_use] fn f<'a>(x: &'a str) { let r#type = \"#/components/A\"; }",
    );
    accepts(hash_signs, HANDLER, "format!(\"{error:#} {:#?} {0:#x}\")");
    accepts(hash_signs, HANDLER, "const HEAD: &str = \"# One.\\n# Two.\\n\";");
    accepts(hash_signs, "functions/query/src/tests/rooms.rs", "f(\"a#b\");");
    accepts(hash_signs, HANDLER, "r#\"{\"a\": 1}\"#");
}

#[test]
fn a_fat_main_a_mod_rs_and_a_nameless_file_are_refused() {
    refuses(thin_main, "functions/ingest/src/main.rs", &"\n".repeat(26));
    accepts(thin_main, "functions/ingest/src/main.rs", &"\n".repeat(25));
    refuses(no_mod_rs, "shared/table/src/mod.rs", "");
    refuses(says_what_it_is, HANDLER, "use std::fmt;\n");
    refuses(says_what_it_is, HANDLER, "//!\n");
    refuses(says_what_it_is, HANDLER, "");
    accepts(says_what_it_is, HANDLER, "//! Stores readings.\n");
}

#[test]
fn an_upward_dependency_is_refused() {
    let graph = |edges: &[(&str, &[&str])]| -> BTreeMap<String, BTreeSet<String>> {
        let of = |used: &[&str]| used.iter().map(|&name| name.to_owned()).collect();
        edges.iter().map(|(package, used)| ((*package).to_owned(), of(used))).collect()
    };
    let all = LAYERS.map(|(package, _)| (package, &[][..]));
    for (package, used) in [
        ("ingest", "query"),
        ("ingest", "local"),
        ("local", "roomtide"),
        ("roomtide", "ingest"),
        ("ingest", "tests"),
        ("domain", "table"),
        ("table", "dynamodb"),
        ("runtime", "dynamodb"),
        ("api", "runtime"),
        ("table", "aws-sdk-dynamodb"),
        ("table", "aws_lambda_events"),
        ("ingest", "aws-sdk-dynamodb"),
        ("ingest", "dynoxide-rs"),
        ("runtime", "lambda_runtime"),
        ("unheard-of", "domain"),
    ] {
        let mut edges = all.to_vec();
        edges.extend([("tests", &[][..]), ("unheard-of", &[])]);
        edges.retain(|(name, _)| *name != package);
        let used = [used];
        edges.push((package, &used));
        assert_eq!(upward_dependencies(&graph(&edges)).len(), 1, "{package} on {used:?}");
    }
    let sound = graph(&[
        ("domain", &["serde", "domain"]),
        ("dynamodb", &["domain", "aws-sdk-dynamodb"]),
        ("ingest", &["domain", "serde", "lambda_runtime"]),
        ("tests", &["ingest", "domain", "aws_lambda_events"]),
    ]);
    assert_eq!(upward_dependencies(&sound), Vec::<String>::new());
}

#[test]
fn a_version_outside_the_workspace_is_refused() {
    let lints = "[lints]\nworkspace = true\n";
    assert!(own_versions_or_lints(&format!("version.workspace = true\n{lints}")).is_empty());
    assert!(!own_versions_or_lints(&format!("serde = {{ version = \"1\" }}\n{lints}")).is_empty());
    assert!(
        !own_versions_or_lints(&format!("domain = {{ path = \"../domain\" }}\n{lints}")).is_empty()
    );
    assert!(own_versions_or_lints(&format!("path = \"../a.rs\"\n{lints}")).is_empty());
    assert!(!own_versions_or_lints("serde.workspace = true\n").is_empty());
}
