//! Selects the points that a person wants, by their time and the names of their series. Reads no source.

use anyhow::Context as _;
use domain::{TimeRange, Timestamp};

use crate::import::args::ImportArgs;
use crate::import::patterns::NamePatterns;
use crate::moment::MILLISECOND;
use history::notes::Notes;
use history::point::Point;

/// The selected part of a source.
#[derive(Debug, Default, Clone)]
pub(in crate::import) struct Selection {
    /// The span in nanoseconds; the start is inclusive, the end exclusive.
    from: Option<i64>,
    to: Option<i64>,
    only: NamePatterns,
    except: NamePatterns,
}

impl Selection {
    /// Reads the options --from, --to, --only and --except.
    pub(in crate::import) fn of(args: &ImportArgs, now: Timestamp) -> anyhow::Result<Self> {
        let read = |text: &Option<String>, option| {
            let at = text.as_ref().map(|text| {
                Timestamp::parse(text, now).with_context(|| format!("{option} {text:?}"))
            });
            at.transpose()
        };
        let (from, to) = (read(&args.from, "--from")?, read(&args.to, "--to")?);
        if let Some((from, to)) = from.zip(to) {
            TimeRange::new(from, to).context("--from, --to")?;
        }

        let nanos = |at: Timestamp| at.as_millis().saturating_mul(MILLISECOND);
        let (only, except) = (NamePatterns::of(&args.only), NamePatterns::of(&args.except));
        Ok(Self { from: from.map(nanos), to: to.map(nanos), only, except })
    }

    /// The remarks about patterns that have matched nothing.
    pub(in crate::import) fn unmatched(&self) -> impl Iterator<Item = String> {
        [self.only.unmatched("--only"), self.except.unmatched("--except")].into_iter().flatten()
    }

    /// Returns the span in nanoseconds; the end is exclusive.
    pub(in crate::import) fn span(&self) -> (i64, i64) {
        (self.from.unwrap_or(i64::MIN), self.to.unwrap_or(i64::MAX))
    }

    /// Returns whether a point is wanted; counts the point otherwise. Removes unwanted fields from the point.
    pub(in crate::import) fn takes(&self, point: &mut Point, notes: &Notes) -> bool {
        let why = if self.from.is_some_and(|from| point.nanos < from) {
            "points before --from"
        } else if self.to.is_some_and(|to| point.nanos >= to) {
            "points from --to on"
        } else if !self.only.is_empty() && !names(&self.only, point) {
            "points of series that --only does not name"
        } else if names(&self.except, point) {
            "points of series that --except names"
        } else {
            let is_named =
                |field: &str| self.except.matches(field) || self.except.matches(&unescaped(field));
            point.fields.retain(|(field, _)| !is_named(field));
            if !point.fields.is_empty() {
                return true;
            }
            "points of metrics that --except names"
        };
        notes.leave_out(why);
        false
    }
}

/// Whether a pattern matches the series, its entity, its measurement or the value of a tag, with or without the escapes
/// of line protocol.
fn names(patterns: &NamePatterns, point: &Point) -> bool {
    if patterns.is_empty() {
        return false;
    }
    let values = split(&point.tags, ',').into_iter().filter_map(|tag| split(tag, '=').pop());
    let mut names = vec![point.series(), point.measurement.clone()];
    names.extend(point.entity());
    names.extend(values.map(ToOwned::to_owned));
    names.iter().any(|name| patterns.matches(name) || patterns.matches(&unescaped(name)))
}

/// Notes which names the tags of a point have, while one of the wanted names was in no point.
pub(in crate::import) fn meet_tags(tags: &NamePatterns, point: &Point) {
    if tags.has_unmatched() {
        for tag in split(&point.tags, ',') {
            tags.matches(&unescaped(split(tag, '=')[0]));
        }
    }
}

