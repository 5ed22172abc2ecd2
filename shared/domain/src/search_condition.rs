//! Conditions on the values by which a search finds devices, such as `firmware=1.4`, and the exact test. Reads nothing.

use std::fmt;
use std::str::FromStr;

use super::search::{Comparison, SearchRange, SearchValue, Subject, normalise};
use super::{AttributeName, AttributeNameError, Decimal, Device, excerpt};

/// A condition on the values of a device, which holds if any of the values passes the test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchCondition {
    /// The part of the device whose values are tested.
    pub subject: Subject,
    /// The test for a value.
    pub test: SearchTest,
}

/// The test of a condition for one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchTest {
    /// The value equals this text, which is normalised.
    Equals(String),
    /// The value begins with this text, which is normalised.
    BeginsWith(String),
    /// The value is a number for which the comparison with this number holds.
    Is(Comparison, Decimal),
}

/// The reasons for which a text is not a [`SearchCondition`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SearchConditionError {
    /// The text has no sign of comparison, such as `=`.
    #[error(
        "{0:?} is not a condition; write a name, one of = < <= > >=, and a value, such as firmware=1.4"
    )]
    NoSign(String),
    /// The text before the sign is not a name.
    #[error(transparent)]
    Name(#[from] AttributeNameError),
    /// Nothing follows the sign.
    #[error("{0} has no value to compare with")]
    NoValue(String),
    /// The sign compares numbers, and the value is not a number.
    #[error("{name} is compared with {value:?}, which is not a number")]
    NotNumber {
        /// The name before the sign.
        name: String,
        /// The text after the sign.
        value: String,
    },
    /// A name, a kind or a tag is compared by size.
    #[error("{0} is a text; only = compares it")]
    OnlyText(String),
}

impl SearchCondition {
    /// The condition that a value is `wanted`. If `wanted` ends in `*`, a value must begin with the text before the
    /// `*`.
    pub fn like(subject: Subject, wanted: &str) -> Result<Self, SearchConditionError> {
        let test = match wanted.trim() {
            "" => return Err(SearchConditionError::NoValue(subject.as_str().to_owned())),
            wanted => match wanted.strip_suffix('*') {
                Some(beginning) => SearchTest::BeginsWith(normalise(beginning)),
                None => SearchTest::Equals(normalise(wanted)),
            },
        };
        Ok(Self { subject, test })
    }

    /// Whether one of the device's own values meets the condition. Tests the name that people see.
    pub fn holds_for(&self, device: &Device) -> bool {
        let text = |text: &str| self.holds_for_value(text, || None);
        match &self.subject {
            Subject::Name => device.shown_name().is_some_and(|name| text(name.as_str())),
            Subject::Kind => device.kind().is_some_and(|kind| text(kind.as_str())),
            Subject::Tag => device.tags().iter().any(|tag| text(tag.as_str())),
            Subject::Attribute(name) => device.attributes().get(name).is_some_and(|values| {
                values.iter().any(|value| self.holds_for_value(value.as_str(), || value.number()))
            }),
        }
    }

    /// Whether the value of a metric, which is always a number, meets the condition.
    pub fn holds_for_metric(&self, value: &Decimal) -> bool {
        match &self.test {
            SearchTest::Equals(text) => Decimal::parse(text).is_ok_and(|number| number == *value),
            SearchTest::BeginsWith(beginning) => beginning.is_empty(),
            SearchTest::Is(comparison, limit) => comparison.holds(value, limit),
        }
    }

    fn holds_for_value(&self, text: &str, number: impl Fn() -> Option<Decimal>) -> bool {
        match &self.test {
            SearchTest::Equals(wanted) => normalise(text) == *wanted,
            SearchTest::BeginsWith(beginning) => normalise(text).starts_with(beginning.as_str()),
            SearchTest::Is(comparison, limit) => {
                number().is_some_and(|number| comparison.holds(&number, limit))
            }
        }
    }

    /// The range of values that may meet the condition. Only the beginning of a long text is compared, so the exact
    /// test must follow.
    pub fn range(&self) -> SearchRange {
        match &self.test {
            SearchTest::Equals(text) => SearchRange::Equals(SearchValue::text(text)),
            SearchTest::BeginsWith(beginning) => {
                SearchRange::BeginsWith(SearchValue::text(beginning))
            }
            SearchTest::Is(comparison, limit) => {
                SearchRange::Is(*comparison, SearchValue::number(limit))
            }
        }
    }

