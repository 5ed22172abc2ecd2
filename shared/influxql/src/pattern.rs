//! Regular expressions of a query: RE2's language, unanchored, in linear time. Bounded in size.

use regex_lite::{Regex, RegexBuilder};

use crate::error::QueryError;

/// The largest size of a compiled expression: 64 KiB.
const MAX_SIZE: usize = 64 << 10;
/// The largest depth of nested parentheses.
const MAX_NESTING: u32 = 32;

/// A regular expression.
#[derive(Debug, Clone)]
pub(crate) struct RegularExpression(Regex);

impl RegularExpression {
    /// Compiles an expression.
    pub(crate) fn parse(text: &str) -> Result<Self, QueryError> {
        let built = RegexBuilder::new(text).size_limit(MAX_SIZE).nest_limit(MAX_NESTING).build();
        built.map(Self).map_err(|why| {
            QueryError::new(format!("error parsing regexp: {why}: `{}`", domain::excerpt(text)))
        })
    }

    /// Whether the expression is found anywhere in a text.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// The texts that match, if the expression is a list of whole texts such as `^(hall|attic)$`, as Grafana writes the
    /// values of a variable. `None` if other texts may match.
    pub(crate) fn texts(&self) -> Option<Vec<String>> {
        let inside = self.as_str().strip_prefix('^')?.strip_suffix('$')?;
        let list = inside.strip_prefix('(').and_then(|list| list.strip_suffix(')'));
        match list {
            Some(list) => list.strip_prefix("?:").unwrap_or(list).split('|').map(plain).collect(),
            None => Some(vec![plain(inside)?]),
        }
    }

    /// The expression as it was written.
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// The text of an expression without special characters; `None` if it has special characters.
fn plain(expression: &str) -> Option<String> {
    let mut text = String::new();
    let mut characters = expression.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => characters.next().filter(char::is_ascii_punctuation)?,
            it if it.is_alphanumeric() || " _-:/@%,;=~<>&'\"!".contains(it) => it,
            _ => return None,
        });
    }
    Some(text)
}

impl PartialEq for RegularExpression {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_unanchored_and_bounded() {
        assert!(RegularExpression::parse("(?i)ITCH").expect("an expression").is_in("kitchen"));
        for bad in ["[", "(a", &format!("{}a{}", "(".repeat(40), ")".repeat(40)), "(a{900}){900}"] {
            let why = RegularExpression::parse(bad).expect_err(bad).to_string();
            assert!(why.starts_with("error parsing regexp: "), "{why}");
        }
    }

    #[test]
    fn a_list_of_whole_texts_is_known_and_nothing_else_is_taken_for_one() {
        let texts = |text: &str| RegularExpression::parse(text).expect("an expression").texts();
        let list = |of: &[&str]| Some(of.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        assert_eq!(texts("^hall$"), list(&["hall"]));
        assert_eq!(texts("^(hall|first floor)$"), list(&["hall", "first floor"]));
        assert_eq!(texts(r"^(?:a\.b|c\-d|é)$"), list(&["a.b", "c-d", "é"]));
        assert_eq!(texts("^()$"), list(&[""]));
        for other in
            ["hall", "^hall", "hall$", "^a|b$", "^(a.)$", "^(a|b)c$", "^(a)|(b)$", r"^\d$", "^a*$"]
        {
            assert_eq!(texts(other), None, "{other}");
        }
        for other in ["^[ab]$", "^a+$", "^(?i)a$", "^(?i:a)$", "^a{2}$", r"^(a\|b)$"] {
            assert_eq!(texts(other), None, "{other}");
        }
    }
}
