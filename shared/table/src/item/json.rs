//! Values of JSON as attributes: texts as strings, numbers as numbers, objects as maps. Knows no kind of item.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::form::{Damage, Form, members, text};
use super::{Attribute, Item};

/// The attribute of a JSON value; `None` for null, which is not stored.
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
    item.into_iter().map(|(name, member)| Some((name, value(member)?))).collect()
}

/// A value that serializes as an object of JSON, stored as a map.
pub(crate) struct Json;

impl<T: Serialize + DeserializeOwned> Form<T> for Json {
    fn attribute(object: &T) -> Option<Attribute> {
        attribute(serde_json::to_value(object).expect("texts, numbers and flags"))
    }

    fn value(attribute: Option<Attribute>) -> Result<T, Damage> {
        let members = item_to_members(members(attribute)?).ok_or(Damage::Missing)?;
        serde_json::from_value(Value::Object(members)).map_err(Damage::of)
    }
}

/// A value that serializes as JSON, stored as a text. The text keeps `null`, unlike a map.
pub(crate) struct JsonText;

impl<T: Serialize + DeserializeOwned> Form<T> for JsonText {
    fn attribute(value: &T) -> Option<Attribute> {
        Some(Attribute::S(serde_json::to_string(value).expect("texts, numbers and flags")))
    }

    fn value(attribute: Option<Attribute>) -> Result<T, Damage> {
        serde_json::from_str(&text(attribute)?).map_err(Damage::of)
    }
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
        let read: Value = Json::value(Json::attribute(&sent)).expect("an object");
        assert_eq!(read, stored);
    }

    #[test]
    fn what_is_no_object_of_json_is_an_error() {
        for damaged in [
            Attribute::S("{}".to_owned()),
            Attribute::M([("a".to_owned(), Attribute::Other)].into()),
            Attribute::M([("a".to_owned(), Attribute::L(vec![Attribute::B(vec![1])]))].into()),
        ] {
            let read: Result<Value, Damage> = Json::value(Some(damaged));
            assert!(matches!(read, Err(Damage::Missing)));
        }
        let read: Result<Value, Damage> = Json::value(None);
        assert!(matches!(read, Err(Damage::Missing)));
    }
}
