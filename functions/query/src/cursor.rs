//! Cursors: opaque, bound to the query that they continue. Keep no state and reach no other partition.
//!
//! A cursor holds a place within its query's range and a checksum over both. The checksum has no
//! secret: what it finds out is a cursor of another query or a damaged one. Whoever computes a valid
//! one reaches only another place of the query that they may ask anyway, for a cursor names no
//! partition.

use api::Problem;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::{Instant, TimeRange};
use sha2::{Digest as _, Sha256};
use table::Position;

const CHECKSUM: usize = 12;
const LONGEST: usize = 1_024;

/// A cursor over `place`, bound to a query.
pub(crate) fn seal(binding: &str, place: &str) -> String {
    let mut bytes = checksum(binding, place.as_bytes()).to_vec();
    bytes.extend_from_slice(place.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The place that [`seal`] put into a cursor for the same query.
pub(crate) fn open(binding: &str, cursor: &str) -> Result<String, Problem> {
    let place = || {
        let bytes = URL_SAFE_NO_PAD.decode(Some(cursor).filter(|c| c.len() <= LONGEST)?).ok()?;
        let (found, place) = bytes.split_at_checked(CHECKSUM)?;
        (found == checksum(binding, place)).then(|| String::from_utf8(place.to_vec()).ok())?
    };
    place().ok_or_else(foreign)
}

fn foreign() -> Problem {
    Problem::field("cursor", "is not of this query; send it with the parameters that it came from")
}

fn checksum(binding: &str, place: &[u8]) -> [u8; CHECKSUM] {
    let mut hash = Sha256::new();
    hash.update(b"roomtide cursor 1\0");
    hash.update(binding.as_bytes());
    hash.update(b"\0");
    hash.update(place);
    let digest = hash.finalize();
    std::array::from_fn(|n| digest[n])
}

/// A place in a range. The range is in it: a relative one such as `-24h` must not move from page to page.
pub(crate) fn seal_range(binding: &str, range: TimeRange, after: &Position) -> String {
    let [from, to, at] = [range.from(), range.to(), after.at].map(Instant::as_millis);
    seal(binding, &format!("{from} {to} {at} {}", after.device))
}

/// What [`seal_range`] put in.
pub(crate) fn open_range(binding: &str, cursor: &str) -> Result<(TimeRange, Position), Problem> {
    let place = open(binding, cursor)?;
    let parse = || {
        let mut parts = place.split(' ');
        let mut instant = || Instant::from_millis(parts.next()?.parse().ok()?).ok();
        let (from, to, at) = (instant()?, instant()?, instant()?);
        let device = parts.next()?.parse().ok()?;
        let range = TimeRange::new(from, to).ok()?;
        range.contains(at).then_some((range, Position { at, device }))
    };
    parse().ok_or_else(foreign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_opens_only_for_its_own_query() {
        let instant = |millis| Instant::from_millis(millis).expect("an instant");
        let range = TimeRange::new(instant(1), instant(9)).expect("a range");
        let position = Position { at: instant(5), device: "d".parse().expect("an id") };
        let cursor = seal_range("a", range, &position);
        assert_eq!(open_range("a", &cursor), Ok((range, position)));
        assert!(open_range("b", &cursor).is_err());
        assert!(open_range("a", &seal("a", "1 9 50 d")).is_err(), "outside of its range");
    }

    #[test]
    fn forged_and_damaged_cursors_are_refused() {
        let cursor = seal("a", "place");
        assert_eq!(open("a", &cursor).as_deref(), Ok("place"));
        for n in 0..cursor.len() {
            let mut bytes = cursor.clone().into_bytes();
            bytes[n] = if bytes[n] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(bytes).expect("ASCII");
            // The last character's lowest bits may carry nothing.
            assert!(open("a", &forged).is_err() || n + 1 == cursor.len(), "{forged}");
        }
        for cursor in ["", "x", "????", "ROOM", &"A".repeat(5_000)] {
            assert!(open("a", cursor).is_err());
        }
    }
}
