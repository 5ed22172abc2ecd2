//! Why a value of a PATCH cannot be set, and the values that several members take.

use api::json::{MembersError, WrongKind, number, string};
use chrono::TimeDelta;
use domain::{
    AttributeNameError, AttributeValuesError, Decimal, DecimalError, IdError, LabelError,
    MAX_JUDGEMENTS, MetricNameError, TagsError, Timestamp, excerpt,
};
use serde_json::value::RawValue;

use crate::answer::hold;

/// Since when a device may be in a room at the earliest: what is before comes from a clock that was never set, or
/// from seconds that were taken for milliseconds.
pub(super) const EARLIEST_SINCE: &str = "2001-01-01T00:00:00Z";

/// A value that cannot be set.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("cannot be changed; {0} can")]
    Fixed(&'static str),
    #[error(transparent)]
    WrongKind(#[from] WrongKind),
    #[error(transparent)]
    Members(#[from] MembersError),
    #[error("must be a string, a number, an array of these, or null")]
    NotAttribute,
    #[error("must be an array of strings")]
    NotTags,
    #[error(transparent)]
    Tags(#[from] TagsError),
    #[error("{}; null removes it", LabelError::Empty)]
    EmptyLabel,
    #[error(transparent)]
    Label(LabelError),
    #[error(transparent)]
    Id(#[from] IdError),
    #[error(transparent)]
    MetricName(#[from] MetricNameError),
    #[error(transparent)]
    AttributeName(#[from] AttributeNameError),
    #[error(transparent)]
    AttributeValues(#[from] AttributeValuesError),
    #[error(transparent)]
    Decimal(#[from] DecimalError),
    #[error("is {0}; it must be above zero")]
    NotPositive(Decimal),
    #[error("is {0:?}; expected gauge or counter")]
    NotKind(String),
    #[error(
        "is {0:?}; expected import, export, production, storage, consumer or none, which counts as nothing"
    )]
    NotRole(String),
    #[error(transparent)]
    Hold(#[from] HoldError),
    #[error("are more than {MAX_JUDGEMENTS}")]
    TooMany,
    #[error("{place}: {fault}")]
    Entry { place: usize, fault: Box<Fault> },
    #[error("has no {0}")]
    Missing(&'static str),
    #[error("has the unknown member {0:?}")]
    Unknown(String),
    #[error("name the timestamp {0} twice")]
    Twice(Timestamp),
    #[error(transparent)]
    Timestamp(#[from] domain::TimestampError),
    #[error("is {0}, which is in the future")]
    Future(Timestamp),
    #[error("is {0}; nothing before {EARLIEST_SINCE} is taken")]
    TooEarly(Timestamp),
    #[error("needs room beside it; null takes the device out of its room")]
    WithoutRoom,
    #[error("is {0:?}; expected accept, discard, reset, wrap or dip")]
    NotVerdict(String),
}

impl From<LabelError> for Fault {
    fn from(error: LabelError) -> Self {
        match error {
            LabelError::Empty => Self::EmptyLabel,
            error => Self::Label(error),
        }
    }
}

/// The text is no such time.
#[derive(Debug, thiserror::Error)]
#[error("is {0:?}; expected a time from 1s to 24h such as 90s, 15m or 1h")]
pub(crate) struct HoldError(String);

pub(super) fn decimal(value: &RawValue) -> Result<Decimal, Fault> {
    Ok(Decimal::parse(number(value)?)?)
}

/// Reads a time that was sent.
pub(super) fn hold(value: &RawValue) -> Result<TimeDelta, Fault> {
    let text = string(value).map_err(|_| WrongKind::of(value, "a string such as \"15m\""))?;
    Ok(hold::parse(&text).ok_or_else(|| HoldError(excerpt(&text)))?)
}
