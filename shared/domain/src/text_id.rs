//! Ids that are made from a text that people chose, such as the name of a room. Knows no sender.

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};

use crate::{DeviceId, IdError, Label};

/// The largest length of an id without a digest. A digest and its hyphen have 13 characters.
const MAX_READABLE: usize = 112;

/// Base 32 of RFC 4648, in lower case.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The number of characters of a digest.
const DIGEST: usize = 12;

/// Makes an id from a text that people chose. Also returns the text if the id differs from it.
pub fn id_of<T>(text: &str) -> Result<(T, Option<Label>), IdError>
where
    T: std::str::FromStr<Err = IdError> + Clone + Into<String>,
{
    let parts: Vec<_> = parts(text).collect();
    let is_readable = are_readable(parts.iter());
    let id: T = finish(&parts.join(":"), is_readable, || digest([parts].iter()))?;
    let shown: String = id.clone().into();
    let name = text.parse().ok().filter(|_| shown != text);
    Ok((id, name))
}

/// Makes the id of a part of a device. Also returns the text of the part if the id does not end with this text.
pub fn part_id(device: &DeviceId, part: &str) -> Result<(DeviceId, Option<Label>), IdError> {
    let is_readable = part.chars().all(|c| is_plain(c) || c == ':') && !ends_like_a_digest(part);
    let id: DeviceId = finish(&format!("{device}:{part}"), is_readable, || {
        digest([vec![device.as_str().into()], vec![part.into()]].iter())
    })?;
    let name = part.parse().ok().filter(|_| !id.as_str().ends_with(part));
    Ok((id, name))
}

/// Makes the id of a text: the text itself if it can be read back from the id, else a similar text and a digest.
pub fn finish<T>(
    text: &str,
    is_readable: bool,
    digest: impl FnOnce() -> String,
) -> Result<T, IdError>
where
    T: std::str::FromStr<Err = IdError>,
{
    if is_readable && text.len() <= MAX_READABLE {
        match text.parse() {
            // A text that is reserved, or a dot segment of a path, gets a digest.
            Err(IdError::Reserved(_) | IdError::DotSegment(_)) => {}
            parsed => return parsed,
        }
    }
    let shown: String = shown(text).take(MAX_READABLE).collect();
    format!("{shown}-{}", digest()).parse()
}

/// The parts of a tag's value, which a slash separates. A blank becomes `_`.
pub fn parts(value: &str) -> impl Iterator<Item = Cow<'_, str>> {
    value
        .split('/')
        .filter(|part| !part.is_empty())
        .map(|part| if part.contains(' ') { part.replace(' ', "_").into() } else { part.into() })
}

/// Whether these parts can be read back from an id that is made of them. An id must allow all their characters, and the
/// last part must not look like a digest.
pub fn are_readable<'a>(
    mut parts: impl DoubleEndedIterator<Item = &'a Cow<'a, str>> + Clone,
) -> bool {
    parts.clone().all(|part| part.chars().all(is_plain))
        && !parts.next_back().is_some_and(|last| ends_like_a_digest(last))
}

/// Whether a character may stand in a part of an id.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// A text as it appears in an id: each character that is not allowed becomes `_`.
fn shown(text: &str) -> impl Iterator<Item = char> {
    text.chars().map(|c| if is_plain(c) || c == ':' { c } else { '_' })
}

/// The part of an id before its digest; `None` if the id does not end with a digest.
pub fn before_digest(id: &str) -> Option<&str> {
    let (text, end) = id.rsplit_once('-')?;
    is_digest(end).then_some(text)
}

/// Whether an id may have been made from a text, alone or together with other texts.
pub fn may_be_made_of(id: &str, text: &str) -> bool {
    let read = before_digest(id).unwrap_or(id);
    let is_cut = read.len() < id.len() && read.len() >= MAX_READABLE;
    let id_parts: Vec<&str> = read.split(':').collect();
    let text = parts(text).collect::<Vec<_>>().join(":");
    let text: String = shown(&text).collect();
    let text_parts: Vec<&str> = text.split(':').collect();
    is_cut || id_parts.windows(text_parts.len()).any(|some| some == text_parts)
}

/// A digest of lists of texts in 12 characters, which are 60 bits.
pub fn digest<'a>(lists: impl Iterator<Item = &'a Vec<Cow<'a, str>>>) -> String {
    let mut hash = Sha256::new();
    for list in lists {
        hash.update(list.len().to_be_bytes());
        for text in list {
            hash.update(text.len().to_be_bytes());
            hash.update(text.as_bytes());
        }
    }
    shortened(&hash.finalize(), DIGEST)
}

/// Whether the end of a text looks like a digest.
fn ends_like_a_digest(text: &str) -> bool {
    before_digest(text).is_some()
}

fn is_digest(end: &str) -> bool {
    end.len() == DIGEST && end.bytes().all(|byte| ALPHABET.contains(&byte))
}

/// A digest of a text in 6 characters, which are 30 bits.
pub fn short_digest(text: &str) -> String {
    shortened(&Sha256::digest(text), 6)
}

fn shortened(hash: &[u8], length: usize) -> String {
    hash[..length].iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_whether_a_text_may_be_a_part_of_it() {
        for (id, text, is_part) in [
            ("pi:Living_Room", "Living Room", true),
            ("pi:Living_Room:t::cpu", "Living Room", true),
            ("pi:Living_Room_2", "Living Room", false),
            ("pi:up:hall", "up/hall", true),
            ("pi:up:attic", "up/hall", false),
            ("pi", "Living Room", false),
            ("pi:K_che-abcdefghijkl", "Küche", true),
            ("pi:Flur-abcdefghijkl", "Küche", false),
        ] {
            assert_eq!(may_be_made_of(id, text), is_part, "{id} {text}");
        }
        let cut = format!("{}-abcdefghijkl", "x".repeat(MAX_READABLE));
        assert!(may_be_made_of(&cut, "hall"), "the end is not shown");
    }
}
