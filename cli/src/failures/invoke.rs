//! Invokes a deployed function with an event, and waits for its reply. Knows no event.

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail};
use aws::{Service, ServiceCall, ServiceConfig};
use chrono::DateTime;
use runtime::clock::{Clock as _, SystemClock};
use serde_json::Value;

/// The time limit of an invocation: longer than the function's time-out.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The header that an answer has only if the function failed.
const FUNCTION_ERROR: &str = "x-amz-function-error";

/// A client of Lambda, which invokes functions.
pub(super) struct Lambda(Service);

impl Lambda {
    /// Makes a client of Lambda in a region, or at an address. Sends no request yet.
    pub(super) fn connect(config: &ServiceConfig) -> Self {
        Self(Service::connect("lambda", config, TIMEOUT))
    }

    /// Invokes a function. Returns its reply, or an error if the function fails.
    ///
    /// Source: <https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html>
    pub(super) async fn invoke(&self, function: &str, event: &Value) -> anyhow::Result<Value> {
        let path = format!("/2015-03-31/functions/{function}/invocations");
        let (headers, body) = (&[][..], &event.to_string());
        let now = DateTime::from_timestamp_millis(SystemClock.now().as_millis());
        let now = SystemTime::from(now.unwrap_or_default());
        let call = ServiceCall { path: &path, headers, body, now };
        let reply = self.0.post(call).await?;

        if reply.headers.iter().any(|(name, _)| name == FUNCTION_ERROR) {
            let failure: Value = serde_json::from_str(&reply.body).unwrap_or_default();
            let why = failure["errorMessage"].as_str().unwrap_or(&reply.body);
            bail!("{function} fails: {why}");
        }

        match reply.status {
            200 => serde_json::from_str(&reply.body)
                .with_context(|| format!("{function} replies {}", reply.body)),
            status => bail!("Lambda answers {status}: {}", reply.body),
        }
    }
}
