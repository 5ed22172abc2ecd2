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
    /// Another address than AWS's own, for an emulator or an embedded engine.
    pub endpoint: Option<String>,
    /// The keys that requests are signed with.
    pub credentials: Credentials,
    /// The root certificates to trust instead of Amazon's and the system's.
    pub ca_bundle: Option<CaBundle>,
    /// How long an attempt may take before it is repeated: [`ATTEMPT_TIMEOUT`](crate::ATTEMPT_TIMEOUT) for AWS.
    pub attempt_timeout: Duration,
}

/// The address of a queue, and the keys to reach it.
#[derive(Debug, Clone)]
pub struct QueueConfig {
    /// The queue's URL.
    pub url: String,
    /// The AWS region.
    pub region: String,
    /// Another address than AWS's own, for an emulator.
    pub endpoint: Option<String>,
    /// The keys that requests are signed with.
    pub credentials: Credentials,
    /// The root certificates to trust instead of Amazon's and the system's.
    pub ca_bundle: Option<CaBundle>,
}

/// The address of a service without a resource of ours, and the keys to reach it.
#[derive(Debug, Clone)]
pub struct ServiceConfig {
    /// The AWS region.
    pub region: String,
    /// Another address than AWS's own, for an emulator.
    pub endpoint: Option<String>,
    /// The keys that requests are signed with.
    pub credentials: Credentials,
    /// The root certificates to trust instead of Amazon's and the system's.
    pub ca_bundle: Option<CaBundle>,
}

/// The keys with which requests to AWS are signed. Their `Debug` shows no secret.
#[derive(Clone)]
pub struct Credentials {
    /// The public part.
    pub access_key_id: String,
    /// The secret part.
    pub secret_access_key: String,
    /// The third part of temporary keys.
    pub session_token: Option<String>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("access_key_id", &self.access_key_id)
            .finish_non_exhaustive()
    }
}
