//! One stream record: a reading, nothing of ours, or poison. Asks nobody and stores nothing.

use aws_lambda_events::event::dynamodb::EventRecord;
use domain::{Reading, excerpt};
use serde_dynamo::AttributeValue;
use table::item::{Attribute, Decode as _, ItemError};
use table::keys::{PK, READING_PREFIX, SK};

/// What a record says.
#[derive(Debug)]
pub(crate) enum Change {
    /// A reading was written.
    Reading(Box<Reading>),
    /// Nothing that the registry learns from: an item of another kind, such as the registry's own
    /// writes, or a deletion. What a deleted reading taught stays true.
    Nothing,
    /// An item under a reading's key that is none. Repeating it would never help.
    Poison(ItemError),
}

/// The two parts of a record's key, cut short.
pub(crate) fn describe_key(record: &EventRecord) -> (String, String) {
    let part = |name| match record.change.keys.get(name) {
        Some(AttributeValue::S(text)) => excerpt(text),
        _ => String::new(),
    };
    (part(PK), part(SK))
}

/// Reads a record.
///
/// Deletions are skipped whoever made them; those by `DynamoDB`'s own expiry carry the
/// `userIdentity` `dynamodb.amazonaws.com`.
pub(crate) fn read(record: EventRecord) -> Change {
    let sk = record.change.keys.get(SK).or_else(|| record.change.new_image.get(SK));
    let is_reading = matches!(sk, Some(AttributeValue::S(sk)) if sk.starts_with(READING_PREFIX));
    if !is_reading || record.event_name == "REMOVE" {
        return Change::Nothing;
    }
    let image = record.change.new_image.into_inner().into_iter();
    match Reading::decode(image.map(|(name, value)| (name, from_event(value)))) {
        Ok(reading) => Change::Reading(Box::new(reading)),
        Err(why) => Change::Poison(why),
    }
}

fn from_event(value: AttributeValue) -> Attribute {
    match value {
        AttributeValue::S(text) => Attribute::S(text),
        AttributeValue::N(number) => Attribute::N(number),
        // No reading has another type of attribute.
        _ => Attribute::Other,
    }
}
