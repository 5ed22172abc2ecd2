//! A signed request to a service of AWS for which no client is compiled in: one request and its answer. Knows no
//! operation, and repeats nothing.
//!
//! It is built on the same crates as the clients of other services, so it adds no crate.

use std::convert::Infallible;
use std::fmt;
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials as Keys;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use aws_smithy_runtime::client::orchestrator::operation::Operation;
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::timeout::TimeoutConfig;

use crate::{ServiceConfig, http};

/// A service in a region.
pub struct Service {
    name: &'static str,
    region: String,
    endpoint: String,
    keys: Keys,
    operation: Operation<Signed, Reply, Infallible>,
}

/// A request to a service.
#[derive(Debug, Clone, Copy)]
pub struct ServiceCall<'a> {
    /// The path, with the leading slash.
    pub path: &'a str,
    /// The headers, with names in lower case.
    pub headers: &'a [(&'static str, &'static str)],
    /// The body.
    pub body: &'a str,
    /// The time of the signature.
    pub now: SystemTime,
}

/// The answer of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

/// The error of a request without an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{service} does not answer: {why}")]
pub struct NoReply {
    service: &'static str,
    why: &'static str,
    /// Whether the service may have received the request all the same.
    pub may_have_arrived: bool,
}

/// A signed request. Its headers are secret.
struct Signed(::http::Request<String>);

impl fmt::Debug for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signed")
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Service {
    /// A service, by the name for which its requests are signed. Sends nothing yet.
    pub fn connect(name: &'static str, config: &ServiceConfig, timeout: Duration) -> Self {
        let ServiceConfig { region, credentials, .. } = config;
        // Endpoints: https://docs.aws.amazon.com/general/latest/gr/rande.html
        let suffix = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        let own = || format!("https://{name}.{region}.{suffix}");
        let endpoint = config.endpoint.clone().unwrap_or_else(own);

        let timeouts = TimeoutConfig::builder()
            .connect_timeout(Duration::from_secs(1))
            .operation_timeout(timeout)
            .build();

        let operation = Operation::builder()
            .service_name(name)
            .operation_name("call")
            .behavior_version(BehaviorVersion::v2026_01_12())
            .http_client(http::client(config.endpoint.as_deref(), config.ca_bundle.as_ref()))
            .endpoint_url(&endpoint)
            .no_auth()
            .no_retry()
            .timeout_config(timeouts)
            .serializer(|Signed(request)| Ok(HttpRequest::try_from(request.map(SdkBody::from))?))
            .deserializer(|response| {
                let body = response.body().bytes().unwrap_or_default();
                let body = String::from_utf8_lossy(body).into_owned();
                let header = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
                let headers = response.headers().iter().map(header).collect();
                Ok(Reply { status: response.status().as_u16(), headers, body })
            })
            .build();

        let keys = Keys::new(
            &credentials.access_key_id,
            &credentials.secret_access_key,
            credentials.session_token.clone(),
            None,
            "environment",
        );

        Self { name, region: region.clone(), endpoint, keys, operation }
    }

    /// Sends a `POST` request once.
    pub async fn post(&self, call: ServiceCall<'_>) -> Result<Reply, NoReply> {
        let none = |why, may_have_arrived| NoReply { service: self.name, why, may_have_arrived };
        let Some(signed) = self.signed(call) else {
            return Err(none("the request cannot be signed", false));
        };

        self.operation.invoke(signed).await.map_err(|error| match error {
            SdkError::ConstructionFailure(_) => none("the request cannot be made", false),
            SdkError::TimeoutError(_) => none("its time is over", true),
            SdkError::DispatchFailure(_) => none("the connection failed", true),
            _ => none("its answer cannot be read", true),
        })
    }

    /// Signs a request: <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html>
    fn signed(&self, call: ServiceCall<'_>) -> Option<Signed> {
        let identity = self.keys.clone().into();
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(self.name)
            .time(call.now)
            .settings(SigningSettings::default())
            .build()
            .ok()?
            .into();

        let url = format!("{}{}", self.endpoint.trim_end_matches('/'), call.path);
        let body = SignableBody::Bytes(call.body.as_bytes());
        let headers = call.headers.iter().copied();
        let signable = SignableRequest::new("POST", &url, headers, body).ok()?;
        let (instructions, _) = sign(signable, &parameters).ok()?.into_parts();

        let mut request = ::http::Request::post(call.path);
        for (name, value) in call.headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(call.body.to_owned()).ok()?;
        instructions.apply_to_request_http1x(&mut request);
        Some(Signed(request))
    }
}
