//! The values by which a search finds a device, as texts that sort like the values. Reads nothing.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use unicode_normalization::UnicodeNormalization as _;

use super::{AttributeName, AttributeNameError, Decimal, Device};

/// The largest number of bytes of a normalised text that is stored for search.
const MAX_TEXT: usize = 256;
/// The prefix of a text.
const TEXT: &str = "s:";

/// The part of a device that a search value describes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The name.
    Name,
    /// The kind.
    Kind,
    /// A tag.
    Tag,
    /// An attribute.
    Attribute(AttributeName),
}

impl Subject {
    /// The name of the subject.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Name => "name",
            Self::Kind => "kind",
            Self::Tag => "tag",
            Self::Attribute(name) => name.as_str(),
        }
    }
}

impl FromStr for Subject {
    type Err = AttributeNameError;

    fn from_str(text: &str) -> Result<Self, AttributeNameError> {
        let known = [Self::Name, Self::Kind, Self::Tag];
        match known.into_iter().find(|subject| subject.as_str() == text) {
            Some(subject) => Ok(subject),
            None => text.parse().map(Self::Attribute),
        }
    }
}

/// A value as it is stored for search: `s:` and a normalised text, or `n:` and a number as `ordered` writes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SearchValue(String);

impl SearchValue {
    /// The prefix of all numbers.
    pub const NUMBERS: &'static str = "n:";

    /// A text. Two texts are equal if only their case differs, or the way in which Unicode composes their characters.
    pub fn text(text: &str) -> Self {
        let normalised = normalise(text);
        let end = normalised.floor_char_boundary(MAX_TEXT);
        Self(format!("{TEXT}{}", &normalised[..end]))
    }

    /// A number.
    pub fn number(number: &Decimal) -> Self {
        Self(format!("{}{}", Self::NUMBERS, ordered(number)))
    }

