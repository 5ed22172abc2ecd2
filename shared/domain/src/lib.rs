//! The domain: readings, devices, rooms, stays, annotations, tokens; timestamps and the calendar; rollups and energy.
//! Has no I/O, no AWS, no clock and no keys.

mod about;
mod aggregate;
mod amount;
mod annotation;
mod attributes;
mod bucket;
mod calendar;
mod conditions;
mod counter;
mod decimal;
mod deletion;
mod described;
mod device;
mod device_patch;
pub mod duration;
mod edit;
mod energy;
mod energy_unit;
mod exact;
mod fold_settings;
#[cfg(any(test, feature = "given"))]
pub mod given;
mod id;
mod label;
mod lifetime;
mod meaning;
mod member_error;
mod meter;
mod meters;
mod metric;
mod metric_rule;
mod metric_settings;
mod month;
mod parsed_text;
mod place;
mod range;
mod reading;
mod role;
mod rollup;
mod room;
mod room_means;
mod sample;
#[cfg(feature = "schema")]
mod schema;
mod search;
mod search_condition;
mod source;
mod stay;
mod sweep_group;
pub mod text_id;
mod text_or_number;
mod timestamp;
mod token;
mod token_secret;
mod words;
pub mod z_order;

pub use about::{About, AboutMetric};
pub use aggregate::{Aggregate, Quotient};
pub use amount::Amount;
pub use annotation::{
    Annotated, AnnotatedError, Annotation, AnnotationEndError, AnnotationId, AnnotationIdError,
    MAX_ANNOTATED,
};
pub use attributes::{
    AttributeName, AttributeNameError, AttributeValue, AttributeValues, AttributeValuesError,
    MAX_SEARCH_ENTRIES,
};
pub use bucket::{Bucket, QuarterHour};
pub use calendar::{CalendarUnit, CalendarUnitError, LocalDate, LocalDateError, Zone, ZoneError};
pub use conditions::{
    Basis, Condition, ConditionsSchema, Encoding, Episode, Extremes, IndexEntry, Interval,
    IntervalError, MAX_HOLD, MAX_SCHEMA_VERSION, MetricMeans, SchemaError, SchemaMetric, episodes,
    exact_episodes,
};
pub use counter::{CounterRule, Flag, Flags, Step};
pub use decimal::{Decimal, DecimalError};
pub use deletion::{DELETION_QUIET, DeletedDevice, Deletion};
pub use device::{
    Device, DeviceError, DeviceObservation, DeviceParts, DeviceUpdate, MAX_INTRODUCED_ROOMS, Span,
};
pub use device_patch::{DevicePatch, DevicePatchError, MAX_PATCHED_METRICS};
pub use edit::Edit;
pub use energy::{EstimatedPart, Neighbours, Row, RowArea, RowIncrease, areas, increases};
pub use energy_unit::{EnergyUnit, watts};
pub use exact::Exact;
pub use fold_settings::{Extent, FoldSettings};
pub use id::{
    ChannelId, DeviceId, HomeId, IdError, PolledSourceId, RESERVED_IDS, RESERVED_SORT_KEY, RoomId,
    RuleId, TariffId,
};
pub use label::{Label, LabelError, MAX_TAGS, Tags, TagsError, Unit};
pub use lifetime::{LifetimeError, lifetime};
pub use meaning::MeaninglessSetting;
pub use member_error::MemberError;
pub use meter::{Meter, NotCounted};
pub use meters::{BehindError, MAX_BEHIND, MAX_METERS_ABOVE, meter_of, meters_above};
pub use metric::{MetricKind, MetricName, MetricNameError};
pub use metric_rule::{DEFAULT_HOLD, MetricRule};
pub use metric_settings::{
    Exchange, MAX_JUDGEMENTS, MAX_KNOWN_METRICS, MetricInfo, MetricPatch, Verdict,
};
pub use month::{Month, MonthError};
pub use place::Place;
pub use range::{Order, RangeError, TimeRange};
pub use reading::{MAX_FIELDS, MAX_METRICS, Reading, ReadingError};
pub use role::Role;
pub use rollup::{FoldRules, MAX_ROLLUP_ROOMS, MetricRollup, OfKind, Rollup};
pub use room::{Room, RoomPatch};
pub use room_means::NotOfRoom;
pub use sample::Sample;
pub use search::{Comparison, SearchEntry, SearchRange, SearchValue, Subject, normalise};
pub use search_condition::{SearchCondition, SearchConditionError, SearchTest};
pub use source::{Source, SourceField};
pub use stay::{DeviceStay, SETTLING, Stay};
pub use sweep_group::{SWEEP_GROUPS, sweep_group};
pub use text_or_number::TextOrNumber;
pub use timestamp::{Timestamp, TimestampError};
pub use token::{
    MAX_VIEWED, Scope, Token, TokenHash, TokenHashError, ViewScope, ViewScopeError,
    WritableDevices, WriteScope,
};
pub use token_secret::{TOKEN_PREFIX, TokenSecretError, check_token, token_of};

/// Shortens a client's text for an error message.
///
/// The result has at most 48 characters, then `…` if the text is cut. Control characters are escaped. So an error never
/// echoes a megabyte or moves a terminal's cursor, and ten thousand errors fit into one answer.
pub fn excerpt(text: &str) -> String {
    const MAX_LENGTH: usize = 48;
    let mut out = String::new();
    let mut length = 0;

    for c in text.chars() {
        let shown: String =
            if matches!(c, '"' | '\'' | '\\') { c.into() } else { c.escape_debug().collect() };
        length += shown.chars().count();

        if length > MAX_LENGTH {
            out.push('…');
            break;
        }
        out.push_str(&shown);
    }
    out
}