    /// The attribute that the condition is about.
    pub const fn attribute(&self) -> Option<&AttributeName> {
        match &self.subject {
            Subject::Attribute(name) => Some(name),
            Subject::Name | Subject::Kind | Subject::Tag => None,
        }
    }
}

impl fmt::Display for SearchCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.subject.as_str();
        match &self.test {
            SearchTest::Equals(text) => write!(f, "{name}={text}"),
            SearchTest::BeginsWith(beginning) => write!(f, "{name}={beginning}*"),
            SearchTest::Is(comparison, limit) => write!(f, "{name}{}{limit}", comparison.sign()),
        }
    }
}

impl FromStr for SearchCondition {
    type Err = SearchConditionError;

    fn from_str(text: &str) -> Result<Self, SearchConditionError> {
        let sign = text.find(['=', '<', '>']);
        let (name, rest) =
            text.split_at(sign.ok_or_else(|| SearchConditionError::NoSign(excerpt(text)))?);
        let subject: Subject = name.trim().parse()?;
        if let Some(value) = rest.strip_prefix('=') {
            return Self::like(subject, value);
        }

        let (value, comparison) = Comparison::SIGNS
            .into_iter()
            .find_map(|(sign, comparison)| Some((rest.strip_prefix(sign)?.trim(), comparison)))
            .expect("it begins with < or >");

        let name = || subject.as_str().to_owned();
        if value.is_empty() {
            return Err(SearchConditionError::NoValue(name()));
        }
        if !matches!(subject, Subject::Attribute(_)) {
            return Err(SearchConditionError::OnlyText(name()));
        }

        let number = Decimal::parse(value)
            .map_err(|_| SearchConditionError::NotNumber { name: name(), value: excerpt(value) })?;
        Ok(Self { subject, test: SearchTest::Is(comparison, number) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::given::{self, label, metric};
    use crate::{AttributeValue, AttributeValues, DeviceObservation, Reading, Timestamp};

    fn device() -> Device {
        let reading = Reading::new(
            given::device("d"),
            Timestamp::MIN,
            None,
            [(metric("t"), given::number("1"))].into(),
        );
        let observation = DeviceObservation::of(&reading.expect("a reading"));
        let mut device = observation.new_device(given::device("d"), |_| true);
        device.0.name = Some(label("Küche #2"));
        device.0.tags = vec!["Window".parse().expect("a label")].try_into().expect("tags");
        let text = |text: &str| AttributeValue::Text(label(text));
        let number = |text| AttributeValue::Number(given::number(text));
        for (name, values) in
            [("firmware", vec![text("1.10")]), ("serves", vec![text("Hall"), number("4")])]
        {
            let values = AttributeValues::try_from(values).expect("values");
            device.0.attributes.insert(name.parse().expect("a name"), values);
        }
        device
    }

    #[test]
    fn a_condition_holds_for_one_of_the_values() {
        let device = device();
        for (condition, holds) in [
            ("name=kÜche #2", true),
            ("name=ku\u{308}c*", true),
            ("name=che*", false),
            ("name=*", true),
            ("kind=*", false),
            ("tag=window", true),
            ("tag=win", false),
            ("firmware=1.10", true),
            ("firmware=1.1", false),
            ("firmware<1.4", true),
            ("firmware>=1.1", true),
            ("firmware>1.1", false),
            ("firmware <= 1.1", true),
            ("serves=hall", true),
            ("serves>3", true),
            ("serves=4", true),
            ("serves<4", false),
            ("t=1", false),
        ] {
            let parsed: SearchCondition = condition.parse().expect(condition);
            assert_eq!(parsed.holds_for(&device), holds, "{condition}");
            assert_eq!(parsed.to_string().parse(), Ok(parsed), "{condition}");
        }
    }

    #[test]
    fn a_metric_is_compared_as_a_number() {
        let value = given::number("20");
        for (condition, holds) in [
            ("battery<20", false),
            ("battery<=2e1", true),
            ("battery=20.0", true),
            ("battery=2*", false),
            ("battery=*", true),
            ("battery=low", false),
        ] {
            let parsed: SearchCondition = condition.parse().expect(condition);
            assert_eq!(parsed.holds_for_metric(&value), holds, "{condition}");
        }
    }
}
