//! The requests that give an engine the table of a layout. Sends none.

use serde_json::{Value, json};
use table::keys::{PK, SK, TTL};
use table::layout::{CONDITIONS_ATTRIBUTES, CONDITIONS_INDEX, Index, Layout};

/// Writes the body of the `CreateTable` request for the name `table`.
///
/// The table has no capacity limit, whatever the template says, because an engine on this machine costs nothing.
pub fn create_request(table: &str, layout: Layout) -> Value {
    let indexes: Vec<&Index> = layout.indexes().collect();
    let mut request = json!({
        "TableName": table,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": attribute_definitions(&indexes),
        "KeySchema": key_schema(PK, SK),
        "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    });

    // DynamoDB refuses an empty list.
    if !indexes.is_empty() {
        request["GlobalSecondaryIndexes"] = indexes.into_iter().map(index_definition).collect();
    }
    request
}

/// Writes the body of the `UpdateTable` request that makes or removes an index of `table`.
pub(crate) fn index_request(table: &str, index: &Index, is_made: bool) -> Value {
    let change = if is_made {
        json!({"Create": index_definition(index)})
    } else {
        json!({"Delete": {"IndexName": index.name}})
    };
    json!({
        "TableName": table,
        "AttributeDefinitions": attribute_definitions(&[index]),
        "GlobalSecondaryIndexUpdates": [change],
    })
}

/// Writes the body of the `UpdateTimeToLive` request for the name `table`.
pub fn expiry_request(table: &str) -> Value {
    let expiry = json!({"AttributeName": TTL, "Enabled": true});
    json!({"TableName": table, "TimeToLiveSpecification": expiry})
}

/// The types of all attributes that are part of a key.
fn attribute_definitions(indexes: &[&Index]) -> Vec<Value> {
    let of_indexes = indexes.iter().flat_map(|index| [index.partition_key, index.sort_key]);
    let mut names: Vec<&str> = [PK, SK].into_iter().chain(of_indexes).collect();
    names.sort_unstable();
    names.dedup();

    let definition = |name| {
        let kind = if name == CONDITIONS_INDEX.sort_key { "B" } else { "S" };
        json!({"AttributeName": name, "AttributeType": kind})
    };
    names.into_iter().map(definition).collect()
}

fn index_definition(index: &Index) -> Value {
    let mut projection = json!({"ProjectionType": index.projection});
    if *index == CONDITIONS_INDEX {
        projection["NonKeyAttributes"] = json!(CONDITIONS_ATTRIBUTES);
    }
    json!({
        "IndexName": index.name,
        "KeySchema": key_schema(index.partition_key, index.sort_key),
        "Projection": projection,
    })
}

fn key_schema(partition_key: &str, sort_key: &str) -> Value {
    json!([
        {"AttributeName": partition_key, "KeyType": "HASH"},
        {"AttributeName": sort_key, "KeyType": "RANGE"},
    ])
}
