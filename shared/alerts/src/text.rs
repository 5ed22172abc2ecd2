//! Timestamps and decimals as text in stored states and messages. As text, a decimal keeps all its digits.

use std::collections::BTreeMap;

use domain::{Decimal, Timestamp, TimestampError};
use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, de::Error as _};

/// A value that is stored as text, or is absent.
pub(crate) trait StoredText: Sized {
    fn to_text(&self) -> Option<String>;
    fn of_text(text: Option<String>) -> Result<Self, String>;
}

impl StoredText for Timestamp {
    fn to_text(&self) -> Option<String> {
        Some(self.to_string())
    }

    fn of_text(text: Option<String>) -> Result<Self, String> {
        Option::of_text(text)?.ok_or_else(|| "is missing".to_owned())
    }
}

impl StoredText for Option<Timestamp> {
    fn to_text(&self) -> Option<String> {
        self.as_ref().map(ToString::to_string)
    }

    fn of_text(text: Option<String>) -> Result<Self, String> {
        let read = text.as_deref().map(Timestamp::parse_absolute).transpose();
        read.map_err(|why| why.to_string())
    }
}

impl StoredText for Option<Decimal> {
    fn to_text(&self) -> Option<String> {
        self.as_ref().map(ToString::to_string)
    }

    fn of_text(text: Option<String>) -> Result<Self, String> {
        text.as_deref().map(Decimal::parse).transpose().map_err(|why| why.to_string())
    }
}

pub(crate) fn serialize<T: StoredText, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.to_text().serialize(serializer)
}

pub(crate) fn deserialize<'de, T: StoredText, D: Deserializer<'de>>(
    from: D,
) -> Result<T, D::Error> {
    T::of_text(Option::deserialize(from)?).map_err(D::Error::custom)
}

/// Numbers by timestamp.
pub(crate) mod numbers {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        numbers: &BTreeMap<Timestamp, u64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(numbers.iter().map(|(at, number)| (at.to_string(), number)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<Timestamp, u64>, D::Error> {
        let texts = BTreeMap::<String, u64>::deserialize(from)?;
        let numbers =
            texts.into_iter().map(|(text, number)| Ok((Timestamp::parse_absolute(&text)?, number)));
        numbers.collect::<Result<_, TimestampError>>().map_err(D::Error::custom)
    }
}
