//! Who may import whom, and which file is the only door to what, read from the source text.
//!
//! Says nothing of other people's crates: `deny.toml` does. Every rule is a function over one file,
//! and its own test shows what it refuses, so that none can go blind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::source::{self, Source};

/// The folders that hold what is built, in contrast to what tests it.
const PRODUCT: [&str; 3] = ["functions", "shared", "local"];

/// A rule: a path within the project and the file's text, to what is wrong with it.
type Rule = fn(&str, &str) -> Vec<String>;

const RULES: [(&str, Rule); 8] = [
    ("environment and time have one door each", doors),
    ("only keys.rs writes '#'", hash_signs),
    ("the domain imports no one", domain),
    ("only the doors to AWS's services know its SDK", sdk),
    ("events of AWS stop at the functions", events_stop),
    ("main.rs wires, lib.rs works", thin_main),
    ("no file is called mod.rs", no_mod_rs),
    ("the first line says what a file is", says_what_it_is),
];

#[test]
fn every_file_keeps_every_rule() {
    let files = rust_files();
    for known in ["shared/src/store/keys.rs", "functions/ingest/src/main.rs", "tests/main.rs"] {
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
    const TIME: [&str; 5] =
        ["Utc::now", "Local::now", "SystemTime::now", "Instant::now", "SystemTime::UNIX_EPOCH"];
    if !is_product(path) {
        return Vec::new();
    }
    let code = Source::read(text).without_tests().code;
    let banned = |door: &str, names: &[&str]| -> Vec<String> {
        let used = names.iter().filter(|name| path != door && has_path(&code, name));
        used.map(|name| format!("`{name}` outside {door}")).collect()
    };
    let mut broken = banned("shared/src/config.rs", &ENVIRONMENT);
    broken.extend(banned("shared/src/clock.rs", &TIME));
    broken
}

/// `#` parts keys, so one file writes it. Elsewhere it may stand before a name in an expression of the
/// store (`#name`), before a path in JSON Schema (`#/components`), and in a format (`{:#}`).
fn hash_signs(path: &str, text: &str) -> Vec<String> {
    if !is_product(path) || path == "shared/src/store/keys.rs" {
        return Vec::new();
    }
    let expressions = in_module(path, "shared/src/store/dynamodb");
    let literals = Source::read(text).without_tests().literals;
    let broken = literals.into_iter().filter(|literal| {
        let plain = source::without_format_specs(&literal.text);
        plain.char_indices().filter(|(_, c)| *c == '#').any(|(at, _)| {
            let before = plain[..at].chars().next_back();
            let after = plain[at + 1..].chars().next();
            let placeholder = before.is_none_or(|c| !c.is_alphanumeric() && c != '}')
                && after.is_some_and(|c| c.is_ascii_lowercase());
            let pointer = before.is_none() && after == Some('/');
            !(expressions && placeholder || pointer)
        })
    });
    broken.map(|literal| format!("line {}: '#' in {:?}", literal.line, literal.text)).collect()
}

/// The domain needs no AWS, no runtime and nothing of the rest of `shared`.
fn domain(path: &str, text: &str) -> Vec<String> {
    const OUTSIDE: [&str; 10] = [
        "lambda_runtime",
        "tokio",
        "http",
        "futures_util",
        "crate::store",
        "crate::http",
        "crate::config",
        "crate::clock",
        "crate::telemetry",
        "std::fs",
    ];
    if !in_module(path, "shared/src/domain") {
        return Vec::new();
    }
    let code = Source::read(text).without_tests().code;
    let mut broken: Vec<String> = OUTSIDE
        .iter()
        .filter(|name| imports(&code, name))
        .map(|name| format!("imports `{name}`"))
        .collect();
    if code.contains("aws_") {
        broken.push("imports AWS".to_owned());
    }
    broken
}

/// The AWS SDK is spoken where a client is built, at the table's door and at the queue's.
fn sdk(path: &str, text: &str) -> Vec<String> {
    let doors =
        ["shared/src/aws", "shared/src/store/dynamodb", "functions/registry/src/dead_letters/sqs"];
    if !is_product(path) || doors.iter().any(|door| in_module(path, door)) {
        return Vec::new();
    }
    let code = Source::read(text).code;
    ["aws_sdk_", "aws_smithy_", "aws_config", "aws_credential_types", "aws_types"]
        .iter()
        .filter(|name| code.contains(**name))
        .map(|name| format!("uses `{name}`"))
        .collect()
}

/// The domain and the store speak of readings and keys, never of what invoked a function.
fn events_stop(path: &str, text: &str) -> Vec<String> {
    let inner = in_module(path, "shared/src/domain") || in_module(path, "shared/src/store");
    if inner && Source::read(text).code.contains("aws_lambda_events") {
        return vec!["uses `aws_lambda_events`".to_owned()];
    }
    Vec::new()
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

/// Which package of the workspace may use which others; what is not named is used by nobody.
fn upward_dependencies(dependencies: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let allowed = |package: &str| -> &[&str] {
        match package {
            "ingest" | "query" | "registry" => &["shared"],
            "local" => &["ingest", "query", "registry", "shared"],
            "tests" => &["ingest", "query", "registry", "shared", "local"],
            _ => &[],
        }
    };
    // A package's own tests may ask for one of its features and so name itself.
    let broken = dependencies.iter().flat_map(|(package, used)| {
        let upward = used.iter().filter(move |other| {
            *other != package
                && dependencies.contains_key(*other)
                && !allowed(package).contains(&other.as_str())
        });
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
                || compact.contains("path=\"..")
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

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is in the project").to_owned()
}

/// The Rust files of every package: path within the project to text.
pub(crate) fn rust_files() -> BTreeMap<String, String> {
    files("rs")
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
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
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
    assert!(
        packages.contains_key("shared") && packages["ingest"].contains("shared"),
        "{packages:?}"
    );
    packages
}

/// Code that is shipped: the packages but for their tests.
pub(crate) fn is_product(path: &str) -> bool {
    let in_package = PRODUCT.iter().any(|folder| path.starts_with(&format!("{folder}/")));
    in_package && path.contains("/src/") && !path.ends_with("/tests.rs")
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

/// Whether `code` takes anything from `module`: `module::...` or `use module`.
fn imports(code: &str, module: &str) -> bool {
    code.match_indices(module).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + module.len()..]);
        let starts = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
        let used = before.ends_with("use ") && after.starts_with([';', ' ']);
        starts && (after.starts_with("::") || used)
    })
}

// ---- What the rules refuse ---------------------------------------------------------------------

const DOMAIN: &str = "shared/src/domain/id.rs";
const HANDLER: &str = "functions/ingest/src/lib.rs";
const EXPRESSION: &str = "shared/src/store/dynamodb/query.rs";

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
    accepts(doors, "shared/src/config.rs", "std::env::var(name)");
    refuses(doors, "shared/src/config.rs", "Utc::now()");
    accepts(doors, "shared/src/clock.rs", "Utc::now()");
    refuses(doors, "shared/src/clock.rs", "std::env::var(name)");
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
        accepts(hash_signs, "shared/src/store/keys.rs", code);
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
    accepts(hash_signs, HANDLER, "r#\"{\"a\": 1}\"#");
}

