//! Drafts: readings as a format parses them, before the rules for senders and timestamps apply. Also refusals of
//! drafts.

use std::collections::BTreeMap;
use std::fmt;

use api::FieldError;
use api::json::{MembersError, WrongKind};
use domain::{
    About, Decimal, DecimalError, DeviceId, IdError, MemberError, MetricName, MetricNameError,
    ReadingError, RoomId, Timestamp, TimestampError, excerpt,
};

/// One entry of a request: a draft, or the reason for its refusal.
pub(crate) type Entry = Result<SentReading, Refusal>;

/// A reading as it was sent.
///
/// The device is separate: the sender's permission for it is checked before anything else in the entry.
#[derive(Debug)]
pub(crate) struct SentReading {
    /// The device, if the entry names one.
    pub(crate) device: Option<DeviceId>,
    /// The rest of the entry, or the reason why it cannot be read.
    pub(crate) content: Result<Content, Refusal>,
}

/// A draft without its device.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) timestamp: Option<Timestamp>,
    pub(crate) room: Option<RoomId>,
    pub(crate) metrics: BTreeMap<MetricName, Decimal>,
    /// Facts about the device and its metrics, such as names and units.
    pub(crate) about: About,
}

/// The reason why an entry is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("is missing")]
    Missing,
    #[error("is {:?}, which is not the sender's", .0.as_str())]
    Foreign(DeviceId),
    #[error("must be an object such as {{\"device_id\": \"kitchen\", \"temperature\": 21.5}}")]
    NotAnObject,
    #[error("is not UTF-8: byte {0} cannot be read")]
    NotUtf8(usize),
    #[error(transparent)]
    Members(#[from] MembersError),
    #[error("{0}")]
    Part(String),
    #[error(transparent)]
    WrongKind(#[from] WrongKind),
    #[error(transparent)]
    Id(#[from] IdError),
    #[error(transparent)]
    MetricName(#[from] MetricNameError),
    #[error(transparent)]
    Decimal(#[from] DecimalError),
    #[error(transparent)]
    Timestamp(#[from] TimestampError),
    #[error(transparent)]
    Reading(#[from] ReadingError),
    #[error(
        "{at} is more than {} ahead of the server's clock ({arrived})",
        if *days == 1 { "a day".to_owned() } else { format!("{days} days") }
    )]
    Ahead { at: Timestamp, arrived: Timestamp, days: i64 },
    #[error("is beyond the {0} readings that an MQTT message stores; send it in another message")]
    TooManyOfMessage(usize),
    #[error("is beyond the {0} devices that one event of a source may have")]
    TooManyFetchedDevices(usize),
    #[error("is reserved for the state of a source; an answer may have no readings of it")]
    SourceState,
    #[error("has more than 8 values; a phase or a relay is one of 8")]
    TooManyPhases,
    #[error("has {0}, which another component of the same number has too")]
    SharedMetric(MetricName),
    #[error("is {0:?}, which is not a unit of energy")]
    UnknownUnit(String),
    #[error("{at} is before {earliest}: the clock was not set")]
    ClockNotSet { at: Timestamp, earliest: Timestamp },
    #[error("{at} is older than the {days} days that readings are kept")]
    TooOld { at: Timestamp, days: u32 },
    #[error(
        "is missing, and another reading of {:?} without a timestamp has {metric}; a request may have one such value",
        device.as_str()
    )]
    SecondArrival { device: DeviceId, metric: MetricName },
}

/// The refusal of an entry: the reason and the member at fault.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The member at fault; `None` if it is the whole entry.
    field: Option<String>,
    fault: Fault,
}

impl Refusal {
    /// The refusal of a whole entry.
    pub(crate) fn whole(fault: impl Into<Fault>) -> Self {
        Self { field: None, fault: fault.into() }
    }

    /// The refusal of one member.
    pub(crate) fn of(field: &str, fault: impl Into<Fault>) -> Self {
        Self { field: Some(excerpt(field)), fault: fault.into() }
    }

    /// The refusal of a part of a member.
    pub(crate) fn within(member: &str, MemberError { field, why }: MemberError) -> Self {
        let field = if field.is_empty() { member.to_owned() } else { format!("{member}.{field}") };
        Self { field: Some(field), fault: Fault::Part(why) }
    }

    /// Whether the sender tried to write for another sender's device.
    pub(crate) const fn is_foreign(&self) -> bool {
        matches!(self.fault, Fault::Foreign(_))
    }

    /// The refusal as clients see it, with the entry's index in the request.
    pub(crate) fn at(self, index: Option<usize>) -> FieldError {
        FieldError { index, message: self.fault.to_string(), field: self.field }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(field) = &self.field {
            write!(f, "{field} ")?;
        }
        self.fault.fmt(f)
    }
}
