//! Timestamps and decimals as texts, for states and messages that are stored. A decimal keeps all its digits so.

use std::collections::BTreeMap;

use domain::{Decimal, Timestamp};
use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

fn read(text: &str) -> Result<Timestamp, domain::TimestampError> {
    Timestamp::parse_absolute(text)
}

/// A timestamp.
pub(crate) mod instant {
    use super::*;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    pub(crate) fn serialize<S: Serializer>(
        at: &Timestamp,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(at)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        read(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// A timestamp that may be missing.
pub(crate) mod maybe {
    use super::*;

    #[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
    pub(crate) fn serialize<S: Serializer>(
        at: &Option<Timestamp>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match at {
            Some(at) => serializer.collect_str(at),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| read(&text)).transpose().map_err(D::Error::custom)
    }
}

/// A decimal that may be missing.
pub(crate) mod decimal {
    use super::*;

    #[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
    pub(crate) fn serialize<S: Serializer>(
        value: &Option<Decimal>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.collect_str(value),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Decimal>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| Decimal::parse(&text)).transpose().map_err(D::Error::custom)
    }
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
        let numbers = texts.into_iter().map(|(text, number)| Ok((read(&text)?, number)));
        numbers.collect::<Result<_, domain::TimestampError>>().map_err(D::Error::custom)
    }
}
