//! docs/reference/limits.md: limits with the values that the source gives their constants. Limits of AWS are absent.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::architecture::{is_product, rust_files};
use crate::generated::assert_documented;

#[test]
fn the_limits_are_those_of_the_code() {
    let source = Constants::read();
    let mut groups: Vec<String> = Vec::new();
    for line in include_str!("limits.txt").lines() {
        if line.is_empty() || line.starts_with("//") {
            continue;
        }
        let Some((what, place)) = line.split_once(" | ") else {
            let head = format!("## {line}\n\n| limit | value | constant |\n| --- | --- | --- |\n");
            groups.push(head);
            continue;
        };
        let (file, constant) = place.split_once(" | ").expect("a file and a constant");
        let (name, unit) = constant.split_once(' ').unwrap_or((constant, ""));
        let value = shown(&source.value(file, name), unit);
        let group = groups.last_mut().expect("a heading comes first");
        writeln!(group, "| {what} | {value} | `{name}` |")
            .expect("writing to memory does not fail");
    }
    let text: String = groups.iter().map(|group| format!("{group}\n")).collect();
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
