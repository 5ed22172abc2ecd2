//! Figures of how legible the shipped code is. They only fall; whoever lowers one lowers it here.
//!
//! A figure points at places to read. A rename, a split or a blank line that serves the figure and no reader is worth
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use proc_macro2::Span;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, ExprClosure, FnArg, Item, Meta, Pat, Signature, Type};

use crate::architecture::{root, rust_files};

/// The figures of the workspace.
const LIMITS: Figures = Figures {
    tuple_parameters: 0,
    closures_called_it: 0,
    long_functions: 2,
    bodies_in_one_piece: 13,
    heavy_sentences: 0,
    shared_type_names: 27,
};

/// A body with a decision may have so many lines.
const MAX_LINES: usize = 60;
/// A body of so many lines has steps, and blank lines between them.
const LINES_IN_ONE_PIECE: usize = 20;
/// Words that stand for another one. A sentence with so many of them has to be decoded.
const STANDINS: [&str; 16] = [
    "it", "its", "one", "ones", "those", "these", "that", "what", "none", "which", "whose",
    "other", "others", "them", "they", "this",
];
const MAX_STANDINS: usize = 3;

/// Figures of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Figures {
    tuple_parameters: usize,
    closures_called_it: usize,
    long_functions: usize,
    bodies_in_one_piece: usize,
    heavy_sentences: usize,
    shared_type_names: usize,
}

/// Where each figure was counted.
#[derive(Debug, Default)]
struct Places {
    tuple_parameters: Vec<String>,
    closures_called_it: Vec<String>,
    long_functions: Vec<String>,
    bodies_in_one_piece: Vec<String>,
    heavy_sentences: Vec<String>,
    shared_type_names: Vec<String>,
}

