//! `template.yaml` as a value: tags in CloudFormation's long form, conditions evaluated. No I/O.
//!
//! Evaluates only what this template uses: `!Ref` to a parameter, `!If` and the condition functions. References to
//! resources stay as they are.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use anyhow::{Context as _, bail};
use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use serde_json::{Map, Value};

/// A CloudFormation template.
#[derive(Debug, Clone)]
pub(crate) struct Template(Value);

impl Template {
    /// Returns the template of the deployed system, as it was at build time. It is parsed once.
    pub(crate) fn own() -> anyhow::Result<&'static Self> {
        static OWN: OnceLock<Template> = OnceLock::new();
        if let Some(template) = OWN.get() {
            return Ok(template);
        }

        let template = Self::parse(include_str!("../../template.yaml")).context("template.yaml")?;
        Ok(OWN.get_or_init(|| template))
    }

    /// Parses a template's YAML.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let documents = Yaml::load_from_str(text)?;
        let [document] = documents.as_slice() else { bail!("expected one YAML document") };
        Ok(Self(long_form(document)?))
    }

    /// Returns the whole template with nothing evaluated; `!Ref X` is `{"Ref": "X"}`.
    pub(crate) const fn source(&self) -> &Value {
        &self.0
    }

    /// Returns the value of a parameter: from `parameters`, or else its default.
    pub(crate) fn parameter(
        &self,
        name: &str,
        parameters: &[(&str, &str)],
    ) -> anyhow::Result<String> {
        if let Some((_, value)) = parameters.iter().find(|(given, _)| *given == name) {
            return Ok((*value).to_owned());
        }
        let default = self.0["Parameters"][name].get("Default");
        default.map(text).with_context(|| format!("the parameter {name} has no default"))
    }

    /// Returns the resources of a deployment with `parameters`; other parameters have their defaults.
    ///
    /// What a condition excludes is absent; references to resources stay references. A function includes its `Globals`.
    pub(crate) fn resources(
        &self,
        parameters: &[(&str, &str)],
    ) -> anyhow::Result<Map<String, Value>> {
        let mut resources = self.section("Resources", parameters)?;
        if self.0.get("Globals").is_some() {
            let globals = self.section("Globals", parameters)?;
            for resource in resources.values_mut() {
                if resource["Type"] == "AWS::Serverless::Function" {
                    add_missing(&mut resource["Properties"], &globals["Function"]);
                }
            }
        }
        Ok(resources)
    }

    /// Returns the outputs of a deployment with `parameters`; other parameters have their defaults.
    pub(crate) fn outputs(
        &self,
        parameters: &[(&str, &str)],
    ) -> anyhow::Result<Map<String, Value>> {
        self.section("Outputs", parameters)
    }

    fn section(
        &self,
        section: &str,
        parameters: &[(&str, &str)],
    ) -> anyhow::Result<Map<String, Value>> {
        let mut values = BTreeMap::new();
        for (name, parameter) in members(&self.0["Parameters"]) {
            if let Some(default) = parameter.get("Default") {
                values.insert(name.as_str(), text(default));
            }
        }
        values.extend(parameters.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let deployment = Deployment { parameters: values, conditions: &self.0["Conditions"] };
        let Some(Value::Object(mut resolved)) = deployment.resolve(&self.0[section])? else {
            bail!("the template has no {section}")
        };
        let mut left_out = Vec::new();
        for (name, entry) in &resolved {
            if let Some(Value::String(condition)) = entry.get("Condition")
                && !deployment.holds(condition)?
            {
                left_out.push(name.clone());
            }
        }
        left_out.iter().for_each(|name| drop(resolved.remove(name)));
        Ok(resolved)
    }
}

/// A template's conditions and parameters, with their values.
struct Deployment<'a> {
    parameters: BTreeMap<&'a str, String>,
    conditions: &'a Value,
}

impl Deployment<'_> {
    /// Returns the value as deployed; `None` for `AWS::NoValue`.
    fn resolve(&self, value: &Value) -> anyhow::Result<Option<Value>> {
        if let Some((function, argument)) = intrinsic(value) {
            match (function, argument) {
                ("Ref", Value::String(name)) if name == "AWS::NoValue" => return Ok(None),
                ("Ref", Value::String(name)) => {
                    let parameter = self.parameters.get(name.as_str());
                    return Ok(Some(
                        parameter.map_or_else(|| value.clone(), |v| Value::from(v.as_str())),
                    ));
                }
                ("Fn::If", Value::Array(branches)) => {
                    let [Value::String(condition), yes, no] = branches.as_slice() else {
                        bail!("expected !If [condition, value, value], found {value}")
                    };
                    return self.resolve(if self.holds(condition)? { yes } else { no });
                }
                _ => {}
            }
        }
        Ok(Some(match value {
            Value::Array(values) => {
                let mut resolved = Vec::with_capacity(values.len());
                for value in values {
                    resolved.extend(self.resolve(value)?);
                }
                Value::Array(resolved)
            }
            Value::Object(values) => {
                let mut resolved = Map::new();
                for (name, value) in values {
                    if let Some(value) = self.resolve(value)? {
                        resolved.insert(name.clone(), value);
                    }
                }
                Value::Object(resolved)
            }
            plain => plain.clone(),
        }))
    }

    fn holds(&self, condition: &str) -> anyhow::Result<bool> {
        let definition = self.conditions.get(condition);
        self.decide(definition.with_context(|| format!("there is no condition {condition}"))?)
    }

    fn decide(&self, expression: &Value) -> anyhow::Result<bool> {
        match intrinsic(expression) {
            Some(("Condition", Value::String(name))) => self.holds(name),
            Some(("Fn::Equals", Value::Array(sides))) if sides.len() == 2 => {
                Ok(self.resolve(&sides[0])?.as_ref().map(text)
                    == self.resolve(&sides[1])?.as_ref().map(text))
            }
            Some(("Fn::Not", Value::Array(inner))) if inner.len() == 1 => {
                Ok(!self.decide(&inner[0])?)
            }
            Some(("Fn::And", Value::Array(inner))) => {
                inner.iter().try_fold(true, |all, one| Ok(self.decide(one)? && all))
            }
            Some(("Fn::Or", Value::Array(inner))) => {
                inner.iter().try_fold(false, |any, one| Ok(self.decide(one)? || any))
            }
            _ => bail!("the tests do not know the condition {expression}"),
        }
    }
}

