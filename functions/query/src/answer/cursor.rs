//! Cursors: opaque, bound to the query that they continue. Keep no state and reach no other partition.
//!
//! A cursor holds a place within its query's range and a checksum over both. The checksum has no
//! secret: it detects a cursor of another query and a damaged one. Whoever computes a valid one
//! reaches only another place of a query that they may ask anyway, because a cursor names no
//! partition.

use api::Problem;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::{AnnotationId, DeviceId, TimeRange, Timestamp};
use sha2::{Digest as _, Sha256};
use table::{ReadingKey, StayKey};

const CHECKSUM: usize = 12;
const MAX_LENGTH: usize = 1_024;

/// A cursor over `place`, bound to a query.
pub(crate) fn encode(query_fingerprint: &str, place: &str) -> String {
    let mut bytes = checksum(query_fingerprint, place.as_bytes()).to_vec();
    bytes.extend_from_slice(place.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The place that [`encode`] put into a cursor for the same query.
pub(crate) fn decode(query_fingerprint: &str, cursor: &str) -> Result<String, Problem> {
    let place = || {
        let bytes = URL_SAFE_NO_PAD.decode(Some(cursor).filter(|c| c.len() <= MAX_LENGTH)?).ok()?;
        let (found, place) = bytes.split_at_checked(CHECKSUM)?;
        (found == checksum(query_fingerprint, place))
            .then(|| String::from_utf8(place.to_vec()).ok())?
    };
    place().ok_or_else(foreign)
}

/// A cursor that is not of this query.
pub(crate) fn foreign() -> Problem {
    Problem::field("cursor", "is not of this query; send it with the parameters that it came from")
}

fn checksum(query_fingerprint: &str, place: &[u8]) -> [u8; CHECKSUM] {
    let mut hash = Sha256::new();
    hash.update(b"roomtide cursor 1\0");
    hash.update(query_fingerprint.as_bytes());
    hash.update(b"\0");
    hash.update(place);
    let digest = hash.finalize();
    std::array::from_fn(|n| digest[n])
}

/// A place in a range. The range is in it: a relative one such as `-24h` must not move from page to page.
pub(crate) fn encode_range(
    query_fingerprint: &str,
    range: TimeRange,
    after: &ReadingKey,
) -> String {
    encode_in(query_fingerprint, range, after.at, &after.device)
}

/// A place among the stays that overlap a range, in which the stay need not have begun.
pub(crate) fn encode_stays(query_fingerprint: &str, range: TimeRange, after: &StayKey) -> String {
    encode_in(query_fingerprint, range, after.since, &after.device)
}

/// A place among the annotations that overlap a range, in which the annotation need not begin.
pub(crate) fn encode_annotations(
    query_fingerprint: &str,
    range: TimeRange,
    after: &AnnotationId,
) -> String {
    let [from, to] = [range.from(), range.to()].map(Timestamp::as_millis);
    encode(query_fingerprint, &format!("{from} {to} {after}"))
}

/// The range and the place that [`encode_annotations`] put in.
pub(crate) fn decode_annotations(
    query_fingerprint: &str,
    cursor: &str,
) -> Result<(TimeRange, AnnotationId), Problem> {
    let place = decode(query_fingerprint, cursor)?;
    let parse = || {
        let mut parts = place.split(' ');
        let mut timestamp = || Timestamp::from_millis(parts.next()?.parse().ok()?).ok();
        let (from, to) = (timestamp()?, timestamp()?);
        Some((TimeRange::new(from, to).ok()?, parts.next()?.parse().ok()?))
    };
    parse().ok_or_else(foreign)
}

fn encode_in(
    query_fingerprint: &str,
    range: TimeRange,
    at: Timestamp,
    device: &DeviceId,
) -> String {
    let [from, to, at] = [range.from(), range.to(), at].map(Timestamp::as_millis);
    encode(query_fingerprint, &format!("{from} {to} {at} {device}"))
}

/// The range and the place that [`encode_range`] put in.
pub(crate) fn decode_range(
    query_fingerprint: &str,
    cursor: &str,
) -> Result<(TimeRange, ReadingKey), Problem> {
    let (range, at, device) = decode_in(query_fingerprint, cursor)?;
    if range.contains(at) { Ok((range, ReadingKey { at, device })) } else { Err(foreign()) }
}

/// The range and the place that [`encode_stays`] put in.
pub(crate) fn decode_stays(
    query_fingerprint: &str,
    cursor: &str,
) -> Result<(TimeRange, StayKey), Problem> {
    let (range, since, device) = decode_in(query_fingerprint, cursor)?;
    Ok((range, StayKey { since, device }))
}

fn decode_in(
    query_fingerprint: &str,
    cursor: &str,
) -> Result<(TimeRange, Timestamp, DeviceId), Problem> {
    let place = decode(query_fingerprint, cursor)?;
    let parse = || {
        let mut parts = place.split(' ');
        let mut timestamp = || Timestamp::from_millis(parts.next()?.parse().ok()?).ok();
        let (from, to, at) = (timestamp()?, timestamp()?, timestamp()?);
        let device = parts.next()?.parse().ok()?;
        Some((TimeRange::new(from, to).ok()?, at, device))
    };
    parse().ok_or_else(foreign)
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
        let cursor = encode_range("a", range, &position);
        assert_eq!(decode_range("a", &cursor).expect("a place"), (range, position));
        assert!(decode_range("b", &cursor).is_err());
        assert!(decode_range("a", &encode("a", "1 9 50 d")).is_err(), "outside of its range");
    }

    #[test]
    fn forged_and_damaged_cursors_are_refused() {
        let cursor = encode("a", "place");
        assert_eq!(decode("a", &cursor).expect("a place"), "place");
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
