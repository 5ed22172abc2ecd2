//! The ports on `DynamoDB`, one file per operation: the only door to the AWS SDK. Decides nothing of the domain.

mod attribute;
mod edit_registry;
mod error;
mod learn;
mod put_readings;
mod query_readings;
mod read_registry;
mod register;
mod tokens;
mod update;

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::types::ConsumedCapacity;
use aws_smithy_http_client::tls;

use super::Budget;
use crate::config::StoreConfig;

/// The table on `DynamoDB`, or on anything that speaks its protocol.
#[derive(Debug, Clone)]
pub struct DynamoStore {
    client: Client,
    table: String,
    room_index: bool,
}

impl DynamoStore {
    /// A store that will ask the table of `config`; nothing is sent yet.
    ///
    /// The SDK's own defaults would wait for ever and retry after seconds: a socket that went stale
    /// while the function was frozen must cost milliseconds.
    #[must_use]
    pub fn connect(config: &StoreConfig) -> Self {
        let keys = config.credentials.clone();
        let credentials = Credentials::new(
            keys.access_key_id,
            keys.secret_access_key,
            keys.session_token,
            None,
            "environment",
        );
        let retries = RetryConfig::standard()
            .with_max_attempts(4)
            .with_initial_backoff(Duration::from_millis(50))
            .with_max_backoff(Duration::from_secs(1));
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(Duration::from_secs(1))
            .operation_attempt_timeout(Duration::from_secs(2))
            .build();
        let http = aws_smithy_http_client::Builder::new();
        // Over plain HTTP there are no certificates to read: reading them takes most of a cold start.
        let plain = config.endpoint.as_ref().is_some_and(|url| url.starts_with("http:"));
        let http = if plain {
            http.build_http()
        } else {
            http.tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring))
                .build_https()
        };
        let mut sdk = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new(config.region.clone()))
            .credentials_provider(credentials)
            .retry_config(retries)
            .timeout_config(timeouts)
            .http_client(http);
        sdk.set_endpoint_url(config.endpoint.clone());
        Self::with_client(Client::from_conf(sdk.build()), config)
    }

    /// A store that asks through a client of the caller's: one that a test lets fail on demand.
    #[must_use]
    pub fn with_client(client: Client, config: &StoreConfig) -> Self {
        Self { client, table: config.table.clone(), room_index: config.room_index }
    }
}

fn note_read(budget: &Budget, consumed: Option<&ConsumedCapacity>) {
    budget.add_read(consumed.and_then(ConsumedCapacity::capacity_units).unwrap_or(0.0));
}

fn note_write(budget: &Budget, consumed: Option<&ConsumedCapacity>) {
    budget.add_write(consumed.and_then(ConsumedCapacity::capacity_units).unwrap_or(0.0));
}
