//! A short text in the place of what an id cannot hold. Reads no line.

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};

/// Base 32 of RFC 4648, in lower case.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The length of a digest.
const LENGTH: usize = 12;

/// 12 characters of a digest of lists of texts: 60 bits.
pub(super) fn digest<'a>(lists: impl Iterator<Item = &'a Vec<Cow<'a, str>>>) -> String {
    let mut hash = Sha256::new();
    for list in lists {
        hash.update(list.len().to_be_bytes());
        for text in list {
            hash.update(text.len().to_be_bytes());
            hash.update(text.as_bytes());
        }
    }
    shortened(&hash.finalize(), LENGTH)
}

/// Whether a text ends as one does that has a digest behind it.
pub(super) fn ends_like_a_digest(text: &str) -> bool {
    let is_digest =
        |end: &str| end.len() == LENGTH && end.bytes().all(|byte| ALPHABET.contains(&byte));
    text.rsplit_once('-').is_some_and(|(_, end)| is_digest(end))
}

/// 6 characters of a digest of a text: 30 bits.
pub(super) fn short_digest(text: &str) -> String {
    shortened(&Sha256::digest(text), 6)
}

fn shortened(hash: &[u8], length: usize) -> String {
    hash[..length].iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect()
}
