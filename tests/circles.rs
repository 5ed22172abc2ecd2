//! No two files of a package import each other, not by a way round either: read from the source text.
//!
//! An arrow goes from a file to the file that defines what it names, through every re-export. `mod` and `pub use` of
//! a parent are no arrows: a facade uses nothing. Methods are found by no name, so they draw none.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::{UseTree, Visibility};

use crate::architecture::rust_files;
use crate::source::Source;

/// A module's place in its package: `["series", "grid"]`.
type Place = Vec<String>;

/// What a name of a module means.
enum Name {
    /// It is defined here.
    Here,
    /// It is a module below.
    Module,
    /// It stands for what another path names.
    Import(Place),
}

#[derive(Default)]
struct Module {
    file: String,
    names: BTreeMap<String, Name>,
    /// The modules all of whose names are imported.
    globs: Vec<Place>,
    /// The paths that the file's code names.
    used: BTreeSet<Place>,
}

/// Files, the files that each uses, and by which names.
type Arrows = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// The modules of a package.
#[derive(Default)]
struct Package(BTreeMap<Place, Module>);

#[test]
fn no_files_of_a_package_import_each_other() {
    let mut packages: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (path, text) in rust_files() {
        if let Some((package, file)) = path.split_once("/src/") {
            packages.entry(package.to_owned()).or_default().insert(file.to_owned(), text);
        }
    }
    assert!(packages.len() > 10, "{:?}", packages.keys());
    let mut circles = Vec::new();
    for (package, mut files) in packages {
        if files.contains_key("lib.rs") {
            files.remove("main.rs"); // a package of its own, which only wires
        }
        let arrows = Package::read(&files).arrows();
        assert!(files.len() < 3 || !arrows.is_empty(), "{package}: nothing was read");
        circles.extend(circles_of(&arrows).into_iter().map(|circle| {
            let shown = circle.iter().flat_map(|file| {
                let inside = arrows[file].iter().filter(|(to, _)| circle.contains(*to));
                let names = |names: &BTreeSet<String>| Vec::from_iter(names.clone()).join(", ");
                inside.map(move |(to, it)| format!("\n    {file} -> {to}: {}", names(it)))
            });
            package.clone() + &shown.collect::<String>()
        }));
    }
    assert!(circles.is_empty(), "{} circles:\n{}", circles.len(), circles.join("\n"));
}

impl Package {
    fn read(files: &BTreeMap<String, String>) -> Self {
        let mut package = Self::default();
        for (file, text) in files {
            let place = place_of(file);
            package.add(file, place, Source::shipped(text).0);
        }
        package.drop_tests();
        package
    }

    fn add(&mut self, file: &str, place: Place, tokens: TokenStream) {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        for item in items(tokens) {
            match item.keyword.as_str() {
                "use" => {
                    let import: syn::ItemUse = syn::parse2(item.tokens.into_iter().collect())
                        .unwrap_or_else(|why| panic!("{file}: {why}"));
                    let is_facade = !matches!(import.vis, Visibility::Inherited);
                    module.import(&import.tree, &mut Vec::new(), is_facade);
                }
                "mod" => {
                    let name = item.name.unwrap_or_else(|| panic!("{file}: a module has a name"));
                    if let Some(TokenTree::Group(content)) = item.tokens.into_iter().last() {
                        self.add(file, below(&place, &name), content.stream());
                    }
                    module.names.insert(name, Name::Module);
                }
                _ => {
                    module.names.extend(item.name.map(|name| (name, Name::Here)));
                    paths(item.tokens.into_iter().collect(), &mut module.used);
                }
            }
        }
        self.0.insert(place, module);
    }

    /// Without the modules that no other declares: only tests do.
    fn drop_tests(&mut self) {
        let places: Vec<Place> = self.0.keys().cloned().collect();
        for place in places {
            let Some((name, parent)) = place.split_last() else { continue };
            let parent = self.0.get(parent);
            if !parent.is_some_and(|it| matches!(it.names.get(name), Some(Name::Module))) {
                self.0.remove(&place);
            }
        }
    }

    fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (place, module) in &self.0 {
            let from = arrows.entry(module.file.clone()).or_default();
            for path in &module.used {
                let Some(to) = self.defining(place, path, 0).filter(|it| *it != module.file) else {
                    continue;
                };
                from.entry(to.to_owned()).or_default().extend(path.last().cloned());
            }
        }
        arrows
    }

    /// The file that defines what `path` names in the module at `place`; `None` if that is another package.
    fn defining(&self, place: &Place, path: &[String], depth: usize) -> Option<&str> {
        let (place, path) = match path.split_first()? {
            (first, rest) if first == "crate" => (Vec::new(), rest),
            (first, rest) if first == "self" => (place.clone(), rest),
            (first, rest) if first == "super" => {
                let (_, parent) = place.split_last()?;
                return self.inside(&parent.to_vec(), rest, depth);
            }
            _ => (place.clone(), path),
        };
        self.inside(&place, path, depth)
    }

    fn inside(&self, place: &Place, path: &[String], depth: usize) -> Option<&str> {
        if path.first().is_some_and(|first| first == "super") {
            return self.defining(place, path, depth);
        }
        let module = self.0.get(place)?;
        let (name, rest) = path.split_first()?;
        match module.names.get(name) {
            Some(Name::Here) => Some(&module.file),
            Some(Name::Module) => self.inside(&below(place, name), rest, depth),
            Some(Name::Import(path)) if depth < 20 => {
                let path: Place = path.iter().chain(rest).cloned().collect();
                self.defining(place, &path, depth + 1)
            }
            None if depth < 20 => module.globs.iter().find_map(|glob| {
                let path: Place = glob.iter().chain(path).cloned().collect();
                self.defining(place, &path, depth + 1)
            }),
            Some(Name::Import(_)) | None => None,
        }
    }
}

impl Module {
    fn import(&mut self, tree: &UseTree, before: &mut Place, is_facade: bool) {
        let mut name = |name: String, path: Place| {
            // What a facade hands on it need not use; what is imported for itself it does.
            if !is_facade {
                self.used.insert(path.clone());
            }
            self.names.insert(name, Name::Import(path));
        };
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.import(&path.tree, before, is_facade);
                before.pop();
            }
            UseTree::Name(it) if it.ident == "self" => {
                name(before.last().cloned().unwrap_or_default(), before.clone());
            }
            UseTree::Name(it) => name(it.ident.to_string(), below(before, &it.ident.to_string())),
            UseTree::Rename(it) => {
                name(it.rename.to_string(), below(before, &it.ident.to_string()));
            }
            UseTree::Glob(_) => self.globs.push(before.clone()),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, before, is_facade);
                }
            }
        }
    }
}

/// `series/grid.rs` is `["series", "grid"]`, `lib.rs` the root.
fn place_of(file: &str) -> Place {
    let module = file.trim_end_matches(".rs");
    if module == "lib" || module == "main" {
        return Vec::new();
    }
    module.split('/').map(str::to_owned).collect()
}

fn below(place: &[String], name: &str) -> Place {
    place.iter().cloned().chain([name.to_owned()]).collect()
}

/// An item of a module.
struct Item {
    /// `fn`, `struct`, `use`; of a call of a macro the macro's name.
    keyword: String,
    /// What it defines.
    name: Option<String>,
    /// All of it, with its attributes.
    tokens: Vec<TokenTree>,
}

/// Parts a module into its items. To parse the bodies of all functions takes as long as all else here.
fn items(tokens: TokenStream) -> Vec<Item> {
    let mut items = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while tokens.peek().is_some() {
        let mut item = Item { keyword: String::new(), name: None, tokens: Vec::new() };
        for token in tokens.by_ref() {
            item.read(&token);
            let is_end = item.is_end(&token);
            item.tokens.push(token);
            if is_end {
                break;
            }
        }
        items.push(item);
    }
    items
}

impl Item {
    /// Takes the keyword and the name from the words at the beginning.
    fn read(&mut self, token: &TokenTree) {
        let TokenTree::Ident(word) = token else { return };
        let word = word.to_string();
        match (self.keyword.as_str(), word.as_str()) {
            ("", "pub") | ("" | "const", "async" | "unsafe") => {}
            ("", _) | ("const", "fn") => self.keyword = word,
            (keyword, _) if self.name.is_none() && DEFINING.contains(&keyword) => {
                self.name = Some(word);
            }
            _ => {}
        }
    }

    /// Whether a token ends it: a semicolon, or a body that needs none behind it.
    fn is_end(&self, token: &TokenTree) -> bool {
        match token {
            TokenTree::Punct(sign) => sign.as_char() == ';',
            TokenTree::Group(group) => {
                let has_semicolon = ["const", "static", "type", "use"];
                group.delimiter() == Delimiter::Brace
                    && !has_semicolon.contains(&self.keyword.as_str())
            }
            _ => false,
        }
    }
}

