//! take-over.yaml against `template.yaml`: its table and queue alone, which a change set of type IMPORT takes over.

use std::fs;

use super::{Template, only, template, text};
use crate::architecture::root;
use crate::generated::assert_is;

const HEAD: &str = "\
# The table and the dead-letter queue of template.yaml and nothing else, to take over a kept or restored table: a change
# set of type IMPORT may add only what it imports. docs/deploy/take-over.md says how.
# tests/template/take_over.rs writes it from template.yaml.
AWSTemplateFormatVersion: \"2010-09-09\"
Description: Roomtide - a table that was kept or restored, before the rest of the system.
";
const RESOURCES: [&str; 2] = ["Failures", "Table"];

/// The entries of a section of the template's text, each with its name and its lines.
fn entries<'a>(text: &'a str, section: &str) -> Vec<(&'a str, String)> {
    let lines = text.lines().skip_while(|line| *line != format!("{section}:")).skip(1);
    let mut found: Vec<(&str, String)> = Vec::new();
    for line in lines.take_while(|line| line.is_empty() || line.starts_with(' ')) {
        let is_name =
            line.starts_with("  ") && !line.starts_with("   ") && !line.starts_with("  #");
        if is_name {
            let (name, _) = line.trim().split_once(':').expect("a name");
            found.push((name, String::new()));
        } else if line.is_empty() || line.starts_with("  #") {
            continue;
        }
        let (_, lines) = found.last_mut().expect("a name comes first");
        *lines += line;
        *lines += "\n";
    }
    found
}

/// The parts of the template that its table and its queue need.
fn expected(text: &str) -> String {
    let named = |needed: &str, name: &str| {
        needed.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == name)
    };
    let part = |section: &str, keep: &dyn Fn(&str) -> bool| {
        let kept = entries(text, section).into_iter().filter(|(name, _)| keep(name));
        kept.map(|(_, lines)| lines).collect::<String>()
    };
    let resources = part("Resources", &|name| RESOURCES.contains(&name));
    let conditions = part("Conditions", &|name| named(&resources, name));
    let used = format!("{resources}{conditions}");
    let parameters = part("Parameters", &|name| named(&used, name));
    format!("{HEAD}\nParameters:\n{parameters}\nConditions:\n{conditions}\nResources:\n{resources}")
}

#[test]
fn a_table_is_taken_over_as_the_template_has_it() {
    let whole = fs::read_to_string(root().join("template.yaml")).expect("UTF-8");
    let expected = expected(&whole);
    assert_is("take-over.yaml", &expected);
    let small = Template::parse(&expected).expect("a template");
    let choices: [&[(&str, &str)]; 4] = [
        &[],
        &[("Billing", "on-demand"), ("MaxWriteUnits", "40")],
        &[("RoomIndex", "off"), ("PointInTimeRecovery", "off")],
        &[("ConditionsIndex", "on"), ("AttributeIndex", "on")],
    ];
    for parameters in choices {
        let taken = small.resources(parameters).expect("resources");
        let whole = template().resources(parameters).expect("resources");
        assert_eq!(taken.keys().collect::<Vec<_>>(), RESOURCES);
        for name in RESOURCES {
            assert_eq!(taken[name], whole[name], "{name} with {parameters:?}");
            // CloudFormation imports nothing without it, and refuses it for what a name would replace.
            let policy = text(&taken[name]["DeletionPolicy"]);
            assert!(["Retain", "RetainExceptOnCreate"].contains(&policy), "{name}: {policy}");
        }
        let (_, table) = only(&taken, "AWS::DynamoDB::Table");
        assert_eq!(table["Properties"].get("TableName"), None, "an update would replace the table");
    }
    assert_eq!(small.source().get("Outputs"), None, "an import may not add any");
    assert_eq!(small.source().get("Transform"), None, "the AWS CLI alone takes a table over");
}
