//! Splits the text of a query into tokens. Knows no statement.

use crate::duration;

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Lexeme {
    /// An unquoted word: a keyword, or a name.
    Word(String),
    /// A name in double quotes.
    Quoted(String),
    /// A text in single quotes.
    Text(String),
    Integer(i64),
    Number(f64),
    /// A duration in nanoseconds.
    Duration(i64),
    /// A parameter `$name`; its value comes with the query.
    Parameter(String),
    /// An operator or a punctuation mark.
    Mark(&'static str),
    /// Characters that are not a token, such as a text without a closing quote.
    Bad(String),
    End,
}

/// A token and the byte at which it begins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spanned {
    pub(crate) token: Lexeme,
    pub(crate) at: usize,
}

/// Operators and punctuation marks; a longer mark comes before its prefixes.
const MARKS: [&str; 23] = [
    "=~", "!~", "!=", "<>", "<=", ">=", "::", "=", "<", ">", "+", "-", "*", "/", "%", "&", "|",
    "^", "(", ")", ",", ";", ".",
];

/// Keywords: words that must be quoted to be names.
const KEYWORDS: &str = "\
    ALL ALTER ANALYZE AND ANY AS ASC BEGIN BY CARDINALITY CONTINUOUS CREATE DATABASE DATABASES \
    DEFAULT DELETE DESC DESTINATIONS DIAGNOSTICS DISTINCT DROP DURATION END EVERY EXACT EXPLAIN \
    FALSE FIELD FOR FROM GRANT GRANTS GROUP GROUPS IN INF INSERT INTO KEY KEYS KILL LIMIT \
    MEASUREMENT MEASUREMENTS NAME OFFSET ON OR ORDER PASSWORD POLICIES POLICY PRIVILEGES QUERIES \
    QUERY READ REPLICATION RESAMPLE RETENTION REVOKE SELECT SERIES SET SHARD SHOW SLIMIT SOFFSET \
    STATS SUBSCRIPTION TAG TO TRUE USER VALUES WHERE WITH";

/// Tells whether an unquoted word is a keyword, in any letter case.
pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.split(' ').any(|keyword| keyword.eq_ignore_ascii_case(word))
}

