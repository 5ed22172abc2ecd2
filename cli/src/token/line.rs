//! A new token as a line of JSON, with the item that another program stores. Opens no table.

use domain::Token;
use dynamodb::ItemJson;
use serde::Serialize;
use table::item::Kind as _;

/// A token, for a program that stores it. The script `deploy` reads the members in this order.
#[derive(Serialize)]
struct TokenLine<'a> {
    scope: &'a str,
    token: &'a str,
    /// The item for `PutItem`. It contains only the token's hash.
    item: ItemJson,
}

/// A token as a line of JSON.
pub(super) fn line((token, secret): &(Token, String)) -> String {
    let line = TokenLine { scope: token.scope.name(), token: secret, item: ItemJson(token.item()) };
    serde_json::to_string(&line).expect("texts are always JSON")
}

#[cfg(test)]
mod tests {
    use domain::given::{at_millis, label};
    use domain::{Scope, TokenHash};
    use serde_json::Value;
    use table::item::Decode as _;

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
            let ItemJson(item) = serde_json::from_value(line["item"].clone()).unwrap();
            assert_eq!(Token::decode(item).unwrap(), new.0);
        }
    }
}
