//! Patterns of names: `*` matches any text and `?` any character. Knows no source.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::Reading;
use history::notes::Notes;

/// Names that were not met yet. Clones share the names.
#[derive(Default, Clone)]
pub(super) struct Unmet(Arc<Mutex<BTreeSet<String>>>);

/// Shows no names, because the debugging text of the options identifies an import and must not change.
impl fmt::Debug for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unmet")
    }
}

impl Unmet {
    /// Makes the set of names before any of them is met.
    pub(super) fn of(names: impl IntoIterator<Item = String>) -> Self {
        Self(Arc::new(Mutex::new(names.into_iter().collect())))
    }

    /// Notes that a name was met.
    pub(super) fn meet(&self, name: &str) {
        self.names().remove(name);
    }

    /// The names that were not met, in quotes.
    pub(super) fn quoted(&self) -> Vec<String> {
        self.names().iter().map(|name| format!("{name:?}")).collect()
    }

    fn names(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A list of patterns; an empty list matches nothing.
#[derive(Debug, Default, Clone)]
pub(super) struct NamePatterns {
    patterns: Vec<String>,
    unmatched: Unmet,
}

impl NamePatterns {
    /// Makes the patterns from an option's values.
    pub(super) fn of(patterns: &[String]) -> Self {
        Self { patterns: patterns.to_vec(), unmatched: Unmet::of(patterns.iter().cloned()) }
    }

    /// The remark about the patterns of an option that have matched nothing.
    pub(super) fn unmatched(&self, option: &str) -> Option<String> {
        let names = self.unmatched.quoted();
        (!names.is_empty()).then(|| format!("{option} matches nothing: {}", names.join(", ")))
    }

    /// Whether a pattern has matched nothing so far.
    pub(super) fn has_unmatched(&self) -> bool {
        !self.unmatched.names().is_empty()
    }

    /// Whether the list is empty.
    pub(super) const fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether a pattern matches this text. Notes the patterns that match.
    pub(super) fn matches(&self, text: &str) -> bool {
        let mut unmatched = self.unmatched.names();
        let mut matching = self.patterns.iter().filter(|pattern| is_match(pattern, text));
        // All patterns are tried only while one of them has matched nothing.
        if unmatched.is_empty() {
            return matching.next().is_some();
        }

        let mut is_named = false;
        for pattern in matching {
            unmatched.remove(pattern);
            is_named = true;
        }
        is_named
    }

    /// Returns a reading without the metrics that match, which are counted; `None` if the device or all metrics match.
    pub(super) fn leave_out_of(&self, reading: Reading, notes: &Notes) -> Option<Reading> {
        if self.is_empty() {
            return Some(reading);
        }

        if self.matches(reading.device.as_str()) {
            notes.leave_out("readings of devices that --except names");
            return None;
        }

        let named = reading.metrics().keys().filter(|name| self.matches(name.as_str())).count();
        if named == 0 {
            return Some(reading);
        }

        notes.leave_out_many("values of metrics that --except names", named as u64);
        let left = reading.metrics().iter().filter(|(name, _)| !self.matches(name.as_str()));
        let left = left.map(|(name, value)| (name.clone(), value.clone())).collect();
        // An error means that no metric is left.
        Reading::stored(reading.device, reading.at, reading.room, left).ok()
    }
}

/// Whether a text matches a pattern. On a mismatch, only the last `*` takes one more character, never an earlier one.
/// So the number of steps is at most the product of both lengths.
fn is_match(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());

    let (mut at, mut read) = (0, 0);
    // The position after the last `*`, and where the text after its match begins.
    let mut star = None;
    while let Some(c) = text.get(read) {
        match pattern.get(at) {
            Some('*') => {
                at += 1;
                star = Some((at, read));
            }
            Some(wanted) if wanted == c || *wanted == '?' => {
                at += 1;
                read += 1;
            }
            _ => {
                let Some((behind, begin)) = &mut star else { return false };
                *begin += 1;
                (at, read) = (*behind, *begin);
            }
        }
    }

    pattern[at..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use domain::{MetricName, Timestamp};
    use proptest::prelude::*;

    use super::*;

    /// Whether a text is of a pattern, by trying everything.
    fn is_match_by_trying(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], _) => text.is_empty(),
            (['*', rest @ ..], _) => {
                (0..=text.len()).any(|at| is_match_by_trying(rest, &text[at..]))
            }
            ([wanted, rest @ ..], [c, behind @ ..]) => {
                (*wanted == '?' || wanted == c) && is_match_by_trying(rest, behind)
            }
            (_, []) => false,
        }
    }

    proptest! {
        #[test]
        fn a_pattern_names_what_it_names_by_trying(pattern in "[ab°*?]{0,8}", text in "[ab°*]{0,8}") {
            let characters = |text: &str| text.chars().collect::<Vec<_>>();
            let expected = is_match_by_trying(&characters(&pattern), &characters(&text));
            prop_assert_eq!(is_match(&pattern, &text), expected);
        }
    }

    #[test]
    fn patterns_that_matched_nothing_are_named() {
        let patterns =
            NamePatterns::of(&["sensor.*".to_owned(), "typo".to_owned(), "a".to_owned()]);
        let said = || patterns.unmatched("--except");
        assert_eq!(said().unwrap(), r#"--except matches nothing: "a", "sensor.*", "typo""#);
        assert!(patterns.clone().matches("sensor.a") && !patterns.matches("other"));
        assert_eq!(said().unwrap(), r#"--except matches nothing: "a", "typo""#);
        assert!(patterns.matches("typo") && patterns.matches("a"));
        assert_eq!((said(), patterns.has_unmatched()), (None, false));
    }

    #[test]
    fn a_pattern_of_many_stars_ends() {
        let (pattern, text) = ("*a".repeat(50) + "b", "a".repeat(5_000));
        assert!(!is_match(&pattern, &text));
        assert!(is_match(&pattern, &(text + "b")));
    }

    #[test]
    fn devices_and_metrics_are_left_out() {
        for (patterns, left, said) in [
            (&[][..], Some("t,u"), ""),
            (&["x", "sensor"], Some("t,u"), ""),
            (&["sensor.*"], None, "left out     1 readings of devices that --except names"),
            (&["?"], None, "left out     2 values of metrics that --except names"),
            (&["x", "u"], Some("t"), "left out     1 values of metrics that --except names"),
        ] {
            let json = r#"{"device_id":"sensor.a","timestamp":1768147200,"t":1,"u":2}"#;
            let reading = history::read_reading(json, Timestamp::MAX).unwrap();
            let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
            let notes = Notes::default();
            let found = NamePatterns::of(&patterns).leave_out_of(reading, &notes).map(|it| {
                let names: Vec<&str> = it.metrics().keys().map(MetricName::as_str).collect();
                names.join(",")
            });
            assert_eq!(found.as_deref(), left, "{patterns:?}");
            assert_eq!(notes.to_string(), said, "{patterns:?}");
        }
    }
}