/// The lexer: a position in the text of a query. A copy of the lexer looks ahead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Takes characters for as long as `is_wanted` holds.
    fn take_while(&mut self, is_wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !is_wanted(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Skips blanks and comments.
    fn skip(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            if self.rest().starts_with("--") {
                self.take_while(|c| c != '\n');
            } else if self.rest().starts_with("/*") {
                let end = self.rest().find("*/").map_or(self.rest().len(), |end| end + 2);
                self.at += end;
            } else {
                return;
            }
        }
    }

    /// The next token.
    pub(crate) fn next(&mut self) -> Spanned {
        self.skip();
        let at = self.at;
        let Some(first) = self.rest().chars().next() else {
            return Spanned { token: Lexeme::End, at: self.text.len() + 1 };
        };

        let after = self.rest()[first.len_utf8()..].chars().next();
        let token = match first {
            '\'' => self.quoted('\'').map_or_else(Lexeme::Bad, Lexeme::Text),
            '"' => self.quoted('"').map_or_else(Lexeme::Bad, Lexeme::Quoted),
            '$' => {
                self.at += 1;
                if self.rest().starts_with('"') {
                    self.quoted('"').map_or_else(Lexeme::Bad, Lexeme::Parameter)
                } else {
                    Lexeme::Parameter(self.take_while(is_of_word).to_owned())
                }
            }
            '0'..='9' => self.number(),
            '.' if after.is_some_and(|c| c.is_ascii_digit()) => self.number(),
            c if c.is_alphabetic() || c == '_' => {
                Lexeme::Word(self.take_while(is_of_word).to_owned())
            }
            c => match MARKS.iter().find(|mark| self.rest().starts_with(**mark)) {
                Some(mark) => {
                    self.at += mark.len();
                    Lexeme::Mark(if *mark == "<>" { "!=" } else { mark })
                }
                None => {
                    self.at += c.len_utf8();
                    Lexeme::Bad(c.to_string())
                }
            },
        };

        Spanned { token, at }
    }

    /// The regular expression between slashes, if the next token is one; `Err` has its text if the closing slash is
    /// missing.
    pub(crate) fn regex(&mut self) -> Option<Result<String, String>> {
        self.skip();
        if !self.rest().starts_with('/') {
            return None;
        }

        let mut pattern = String::new();
        let mut chars = self.rest().char_indices().skip(1).peekable();
        while let Some((n, c)) = chars.next() {
            match c {
                '/' => {
                    self.at += n + 1;
                    return Some(Ok(pattern));
                }
                '\\' if chars.next_if(|(_, next)| *next == '/').is_some() => pattern.push('/'),
                c => pattern.push(c),
            }
        }

        self.at = self.text.len();
        Some(Err(pattern))
    }

    /// The text between quotes; `Err` has the text if the closing quote is missing.
    fn quoted(&mut self, quote: char) -> Result<String, String> {
        let mut found = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((n, c)) = chars.next() {
            match c {
                c if c == quote => {
                    self.at += n + 1;
                    return Ok(found);
                }
                '\n' => break,
                '\\' => match chars.next() {
                    Some((_, 'n')) => found.push('\n'),
                    Some((_, escaped @ ('\\' | '"' | '\''))) => found.push(escaped),
                    Some((_, other)) => found.extend(['\\', other]),
                    None => break,
                },
                c => found.push(c),
            }
        }

        self.at = self.text.len();
        Err(found)
    }

    fn number(&mut self) -> Lexeme {
        let start = self.at;
        self.take_while(|c| c.is_ascii_digit());
        let is_whole = !self.rest().starts_with('.');
        if !is_whole {
            self.at += 1;
            self.take_while(|c| c.is_ascii_digit());
        } else if self.rest().starts_with(char::is_alphabetic) {
            self.take_while(char::is_alphanumeric);
            let text = &self.text[start..self.at];
            return duration::parse(text)
                .map_or_else(|| Lexeme::Bad(text.to_owned()), Lexeme::Duration);
        }

        let text = &self.text[start..self.at];
        if is_whole && let Ok(whole) = text.parse() {
            return Lexeme::Integer(whole);
        }
        text.parse().map_or_else(|_| Lexeme::Bad(text.to_owned()), Lexeme::Number)
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Lexeme> {
        let mut lexer = Lexer::new(text);
        std::iter::from_fn(|| Some(lexer.next().token).filter(|it| *it != Lexeme::End)).collect()
    }

    #[test]
    fn tokens_are_told_apart() {
        let word = |text: &str| Lexeme::Word(text.to_owned());
        assert_eq!(
            tokens("mean(\"a \\\"b\") >= 1.5 AND x='it\\'s' -- rest\n/* and */ .5 1h30m $y"),
            [
                word("mean"),
                Lexeme::Mark("("),
                Lexeme::Quoted("a \"b".to_owned()),
                Lexeme::Mark(")"),
                Lexeme::Mark(">="),
                Lexeme::Number(1.5),
                word("AND"),
                word("x"),
                Lexeme::Mark("="),
                Lexeme::Text("it's".to_owned()),
                Lexeme::Number(0.5),
                Lexeme::Duration(5_400_000_000_000),
                Lexeme::Parameter("y".to_owned()),
            ]
        );
        assert_eq!(tokens("'open"), [Lexeme::Bad("open".to_owned())]);
        assert_eq!(tokens("10y"), [Lexeme::Bad("10y".to_owned())]);
        assert_eq!(tokens("99999999999999999999"), [Lexeme::Number(1e20)]);
    }

    #[test]
    fn a_regular_expression_ends_at_its_slash() {
        let mut lexer = Lexer::new(" /a\\/b\\./ x");
        assert_eq!(lexer.regex(), Some(Ok("a/b\\.".to_owned())));
        assert_eq!(lexer.next().token, Lexeme::Word("x".to_owned()));
        assert_eq!(Lexer::new("x").regex(), None);
        assert_eq!(Lexer::new("/open").regex(), Some(Err("open".to_owned())));
    }
}
