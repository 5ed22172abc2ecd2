//! The table as `template.yaml` describes it. Creates no table.

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use table::layout::{self, Layout};
use table::shards::Shards;

use crate::template::Template;

/// The table's properties in the template: enough to create the same one on any engine.
///
/// The members are named as the template and `CreateTable` name them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TableDefinition {
    /// The types of all attributes that are part of a key.
    pub attribute_definitions: Vec<AttributeDefinition>,
    /// The table's own key.
    pub key_schema: Vec<KeyElement>,
    /// The indexes; none if the template's conditions leave all of them out.
    #[serde(default)]
    pub global_secondary_indexes: Vec<Index>,
    /// The table's stream.
    pub stream_specification: StreamSpecification,
    /// The attribute by which items expire.
    pub time_to_live_specification: TimeToLive,
    /// The number of partitions of the registry's devices. It is not a property of the table.
    #[serde(skip)]
    pub device_shards: Shards,
}

/// The type of one key attribute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AttributeDefinition {
    /// The name of the attribute.
    pub attribute_name: String,
    /// `S`, `N` or `B`.
    pub attribute_type: String,
}

/// One part of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct KeyElement {
    /// The name of the key attribute.
    pub attribute_name: String,
    /// `HASH` or `RANGE`.
    pub key_type: String,
}

/// A global secondary index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Index {
    /// The name of the index.
    pub index_name: String,
    /// The key of the index.
    pub key_schema: Vec<KeyElement>,
    /// The attributes that the index holds.
    pub projection: Projection,
}

/// The part of an item that an index holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Projection {
    /// `ALL`, `KEYS_ONLY` or `INCLUDE`.
    pub projection_type: String,
    /// With `INCLUDE`, the attributes besides the keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub non_key_attributes: Vec<String>,
}

/// The table's stream.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct StreamSpecification {
    /// The images of an item that a stream record holds.
    pub stream_view_type: String,
}

/// The expiry of items in the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TimeToLive {
    /// The attribute that holds the second of expiry.
    pub attribute_name: String,
    /// Whether items expire.
    pub enabled: bool,
}

impl TableDefinition {
    /// Reads the table of the deployed template, with its default parameters.
    pub fn own() -> anyhow::Result<Self> {
        Self::from_template(Template::own()?, &[])
    }

    /// Reads the table that a template deploys with `parameters`.
    pub fn from_template(template: &Template, parameters: &[(&str, &str)]) -> anyhow::Result<Self> {
        let resources = template.resources(parameters)?;
        let mut tables = resources.values().filter(|r| r["Type"] == "AWS::DynamoDB::Table");
        let (Some(table), None) = (tables.next(), tables.next()) else {
            bail!("the template does not have exactly one AWS::DynamoDB::Table")
        };
        let mut table: Self =
            serde_json::from_value(table["Properties"].clone()).context("the template's table")?;
        let shards = template.parameter("DeviceShards", parameters)?;
        table.device_shards = shards.parse().with_context(|| format!("DeviceShards {shards}"))?;
        Ok(table)
    }

    /// The layout of the table.
    pub fn layout(&self) -> Layout {
        let has = |index: &layout::Index| {
            self.global_secondary_indexes.iter().any(|known| known.index_name == index.name)
        };
        Layout {
            room_index: has(&layout::ROOM_INDEX),
            attribute_index: has(&layout::ATTRIBUTE_INDEX),
            conditions_index: has(&layout::CONDITIONS_INDEX),
            shards: self.device_shards,
        }
    }

    /// Writes the body of the `CreateTable` request for the name `table`.
    ///
    /// The table has no capacity limit, whatever the template says, because an engine on this machine costs nothing.
    pub fn create_request(&self, table: &str) -> Value {
        let mut request = json!({
            "TableName": table,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": self.attribute_definitions,
            "KeySchema": self.key_schema,
            "StreamSpecification": {
                "StreamEnabled": true, "StreamViewType": self.stream_specification.stream_view_type,
            },
        });
        // DynamoDB refuses an empty list.
        if !self.global_secondary_indexes.is_empty() {
            request["GlobalSecondaryIndexes"] = json!(self.global_secondary_indexes);
        }
        request
    }

    /// Writes the body of the `UpdateTable` request that makes or removes an index of `table`.
    pub fn index_request(&self, table: &str, index: &layout::Index, is_made: bool) -> Value {
        let defined =
            self.global_secondary_indexes.iter().find(|known| known.index_name == index.name);
        let change = match defined.filter(|_| is_made) {
            Some(index) => json!({"Create": index}),
            None => json!({"Delete": {"IndexName": index.name}}),
        };
        json!({
            "TableName": table,
            "AttributeDefinitions": self.attribute_definitions,
            "GlobalSecondaryIndexUpdates": [change],
        })
    }

    /// Writes the body of the `UpdateTimeToLive` request for the name `table`.
    pub fn expiry_request(&self, table: &str) -> Value {
        json!({"TableName": table, "TimeToLiveSpecification": self.time_to_live_specification})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_s_table_becomes_a_request() {
        let request = TableDefinition::own().unwrap().create_request("t");
        assert_eq!(request["TableName"], "t");
        assert_eq!(request["BillingMode"], "PAY_PER_REQUEST");
        let key = json!([
            {"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"},
        ]);
        assert_eq!(request["KeySchema"], key);
        let stream = json!({"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"});
        assert_eq!(request["StreamSpecification"], stream);
        let index = &request["GlobalSecondaryIndexes"][0];
        assert_eq!(index["IndexName"], "room-index");
        assert_eq!(index["Projection"], json!({"ProjectionType": "ALL"}));
        assert_eq!(request["AttributeDefinitions"].as_array().map(Vec::len), Some(3));
        assert_eq!(request.get("TimeToLiveSpecification"), None);
    }

    #[test]
    fn without_its_index_the_table_defines_no_attribute_too_many() {
        let template = Template::own().unwrap();
        let table = TableDefinition::from_template(template, &[("RoomIndex", "off")]).unwrap();
        assert!(table.global_secondary_indexes.is_empty());
        assert_eq!(table.attribute_definitions.len(), 2);
        assert_eq!(table.create_request("t").get("GlobalSecondaryIndexes"), None);
    }

    #[test]
    fn expiry_is_as_the_template_says() {
        let request = TableDefinition::own().unwrap().expiry_request("t");
        assert_eq!(
            request["TimeToLiveSpecification"],
            json!({"AttributeName": "exp", "Enabled": true})
        );
    }
}