/// Returns the name and the argument of a CloudFormation function.
fn intrinsic(value: &Value) -> Option<(&str, &Value)> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    let (name, argument) = object.iter().next()?;
    (name == "Ref" || name == "Condition" || name.starts_with("Fn::")).then_some((name, argument))
}

/// Adds missing members, also within objects that both sides have. SAM joins lists too; no list of the template is on
/// both sides.
fn add_missing(to: &mut Value, from: &Value) {
    if let (Value::Object(to), Value::Object(from)) = (to, from) {
        for (name, value) in from {
            add_missing(to.entry(name).or_insert_with(|| value.clone()), value);
        }
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Writes a scalar as text, because CloudFormation compares parameters as text.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn long_form(yaml: &Yaml<'_>) -> anyhow::Result<Value> {
    Ok(match yaml {
        Yaml::Tagged(tag, inner) if tag.is_yaml_core_schema() => long_form(inner)?,
        Yaml::Tagged(tag, inner) => {
            let argument = long_form(inner)?;
            let (name, argument) = match (tag.suffix.as_str(), argument) {
                (name @ ("Ref" | "Condition"), argument) => (name.to_owned(), argument),
                ("GetAtt", Value::String(dotted)) => {
                    ("Fn::GetAtt".to_owned(), dotted.splitn(2, '.').map(Value::from).collect())
                }
                (name, argument) => (format!("Fn::{name}"), argument),
            };
            Value::Object(Map::from_iter([(name, argument)]))
        }
        Yaml::Value(scalar) => match scalar {
            Scalar::Null => Value::Null,
            Scalar::Boolean(value) => Value::from(*value),
            Scalar::Integer(value) => Value::from(*value),
            Scalar::FloatingPoint(value) => Value::from(value.into_inner()),
            Scalar::String(value) => Value::from(value.as_ref()),
        },
        Yaml::Sequence(values) => {
            Value::Array(values.iter().map(long_form).collect::<Result<_, _>>()?)
        }
        Yaml::Mapping(values) => {
            let mut object = Map::new();
            for (name, value) in values {
                let name = name.as_str().context("a key in the template is not text")?;
                object.insert(name.to_owned(), long_form(value)?);
            }
            Value::Object(object)
        }
        other => bail!("a template cannot hold the YAML {other:?}"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEMPLATE: &str = r#"
Parameters:
  Mode: {Type: String, Default: "on"}
  Days: {Type: Decimal, Default: 0}
Conditions:
  On: !Equals [!Ref Mode, "on"]
  Keeps: !Not [!Equals [!Ref Days, "0"]]
  Both: !And [!Condition On, !Condition Keeps]
Resources:
  A: &a
    List: [1, !If [On, two, !Ref AWS::NoValue], 3]
    Days: !If [Keeps, !Ref Days, !Ref AWS::NoValue]
    Arn: !GetAtt B.Arn
    Name: !Sub "${B}-x"
    Both: !If [Both, y, n]
  B: *a
  C: {Type: Kept, Condition: Keeps}
Outputs:
  Days: {Value: !Ref Days}
  Kept: {Value: !Ref C, Condition: Keeps}
"#;

    #[test]
    fn conditions_are_decided_by_the_defaults() {
        let resources = Template::parse(TEMPLATE).unwrap().resources(&[]).unwrap();
        let expected = json!({
            "List": [1, "two", 3], "Arn": {"Fn::GetAtt": ["B", "Arn"]},
            "Name": {"Fn::Sub": "${B}-x"}, "Both": "n",
        });
        assert_eq!(resources["A"], expected);
        assert_eq!(resources["B"], expected);
        assert!(!resources.contains_key("C"));
    }

    #[test]
    fn conditions_are_decided_by_what_is_given() {
        let template = Template::parse(TEMPLATE).unwrap();
        let off = template.resources(&[("Mode", "off"), ("Days", "30")]).unwrap();
        assert_eq!(off["A"]["List"], json!([1, 3]));
        assert_eq!((&off["A"]["Days"], &off["A"]["Both"]), (&json!("30"), &json!("n")));
        let kept = template.resources(&[("Days", "30")]).unwrap();
        assert_eq!((&kept["A"]["Both"], &kept["C"]["Type"]), (&json!("y"), &json!("Kept")));
        let outputs = |parameters: &[_]| Value::from(template.outputs(parameters).unwrap());
        assert_eq!(outputs(&[]), json!({"Days": {"Value": "0"}}));
        let kept = json!({"Value": {"Ref": "C"}, "Condition": "Keeps"});
        assert_eq!(outputs(&[("Days", "30")]), json!({"Days": {"Value": "30"}, "Kept": kept}));
    }

    #[test]
    fn the_deployed_template_is_understood() {
        Template::own().unwrap().resources(&[]).unwrap();
    }
}
