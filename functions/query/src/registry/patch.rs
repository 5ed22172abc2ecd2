//! Reads the body of a PATCH: given members are set, `null` clears, all others stay. Edits nothing.

use api::{Problem, ProblemKind, Request, body, restored_device};
use domain::{DevicePatch, Edit, MAX_PATCHED_METRICS, MAX_SEARCH_ENTRIES, RoomPatch, Timestamp};
use serde::de::DeserializeOwned;

/// The maximum size of a body after decompression: more than the largest possible patch needs.
const MAX_PATCH: usize = 128 << 10;
/// The maximum number of attributes in a patch: enough to remove all attributes of a device and to set as many others.
pub const MAX_PATCHED_ATTRIBUTES: usize = 2 * MAX_SEARCH_ENTRIES;
/// The earliest time for a device's move to a room. Earlier times come from a clock that was never set, or from seconds
/// that were taken for milliseconds.
const EARLIEST_SINCE: &str = "2001-01-01T00:00:00Z";

/// Reads the patch of a device. If it `restores` the device, the body is an earlier answer of `GET`.
pub(crate) fn of_device(
    request: &Request,
    restores: bool,
    now: Timestamp,
) -> Result<DevicePatch, Problem> {
    let patch =
        if restores { body::read_by(request, MAX_PATCH, restored_device)? } else { read(request)? };

    for (field, number, max) in [
        ("attributes", patch.attributes.len(), MAX_PATCHED_ATTRIBUTES),
        ("metrics", patch.metrics.len(), MAX_PATCHED_METRICS),
    ] {
        if number > max {
            return Err(Problem::field(field, format!("there are more than {max} members")));
        }
    }

    if let Some(since) = patch.room_since {
        check_since(since, now).map_err(|why| Problem::field("room_since", why))?;
        if patch.room == Edit::Keep {
            let why = "needs room beside it; null takes the device out of its room";
            return Err(Problem::field("room_since", why));
        }
    }

    Ok(patch)
}

/// Reads the patch of a room.
pub(crate) fn of_room(request: &Request) -> Result<RoomPatch, Problem> {
    read(request)
}

fn read<T: DeserializeOwned + Default + PartialEq>(request: &Request) -> Result<T, Problem> {
    let patch = body::read(request, MAX_PATCH)?;
    if patch == T::default() {
        let detail = "The body changes nothing; name at least one member to set.";
        return Err(Problem::new(ProblemKind::BadRequest, detail));
    }
    Ok(patch)
}

