//! The refusals of an import: the first of them with their reasons, all of them counted. Refuses nothing.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The most refusals that are shown with their reasons.
const MAX_SHOWN: usize = 20;

/// A line, or a cell of a line, that is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Refusal {
    /// The line of the file, from 1; 0 where the reason tells the place.
    pub(crate) line: u64,
    /// The column or the field, and the reason.
    pub(crate) reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.reason),
            line => write!(f, "line {line}: {}", self.reason),
        }
    }
}

/// All refusals of an import.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    count: u64,
    first: Vec<Refusal>,
}

impl Refusals {
    /// Returns their number.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Counts refusals without a reason.
    pub(super) const fn add_unnamed(&mut self, count: u64) {
        self.count += count;
    }

    /// Adds others.
    pub(super) fn append(&mut self, others: Self) {
        let Self { count, first } = others;
        let unnamed = count - first.len() as u64;
        self.extend(first);
        self.count += unnamed;
    }

    /// Returns the first.
    pub(super) fn first(&self) -> Option<&Refusal> {
        self.first.first()
    }

    /// Returns those that are shown.
    #[cfg(test)]
    pub(super) fn shown(&self) -> Vec<String> {
        self.first.iter().map(Refusal::to_string).collect()
    }
}

impl Extend<Refusal> for Refusals {
    fn extend<I: IntoIterator<Item = Refusal>>(&mut self, refusals: I) {
        for refusal in refusals {
            self.count += 1;
            if self.first.len() < MAX_SHOWN {
                self.first.push(refusal);
            }
        }
    }
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.count > 0 {
            write!(f, "\nrefused      {}", self.count)?;
        }
        for refusal in &self.first {
            write!(f, "\n  {refusal}")?;
        }
        let hidden = self.count - self.first.len() as u64;
        if hidden > 0 {
            write!(f, "\n  and {hidden} more")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_twenty_are_named_and_the_rest_is_counted() {
        let mut refusals = Refusals::default();
        assert_eq!(refusals.to_string(), "");
        refusals.extend((1..=25).map(|line| Refusal { line, reason: "t: no".to_owned() }));
        let text = refusals.to_string();
        assert!(text.contains("refused      25\n  line 1: t: no\n"), "{text}");
        assert!(text.ends_with("line 20: t: no\n  and 5 more"), "{text}");
    }
}
