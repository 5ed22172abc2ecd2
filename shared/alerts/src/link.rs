//! The key in a message's link. Whoever has the message can acknowledge its episode by the key. The address before the
//! key is not known here.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::RuleId;
use sha2::{Digest as _, Sha256};

use crate::subject::AlertSubject;

/// The largest number of an episode's links that work, one in each message. With a further repetition, the oldest link
/// ends.
pub(crate) const MAX_LINKS: usize = 3;
/// The random bytes of a key, and the bytes of its hash that are stored.
const BYTES: usize = 16;

/// The key of a link, which acknowledges one episode.
///
/// A key has 128 random bits, so its hash needs no salt and need not be slow. The key is stored with the message until
/// the message is sent; the state stores the hash. `Debug` hides the key.
#[derive(Clone, PartialEq, Eq)]
pub struct LinkKey(String);

impl LinkKey {
    /// A key of these random bytes.
    pub fn new(random: [u8; BYTES]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(random))
    }

    /// A key from a client or from the table. Its form is not checked.
    pub const fn of(text: String) -> Self {
        Self(text)
    }

    /// The key as it is stored with a message.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The hash, as the state stores it.
    pub fn hash(&self) -> String {
        URL_SAFE_NO_PAD.encode(&Sha256::digest(self.0.as_bytes())[..BYTES])
    }

    /// The fragment of the link, which a browser sends to no server. Ids need no encoding in a fragment.
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
