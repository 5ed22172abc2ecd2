//! No store names a port that nothing calls: the role of a function would permit what nobody does. Reads source text.

use std::collections::{BTreeMap, BTreeSet};

use crate::architecture::{dependencies, is_product, rust_files};
use crate::source::Source;

/// By port its methods.
type Ports = BTreeMap<String, BTreeSet<String>>;

#[test]
fn no_store_names_a_port_that_nothing_calls() {
    let code = shipped_code();
    let ports = declared_ports(&code["table"]);
    assert!(ports.len() > 50 && ports["PutJudgements"].contains("put_judgement"), "{ports:?}");

    let dependencies = dependencies();
    let mut stores = 0;
    for (package, own) in &code {
        let callers: String =
            reachable(package, &dependencies).map(|name| code[name].as_str()).collect();
        for store in blocks(own, "store!{") {
            stores += 1;
            let unused = unused_ports(store, &ports, &callers);
            assert!(unused.is_empty(), "{package} names ports that nothing calls: {unused:?}");
        }
    }
    assert!(stores >= 8, "{stores}");
}

#[test]
fn a_port_that_nothing_calls_is_seen() {
    let ports = declared_ports(
        "#[port(Read,GetItem(A))]impl P{pub fn one(self)->R{}fn helper(){}}\
         #[port(Put,PutItem(A))]impl P{pub async fn two(self)->R{}}",
    );
    let store = "pub trait Store:Read+Put";
    assert_eq!(unused_ports(store, &ports, "store.one(1)"), ["Put"]);
    assert!(unused_ports(store, &ports, "store.one(1);store.two()").is_empty());
}

/// The shipped code of each package.
fn shipped_code() -> BTreeMap<String, String> {
    let mut code: BTreeMap<String, String> = BTreeMap::new();
    for (path, text) in rust_files().into_iter().filter(|(path, _)| is_product(path)) {
        let (folder, _) = path.split_once("/src/").expect("a product is in a package");
        let package = folder.rsplit('/').next().expect("a name").to_owned();
        code.entry(package).or_default().push_str(&Source::shipped(&text).code());
    }
    code
}

/// What is in braces behind each `opening`, which ends in a brace.
fn blocks<'a>(code: &'a str, opening: &str) -> Vec<&'a str> {
    let starts = code.match_indices(opening).map(|(at, _)| &code[at + opening.len()..]);
    starts.map(|rest| &rest[..end_of_block(rest)]).collect()
}

fn end_of_block(rest: &str) -> usize {
    let mut depth = 1;
    let closes = |brace| {
        depth += match brace {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        depth == 0
    };
    rest.find(closes).expect("a block ends")
}

fn declared_ports(code: &str) -> Ports {
    let rows = code.split("#[port(").skip(1);
    let ports = rows.map(|row| {
        let (name, behind) = row.split_once(',').expect("a port has permissions");
        let (_, block) = behind.split_once('{').expect("a port stands before a block");
        (name.to_owned(), methods(&block[..end_of_block(block)]))
    });
    ports.collect()
}

fn methods(block: &str) -> BTreeSet<String> {
    let functions =
        ["pub fn ", "pub async fn "].into_iter().flat_map(|word| block.split(word).skip(1));
    functions.filter_map(|function| function.split(['(', '<']).next()).map(str::to_owned).collect()
}

/// The package and all packages that it is built of, but for the table itself.
fn reachable<'a>(
    package: &'a str,
    dependencies: &'a BTreeMap<String, BTreeSet<String>>,
) -> impl Iterator<Item = &'a str> {
    let mut found = BTreeSet::from([package]);
    let mut next = vec![package];
    while let Some(package) = next.pop() {
        let used = dependencies.get(package).into_iter().flatten().map(String::as_str);
        let ours = used.filter(|name| dependencies.contains_key(*name) && *name != "table");
        next.extend(ours.filter(|name| found.insert(*name)));
    }
    found.into_iter()
}

/// The ports of a store, `trait Store: Port + Port`, whose methods nobody calls.
fn unused_ports(store: &str, ports: &Ports, callers: &str) -> Vec<String> {
    let (_, named) = store.split_once(':').expect("a store names ports");
    let is_unused = |port: &&str| {
        let methods = ports.get(*port).unwrap_or_else(|| panic!("{port} is no port"));
        !methods.iter().any(|method| callers.contains(&format!(".{method}(")))
    };
    named.split('+').filter(is_unused).map(str::to_owned).collect()
}
