//! The settings of every AWS client: credentials, time-outs, retries and TLS. Sends no request.

mod ca_bundle;
mod call;
mod config;
mod http;

use std::time::Duration;

use aws_credential_types::Credentials as Keys;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::SdkConfig;
use aws_types::region::Region;

pub use ca_bundle::{CaBundle, CaBundleError};
pub use call::{NoReply, Reply, Service, ServiceCall};
pub use config::{Credentials, QueueConfig, ServiceConfig, StoreConfig};

/// The longest time of an attempt of a request to AWS.
///
/// By default the SDK would wait for ever, for example for a socket that went stale while the function was frozen.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2);

/// The settings of a client of one service in `region`, or at `endpoint` if there is one. If there is a `ca_bundle`,
/// the client trusts its certificates instead of Amazon's and the system's.
///
/// Retries begin sooner than by the SDK's default, which pauses for seconds.
pub fn settings(
    region: &str,
    endpoint: Option<&str>,
    credentials: &Credentials,
    ca_bundle: Option<&CaBundle>,
    attempt_timeout: Duration,
) -> SdkConfig {
    let keys = Keys::new(
        &credentials.access_key_id,
        &credentials.secret_access_key,
        credentials.session_token.clone(),
        None,
        "environment",
    );

    let retries = RetryConfig::standard()
        .with_max_attempts(4)
        .with_initial_backoff(Duration::from_millis(50))
        .with_max_backoff(Duration::from_secs(1));
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(1))
        .operation_attempt_timeout(attempt_timeout)
        .build();

    let mut settings = SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new(region.to_owned()))
        .credentials_provider(SharedCredentialsProvider::new(keys))
        .retry_config(retries)
        .timeout_config(timeouts)
        .http_client(http::client(endpoint, ca_bundle));
    settings.set_endpoint_url(endpoint.map(str::to_owned));
    settings.build()
}
