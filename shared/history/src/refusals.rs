//! The refusals of an import: the first ones with their reasons, all of them counted. Refuses nothing.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The maximum number of reasons shown, and of lines for one reason.
const MAX_SHOWN: usize = 20;
const MAX_LINES: usize = 3;

/// The refusal of a line, or of a cell of a line.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Refusal {
    /// The line number in the file, from 1; 0 if the reason names the place.
    pub line: u64,
    /// The column or field, and the reason of the refusal.
    pub reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.reason),
            line => write!(f, "line {line}: {}", self.reason),
        }
    }
}

/// Refusals with the same reason.
#[derive(Debug)]
struct Alike {
    reason: String,
    count: u64,
    /// The numbers of the first lines.
    lines: Vec<u64>,
}

impl fmt::Display for Alike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, count, lines } = self;
        match lines[..] {
            [0, ..] if *count > 1 => write!(f, "{reason} ({count} times)"),
            [0, ..] => f.write_str(reason),
            [line] => write!(f, "line {line}: {reason}"),
            _ => {
                let named: Vec<String> = lines.iter().map(u64::to_string).collect();
                write!(f, "lines {}", named.join(", "))?;
                let hidden = count - lines.len() as u64;
                if hidden > 0 {
                    write!(f, " and {hidden} more")?;
                }
                write!(f, ": {reason}")
            }
        }
    }
}

/// All refusals of an import.
#[derive(Debug, Default)]
pub struct Refusals {
    count: u64,
    first: Vec<Alike>,
}

impl Refusals {
    /// Returns the number of refusals.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Adds the refusals of `others`.
    pub fn append(&mut self, others: Self) {
        self.count += others.count;
        others.first.into_iter().for_each(|alike| self.name(alike));
    }

    /// Returns the first refusal.
    pub fn first(&self) -> Option<Refusal> {
        let first = self.first.first()?;
        Some(Refusal { line: first.lines[0], reason: first.reason.clone() })
    }

    fn name(&mut self, alike: Alike) {
        if let Some(known) = self.first.iter_mut().find(|known| known.reason == alike.reason) {
            known.count += alike.count;
            known.lines.extend(alike.lines);
            known.lines.truncate(MAX_LINES);
        } else if self.first.len() < MAX_SHOWN {
            self.first.push(alike);
        }
    }
}

impl Extend<Refusal> for Refusals {
    fn extend<I: IntoIterator<Item = Refusal>>(&mut self, refusals: I) {
        for Refusal { line, reason } in refusals {
            self.count += 1;
            self.name(Alike { reason, count: 1, lines: vec![line] });
        }
    }
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.count > 0 {
            write!(f, "\nrefused      {}", self.count)?;
        }

        for alike in &self.first {
            write!(f, "\n  {alike}")?;
        }

        let hidden = self.count - self.first.iter().map(|refusals| refusals.count).sum::<u64>();
        if hidden > 0 {
            write!(f, "\n  and {hidden} more")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Refusals {
        /// Returns the texts to show.
        pub fn shown(&self) -> Vec<String> {
            self.first.iter().map(Alike::to_string).collect()
        }
    }

    fn refusals(count: u64, reason: impl Fn(u64) -> String) -> Refusals {
        let mut refusals = Refusals::default();
        refusals.extend((1..=count).map(|line| Refusal { line, reason: reason(line) }));
        refusals
    }

    #[test]
    fn the_first_twenty_reasons_are_named_and_the_rest_is_counted() {
        assert_eq!(Refusals::default().to_string(), "");
        let text = refusals(25, |line| format!("t: no {line}")).to_string();
        assert!(text.contains("refused      25\n  line 1: t: no 1\n"), "{text}");
        assert!(text.ends_with("line 20: t: no 20\n  and 5 more"), "{text}");
    }

    #[test]
    fn the_same_reason_stands_once_with_its_first_lines() {
        let mut all = refusals(25, |_| "t: no".to_owned());
        assert_eq!(all.shown(), ["lines 1, 2, 3 and 22 more: t: no"]);
        all.append(refusals(2, |line| if line == 1 { "t: no" } else { "u: no" }.to_owned()));
        let expected = "\nrefused      27\n  lines 1, 2, 3 and 23 more: t: no\n  line 2: u: no";
        assert_eq!(all.to_string(), expected);
        assert_eq!(all.first().unwrap().to_string(), "line 1: t: no");
        assert_eq!(refusals(2, |_| "x".to_owned()).shown(), ["lines 1, 2: x"]);
        let mut placed = Refusals::default();
        placed.extend((0..2).map(|_| Refusal { line: 0, reason: "a.db: no".to_owned() }));
        assert_eq!(placed.shown(), ["a.db: no (2 times)"]);
    }
}
