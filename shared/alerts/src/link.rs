//! The key in the link of a message, by which whoever got the message acknowledges its episode. Knows no address.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::RuleId;
use sha2::{Digest as _, Sha256};

use crate::subject::AlertSubject;

/// How many messages of an episode have links that work: the first of a long one ends with many repetitions.
pub(crate) const MAX_LINKS: usize = 3;
/// The random bytes of a key, and those that are kept of its hash.
const BYTES: usize = 16;

/// What a link is for, and by which key.
///
/// The key has 128 random bits, so no salt and no slow hash is needed. It is stored with the message until that is
/// sent; the state holds its hash. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct LinkKey(String);

impl LinkKey {
    /// The key of random bytes.
    pub fn new(random: [u8; BYTES]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(random))
    }

    /// The key that a client sends or the table has, whatever it is.
    pub const fn of(text: String) -> Self {
        Self(text)
    }

    /// The key as it is stored with a message.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the state holds of it.
    pub fn hash(&self) -> String {
        URL_SAFE_NO_PAD.encode(&Sha256::digest(self.0.as_bytes())[..BYTES])
    }

    /// The fragment of the link, which no server sees. Ids need no coding in it.
    pub fn fragment(&self, rule: &RuleId, subject: &AlertSubject) -> String {
        format!("acknowledge={rule},{subject},{}", self.0)
    }
}

impl std::fmt::Debug for LinkKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LinkKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_a_hash_and_a_fragment_and_shows_nothing() {
        let key = LinkKey::new([7; BYTES]);
        assert_eq!(key, LinkKey::of(key.as_str().to_owned()));
        assert_ne!(key.hash(), LinkKey::new([8; BYTES]).hash());
        assert!(!key.hash().contains(key.as_str()));
        let (rule, subject) = ("freezer".parse().expect("an id"), "device:a:b".parse());
        let fragment = key.fragment(&rule, &subject.expect("a subject"));
        assert_eq!(fragment, format!("acknowledge=freezer,device:a:b,{}", key.as_str()));
        assert_eq!(format!("{key:?}"), "LinkKey(..)");
    }
}