#[test]
fn an_import_into_the_domain_is_refused() {
    for code in [
        "use aws_lambda_events::event::apigw::ApiGatewayV2httpRequest;",
        "use lambda_runtime::Error;",
        "tokio::spawn(f())",
        "use http::StatusCode;",
        "use crate::store::StoreError;",
        "use crate::http;",
    ] {
        refuses(domain, DOMAIN, code);
        refuses(domain, "shared/src/domain.rs", code);
        accepts(domain, HANDLER, code);
        accepts(domain, DOMAIN, &format!("//! Not {code}"));
    }
    accepts(domain, DOMAIN, "use serde::Deserialize; use crate::domain::Instant; \"http::\"");
}

#[test]
fn the_sdk_elsewhere_is_refused() {
    for code in ["use aws_sdk_dynamodb::Client;", "fn f(e: aws_smithy_runtime_api::E) {}"] {
        for path in
            [HANDLER, "shared/src/store/item.rs", "shared/src/store.rs", "local/src/main.rs"]
        {
            refuses(sdk, path, code);
        }
        accepts(sdk, EXPRESSION, code);
        accepts(sdk, "shared/src/store/dynamodb.rs", code);
    }
    refuses(sdk, "shared/src/store/dynamodb_too.rs", "use aws_sdk_dynamodb::Client;");
}

#[test]
fn an_event_in_the_domain_or_the_store_is_refused() {
    let code = "use aws_lambda_events::event::dynamodb::EventRecord;";
    for path in [DOMAIN, EXPRESSION, "shared/src/store.rs"] {
        refuses(events_stop, path, code);
    }
    accepts(events_stop, HANDLER, code);
}

#[test]
fn a_fat_main_a_mod_rs_and_a_nameless_file_are_refused() {
    refuses(thin_main, "functions/ingest/src/main.rs", &"\n".repeat(26));
    accepts(thin_main, "functions/ingest/src/main.rs", &"\n".repeat(25));
    refuses(no_mod_rs, "shared/src/store/mod.rs", "");
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
    let all = ["ingest", "query", "registry", "shared", "local", "tests"];
    for (package, used) in [
        ("ingest", "query"),
        ("registry", "ingest"),
        ("shared", "ingest"),
        ("query", "local"),
        ("local", "tests"),
    ] {
        let mut broken = graph(&all.map(|name| (name, [].as_slice())));
        broken.insert(package.to_owned(), BTreeSet::from([used.to_owned()]));
        assert_eq!(upward_dependencies(&broken), [format!("{package} depends on {used}")]);
    }
    let sound = graph(&[("ingest", &["shared", "serde"]), ("shared", &[]), ("tests", &["ingest"])]);
    assert_eq!(upward_dependencies(&sound), Vec::<String>::new());
}

#[test]
fn a_version_outside_the_workspace_is_refused() {
    let lints = "[lints]\nworkspace = true\n";
    assert!(own_versions_or_lints(&format!("version.workspace = true\n{lints}")).is_empty());
    assert!(!own_versions_or_lints(&format!("serde = {{ version = \"1\" }}\n{lints}")).is_empty());
    assert!(
        !own_versions_or_lints(&format!("shared = {{ path = \"../shared\" }}\n{lints}")).is_empty()
    );
    assert!(!own_versions_or_lints("serde.workspace = true\n").is_empty());
}
