//! Converts values of attributes from and to `DynamoDB`'s JSON. Knows no attribute by name.
//!
//! Forms: <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_AttributeValue.html>

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smol_str::SmolStr;

use table::db::Each;
use table::item::{Attribute, Item};

/// An item, or another map of attributes, as JSON of `DynamoDB`'s API.
#[derive(Debug)]
pub struct ItemJson(pub Item);

impl Serialize for ItemJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ItemJsonMembers(&self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ItemJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut item = Item::new();
        let mut each = |attributes: &mut dyn Iterator<Item = _>| item.extend(attributes);
        deserializer.deserialize_map(OneItem(&mut each))?;
        Ok(Self(item))
    }
}

/// Hands out the attributes of one item.
pub(super) struct OneItem<'e>(pub(super) Each<'e>);

impl<'de> Visitor<'de> for OneItem<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an item")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let mut attributes = ItemAttributes { map, broken: None };
        (self.0)(&mut attributes);

        // The consumer stops early at an item with an error. The rest of that item must still be read.
        attributes.by_ref().for_each(drop);
        attributes.broken.map_or(Ok(()), Err)
    }
}

/// The attributes of an item, one by one. They end where the JSON has an error.
struct ItemAttributes<A, E> {
    map: A,
    broken: Option<E>,
}

impl<'de, A: MapAccess<'de>> Iterator for ItemAttributes<A, A::Error> {
    type Item = (String, Attribute);

    fn next(&mut self) -> Option<Self::Item> {
        if self.broken.is_some() {
            return None;
        }
        match self.map.next_entry::<String, Value>() {
            Ok(entry) => entry.map(|(name, Value(value))| (name, value)),
            Err(error) => {
                self.broken = Some(error);
                None
            }
        }
    }
}

/// A seed that deserializes a value with a visitor.
pub(super) struct Visited<V>(pub(super) V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for Visited<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        deserializer.deserialize_any(self.0)
    }
}

/// The value of an attribute as JSON: an object with one member, whose name is the type.
pub(super) struct Value(pub(super) Attribute);

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneMember;

        impl<'de> Visitor<'de> for OneMember {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an attribute's value")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
                let kind = map.next_key()?.ok_or_else(|| A::Error::custom("a value of no type"))?;
                let value = map.next_value_seed::<AttributeType>(kind)?;
                match map.next_key::<IgnoredAny>()? {
                    None => Ok(Value(value)),
                    Some(_) => Err(A::Error::custom("a value of two types")),
                }
            }
        }

        deserializer.deserialize_map(OneMember)
    }
}

#[derive(Deserialize, Clone, Copy)]
enum AttributeType {
    S,
    N,
    B,
    L,
    M,
    #[serde(rename = "SS")]
    Ss,
    #[serde(rename = "BOOL")]
    Bool,
    #[serde(other)]
    Other,
}

impl<'de> DeserializeSeed<'de> for AttributeType {
    type Value = Attribute;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Attribute, D::Error> {
        Ok(match self {
            Self::S => Attribute::S(String::deserialize(deserializer)?),
            Self::N => Attribute::N(SmolStr::deserialize(deserializer)?),
            Self::B => {
                let text = String::deserialize(deserializer)?;
                Attribute::B(STANDARD.decode(text).map_err(D::Error::custom)?)
            }
            Self::L => {
                let values = Vec::<Value>::deserialize(deserializer)?;
                Attribute::L(values.into_iter().map(|Value(value)| value).collect())
            }
            Self::M => Attribute::M(ItemJson::deserialize(deserializer)?.0),
            Self::Ss => Attribute::Ss(Vec::deserialize(deserializer)?),
            Self::Bool => Attribute::Bool(bool::deserialize(deserializer)?),
            Self::Other => {
                IgnoredAny::deserialize(deserializer)?;
                Attribute::Other
            }
        })
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        AttributeJson(&self.0).serialize(serializer)
    }
}

/// Writes an attribute as DynamoDB's JSON, without a copy.
pub(super) struct AttributeJson<'a>(pub(super) &'a Attribute);

impl Serialize for AttributeJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut value = serializer.serialize_map(Some(1))?;
        match self.0 {
            Attribute::S(text) => value.serialize_entry("S", text)?,
            Attribute::N(number) => value.serialize_entry("N", number)?,
            Attribute::B(bytes) => value.serialize_entry("B", &STANDARD.encode(bytes))?,
            Attribute::L(list) => value.serialize_entry("L", &ListElements(list))?,
            Attribute::M(item) => value.serialize_entry("M", &ItemJsonMembers(item))?,
            Attribute::Ss(set) => value.serialize_entry("SS", set)?,
            Attribute::Bool(flag) => value.serialize_entry("BOOL", flag)?,
            Attribute::Other => value.serialize_entry("NULL", &true)?,
        }
        value.end()
    }
}

struct ListElements<'a>(&'a [Attribute]);

impl Serialize for ListElements<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(AttributeJson))
    }
}

/// The borrowed attributes of an item.
pub(super) struct ItemJsonMembers<'a>(pub(super) &'a Item);

impl Serialize for ItemJsonMembers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, member)| (name, AttributeJson(member))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let text = |text: &str| Attribute::S(text.to_owned());
        let set = Attribute::Ss(vec!["b".to_owned(), "a".to_owned()]);
        let members = [("", set), ("none", Attribute::M(Item::new()))];
        let all = vec![
            text("🔥 \"\\\n"),
            Attribute::L(Vec::new()),
            Attribute::B(vec![0, 255]),
            Attribute::number(-1.5),
            Attribute::Bool(false),
            Attribute::Other,
            Attribute::M(members.map(|(name, value)| (name.to_owned(), value)).into()),
        ];
        let written = serde_json::to_string(&Value(Attribute::L(all.clone()))).expect("texts");
        let expected = r#"{"L":[{"S":"🔥 \"\\\n"},{"L":[]},{"B":"AP8="},{"N":"-1.5"},{"BOOL":false},{"NULL":true},{"M":{"":{"SS":["b","a"]},"none":{"M":{}}}}]}"#;
        assert_eq!(written, expected);
        let Value(read) = serde_json::from_str(&written).expect("a value");
        assert_eq!(read, Attribute::L(all));
    }
}
