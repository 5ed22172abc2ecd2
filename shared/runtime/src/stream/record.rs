//! Parses one stream record into types of the domain. Reads and writes no table.

use aws_lambda_events::event::dynamodb::EventRecord;
use domain::{Reading, RoomId, Timestamp, excerpt};
use serde_dynamo::AttributeValue;
use table::ReadingKey;
use table::item::{Attribute, Decode as _, ItemError};
use table::keys::{Key, PK, READING_PREFIX, ROOM, SK};

/// The partition key and the sort key of a record, cut short.
pub(super) fn describe_key(record: &EventRecord) -> (String, String) {
    let part = |name| match record.change.keys.get(name) {
        Some(AttributeValue::S(text)) => excerpt(text),
        _ => String::new(),
    };
    (part(PK), part(SK))
}

/// The reading that was written, according to a record. `None` for an item of another kind, and for each deletion,
/// whether by a request or by `DynamoDB`'s own expiry.
///
/// An item under a reading's key that is not a reading is a permanent error.
pub fn written_reading(record: EventRecord) -> Result<Option<Reading>, ItemError> {
    let sk = record.change.keys.get(SK).or_else(|| record.change.new_image.get(SK));
    let is_reading = matches!(sk, Some(AttributeValue::S(sk)) if sk.starts_with(READING_PREFIX));
    if !is_reading || record.event_name == "REMOVE" {
        return Ok(None);
    }

    let image = record.change.new_image.into_inner().into_iter();
    Reading::decode(image.map(|(name, value)| (name, from_event(value)))).map(Some)
}

/// A reading that was written or deleted, according to a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TouchedReading {
    /// The reading's key.
    pub key: ReadingKey,
    /// The reading's room after the write.
    pub room: Option<RoomId>,
    /// Whether the reading was deleted.
    pub is_deleted: bool,
    /// When the reading was written or deleted, to the second; `None` if the record does not say.
    pub touched: Option<Timestamp>,
}

/// The key and the room of the reading that was written or deleted, according to a record. `None` for an item of
/// another kind, and for a deletion by `DynamoDB`'s own expiry: rollups keep the values of expired readings.
pub fn touched_reading(record: &EventRecord) -> Result<Option<TouchedReading>, ItemError> {
    let part = |name| match record.change.keys.get(name) {
        Some(AttributeValue::S(text)) => Ok(text.as_str()),
        _ => Err(ItemError::Missing(name)),
    };
    let sk = part(SK)?;
    if !sk.starts_with(READING_PREFIX) {
        return Ok(None);
    }

    let is_deleted = record.event_name == "REMOVE";
    if is_deleted && is_by_expiry(record) {
        return Ok(None);
    }

    let pk = part(PK)?;
    let Some(Key::Reading(device, at)) = Key::parse(pk, sk) else {
        return Err(ItemError::Key(excerpt(pk), excerpt(sk)));
    };
    let touched = record.change.approximate_creation_date_time.timestamp_millis();
    let touched = Timestamp::from_millis(touched).ok().filter(|_| touched > 0);
    let room = match record.change.new_image.get(ROOM) {
        Some(AttributeValue::S(text)) => text.parse().ok(),
        _ => None,
    };
    Ok(Some(TouchedReading { key: ReadingKey { at, device }, room, is_deleted, touched }))
}

/// Whether `DynamoDB`'s own expiry has deleted an item. Only the record of such a deletion names `DynamoDB`.
fn is_by_expiry(record: &EventRecord) -> bool {
    let by = record.user_identity.as_ref().map(|by| by.principal_id.as_str());
    by == Some("dynamodb.amazonaws.com")
}

fn from_event(value: AttributeValue) -> Attribute {
    match value {
        AttributeValue::S(text) => Attribute::S(text),
        AttributeValue::N(number) => Attribute::N(number.into()),
        // Readings have no attributes of other types.
        _ => Attribute::Other,
    }
}