#[test]
fn code_grows_no_less_legible() {
    let places = Places::of_shipped_code();
    let mut wrong = Vec::new();
    for (name, limit, found) in [
        ("tuple parameters", LIMITS.tuple_parameters, places.tuple_parameters),
        ("closures whose argument is `it`", LIMITS.closures_called_it, places.closures_called_it),
        ("bodies of more than 60 lines", LIMITS.long_functions, places.long_functions),
        (
            "bodies of 20 lines without a blank one",
            LIMITS.bodies_in_one_piece,
            places.bodies_in_one_piece,
        ),
        ("sentences of many stand-ins", LIMITS.heavy_sentences, places.heavy_sentences),
        (
            "types of one name in several packages",
            LIMITS.shared_type_names,
            places.shared_type_names,
        ),
    ] {
        let count = found.len();
        if count > limit {
            let (whose, shown) = of_changed_files(found, &changed_files());
            let shown = shown.join("\n  ");
            wrong.push(format!("{count} {name}, at most {limit}; {whose}:\n  {shown}"));
        } else if count < limit {
            wrong.push(format!("{count} {name}: lower the limit from {limit}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the places in files that were changed, because a new one is among them; all if there is no such place.
fn of_changed_files(
    places: Vec<String>,
    changed: &BTreeSet<String>,
) -> (&'static str, Vec<String>) {
    let is_changed =
        |place: &&String| place.split_once(':').is_some_and(|(path, _)| changed.contains(path));
    let new: Vec<String> = places.iter().filter(is_changed).cloned().collect();
    if new.is_empty() { ("all of them", places) } else { ("in changed files", new) }
}

/// Returns the files that differ from the commit before the last; empty where Git cannot say it.
fn changed_files() -> BTreeSet<String> {
    let differing: [&[&str]; 2] =
        [&["diff", "--name-only", "HEAD~1"], &["ls-files", "--others", "--exclude-standard"]];
    let outputs = differing.iter().filter_map(|words| {
        let output = Command::new("git").current_dir(root()).args(*words).output().ok()?;
        output.status.success().then_some(output.stdout)
    });
    let texts = outputs.map(|output| String::from_utf8_lossy(&output).into_owned());
    texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn a_figure_that_grew_shows_the_places_in_changed_files() {
    let places = ["a.rs:3 first", "b.rs:4", "Name: a, b"].map(str::to_owned).to_vec();
    let changed = |path: &str| BTreeSet::from([path.to_owned()]);
    let shown = of_changed_files(places.clone(), &changed("b.rs"));
    assert_eq!(shown, ("in changed files", vec!["b.rs:4".to_owned()]));
    let shown = of_changed_files(places.clone(), &changed("c.rs"));
    assert_eq!(shown, ("all of them", places));
}

/// What is counted is found, and what only tests compile is not.
#[test]
fn each_figure_is_counted_where_it_stands() {
    let text = r"
/// What it is that they give to those which have none of its own.
fn first((a, b): (u8, u8), c: u8) -> u8 {
    [a, b, c].iter().map(|it| *it).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    /// What it is that they give to those which have none of its own.
    fn second((a, b): (u8, u8)) {}
}
";
    let mut places = Places::default();
    places.read("a.rs", text);
    assert_eq!(places.tuple_parameters, ["a.rs:3 first"]);
    assert_eq!(places.closures_called_it, ["a.rs:4"]);
    assert_eq!(places.heavy_sentences.len(), 1, "{:?}", places.heavy_sentences);

    let long = |line: &str| format!("fn long() {{\n{}}}\n", line.repeat(61));
    let mut places = Places::default();
    places.read("b.rs", &long("    call();\n"));
    assert_eq!((places.long_functions.len(), places.bodies_in_one_piece.len()), (0, 1));
    places.read("b.rs", &long("    if is_so { call(); }\n\n"));
    assert_eq!((places.long_functions.len(), places.bodies_in_one_piece.len()), (1, 1));
}

impl Places {
    fn of_shipped_code() -> Self {
        let mut places = Self::default();
        let mut packages_of_types: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (path, text) in rust_files() {
            let Some((package, _)) = path.split_once("/src/") else { continue };
            if path.contains("/tests/") || path.ends_with("/tests.rs") {
                continue;
            }
            for name in places.read(&path, &text) {
                packages_of_types.entry(name).or_default().insert(package.to_owned());
            }
        }

        let shared = packages_of_types.into_iter().filter(|(_, packages)| packages.len() > 1);
        places.shared_type_names = shared
            .map(|(name, packages)| format!("{name}: {}", Vec::from_iter(packages).join(", ")))
            .collect();
        places
    }

    /// Counts in a file. Returns the names of its types.
    fn read(&mut self, path: &str, text: &str) -> Vec<String> {
        let file = syn::parse_file(text).unwrap_or_else(|why| panic!("{path}: {why}"));
        let lines: Vec<&str> = text.lines().collect();
        let mut reader = Reader { path, lines: &lines, places: self, types: Vec::new() };
        reader.visit_file(&file);
        reader.types
    }
}

/// A file that is counted.
struct Reader<'a> {
    path: &'a str,
    lines: &'a [&'a str],
    places: &'a mut Places,
    types: Vec<String>,
}

impl Reader<'_> {
    fn place(&self, span: Span) -> String {
        format!("{}:{}", self.path, span.start().line)
    }

    fn function(&mut self, attributes: &[Attribute], signature: &Signature, body: Option<&Block>) {
        let place = format!("{} {}", self.place(signature.ident.span()), signature.ident);
        self.sentences(attributes);
        let is_tuple = |argument: &FnArg| match argument {
            FnArg::Typed(argument) => {
                matches!(&*argument.ty, Type::Tuple(of) if !of.elems.is_empty())
            }
            FnArg::Receiver(_) => false,
        };
        if signature.inputs.iter().any(is_tuple) {
            self.places.tuple_parameters.push(place.clone());
        }

        let Some(body) = body else { return };
        let (first, last) = (body.span().start().line, body.span().end().line);
        let inside = &self.lines[first..last.saturating_sub(1).max(first)];
        let mut decisions = Decisions::default();
        decisions.visit_block(body);
        if inside.len() > MAX_LINES && decisions.are_there {
            self.places.long_functions.push(format!("{place}, {} lines", inside.len()));
        }
        if inside.len() > LINES_IN_ONE_PIECE && inside.iter().all(|line| !line.trim().is_empty()) {
            self.places.bodies_in_one_piece.push(format!("{place}, {} lines", inside.len()));
        }
    }

    /// Counts the sentences of a doc comment.
    fn sentences(&mut self, attributes: &[Attribute]) {
        let docs = attributes.iter().filter_map(doc);
        let comment: Vec<String> = docs.map(|line| line.trim().to_owned()).collect();
        let comment = comment.join(" ");
        for sentence in comment.split_inclusive(['.', '!', '?']) {
            let words = sentence.split(|c: char| !c.is_alphanumeric() && c != '_');
            let is_standin = |word: &&str| STANDINS.contains(&word.to_lowercase().as_str());
            if words.filter(is_standin).count() > MAX_STANDINS {
                let place = attributes.first().map(|attribute| self.place(attribute.span()));
                let place = place.unwrap_or_default();
                self.places.heavy_sentences.push(format!("{place} {}", sentence.trim()));
            }
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = attributes_of(item);
        if attributes.iter().any(is_for_tests) {
            return;
        }
        match item {
            Item::Struct(of) => self.types.push(of.ident.to_string()),
            Item::Enum(of) => self.types.push(of.ident.to_string()),
            _ => {}
        }
        if !matches!(item, Item::Fn(_)) {
            self.sentences(attributes);
        }
        visit::visit_item(self, item);
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.attrs, &function.sig, Some(&function.block));
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.function(&function.attrs, &function.sig, Some(&function.block));
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        self.function(&function.attrs, &function.sig, function.default.as_ref());
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.sentences(&field.attrs);
        visit::visit_field(self, field);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.sentences(&variant.attrs);
        visit::visit_variant(self, variant);
    }

    fn visit_impl_item_const(&mut self, constant: &'ast syn::ImplItemConst) {
        self.sentences(&constant.attrs);
        visit::visit_impl_item_const(self, constant);
    }

    fn visit_expr_closure(&mut self, closure: &'ast ExprClosure) {
        if closure.inputs.iter().any(is_called_it) {
            let place = self.place(closure.span());
            self.places.closures_called_it.push(place);
        }
        visit::visit_expr_closure(self, closure);
    }
}

/// Whether a body decides something. A list has no such thing, and may be as long as it is.
#[derive(Default)]
struct Decisions {
    are_there: bool,
}

impl<'ast> Visit<'ast> for Decisions {
    fn visit_expr(&mut self, expression: &'ast syn::Expr) {
        use syn::Expr::{Await, ForLoop, If, Loop, While};
        self.are_there |= matches!(expression, Await(_) | ForLoop(_) | If(_) | Loop(_) | While(_));
        visit::visit_expr(self, expression);
    }
}

fn is_called_it(argument: &Pat) -> bool {
    match argument {
        Pat::Ident(name) => name.ident == "it",
        Pat::Reference(inner) => is_called_it(&inner.pat),
        Pat::Type(typed) => is_called_it(&typed.pat),
        _ => false,
    }
}

fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(of) => &of.attrs,
        Item::Enum(of) => &of.attrs,
        Item::Fn(of) => &of.attrs,
        Item::Impl(of) => &of.attrs,
        Item::Mod(of) => &of.attrs,
        Item::Static(of) => &of.attrs,
        Item::Struct(of) => &of.attrs,
        Item::Trait(of) => &of.attrs,
        Item::Type(of) => &of.attrs,
        Item::Use(of) => &of.attrs,
        _ => &[],
    }
}

/// Whether an item is compiled only for tests.
fn is_for_tests(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else { return false };
    list.path.is_ident("cfg") && list.tokens.to_string() == "test"
}

/// The line of a doc comment.
fn doc(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value else {
        return None;
    };
    pair.path.is_ident("doc").then(|| text.value())
}
