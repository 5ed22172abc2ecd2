//! Regular expressions of a query: RE2's language, unanchored, in linear time. Bounded in size.

use regex_lite::{Regex, RegexBuilder};

use crate::error::QueryError;

/// The largest size of a compiled expression: 64 KiB.
const MAX_SIZE: usize = 64 << 10;
/// The number of parentheses within each other.
const MAX_NESTING: u32 = 32;

/// A regular expression.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(Regex);

impl Pattern {
    /// Compiles an expression.
    pub(crate) fn parse(text: &str) -> Result<Self, QueryError> {
        let built = RegexBuilder::new(text).size_limit(MAX_SIZE).nest_limit(MAX_NESTING).build();
        built.map(Self).map_err(|why| {
            QueryError::new(format!("error parsing regexp: {why}: `{}`", domain::excerpt(text)))
        })
    }

    /// Tells whether it is found anywhere in a text.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// The expression as it was written.
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_unanchored_and_bounded() {
        assert!(Pattern::parse("(?i)ITCH").expect("an expression").is_in("kitchen"));
        for bad in ["[", "(a", &format!("{}a{}", "(".repeat(40), ")".repeat(40)), "(a{900}){900}"] {
            let why = Pattern::parse(bad).expect_err(bad).to_string();
            assert!(why.starts_with("error parsing regexp: "), "{why}");
        }
    }
}
