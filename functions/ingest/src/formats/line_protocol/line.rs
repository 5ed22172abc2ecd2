//! Parses one line into measurement, tags, fields and timestamp, as slices of the body. Interprets no timestamp and no
//! number.

use std::borrow::Cow;

use domain::MAX_FIELDS;

/// The largest number of tags of a line.
const MAX_TAGS: usize = 64;

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProtocolLine<'a> {
    pub(crate) measurement: Text<'a>,
    /// The tags, in the order of the line; no two of them have the same key.
    pub(crate) tags: Vec<(Text<'a>, Text<'a>)>,
    /// The fields, at least one. If a key occurs twice, the last field counts.
    pub(crate) fields: Vec<(Text<'a>, LineValue<'a>)>,
    /// The timestamp, in the precision of the request.
    pub(crate) timestamp: Option<i64>,
}

impl<'a> ProtocolLine<'a> {
    /// The tags without their escapes, sorted.
    pub(crate) fn sorted_tags(&self) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        let tags = self.tags.iter().map(|(key, value)| (key.unescaped(), value.unescaped()));
        let mut tags: Vec<_> = tags.collect();
        tags.sort_unstable();
        tags
    }
}

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum LineValue<'a> {
    /// A number, without the suffix `i` or `u` of an integer.
    Number(&'a str),
    Boolean(bool),
    /// A string in quotes. Strings are not stored as metrics.
    String(Text<'a>),
}

/// A measurement, a key or a tag's value, still escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text<'a> {
    raw: &'a str,
    /// The characters that a backslash escapes in this kind of text.
    escaped: &'static [char],
}

impl<'a> Text<'a> {
    /// The text with its escapes.
    pub(crate) const fn raw(self) -> &'a str {
        self.raw
    }

    /// The text without its escapes. A backslash before any other character stands for itself.
    pub(crate) fn unescaped(self) -> Cow<'a, str> {
        if !self.raw.contains('\\') {
            return self.raw.into();
        }

        let mut text = String::with_capacity(self.raw.len());
        let mut characters = self.raw.chars().peekable();
        while let Some(c) = characters.next() {
            let escaped = characters.peek().filter(|next| c == '\\' && self.escaped.contains(next));
            match escaped.copied() {
                Some(next) => {
                    text.push(next);
                    characters.next();
                }
                None => text.push(c),
            }
        }

        text.into()
    }
}

/// The reasons for which a line cannot be read, in the words of InfluxDB 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LineError {
    #[error("missing measurement")]
    MissingMeasurement,
    #[error("missing tag key")]
    MissingTagKey,
    #[error("missing tag value")]
    MissingTagValue,
    #[error("invalid tag format")]
    InvalidTagFormat,
    #[error("duplicate tags")]
    DuplicateTags,
    #[error("too many tags: at most {MAX_TAGS} are taken")]
    TooManyTags,
    #[error("missing fields")]
    MissingFields,
    #[error("missing field key")]
    MissingFieldKey,
    #[error("missing field value")]
    MissingFieldValue,
    #[error("invalid field format")]
    InvalidFieldFormat,
    #[error("too many fields: at most {MAX_FIELDS} are taken")]
    TooManyFields,
    #[error("unbalanced quotes")]
    UnbalancedQuotes,
    #[error("invalid number")]
    InvalidNumber,
    #[error("invalid boolean")]
    InvalidBoolean,
    #[error("bad timestamp")]
    BadTimestamp,
    #[error("\"time\" is a reserved name")]
    Time,
    #[error("not UTF-8")]
    NotUtf8,
}

/// The characters that end a text of this kind, unless a backslash stands before them.
const IN_MEASUREMENTS: &[char] = &[',', ' '];
const IN_KEYS: &[char] = &[',', '=', ' '];
const IN_STRINGS: &[char] = &['"', '\\'];

/// Parses the first line of a text, which must not begin with a blank. Also returns the line's length without the line
/// feed.
pub(super) fn parse(text: &[u8]) -> Result<(ProtocolLine<'_>, usize), LineError> {
    let mut cursor = Cursor { text, at: 0 };
    let measurement = cursor.text(IN_MEASUREMENTS)?;
    if measurement.raw.is_empty() {
        return Err(LineError::MissingMeasurement);
    }

    let tags = tags(&mut cursor)?;
    cursor.skip_blanks();
    if cursor.is_at_end() {
        return Err(LineError::MissingFields);
    }

    let fields = fields(&mut cursor)?;
    cursor.skip_blanks();
    let timestamp = timestamp(&mut cursor)?;
    if fields.iter().any(|(key, _)| key.raw == "time") || tags.iter().any(|(k, _)| k.raw == "time")
    {
        return Err(LineError::Time);
    }

    Ok((ProtocolLine { measurement, tags, fields, timestamp }, cursor.at))
}

fn tags<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<(Text<'a>, Text<'a>)>, LineError> {
    let mut tags: Vec<(Text<'a>, Text<'a>)> = Vec::new();
    while cursor.take(b',') {
        let key = cursor.text(IN_KEYS)?;
        if key.raw.is_empty() {
            return Err(LineError::MissingTagKey);
        }
        if !cursor.take(b'=') {
            return Err(LineError::MissingTagValue);
        }

        let value = cursor.text(IN_KEYS)?;
        if value.raw.is_empty() {
            return Err(LineError::MissingTagValue);
        }
        if cursor.peek() == Some(b'=') {
            return Err(LineError::InvalidTagFormat);
        }

        if tags.iter().any(|(known, _)| known.raw == key.raw) {
            return Err(LineError::DuplicateTags);
        }
        if tags.len() == MAX_TAGS {
            return Err(LineError::TooManyTags);
        }
        tags.push((key, value));
    }
    Ok(tags)
}

