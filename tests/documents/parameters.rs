//! docs/deploy/parameters.md against the parameters of `template.yaml`. Says nothing of what they do.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use crate::architecture::root;
use crate::generated::assert_documented;

#[test]
fn the_parameters_are_those_of_the_template() {
    let template = fs::read_to_string(root().join("template.yaml")).expect("a template");
    let parameters = parameters(&template);
    assert!(parameters.len() > 15, "{parameters:?}");
    let mut text =
        "| parameter | default | values | meaning |\n| --- | --- | --- | --- |\n".to_owned();
    for (name, properties) in parameters {
        let of = |property: &str| properties.get(property).map_or("", String::as_str);
        let default = match of("Default") {
            "" => "empty".to_owned(),
            value => format!("`{value}`"),
        };
        let values = match (of("AllowedValues"), of("MinValue"), of("MaxValue")) {
            ("", "", _) => of("Type").to_lowercase().replace("commadelimitedlist", "list"),
            ("", min, "") => format!("from {min}"),
            ("", min, max) => format!("{min} to {max}"),
            (words, ..) => words.trim_matches(['[', ']']).replace('"', ""),
        };
        writeln!(text, "| `{name}` | {default} | {values} | {} |", of("Description"))
            .expect("writing to memory does not fail");
    }
    assert_documented("docs/deploy/parameters.md", "parameters", &text);
}

/// The parameters in their order, each with its properties. Folded texts are one line.
pub(super) fn parameters(template: &str) -> Vec<(String, BTreeMap<String, String>)> {
    let lines = template.lines().skip_while(|line| *line != "Parameters:").skip(1);
    let mut found: Vec<(String, BTreeMap<String, String>)> = Vec::new();
    let mut last = String::new();
    for line in lines.take_while(|line| line.starts_with("  ")) {
        let indent = line.len() - line.trim_start().len();
        let text = line.trim();
        if indent == 2 {
            found.push((text.trim_end_matches(':').to_owned(), BTreeMap::new()));
            continue;
        }
        let (_, properties) = found.last_mut().expect("a parameter before its properties");
        if let (4, Some((name, value))) = (indent, text.split_once(':')) {
            name.clone_into(&mut last);
            let value = value.trim().trim_matches('"');
            properties.insert(last.clone(), value.trim_start_matches(">-").to_owned());
        } else if let Some(folded) = properties.get_mut(&last) {
            let space = if folded.is_empty() { "" } else { " " };
            *folded = format!("{folded}{space}{text}");
        }
    }
    found
}

#[test]
fn a_folded_text_is_one_line() {
    let found = parameters(
        "Parameters:\n  A:\n    Default: \"on\"\n    Description: >-\n      b: c\n      d.\n  B:\n    Type: String\n\nRules:\n",
    );
    let property = |n: usize, name: &str| found[n].1.get(name).map(String::as_str);
    assert_eq!(found.iter().map(|it| it.0.as_str()).collect::<Vec<_>>(), ["A", "B"]);
    assert_eq!(property(0, "Default"), Some("on"));
    assert_eq!(property(0, "Description"), Some("b: c d."));
    assert_eq!(property(1, "Type"), Some("String"));
}
