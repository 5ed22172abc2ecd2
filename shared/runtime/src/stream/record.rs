//! Parses one stream record into words of the domain. Reads and writes no table.

use aws_lambda_events::event::dynamodb::EventRecord;
use domain::{Reading, excerpt};
use serde_dynamo::AttributeValue;
use table::item::{Attribute, Decode as _, ItemError};
use table::keys::{PK, READING_PREFIX, SK};

/// The two parts of a record's key, cut short.
pub(super) fn describe_key(record: &EventRecord) -> (String, String) {
    let part = |name| match record.change.keys.get(name) {
        Some(AttributeValue::S(text)) => excerpt(text),
        _ => String::new(),
    };
    (part(PK), part(SK))
}

/// The reading that a record says was written. `None` for an item of another kind and for a deletion,
/// whoever made it; one by `DynamoDB`'s own expiry carries the `userIdentity` `dynamodb.amazonaws.com`.
///
/// An item under a reading's key that is no reading is an error, and would be one however often it came.
pub fn written_reading(record: EventRecord) -> Result<Option<Reading>, ItemError> {
    let sk = record.change.keys.get(SK).or_else(|| record.change.new_image.get(SK));
    let is_reading = matches!(sk, Some(AttributeValue::S(sk)) if sk.starts_with(READING_PREFIX));
    if !is_reading || record.event_name == "REMOVE" {
        return Ok(None);
    }
    let image = record.change.new_image.into_inner().into_iter();
    Reading::decode(image.map(|(name, value)| (name, from_event(value)))).map(Some)
}

fn from_event(value: AttributeValue) -> Attribute {
    match value {
        AttributeValue::S(text) => Attribute::S(text),
        AttributeValue::N(number) => Attribute::N(number),
        // No reading has another type of attribute.
        _ => Attribute::Other,
    }
}
