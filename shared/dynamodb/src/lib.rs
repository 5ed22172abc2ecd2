//! The operations of a table on `DynamoDB`. Knows no port and no kind of item.

mod batches;
mod body;
mod db;
mod describe;
mod door;
mod error;
mod expression;
mod json;
mod pause;
mod reply;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use aws_sdk_dynamodb::Client;

use aws::StoreConfig;
pub use expression::{BETWEEN, BETWEEN_NAMES};
pub use json::ItemJson;
use table::layout::Layout;

/// The table on `DynamoDB`, or on anything that speaks its protocol.
#[derive(Debug, Clone)]
pub struct DynamoStore {
    client: Client,
    table: String,
    layout: Layout,
    /// Whether the number of partitions with devices was compared with the layout.
    has_checked_shards: Arc<AtomicBool>,
}

impl DynamoStore {
    /// A store for the table of `config`, with this layout. Sends nothing.
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
