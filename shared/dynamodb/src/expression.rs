//! Conditions, changes and ranges as expressions, with a placeholder for every name and value. Knows no attribute by
//! name.
//!
//! Hundreds of ordinary words are reserved in expressions, so names need placeholders:
//! <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.ExpressionAttributeNames.html>

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use crate::json::AttributeJson;
use table::db::{AttributeChange, If, Keys, Op, Path};
use table::item::Attribute;

/// The key condition of a `Query` between two sort keys.
pub const BETWEEN: &str = "#p = :p AND #s BETWEEN :a AND :b";
/// The placeholders in [`BETWEEN`] for the names of the partition key and the sort key.
pub const BETWEEN_NAMES: [&str; 2] = ["#p", "#s"];

/// The names and values in the expressions of one request, each with its placeholder.
#[derive(Default, Serialize)]
pub(super) struct Placeholders<'a> {
    #[serde(rename = "ExpressionAttributeNames", skip_serializing_if = "Placed::is_empty")]
    names: Placed<&'a str>,
    #[serde(rename = "ExpressionAttributeValues", skip_serializing_if = "Placed::is_empty")]
    values: Placed<Value<'a>>,
}

/// The placeholders, each with the name or value that it replaces.
struct Placed<T>(Vec<(Cow<'static, str>, T)>);

/// A value: borrowed from a request, or made for an expression.
struct Value<'a>(Cow<'a, Attribute>);

impl<'a> Placeholders<'a> {
    /// The expression of several conditions, which must all hold; `None` if there are none.
    pub(super) fn all_of(&mut self, conditions: &'a [If]) -> Option<String> {
        (!conditions.is_empty()).then(|| self.joined(conditions, " AND "))
    }

    fn joined(&mut self, conditions: &'a [If], separator: &str) -> String {
        let conditions: Vec<_> = conditions.iter().map(|one| self.condition(one)).collect();
        conditions.join(separator)
    }

    /// The expression of one condition:
    /// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html>
    fn condition(&mut self, condition: &'a If) -> String {
        match condition {
            If::Absent(path) => format!("attribute_not_exists({})", self.path(path)),
            If::Present(path) => format!("attribute_exists({})", self.path(path)),
            If::Compare(path, op, value) => {
                format!("{} {} {}", self.path(path), sign(*op), self.value(value))
            }
            If::Holds(path, element) => {
                let element = Attribute::S(element.clone());
                format!("contains({}, {})", self.path(path), self.made_value(element))
            }
            If::Fewer(path, limit) => {
                let limit = Attribute::number(limit);
                format!("size({}) < {}", self.path(path), self.made_value(limit))
            }
            If::Any(conditions) => format!("({})", self.joined(conditions, " OR ")),
        }
    }

    /// The expression of the changes of an update; `None` if there are none, because `DynamoDB` refuses an empty
    /// expression.
    /// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.UpdateExpressions.html>
    pub(super) fn update(&mut self, changes: &'a [AttributeChange]) -> Option<String> {
        let (mut sets, mut removes, mut adds, mut takes) = (vec![], vec![], vec![], vec![]);
        for change in changes {
            let path = self.path(change.path());
            match change {
                AttributeChange::Set(_, value) => {
                    sets.push(format!("{path} = {}", self.value(value)));
                }
                AttributeChange::SetIfAbsent(_, value) => {
                    let value = self.value(value);
                    sets.push(format!("{path} = if_not_exists({path}, {value})"));
                }
                AttributeChange::Remove(_) => removes.push(path),
                AttributeChange::Add(_, more) => adds.push(format!("{path} {}", self.value(more))),
                AttributeChange::Take(_, elements) => {
                    takes.push(format!("{path} {}", self.value(elements)));
                }
            }
        }

        let clauses = [("SET", sets), ("REMOVE", removes), ("ADD", adds), ("DELETE", takes)];
        let clauses = clauses.into_iter().filter(|(_, actions)| !actions.is_empty());
        let written: Vec<_> =
            clauses.map(|(word, actions)| format!("{word} {}", actions.join(", "))).collect();
        (!written.is_empty()).then(|| written.join(" "))
    }

    /// The condition on the key of a query.
    pub(super) fn keys(
        &mut self,
        [partition_key, sort_key]: [&'a str; 2],
        partition: &str,
        keys: &'a Keys,
    ) -> &'static str {
        self.name_as(BETWEEN_NAMES[0], partition_key);
        self.value_as(":p", Cow::Owned(Attribute::S(partition.to_owned())));
        match keys {
            Keys::All => "#p = :p",
            Keys::From(first) => {
                self.name_as(BETWEEN_NAMES[1], sort_key);
                self.value_as(":a", Cow::Owned(Attribute::S(first.clone())));
                "#p = :p AND #s >= :a"
            }
            Keys::Between(first, last) => {
                self.name_as(BETWEEN_NAMES[1], sort_key);
                self.value_as(":a", Cow::Borrowed(first));
                self.value_as(":b", Cow::Borrowed(last));
                BETWEEN
            }
        }
    }

    /// The names of attributes, as the expression of a projection; `None` if there are none.
    pub(super) fn projection(&mut self, names: &[&'a str]) -> Option<String> {
        let names: Vec<_> = names.iter().map(|name| self.name(name)).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    fn path(&mut self, path: &'a Path) -> String {
        let attribute = self.name(&path.attribute);
        match &path.member {
            Some(member) => format!("{attribute}.{}", self.name(member)),
            None => attribute,
        }
    }

    fn name(&mut self, name: &'a str) -> String {
        if let Some((placeholder, _)) = self.names.0.iter().find(|(_, known)| *known == name) {
            return placeholder.to_string();
        }
        let placeholder = format!("#n{}", self.names.0.len());
        self.name_as(placeholder.clone(), name);
        placeholder
    }

    fn name_as(&mut self, placeholder: impl Into<Cow<'static, str>>, name: &'a str) {
        self.names.0.push((placeholder.into(), name));
    }

    fn value(&mut self, value: &'a Attribute) -> String {
        self.next_value(Cow::Borrowed(value))
    }

    fn made_value(&mut self, value: Attribute) -> String {
        self.next_value(Cow::Owned(value))
    }

    fn next_value(&mut self, value: Cow<'a, Attribute>) -> String {
        let placeholder = format!(":v{}", self.values.0.len());
        self.value_as(placeholder.clone(), value);
        placeholder
    }

    fn value_as(&mut self, placeholder: impl Into<Cow<'static, str>>, value: Cow<'a, Attribute>) {
        self.values.0.push((placeholder.into(), Value(value)));
    }
}

impl<T> Placed<T> {
    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Default for Placed<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Serialize> Serialize for Placed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(placeholder, meant)| (placeholder, meant)))
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        AttributeJson(&self.0).serialize(serializer)
    }
}

const fn sign(op: Op) -> &'static str {
    match op {
        Op::Is => "=",
        Op::Below => "<",
        Op::AtMost => "<=",
        Op::Above => ">",
        Op::AtLeast => ">=",
    }
}
