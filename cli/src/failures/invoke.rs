//! Invokes a deployed function with an event, and waits for its reply. Knows no event.

use anyhow::{Context as _, bail};
use aws::Credentials;
use aws_credential_types::Credentials as Keys;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use chrono::{DateTime, Utc};
use domain::Timestamp;
use serde_json::Value;

/// The address of Lambda, and the keys to reach it.
pub(super) struct Lambda {
    agent: ureq::Agent,
    endpoint: String,
    region: String,
    credentials: Credentials,
}

impl Lambda {
    /// Lambda in a region, or at an address.
    pub(super) fn connect(region: &str, endpoint: Option<&str>, credentials: Credentials) -> Self {
        // Longer than the function may take.
        let timeout = std::time::Duration::from_secs(60);
        let config = ureq::Agent::config_builder().timeout_global(Some(timeout));
        Self {
            agent: config.http_status_as_error(false).build().into(),
            endpoint: endpoint
                .map_or_else(|| format!("https://lambda.{region}.amazonaws.com"), str::to_owned),
            region: region.to_owned(),
            credentials,
        }
    }

    /// Invokes a function. Returns its reply; an error if it fails.
    ///
    /// Source: <https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html>
    pub(super) fn invoke(
        &self,
        function: &str,
        event: &Value,
        now: Timestamp,
    ) -> anyhow::Result<Value> {
        let url = format!("{}/2015-03-31/functions/{function}/invocations", self.endpoint);
        let body = event.to_string();
        let request = self.signed(&url, &body, now).context("the request cannot be signed")?;
        let mut answer = self.agent.run(request).context("Lambda does not answer")?;
        let failed = answer.headers().contains_key("x-amz-function-error");
        let text = answer.body_mut().read_to_string()?;
        if failed {
            let reply: Value = serde_json::from_str(&text).unwrap_or_default();
            bail!("{function} fails: {}", reply["errorMessage"].as_str().unwrap_or(&text));
        }
        match answer.status().as_u16() {
            200 => {
                serde_json::from_str(&text).with_context(|| format!("{function} replies {text}"))
            }
            status => bail!("Lambda answers {status}: {text}"),
        }
    }

    fn signed(
        &self,
        url: &str,
        body: &str,
        now: Timestamp,
    ) -> anyhow::Result<http::Request<String>> {
        let Credentials { access_key_id, secret_access_key, session_token } = &self.credentials;
        let keys = Keys::new(access_key_id, secret_access_key, session_token.clone(), None, "own");
        let identity = keys.into();
        let now: DateTime<Utc> =
            DateTime::from_timestamp_millis(now.as_millis()).context("time")?;
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name("lambda")
            .time(now.into())
            .settings(SigningSettings::default())
            .build()?
            .into();
        let bytes = SignableBody::Bytes(body.as_bytes());
        let signable = SignableRequest::new("POST", url, std::iter::empty(), bytes)?;
        let (instructions, _) = sign(signable, &parameters)?.into_parts();
        let mut request = http::Request::post(url).body(body.to_owned())?;
        instructions.apply_to_request_http1x(&mut request);
        Ok(request)
    }
}