    /// Reads a value that is stored for search.
    pub fn parse(text: &str) -> Option<Self> {
        (text.starts_with(TEXT) || text.starts_with(Self::NUMBERS)).then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SearchValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A comparison with a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the signs")]
pub enum Comparison {
    Below,
    AtMost,
    Above,
    AtLeast,
}

impl Comparison {
    /// The signs of all comparisons, the longest first, because the first sign that matches is taken.
    pub(super) const SIGNS: [(&'static str, Self); 4] =
        [("<=", Self::AtMost), (">=", Self::AtLeast), ("<", Self::Below), (">", Self::Above)];

    pub(super) fn sign(self) -> &'static str {
        let sign = Self::SIGNS.into_iter().find(|(_, it)| *it == self);
        sign.map(|(sign, _)| sign).expect("each has a sign")
    }

    pub(super) fn holds<T: Ord>(self, value: &T, limit: &T) -> bool {
        match self {
            Self::Below => value < limit,
            Self::AtMost => value <= limit,
            Self::Above => value > limit,
            Self::AtLeast => value >= limit,
        }
    }
}

/// Values of one subject that are consecutive in the order of their texts. One query reads all these values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchRange {
    /// All values.
    All,
    /// Exactly this value.
    Equals(SearchValue),
    /// Texts that begin with this value.
    BeginsWith(SearchValue),
    /// Numbers for which the comparison with this value holds.
    Is(Comparison, SearchValue),
}

impl SearchRange {
    /// Whether a value is in the range.
    pub fn contains(&self, value: &SearchValue) -> bool {
        match self {
            Self::All => true,
            Self::Equals(wanted) => value == wanted,
            Self::BeginsWith(beginning) => value.0.starts_with(&beginning.0),
            Self::Is(comparison, limit) => {
                value.0.starts_with(SearchValue::NUMBERS) && comparison.holds(value, limit)
            }
        }
    }
}

/// The text in lower case and in normal form C. Each character is lowered by itself, so the beginning of a text is
/// normalised in the same way with or without the rest.
pub fn normalise(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).nfc().collect()
}

/// Writes a number as 42 digits that sort like the numbers: a digit for the sign, 3 for the exponent, and 38 digits.
/// For a negative number, 9 minus each digit of the exponent and of the number is written.
fn ordered(number: &Decimal) -> String {
    const DIGITS: usize = 38;
    let text = number.as_str();
    let (is_negative, size) = text.strip_prefix('-').map_or((false, text), |size| (true, size));

    let (mantissa, exponent) = size.split_once('E').unwrap_or((size, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = [whole, fraction].concat();
    let digits = all.trim_start_matches('0');
    if digits.is_empty() {
        return "1".to_owned() + &"0".repeat(DIGITS + 3);
    }

    let leading = all.len() - digits.len();
    let place = |length: usize| i32::try_from(length).expect("a few hundred digits");
    let exponent: i32 = exponent.parse().expect("a decimal's text is canonical");
    // The position of the decimal point is from -129 to 126, so 200 more has always three digits.
    let point = place(whole.len()) - place(leading) + exponent + 200;

    let digits = digits.trim_end_matches('0');
    let size = format!("{point:03}{digits:0<DIGITS$}");
    if is_negative {
        let complement = size.bytes().map(|digit| char::from(b'0' + b'9' - digit));
        "0".to_owned() + &complement.collect::<String>()
    } else {
        "2".to_owned() + &size
    }
}

/// One value by which a search finds a device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SearchEntry {
    /// The part of the device that the value describes.
    pub subject: Subject,
    /// The value.
    pub value: SearchValue,
}

impl Device {
    /// The values by which a search finds the device. An attribute that reads as a number is listed as text and number.
    pub fn search_entries(&self) -> BTreeSet<SearchEntry> {
        let entry = |subject, value| SearchEntry { subject, value };
        let mut entries = BTreeSet::new();
        let labels = self.name().into_iter().map(|name| (Subject::Name, name));
        let labels = labels.chain(self.kind().into_iter().map(|kind| (Subject::Kind, kind)));
        for (subject, text) in labels.chain(self.tags().iter().map(|tag| (Subject::Tag, tag))) {
            entries.insert(entry(subject, SearchValue::text(text.as_str())));
        }

        for (name, values) in self.attributes() {
            let subject = || Subject::Attribute(name.clone());
            for value in values.iter() {
                entries.insert(entry(subject(), SearchValue::text(value.as_str())));
                let number = value.number().map(|number| SearchValue::number(&number));
                entries.extend(number.map(|number| entry(subject(), number)));
            }
        }

        entries
    }
}

#[cfg(test)]
mod tests {
    use crate::given::number;
    use proptest::prelude::*;

    use super::*;

    fn decimal() -> impl Strategy<Value = Decimal> {
        ("-?[0-9]{1,38}", -130_i32..=126).prop_filter_map("in range", |(digits, exponent)| {
            Decimal::parse(&format!("{digits}E{exponent}")).ok()
        })
    }

    proptest! {
        #[test]
        fn the_order_of_texts_is_the_order_of_numbers(a in decimal(), b in decimal()) {
            prop_assert_eq!(SearchValue::number(&a).cmp(&SearchValue::number(&b)), a.cmp(&b));
        }

        #[test]
        fn neighbours_are_in_order(whole in -999_i32..999, digits in "[0-9]{1,35}") {
            let parse = |text: &str| number(text);
            let (a, b) = (parse(&whole.to_string()), parse(&format!("{whole}.{digits}")));
            prop_assert_eq!(SearchValue::number(&a).cmp(&SearchValue::number(&b)), a.cmp(&b));
        }

        #[test]
        fn a_text_is_found_however_its_characters_are_composed(text in "\\PC{0,40}") {
            let normalised = normalise(&text);
            prop_assert_eq!(&normalise(&text.nfd().collect::<String>()), &normalised);
            prop_assert_eq!(&normalise(&normalised), &normalised);
        }
    }

    #[test]
    fn every_number_has_one_width_and_the_ends_are_in_order() {
        let numbers = "-9.9999999999999999999999999999999999999E125 -10 -1.5 -1.45 -1.4 -1 \
             -1E-130 0 1E-130 0.5 1 1.1 1.4 9 10 100 1E125";
        let texts: Vec<_> = numbers.split(' ').map(|text| ordered(&number(text))).collect();
        assert!(texts.is_sorted());
        assert!(texts.iter().all(|text| text.len() == 42));
    }

    #[test]
    fn case_and_composition_make_no_difference_and_long_texts_are_cut_between_characters() {
        for (a, b) in [("Küche", "kU\u{308}CHE"), ("STRASSE", "strasse"), ("ΟΔΟΣ", "οδοσ")]
        {
            assert_eq!(SearchValue::text(a), SearchValue::text(b));
        }
        assert_ne!(SearchValue::text("kuche"), SearchValue::text("Küche"));
        assert_eq!(SearchValue::text(&"é".repeat(200)).as_str().len(), 2 + 256);
        assert_eq!(SearchValue::text(&"a€".repeat(200)).as_str().len(), 2 + 256);
        assert_eq!(SearchValue::text(&"€".repeat(200)).as_str().len(), 2 + 255);
    }
}
