//! The ports on `DynamoDB`, one file per port or group of ports. Contains no rule of the domain.

mod answer;
mod attribute;
mod batches;
mod body;
#[cfg(test)]
mod canned;
mod conditions;
mod db;
mod delete;
mod delete_readings;
mod describe;
mod door;
mod error;
mod expression;
mod find_registry;
mod index_devices;
mod insert_readings;
mod introduced;
mod json;
mod merge_readings;
mod pause;
mod put;
mod put_readings;
mod query_readings;
mod range;
mod read_registry;
mod reply;
mod request;
mod rollup_state;
mod rollups;
mod search_devices;
mod seen;
mod shards;
mod stays;
mod update;
mod write_device;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::ConsumedCapacity;

use aws::StoreConfig;
pub use range::{BETWEEN, BETWEEN_NAMES};
use table::Invocation;
use table::layout::Layout;

/// The table on `DynamoDB`, or on anything that speaks its protocol.
#[derive(Debug, Clone)]
pub struct DynamoStore {
    client: Client,
    table: String,
    layout: Layout,
    /// Whether the table's devices are known to be in as many partitions as the layout says.
    has_checked_shards: Arc<AtomicBool>,
}

impl DynamoStore {
    /// A store that will ask the table of `config`, which is laid out so; nothing is sent yet.
    #[must_use]
    pub fn connect(config: &StoreConfig, layout: Layout) -> Self {
        let endpoint = config.endpoint.as_deref();
        let ca_bundle = config.ca_bundle.as_ref();
        let settings = aws::settings(
            &config.region,
            endpoint,
            &config.credentials,
            ca_bundle,
            config.attempt_timeout,
        );
        let has_checked_shards = Arc::default();
        let (client, table) = (Client::new(&settings), config.table.clone());
        Self { client, table, layout, has_checked_shards }
    }
}

fn note_read(invocation: &Invocation, consumed: Option<&ConsumedCapacity>) {
    invocation.add_read(consumed.and_then(ConsumedCapacity::capacity_units).unwrap_or(0.0));
}

fn note_write(invocation: &Invocation, consumed: Option<&ConsumedCapacity>) {
    invocation.add_write(consumed.and_then(ConsumedCapacity::capacity_units).unwrap_or(0.0));
}
