//! The first tokens of a deployment, as items that another program stores. Opens no table.

use anyhow::Context as _;
use domain::{Scope, Token};
use serde::Serialize;
use serde_json::{Map, Value, json};
use table::item::{Attribute, from_token};

use super::{Create, ScopeName, issue};

/// The first tokens: one to manage the system, one to read it and one with which any device writes.
const FIRST: [(ScopeName, &str); 3] = [
    (ScopeName::Admin, "first admin"),
    (ScopeName::Read, "first page"),
    (ScopeName::Write, "first devices"),
];

/// Makes the first tokens and their secrets.
pub(super) fn issue_all() -> anyhow::Result<Vec<(Token, String)>> {
    let create = |(scope, name): (ScopeName, &str)| {
        let any = matches!(scope, ScopeName::Write);
        let name = Some(name.parse().context("the token's name")?);
        issue(Create { any, name, ..Create::of(scope) })
    };
    FIRST.into_iter().map(create).collect()
}

/// A token for the program that stores it. The script `deploy` reads the members in this order.
#[derive(Serialize)]
struct Line<'a> {
    scope: &'a str,
    token: &'a str,
    /// As `PutItem` takes it. It has the token's hash only.
    item: Map<String, Value>,
}

/// A token as a line of JSON.
pub(super) fn line((token, secret): &(Token, String)) -> String {
    let scope = match token.scope {
        Scope::Admin => "admin",
        Scope::Read => "read",
        Scope::Write(_) => "write",
    };
    let item = from_token(token).into_iter().map(|(name, it)| (name, dynamodb_json(&it)));
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
    use domain::TokenHash;
    use table::item::{Decode as _, Item};

    use super::*;

    #[test]
    fn the_items_are_the_tokens_and_hold_hashes_only() {
        let tokens = issue_all().unwrap();
        for each in &tokens {
            let (token, secret) = each;
            let text = line(each);
            assert!(text.starts_with(r#"{"scope":""#) && text.contains(r#"","item":{"#), "{text}");
            let line: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(line["token"], **secret);
            assert!(!line["item"].to_string().contains(&secret[..]));
            let text = |(name, it): (&String, &Value)| {
                (name.clone(), Attribute::S(it["S"].as_str().expect("a string").to_owned()))
            };
            let item: Item = line["item"].as_object().unwrap().iter().map(text).collect();
            assert_eq!(Token::decode(item).unwrap(), *token);
            assert_eq!(token.hash, TokenHash::of(secret));
        }
        let permits = tokens.iter().map(|(token, _)| super::super::describe(&token.scope));
        assert_eq!(permits.collect::<Vec<_>>(), ["admin", "read", "write any device"]);
    }
}
