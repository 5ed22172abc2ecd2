//! Values of JSON as attributes: texts as strings, numbers as numbers, objects as maps. Knows no kind of item.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::fields::invalid;
use super::{Attribute, Item, ItemError};

/// The attribute of a value; `None` for null, which is not stored.
fn attribute(value: Value) -> Option<Attribute> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(flag) => Attribute::Bool(flag),
        Value::Number(number) => Attribute::number(number),
        Value::String(text) => Attribute::S(text),
        Value::Array(values) => Attribute::L(values.into_iter().filter_map(attribute).collect()),
        Value::Object(members) => Attribute::M(members_to_item(members)),
    })
}

fn members_to_item(members: Map<String, Value>) -> Item {
    members.into_iter().filter_map(|(name, value)| Some((name, attribute(value)?))).collect()
}

fn value(attribute: Attribute) -> Option<Value> {
    Some(match attribute {
        Attribute::Bool(flag) => Value::Bool(flag),
        Attribute::N(number) => Value::Number(serde_json::from_str(&number).ok()?),
        Attribute::S(text) => Value::String(text),
        Attribute::L(list) => list.into_iter().map(value).collect::<Option<_>>()?,
        Attribute::M(item) => Value::Object(item_to_members(item)?),
        Attribute::B(_) | Attribute::Ss(_) | Attribute::Other => return None,
    })
}

fn item_to_members(item: Item) -> Option<Map<String, Value>> {
    item.into_iter().map(|(name, it)| Some((name, value(it)?))).collect()
}

/// Adds what serializes as an object, as a map.
pub(super) fn put_object(item: &mut Item, name: &str, object: &impl Serialize) {
    let value = serde_json::to_value(object).expect("texts, numbers and flags");
    item.extend(attribute(value).map(|it| (name.to_owned(), it)));
}

/// The map as an object; the error names the attribute.
pub(super) fn members(
    item: &mut Item,
    name: &'static str,
) -> Result<Map<String, Value>, ItemError> {
    match item.remove(name) {
        Some(Attribute::M(map)) => item_to_members(map).ok_or(ItemError::Missing(name)),
        _ => Err(ItemError::Missing(name)),
    }
}

/// Reads back what [`put_object`] adds.
pub(super) fn object<T: DeserializeOwned>(
    item: &mut Item,
    name: &'static str,
) -> Result<T, ItemError> {
    let members = members(item, name)?;
    serde_json::from_value(Value::Object(members)).map_err(invalid(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_come_back_and_nulls_are_left_out() {
        let sent = json!({
            "text": "雪 \u{1f525}\0", "empty": "", "": "no name", "flag": true, "none": null,
            "numbers": [0, -5, 1.5, 1e-7, u64::MAX, i64::MIN], "deep": {"a": [{"b": [[]]}, {}, null]},
        });
        let stored = json!({
            "text": "雪 \u{1f525}\0", "empty": "", "": "no name", "flag": true,
            "numbers": [0, -5, 1.5, 1e-7, u64::MAX, i64::MIN], "deep": {"a": [{"b": [[]]}, {}]},
        });
        let mut item = Item::new();
        put_object(&mut item, "a", &sent);
        assert_eq!(Value::Object(members(&mut item, "a").expect("an object")), stored);
    }

    #[test]
    fn what_is_no_object_of_json_is_an_error() {
        for damaged in [
            Attribute::S("{}".to_owned()),
            Attribute::M([("a".to_owned(), Attribute::Other)].into()),
            Attribute::M([("a".to_owned(), Attribute::L(vec![Attribute::B(vec![1])]))].into()),
        ] {
            let mut item: Item = [("a".to_owned(), damaged)].into();
            assert!(matches!(members(&mut item, "a"), Err(ItemError::Missing("a"))));
        }
        let mut item = Item::new();
        assert!(matches!(members(&mut item, "a"), Err(ItemError::Missing("a"))));
    }
}
