//! Access tokens: found by their hash, added once, revoked for good. Who may do what is not the store's.

use domain::{Scope, Token, TokenHash};
use table::given;

use super::Ports;
use crate::given::{answer, at, device, invocation, label};

fn token(secret: &str) -> Token {
    let scope = Scope::Write([device("meter"), device("boiler")].into());
    let name = Some(label("plug in the kitchen"));
    let hash = TokenHash::of(secret);
    Token { hash, name, created: at(0), ..given::token(secret, scope) }
}

pub(super) async fn a_token_comes_back_as_it_was(store: &impl Ports) {
    let write = token("a");
    let others = [Scope::Read, Scope::Admin].map(|scope| {
        let hash = TokenHash::of(&format!("{scope:?}"));
        Token { hash, scope, name: None, expires: Some(at(9)), ..token("") }
    });
    for token in [&write, &others[0], &others[1]] {
        assert_eq!(answer!(store.token(&token.hash)), None);
        answer!(store.add_token(token));
        assert_eq!(answer!(store.token(&token.hash)), Some(token.clone()));
    }
    let mut all = vec![write, others[0].clone(), others[1].clone()];
    all.sort_by_key(|token| token.hash);
    assert_eq!(answer!(store.tokens()), all);
}

pub(super) async fn a_token_is_never_replaced(store: &impl Ports) {
    let first = token("a");
    answer!(store.add_token(&first));
    let second = Token { scope: Scope::Admin, ..first.clone() };
    assert!(store.add_token(&second, &invocation()).await.is_err());
    assert_eq!(answer!(store.token(&first.hash)), Some(first));
}

pub(super) async fn revoked_once_is_revoked_for_good(store: &impl Ports) {
    let token = token("a");
    assert!(!answer!(store.revoke_token(&token.hash, at(1))));
    assert_eq!(answer!(store.token(&token.hash)), None);
    answer!(store.add_token(&token));
    for (timestamp, revoked) in [(at(1), at(1)), (at(2), at(1))] {
        assert!(answer!(store.revoke_token(&token.hash, timestamp)));
        let expected = Token { revoked: Some(revoked), ..token.clone() };
        assert_eq!(answer!(store.token(&token.hash)), Some(expected));
    }
}