fn check_since(since: Timestamp, now: Timestamp) -> Result<(), String> {
    let earliest = Timestamp::parse_absolute(EARLIEST_SINCE).expect("a timestamp");
    if since > now {
        return Err(format!("is {since}, which is in the future"));
    }
    if since < earliest {
        return Err(format!("is {since}; nothing before {EARLIEST_SINCE} is taken"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::{at, cases, number};
    use domain::{MetricName, Role};

    fn patched(body: &str) -> Result<DevicePatch, String> {
        let request = Request { body: body.into(), ..Request::default() };
        let now = at("2026-01-11T16:00:00Z");
        of_device(&request, false, now).map_err(|problem| problem.detail)
    }

    #[test]
    fn what_is_there_is_set_null_takes_away_and_the_rest_stays() {
        let patch = patched(
            r#"{"name": "Smart meter", "room": null, "tags": ["a", "b"],
                "metrics": {"cumulative_kwh_p": {"modulus": 100000, "max_w": null}}}"#,
        )
        .expect("a patch");
        assert_eq!(patch.name, Edit::Set("Smart meter".parse().expect("a label")));
        assert_eq!(patch.room, Edit::Clear);
        assert_eq!(patch.kind, Edit::Keep);
        assert_eq!(patch.dropped_metrics().count(), 0);
        let (_, metric) = patch.settings().next().expect("one");
        assert_eq!(metric.modulus, Edit::Set(number("100000")));
        assert_eq!(metric.max_w, Edit::Clear);
        assert_eq!(metric.tolerance, Edit::Keep);
    }

    #[test]
    fn an_attribute_is_a_text_a_number_or_several_and_null_removes_it() {
        let patch = patched(
            r#"{"attributes": {"model": "SHT45", "size": 1.50, "serves": ["hall", 4], "old": null}}"#,
        )
        .expect("a patch");
        let attributes: Vec<String> = patch
            .attributes
            .iter()
            .map(|(name, values)| format!("{name}={}", serde_json::json!(values)))
            .collect();
        assert_eq!(
            attributes,
            [r#"model="SHT45""#, "old=null", r#"serves=["hall",4]"#, "size=1.5"]
        );
    }

    #[test]
    fn a_metric_that_is_null_is_dropped() {
        let patch =
            patched(r#"{"metrics": {"old": null, "t": {"tolerance": 1}}}"#).expect("a patch");
        let dropped: Vec<_> = patch.dropped_metrics().map(MetricName::as_str).collect();
        let kept: Vec<_> = patch.settings().map(|(name, _)| name.as_str()).collect();
        assert_eq!((dropped, kept), (vec!["old"], vec!["t"]));
    }

    #[test]
    fn a_body_that_is_larger_than_all_settings_is_not_taken() {
        let body = format!(r#"{{"tags": [{}]}}"#, vec![r#""a""#; MAX_PATCH].join(","));
        let request = Request { body: body.into(), ..Request::default() };
        let problem = of_device(&request, false, Timestamp::MIN).expect_err("too large");
        assert_eq!(problem.kind.status(), 413);
    }

    #[test]
    fn settings_of_meters_have_their_words() {
        for (body, expected) in [
            (
                r#"{"metrics": {"t": {"role": "bought"}}}"#,
                "metrics.t.role: is \"bought\"; expected import, export, production, storage, consumer or none",
            ),
            (r#"{"metrics": {"t": {"role": 5}}}"#, "metrics.t.role: must be a string"),
            (r#"{"metrics": {"t": {"net": 1}}}"#, "metrics.t.net: must be true or false"),
            (
                r#"{"metrics": {"t": {"cycle": "A"}}}"#,
                "metrics.t.cycle: \"A\" is not a metric name",
            ),
        ] {
            let error = patched(body).expect_err(body);
            assert!(error.starts_with(expected), "{body}: {error}");
        }
        let patch = patched(r#"{"metrics": {"t": {"role": "none", "net": false, "cycle": null}}}"#);
        let patch = patch.expect("a patch");
        let (_, metric) = patch.settings().next().expect("one");
        assert_eq!((&metric.role, &metric.net), (&Edit::Set(Role::None), &Edit::Set(false)));
        assert_eq!(metric.cycle, Edit::Clear);
    }

    #[test]
    fn every_bad_member_is_named() {
        let long = format!(r#"{{"name": "{}"}}"#, "x".repeat(101));
        let many =
            format!(r#"{{"tags": {:?}}}"#, (0..51).map(|n| n.to_string()).collect::<Vec<_>>());
        let names = (0..17).map(|n| format!(r#""m{n}": {{"tolerance": 1}}"#)).collect::<Vec<_>>();
        let metrics = format!(r#"{{"metrics": {{{}}}}}"#, names.join(", "));
        for (body, expected) in [
            ("", "changes nothing"),
            (&long, "name: is 101 characters long"),
            (&many, "tags: are 51"),
            (&metrics, "metrics: there are more than 16 members"),
        ] {
            let error = patched(body).expect_err(body);
            assert!(error.contains(expected), "{body}: {error}");
        }
        for case in cases(include_str!("patch/refused.txt")) {
            let error = patched(case.given).expect_err(case.given);
            assert!(error.contains(case.answer()), "{case}: {error}");
        }
    }
}
