//! Patterns of names, in which `*` is any text and `?` any character. Knows no source.

use domain::Reading;

/// Patterns; none names nothing.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Patterns(Vec<String>);

impl Patterns {
    /// Makes those of an option.
    pub(super) fn of(patterns: &[String]) -> Self {
        Self(patterns.to_vec())
    }

    /// Whether they name nothing.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of them names this.
    pub(super) fn name(&self, text: &str) -> bool {
        self.0.iter().any(|pattern| is_match(pattern, text))
    }

    /// Returns a reading without the metrics that they name; `None` if they name its device or all metrics.
    pub(super) fn leave_out_of(&self, reading: Reading) -> Option<Reading> {
        if self.is_empty() {
            return Some(reading);
        }
        if self.name(reading.device.as_str()) {
            return None;
        }
        if !reading.metrics().keys().any(|name| self.name(name.as_str())) {
            return Some(reading);
        }
        let left = reading.metrics().iter().filter(|(name, _)| !self.name(name.as_str()));
        let left = left.map(|(name, value)| (name.clone(), value.clone())).collect();
        Reading::stored(reading.device, reading.at, reading.room, left).ok()
    }
}

/// Whether a text is of a pattern.
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
    use domain::{MetricName, Timestamp};

    use super::*;

    #[test]
    fn devices_and_metrics_are_left_out() {
        for (patterns, left) in [
            (&[][..], Some("t,u")),
            (&["x", "sensor"], Some("t,u")),
            (&["sensor.*"], None),
            (&["?"], None),
            (&["x", "u"], Some("t")),
        ] {
            let json = r#"{"device_id":"sensor.a","timestamp":1768147200,"t":1,"u":2}"#;
            let reading = local::read_reading(json, Timestamp::MAX).unwrap();
            let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
            let found = Patterns::of(&patterns).leave_out_of(reading).map(|it| {
                let names: Vec<&str> = it.metrics().keys().map(MetricName::as_str).collect();
                names.join(",")
            });
            assert_eq!(found.as_deref(), left, "{patterns:?}");
        }
    }
}
