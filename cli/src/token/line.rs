//! A new token as a line of JSON, with the item that another program stores. Opens no table.

use domain::Token;
use serde::Serialize;
use serde_json::{Map, Value, json};
use table::item::{Attribute, Kind as _};

/// A token, for a program that stores it. The script `deploy` reads the members in this order.
#[derive(Serialize)]
struct Line<'a> {
    scope: &'a str,
    token: &'a str,
    /// The item for `PutItem`. It contains only the token's hash.
    item: Map<String, Value>,
}

/// A token as a line of JSON.
pub(super) fn line((token, secret): &(Token, String)) -> String {
    let scope = token.scope.name();
    let item = token.item().into_iter().map(|(name, value)| (name, dynamodb_json(&value)));
    serde_json::to_string(&Line { scope, token: secret, item: item.collect() })
        .expect("texts are always JSON")
}

/// An attribute in the JSON of DynamoDB's API.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_AttributeValue.html>
fn dynamodb_json(attribute: &Attribute) -> Value {
    match attribute {
        Attribute::S(text) => json!({"S": text}),
        Attribute::N(number) => json!({"N": number}),
        Attribute::L(list) => json!({"L": list.iter().map(dynamodb_json).collect::<Vec<_>>()}),
        other => unreachable!("no item of a token has {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use domain::given::{at_millis, label};
    use domain::{Scope, TokenHash};
    use table::item::{Decode as _, Item};

    use super::*;

    #[test]
    fn the_item_is_the_token_and_holds_its_hash_only() {
        for scope in [Scope::Admin, Scope::Read] {
            let secret = "rt_secret".to_owned();
            let token = Token {
                hash: TokenHash::of(&secret),
                scope,
                name: Some(label("first page")),
                created: at_millis(0),
                revoked: None,
                expires: None,
                issued_by: None,
            };
            let new = (token, secret);
            let text = line(&new);
            let begin =
                format!(r#"{{"scope":"{}","token":"rt_secret","item":{{"#, new.0.scope.name());
            assert!(text.starts_with(&begin), "{text}");
            let line: Value = serde_json::from_str(&text).unwrap();
            assert!(!line["item"].to_string().contains("rt_secret"), "{text}");
            let attribute = |(name, it): (&String, &Value)| {
                (name.clone(), Attribute::S(it["S"].as_str().expect("a string").to_owned()))
            };
            let item: Item = line["item"].as_object().unwrap().iter().map(attribute).collect();
            assert_eq!(Token::decode(item).unwrap(), new.0);
        }
    }
}
