//! Opaque cursors, each bound to the query that it continues. Keep no state, and reach no data outside of that query.
//!
//! A cursor holds a position in the list of its query, and a checksum over query and position. The checksum detects a
//! damaged cursor and a cursor of another query. It uses no secret: a cursor names no partition of the table, so a
//! forged cursor reaches only another position in a query that the client may send anyway.

use std::str::Split;

use api::Problem;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::{AnnotationId, TimeRange, Timestamp};
use sha2::{Digest as _, Sha256};
use table::{AlertKey, MessageKey, ReadingKey, StayKey};

const CHECKSUM: usize = 12;
const MAX_LENGTH: usize = 1_024;

/// Makes a cursor from a position in a list, bound to a query.
pub(crate) fn encode(query_fingerprint: &str, position: &str) -> String {
    let mut bytes = checksum(query_fingerprint, position.as_bytes()).to_vec();
    bytes.extend_from_slice(position.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The position that [`encode`] put into a cursor for the same query.
pub(crate) fn decode(query_fingerprint: &str, cursor: &str) -> Result<String, Problem> {
    position_in(cursor, query_fingerprint).ok_or_else(foreign)
}

/// The position in a cursor; `None` if the cursor is damaged or of another query.
fn position_in(cursor: &str, query_fingerprint: &str) -> Option<String> {
    if cursor.len() > MAX_LENGTH {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let (found, position) = bytes.split_at_checked(CHECKSUM)?;
    if found != checksum(query_fingerprint, position) {
        return None;
    }
    String::from_utf8(position.to_vec()).ok()
}

/// 400: the cursor belongs to another query.
pub(crate) fn foreign() -> Problem {
    Problem::field("cursor", "is not of this query; send it with the parameters that it came from")
}

fn checksum(query_fingerprint: &str, position: &[u8]) -> [u8; CHECKSUM] {
    let mut hash = Sha256::new();
    hash.update(b"roomtide cursor 1\0");
    hash.update(query_fingerprint.as_bytes());
    hash.update(b"\0");
    hash.update(position);
    let digest = hash.finalize();
    std::array::from_fn(|n| digest[n])
}

/// A position in the list of a time range. A cursor stores it as words.
pub(crate) trait CursorPosition: Sized {
    fn words(&self) -> String;

    fn parse(words: &mut Split<'_, char>) -> Option<Self>;

    /// Whether the list of `range` may have this position. By default yes: an entry may begin before the range.
    fn may_be_in(&self, _range: TimeRange) -> bool {
        true
    }
}

/// Makes a cursor from a position and its range, so that a relative range such as `-24h` is the same for all pages.
pub(crate) fn encode_in(
    query_fingerprint: &str,
    range: TimeRange,
    after: &impl CursorPosition,
) -> String {
    let [from, to] = [range.from(), range.to()].map(Timestamp::as_millis);
    encode(query_fingerprint, &format!("{from} {to} {}", after.words()))
}

/// The range and the position that [`encode_in`] put into a cursor.
pub(crate) fn decode_in<P: CursorPosition>(
    query_fingerprint: &str,
    cursor: &str,
) -> Result<(TimeRange, P), Problem> {
    let position = decode(query_fingerprint, cursor)?;
    let parse = || {
        let mut words = position.split(' ');
        let range = TimeRange::new(timestamp(&mut words)?, timestamp(&mut words)?).ok()?;
        Some((range, P::parse(&mut words).filter(|position| position.may_be_in(range))?))
    };
    parse().ok_or_else(foreign)
}

fn timestamp(words: &mut Split<'_, char>) -> Option<Timestamp> {
    Timestamp::from_millis(words.next()?.parse().ok()?).ok()
}

impl CursorPosition for ReadingKey {
    fn words(&self) -> String {
        format!("{} {}", self.at.as_millis(), self.device)
    }

    fn parse(words: &mut Split<'_, char>) -> Option<Self> {
        Some(Self { at: timestamp(words)?, device: words.next()?.parse().ok()? })
    }

    fn may_be_in(&self, range: TimeRange) -> bool {
        range.contains(self.at)
    }
}

impl CursorPosition for StayKey {
    fn words(&self) -> String {
        format!("{} {}", self.since.as_millis(), self.device)
    }

    fn parse(words: &mut Split<'_, char>) -> Option<Self> {
        Some(Self { since: timestamp(words)?, device: words.next()?.parse().ok()? })
    }
}

impl CursorPosition for AnnotationId {
    fn words(&self) -> String {
        self.to_string()
    }

    fn parse(words: &mut Split<'_, char>) -> Option<Self> {
        words.next()?.parse().ok()
    }
}

impl CursorPosition for MessageKey {
    fn words(&self) -> String {
        let Self { at, alert: AlertKey { rule, subject }, number } = self;
        format!("{} {rule} {subject} {number}", at.as_millis())
    }

    fn parse(words: &mut Split<'_, char>) -> Option<Self> {
        let at = timestamp(words)?;
        let (rule, subject) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let alert = AlertKey { rule, subject };
        Some(Self { at, alert, number: words.next()?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::{self, device};

    #[test]
    fn a_cursor_opens_only_for_its_own_query() {
        let timestamp = |millis| Timestamp::from_millis(millis).expect("a timestamp");
        let range = given::range(timestamp(1), timestamp(9));
        let position = ReadingKey { at: timestamp(5), device: device("d") };
        let cursor = encode_in("a", range, &position);
        assert_eq!(decode_in("a", &cursor).expect("a position"), (range, position));
        assert!(decode_in::<ReadingKey>("b", &cursor).is_err());
        assert!(
            decode_in::<ReadingKey>("a", &encode("a", "1 9 50 d")).is_err(),
            "outside of its range"
        );
    }

    #[test]
    fn forged_and_damaged_cursors_are_refused() {
        let cursor = encode("a", "position");
        assert_eq!(decode("a", &cursor).expect("a position"), "position");
        for n in 0..cursor.len() {
            let mut bytes = cursor.clone().into_bytes();
            bytes[n] = if bytes[n] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(bytes).expect("ASCII");
            // The last character's lowest bits may carry nothing.
            assert!(decode("a", &forged).is_err() || n + 1 == cursor.len(), "{forged}");
        }
        for cursor in ["", "x", "????", "ROOM", &"A".repeat(5_000)] {
            assert!(decode("a", cursor).is_err());
        }
    }
}