fn fields<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<(Text<'a>, LineValue<'a>)>, LineError> {
    let mut fields = Vec::new();
    loop {
        let key = cursor.text(IN_KEYS)?;
        if key.raw.is_empty() && cursor.peek() == Some(b'=') {
            return Err(LineError::MissingFieldKey);
        }
        if !cursor.take(b'=') {
            return Err(LineError::InvalidFieldFormat);
        }
        if fields.len() == MAX_FIELDS {
            return Err(LineError::TooManyFields);
        }

        fields.push((key, cursor.value()?));
        if !cursor.take(b',') {
            return Ok(fields);
        }
    }
}

fn timestamp(cursor: &mut Cursor<'_>) -> Result<Option<i64>, LineError> {
    if cursor.is_at_end() {
        return Ok(None);
    }
    let digits = cursor.word(|byte| byte != b' ')?;
    cursor.skip_blanks();
    let timestamp = digits.parse().ok().filter(|_| cursor.is_at_end() && !digits.starts_with('+'));
    timestamp.map(Some).ok_or(LineError::BadTimestamp)
}

struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Whether the line ends at the cursor. A carriage return belongs to the end of a line.
    fn is_at_end(&self) -> bool {
        matches!(self.text[self.at..], [] | [b'\r'] | [b'\n', ..] | [b'\r', b'\n', ..])
    }

    fn skip_blanks(&mut self) {
        while self.take(b' ') {}
    }

    /// Reads bytes of the line while `belongs` accepts them.
    fn word(&mut self, belongs: impl Fn(u8) -> bool) -> Result<&'a str, LineError> {
        let from = self.at;
        while !self.is_at_end() && self.peek().is_some_and(&belongs) {
            self.at += 1;
        }
        std::str::from_utf8(&self.text[from..self.at]).map_err(|_| LineError::NotUtf8)
    }

    /// Reads the text up to the first unescaped character of `ends`.
    fn text(&mut self, ends: &'static [char]) -> Result<Text<'a>, LineError> {
        let is_end = |byte: u8| ends.contains(&char::from(byte));
        let from = self.at;
        while let Some(byte) = self.peek() {
            let is_escape =
                byte == b'\\' && self.text.get(self.at + 1).is_some_and(|next| is_end(*next));
            if is_escape {
                self.at += 2;
            } else if is_end(byte) || (matches!(byte, b'\n' | b'\r') && self.is_at_end()) {
                break;
            } else {
                self.at += 1;
            }
        }

        let raw = std::str::from_utf8(&self.text[from..self.at]).map_err(|_| LineError::NotUtf8)?;
        Ok(Text { raw, escaped: ends })
    }

    fn value(&mut self) -> Result<LineValue<'a>, LineError> {
        let value = match self.peek() {
            Some(b'"') => return self.string(),
            _ => self.word(|byte| byte != b',' && byte != b' ')?,
        };

        match value {
            "" => Err(LineError::MissingFieldValue),
            "t" | "T" | "true" | "True" | "TRUE" => Ok(LineValue::Boolean(true)),
            "f" | "F" | "false" | "False" | "FALSE" => Ok(LineValue::Boolean(false)),
            _ if is_float(value) => Ok(LineValue::Number(value)),
            _ if let Some(number) = integer(value) => Ok(LineValue::Number(number)),
            _ if value.starts_with(|c: char| c.is_ascii_digit() || "-.nN".contains(c)) => {
                Err(LineError::InvalidNumber)
            }
            _ => Err(LineError::InvalidBoolean),
        }
    }

    /// Reads a string in quotes, which may contain line feeds.
    fn string(&mut self) -> Result<LineValue<'a>, LineError> {
        let from = self.at + 1;
        self.at = from;
        loop {
            match self.text.get(self.at) {
                None => return Err(LineError::UnbalancedQuotes),
                Some(b'"') => break,
                Some(b'\\') if matches!(self.text.get(self.at + 1), Some(b'"' | b'\\')) => {
                    self.at += 2;
                }
                Some(_) => self.at += 1,
            }
        }

        let raw = std::str::from_utf8(&self.text[from..self.at]).map_err(|_| LineError::NotUtf8);
        self.at += 1;
        if !matches!(self.peek(), Some(b',' | b' ')) && !self.is_at_end() {
            return Err(LineError::UnbalancedQuotes);
        }

        Ok(LineValue::String(Text { raw: raw?, escaped: IN_STRINGS }))
    }
}

/// The number of a 64-bit integer such as `5i` or `5u`, without its suffix.
fn integer(value: &str) -> Option<&str> {
    let signed = value.strip_suffix('i').filter(|number| number.parse::<i64>().is_ok());
    let unsigned = || value.strip_suffix('u').filter(|number| number.parse::<u64>().is_ok());
    // Rust's parser would also accept a leading plus.
    signed.or_else(unsigned).filter(|number| !number.starts_with('+'))
}

/// Whether a text consists of digits with at most one point and an optional exponent; `.5` and `5.` are valid.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_exponent = |text: &str| {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        !digits.is_empty() && are_digits(digits)
    };

    are_digits(whole)
        && are_digits(fraction)
        && whole.len() + fraction.len() > 0
        && exponent.is_none_or(is_exponent)
}
