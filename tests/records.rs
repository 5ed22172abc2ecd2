//! Records of the table's stream: of readings, of items, and of what is removed. Delivers nothing.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use aws_lambda_events::event::dynamodb::Event;
use domain::Reading;
use serde_json::{Value, json};

/// A stream. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stream(Arc<Mutex<Vec<Value>>>);

impl Stream {
    fn all(&self) -> MutexGuard<'_, Vec<Value>> {
        self.0.lock().expect("no test panics while it holds the stream")
    }

    /// The number of records so far.
    pub(crate) fn len(&self) -> usize {
        self.all().len()
    }

    pub(crate) fn records(&self, positions: Range<usize>) -> Vec<Value> {
        self.all()[positions].to_vec()
    }

    /// A reading was stored.
    pub(crate) fn store(&self, reading: &Reading) {
        let mut all = self.all();
        let number = all.len();
        all.push(stored(number, reading));
    }

    /// A reading was removed.
    pub(crate) fn remove(&self, reading: &Reading) {
        let mut all = self.all();
        let number = all.len();
        all.push(removed(number, reading));
    }
}

/// The record of a reading that was stored; the number is the record's place in the stream.
pub(crate) fn stored(number: usize, reading: &Reading) -> Value {
    let mut image = json!({
        "pk": {"S": reading.device.as_str()}, "sk": {"S": format!("TS#{}", reading.at)},
    });
    if let Some(room) = &reading.named_room {
        image["room"] = json!({"S": room.as_str()});
        image["_named"] = json!({"N": "1"});
    }
    if let Some(about) = &reading.about {
        image["_about"] = json!({"S": json!(about).to_string()});
    }
    for (name, value) in reading.metrics() {
        image[name.as_str()] = json!({"N": value.as_str()});
    }
    of_item(number, "INSERT", &image)
}

/// The record of a reading that was removed.
pub(crate) fn removed(number: usize, reading: &Reading) -> Value {
    removal(&stored(number, reading))
}

/// The record that removes what a record stored, in its place.
pub(crate) fn removal(stored: &Value) -> Value {
    let mut record = stored.clone();
    record["eventName"] = "REMOVE".into();
    let image = record["dynamodb"]["NewImage"].take();
    record["dynamodb"]["OldImage"] = image;
    record
}

/// The record of an item as it is now.
pub(crate) fn of_item(number: usize, event: &str, item: &Value) -> Value {
    json!({
        "eventID": number.to_string(),
        "eventName": event,
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "dynamodb": {
            "ApproximateCreationDateTime": 1_768_147_200,
            "Keys": {"pk": item["pk"], "sk": item["sk"]},
            "NewImage": item,
            "SequenceNumber": number.to_string(),
            "SizeBytes": 100,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
    })
}

/// The records of readings that follow each other from a place of the stream on.
pub(crate) fn all_stored<'a>(
    first: usize,
    readings: impl IntoIterator<Item = &'a Reading>,
) -> Vec<Value> {
    (first..).zip(readings).map(|(number, reading)| stored(number, reading)).collect()
}

/// The event by which a batch is delivered.
pub(crate) fn batch(records: &[Value]) -> Event {
    serde_json::from_value(json!({"Records": records})).expect("a batch of the stream")
}