/// Splits a text of line protocol at each unescaped occurrence of a character.
fn split(text: &str, end: char) -> Vec<&str> {
    let (mut parts, mut begin, mut is_escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        if c == end && !is_escaped {
            parts.push(&text[begin..at]);
            begin = at + end.len_utf8();
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    parts.push(&text[begin..]);
    parts
}

/// Returns a name without the escapes of line protocol. A backslash before any other character stays.
fn unescaped(name: &str) -> String {
    let mut characters = name.chars().peekable();
    let mut unescaped = String::with_capacity(name.len());
    while let Some(c) = characters.next() {
        let escapes =
            c == '\\' && characters.peek().is_some_and(|next| [',', '=', ' '].contains(next));
        unescaped.extend(if escapes { characters.next() } else { Some(c) });
    }
    unescaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(nanos: i64) -> Point {
        Point {
            measurement: "°C".to_owned(),
            tags: "domain=sensor,entity_id=living_room".to_owned(),
            fields: vec![("value".to_owned(), "1".to_owned())],
            nanos,
            line: 0,
            way: history::point::Way::Plain,
            hour: None,
        }
    }

    #[test]
    fn a_tag_that_no_point_has_is_named() {
        let tags = NamePatterns::of(&["entity_id".to_owned(), "Entity".to_owned()]);
        meet_tags(&tags, &point(0));
        assert_eq!(
            tags.unmatched("--device-tags").unwrap(),
            r#"--device-tags matches nothing: "Entity""#
        );
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
            let patterns = NamePatterns::of(&[pattern.to_owned()]);
            let only = Selection { only: patterns.clone(), ..Selection::default() };
            let except = Selection { except: patterns, ..Selection::default() };
            let takes = |of: &Selection| of.takes(&mut point(0), &Notes::default());
            assert_eq!((takes(&only), takes(&except)), (fits, !fits), "{pattern}");
        }
    }

    #[test]
    fn names_are_compared_without_the_escapes_of_line_protocol() {
        let fields = vec![("time\\ left".to_owned(), "1".to_owned())];
        let (measurement, tags) =
            ("my\\ meter".to_owned(), "host=pi\\ 4,rack=a\\,b\\=c".to_owned());
        let point = || Point {
            measurement: measurement.clone(),
            tags: tags.clone(),
            fields: fields.clone(),
            ..point(0)
        };
        for (pattern, fits) in [
            ("pi 4", true),
            ("pi\\ 4", true),
            ("pi?4", true),
            ("a,b=c", true),
            ("b=c", false),
            ("my meter", true),
            ("my meter,host=pi 4*", true),
            ("my\\ meter,host=pi\\ 4,*", true),
            ("4", false),
        ] {
            let only = NamePatterns::of(&[pattern.to_owned()]);
            let selection = Selection { only, ..Selection::default() };
            assert_eq!(selection.takes(&mut point(), &Notes::default()), fits, "{pattern}");
        }
        let except = NamePatterns::of(&["time left".to_owned()]);
        let selection = Selection { except, ..Selection::default() };
        assert!(!selection.takes(&mut point(), &Notes::default()), "its only field");
    }

    #[test]
    fn fields_are_left_out_alone() {
        let except = NamePatterns::of(&["usage_*".to_owned()]);
        let selection = Selection { except, ..Selection::default() };
        let of = |fields: &[&str]| {
            let fields = fields.iter().map(|it| ((*it).to_owned(), "1".to_owned())).collect();
            let mut point = Point { fields, ..point(0) };
            let notes = Notes::default();
            selection
                .takes(&mut point, &notes)
                .then_some(point.fields.len())
                .ok_or(notes.to_string())
        };
        assert_eq!(of(&["usage_idle", "n"]), Ok(1));
        let said = "left out     1 points of metrics that --except names".to_owned();
        assert_eq!(of(&["usage_idle"]), Err(said));
    }

    #[test]
    fn a_span_has_its_beginning_and_not_its_end() {
        let now = Timestamp::from_millis(1_800_000_000_000).unwrap();
        let of = |from: Option<&str>, to: Option<&str>| {
            let mut args: ImportArgs = crate::tests::parsed(["import", "-"]).unwrap();
            (args.from, args.to) = (from.map(str::to_owned), to.map(str::to_owned));
            Selection::of(&args, now)
        };
        let selection = of(Some("2026-01-11T16:00:00Z"), Some("2026-01-11T17:00:00Z")).unwrap();
        let notes = Notes::default();
        let begin = 1_768_147_200_000_000_000;
        let hour = 3_600_000_000_000;
        let taken = [begin - 1, begin, begin + hour - 1, begin + hour]
            .map(|at| selection.takes(&mut point(at), &notes));
        assert_eq!(taken, [false, true, true, false]);
        assert_eq!(
            notes.to_string(),
            "left out     1 points before --from\nleft out     1 points from --to on"
        );
        let error = of(Some("soon"), None).unwrap_err();
        assert!(format!("{error:#}").starts_with("--from \"soon\""), "{error:#}");
        let error = of(Some("-1d"), Some("-2d")).unwrap_err();
        assert!(format!("{error:#}").starts_with("--from, --to: "), "{error:#}");
    }
}
