//! When the next run of a source is due, and whether it is claimed. Each source has its own time slots. Reads no clock.

use chrono::TimeDelta;
use domain::{PolledSourceId, Timestamp};
use sha2::{Digest as _, Sha256};

/// How long before its time slot a run may be claimed. The requests are made when the slot has come.
pub const CLAIM_AHEAD: TimeDelta = TimeDelta::seconds(20);
/// How long the claim of a run is valid: less than the minute until due sources are looked for again.
pub const LEASE: TimeDelta = TimeDelta::seconds(45);
/// The longest claim that is believed. A longer claim was made by a wrong clock.
const LONGEST_LEASE: TimeDelta = TimeDelta::minutes(5);

/// The first time slot after `after`, for a source with a run each `every`. Sources have different slots, so that not
/// all of them run at the full hour.
pub fn next_slot(id: &PolledSourceId, every: TimeDelta, after: Timestamp) -> Timestamp {
    let every = every.num_milliseconds().max(1_000);
    let digest = Sha256::digest(id.as_str());
    let spread = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    let shift = i64::from(spread) % every / 1_000 * 1_000;

    let since = after.as_millis() - shift;
    let next =
        since.div_euclid(every).saturating_add(1).saturating_mul(every).saturating_add(shift);
    Timestamp::from_millis(next).unwrap_or(Timestamp::MAX)
}

/// Whether a run may be claimed at `now`: the source is due within [`CLAIM_AHEAD`], and no run has a valid claim.
pub fn is_due(next: Timestamp, lease: Option<Timestamp>, now: Timestamp) -> bool {
    let is_claimed =
        lease.is_some_and(|until| until > now && until <= now.saturating_add(LONGEST_LEASE));
    next <= now.saturating_add(CLAIM_AHEAD) && !is_claimed
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::at;

    #[test]
    fn slots_follow_one_another_and_differ_by_source() {
        let now = at("2026-03-10T12:00:00Z");
        let id = |text: &str| text.parse::<PolledSourceId>().expect("an id");
        for every in [TimeDelta::minutes(1), TimeDelta::minutes(7), TimeDelta::hours(3)] {
            let first = next_slot(&id("remo"), every, now);
            assert!(first > now && first <= now.saturating_add(every));
            assert_eq!(next_slot(&id("remo"), every, first), first.saturating_add(every));
        }
        let hour = TimeDelta::hours(1);
        assert_ne!(next_slot(&id("remo"), hour, now), next_slot(&id("flat"), hour, now));
        assert_eq!(next_slot(&id("remo"), hour, Timestamp::MAX), Timestamp::MAX);
    }

    #[test]
    fn a_source_is_due_unless_somebody_asks_it() {
        let now = at("2026-03-10T12:00:00Z");
        for (next, lease, expected) in [
            ("2026-03-10T12:00:20Z", None, true),
            ("2026-03-10T12:00:21Z", None, false),
            ("2026-03-10T11:00:00Z", Some("2026-03-10T12:00:01Z"), false),
            ("2026-03-10T11:00:00Z", Some("2026-03-10T12:00:00Z"), true),
            ("2026-03-10T11:00:00Z", Some("2026-03-10T12:05:01Z"), true),
        ] {
            assert_eq!(is_due(at(next), lease.map(at), now), expected, "{next} {lease:?}");
        }
    }
}
