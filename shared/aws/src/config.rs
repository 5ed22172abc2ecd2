//! Addresses and keys of services: plain values. Reads no environment.

use std::time::Duration;

use crate::CaBundle;

/// The address of the table, and the keys to reach it.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// The table's name.
    pub table: String,
    /// The AWS region.
    pub region: String,
    /// An address other than AWS's own, for an emulator or an embedded engine.
    pub endpoint: Option<String>,
    /// The keys that requests are signed with.
    pub credentials: Credentials,
    /// The root certificates to trust instead of Amazon's and the system's.
    pub ca_bundle: Option<CaBundle>,
    /// The longest time of an attempt before it is repeated. For AWS it is [`ATTEMPT_TIMEOUT`](crate::ATTEMPT_TIMEOUT).
    pub attempt_timeout: Duration,
}

/// The address of a queue, and the keys to reach it.
#[derive(Debug, Clone)]
pub struct QueueConfig {
    /// The queue's URL.
    pub url: String,
    /// The AWS region.
    pub region: String,
    /// An address other than AWS's own, for an emulator.
    pub endpoint: Option<String>,
    /// The keys that requests are signed with.
    pub credentials: Credentials,
    /// The root certificates to trust instead of Amazon's and the system's.
    pub ca_bundle: Option<CaBundle>,
}

/// The address of an AWS service without a table or queue of Roomtide, and the keys to reach the service.
#[derive(Debug, Clone)]
pub struct ServiceConfig {
    /// The AWS region.
    pub region: String,
    /// An address other than AWS's own, for an emulator.
    pub endpoint: Option<String>,
    /// The keys that requests are signed with.
    pub credentials: Credentials,
    /// The root certificates to trust instead of Amazon's and the system's.
    pub ca_bundle: Option<CaBundle>,
}

/// The keys with which requests to AWS are signed. Their `Debug` shows no secret.
#[derive(Clone)]
pub struct Credentials {
    /// The public part of the keys.
    pub access_key_id: String,
    /// The secret part of the keys.
    pub secret_access_key: String,
    /// The token of temporary keys.
    pub session_token: Option<String>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("access_key_id", &self.access_key_id)
            .finish_non_exhaustive()
    }
}