/// The keywords whose next word is the name of what they define.
const DEFINING: [&str; 10] =
    ["const", "enum", "fn", "macro_rules", "mod", "static", "struct", "trait", "type", "union"];

/// Every path in `tokens`, those in the arguments of macros and of functions' own `use` too.
fn paths(tokens: TokenStream, found: &mut BTreeSet<Place>) {
    let mut path = Place::new();
    let mut colons = 0;
    for token in tokens {
        match token {
            TokenTree::Ident(word) => {
                if colons != 2 {
                    found.extend(named(std::mem::take(&mut path), false));
                }
                path.push(word.to_string());
                colons = 0;
            }
            TokenTree::Punct(sign) if sign.as_char() == ':' => colons += 1,
            other => {
                let is_call = matches!(&other, TokenTree::Group(group)
                    if group.delimiter() == Delimiter::Parenthesis);
                if let TokenTree::Group(group) = other {
                    if colons == 2 {
                        // `a::{b, c}`
                        let mut inside = BTreeSet::new();
                        paths(group.stream(), &mut inside);
                        found.extend(inside.iter().map(|rest| [&path[..], rest].concat()));
                    } else {
                        paths(group.stream(), found);
                    }
                }
                found.extend(named(std::mem::take(&mut path), is_call));
                colons = 0;
            }
        }
    }
    found.extend(named(path, false));
}

/// A path that names an item; a single word in small letters that is not called may be a variable.
fn named(path: Place, is_call: bool) -> Option<Place> {
    let is_item = |word: &String| is_call || word.starts_with(|c: char| c.is_uppercase());
    (path.len() > 1 || path.first().is_some_and(is_item)).then_some(path)
}

/// The groups of files that reach each other.
fn circles_of(arrows: &Arrows) -> BTreeSet<BTreeSet<String>> {
    let reached = |from: &String| -> BTreeSet<String> {
        let mut reached = BTreeSet::new();
        let mut next: Vec<&String> = arrows[from].keys().collect();
        while let Some(file) = next.pop() {
            if reached.insert(file.clone()) {
                next.extend(arrows.get(file).into_iter().flat_map(BTreeMap::keys));
            }
        }
        reached
    };
    let all: BTreeMap<&String, BTreeSet<String>> =
        arrows.keys().map(|file| (file, reached(file))).collect();
    let circle = |file: &String| -> BTreeSet<String> {
        let mutual = |other: &&String| all.get(other).is_some_and(|back| back.contains(file));
        all[file].iter().filter(mutual).cloned().collect()
    };
    arrows.keys().map(circle).filter(|circle| !circle.is_empty()).collect()
}

#[test]
fn a_circle_is_seen_through_facades_macros_and_globs() {
    let circles = |files: &[(&str, &str)]| {
        let files = files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned()));
        circles_of(&Package::read(&files.collect()).arrows())
    };
    let of = |files: &[&str]| BTreeSet::from([files.iter().map(|&it| it.to_owned()).collect()]);
    let facade = "mod a; mod b; pub use a::A; pub use b::B;";
    let both = of(&["a.rs", "b.rs"]);
    for (a, b) in [
        ("use crate::B; pub struct A;", "use crate::a::A; pub struct B;"),
        ("use crate::B; pub struct A;", "pub struct B(super::A);"),
        ("use crate::b; pub fn A() { b::B() }", "pub fn B() { write!(x, \"\", crate::A) }"),
        ("use super::*; pub struct A(B);", "use crate::{a::{A as It}}; pub struct B;"),
        ("pub struct A; fn f() { use super::b::{B}; }", "pub struct B(crate::A);"),
    ] {
        let lib = ("lib.rs", facade);
        assert_eq!(circles(&[lib, ("a.rs", a), ("b.rs", b)]), both, "{a} {b}");
        assert_eq!(circles(&[lib, ("a.rs", a), ("b.rs", "pub struct B;")]), BTreeSet::new());
    }
    let child = [("lib.rs", "mod a;"), ("a/b.rs", "use super::A; pub struct B(A);")];
    let parent = ("a.rs", "mod b; use b::B; pub struct A; fn f(b: B) {}");
    assert_eq!(circles(&[child[0], child[1], parent]), of(&["a.rs", "a/b.rs"]));
    let apart = ("a.rs", "mod b; pub use b::B; pub struct A; #[cfg(test)] mod t { use super::B; }");
    assert_eq!(circles(&[child[0], child[1], apart]), BTreeSet::new());
}
