//! The points that a person wants: of a span, of series by their names. Reads no source.

use anyhow::Context as _;
use domain::Timestamp;

use crate::import::sources::{Notes, Point};

/// Nanoseconds of a millisecond.
const MILLISECOND: i64 = 1_000_000;

/// What is imported of a source.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(in crate::import) struct Selection {
    /// Nanoseconds; the first is in the span, the second is not.
    from: Option<i64>,
    to: Option<i64>,
    only: Vec<String>,
}

impl Selection {
    /// Reads the options --from, --to and --only.
    pub(in crate::import) fn of(
        from: Option<&str>,
        to: Option<&str>,
        only: &[String],
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let nanos = |text: Option<&str>, option| {
            let Some(text) = text else { return Ok(None) };
            let at = Timestamp::parse(text, now).with_context(|| format!("{option} {text:?}"))?;
            anyhow::Ok(Some(at.as_millis().saturating_mul(MILLISECOND)))
        };
        Ok(Self { from: nanos(from, "--from")?, to: nanos(to, "--to")?, only: only.to_vec() })
    }

    /// Returns the span in nanoseconds, whose end is not in it.
    pub(in crate::import) fn span(&self) -> (i64, i64) {
        (self.from.unwrap_or(i64::MIN), self.to.unwrap_or(i64::MAX))
    }

    /// Returns whether a point is wanted; counts it otherwise.
    pub(in crate::import) fn takes(&self, point: &Point, notes: &Notes) -> bool {
        let why = if self.from.is_some_and(|from| point.nanos < from) {
            "points before --from"
        } else if self.to.is_some_and(|to| point.nanos >= to) {
            "points from --to on"
        } else if !self.only.is_empty() && !self.names(point) {
            "points of series that --only does not name"
        } else {
            return true;
        };
        notes.leave_out(why);
        false
    }

    /// Whether a pattern is that of the series, of its entity, of its measurement or of a tag's value.
    fn names(&self, point: &Point) -> bool {
        let values =
            point.tags.split(',').filter_map(|tag| tag.split_once('=').map(|(_, value)| value));
        let mut names = vec![point.series(), point.measurement.clone()];
        names.extend(point.entity());
        names.extend(values.map(ToOwned::to_owned));
        self.only.iter().any(|pattern| names.iter().any(|name| is_match(pattern, name)))
    }
}

/// Whether a text is of a pattern, in which `*` is any text and `?` any character.
fn is_match(pattern: &str, text: &str) -> bool {
    match pattern.chars().next() {
        None => text.is_empty(),
        Some('*') => {
            let rest = &pattern[1..];
            text.char_indices()
                .map(|(at, _)| at)
                .chain([text.len()])
                .any(|at| is_match(rest, &text[at..]))
        }
        Some(wanted) => {
            let mut characters = text.chars();
            let first = characters.next();
            let fits = first.is_some_and(|c| wanted == '?' || wanted == c);
            fits && is_match(&pattern[wanted.len_utf8()..], characters.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(nanos: i64) -> Point {
        Point {
            measurement: "°C".to_owned(),
            tags: "domain=sensor,entity_id=living_room".to_owned(),
            fields: Vec::new(),
            nanos,
            line: 0,
            way: crate::import::sources::Way::Plain,
        }
    }

    #[test]
    fn patterns_name_series_entities_measurements_and_tags() {
        for (pattern, fits) in [
            ("sensor.living_*", true),
            ("sensor.*", true),
            ("living_room", true),
            ("?C", true),
            ("°C,*entity_id=liv*", true),
            ("sensor.kitchen", false),
            ("living", false),
            ("**room", true),
        ] {
            let selection = Selection { only: vec![pattern.to_owned()], ..Selection::default() };
            assert_eq!(selection.takes(&point(0), &Notes::default()), fits, "{pattern}");
        }
    }

    #[test]
    fn a_span_has_its_beginning_and_not_its_end() {
        let now = Timestamp::from_millis(1_800_000_000_000).unwrap();
        let selection =
            Selection::of(Some("2026-01-11T16:00:00Z"), Some("2026-01-11T17:00:00Z"), &[], now)
                .unwrap();
        let notes = Notes::default();
        let begin = 1_768_147_200_000_000_000;
        let hour = 3_600_000_000_000;
        let taken = [begin - 1, begin, begin + hour - 1, begin + hour]
            .map(|at| selection.takes(&point(at), &notes));
        assert_eq!(taken, [false, true, true, false]);
        assert_eq!(
            notes.to_string(),
            "left out     1 points before --from\nleft out     1 points from --to on"
        );
        let error = Selection::of(Some("soon"), None, &[], now).unwrap_err();
        assert!(format!("{error:#}").starts_with("--from \"soon\""), "{error:#}");
    }
}
