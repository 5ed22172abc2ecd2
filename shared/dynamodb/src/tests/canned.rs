//! A table for tests that gives every request the same answer, and keeps the requests. Knows no operation.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::{Client, Config};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::retry::RetryConfig;
use serde_json::Value;
use table::layout::Layout;

use crate::DynamoStore;

/// A request, without what differs from attempt to attempt.
#[derive(Debug, PartialEq)]
pub(crate) struct SentRequest {
    pub(crate) method: String,
    pub(crate) uri: String,
    pub(crate) headers: [Option<String>; 3],
    pub(crate) body: Value,
}

/// A table that gives every request the same answer.
#[derive(Debug, Clone)]
pub(crate) struct Canned {
    status: u16,
    body: String,
    asked: Arc<Mutex<Vec<HttpRequest>>>,
}

impl Canned {
    pub(crate) fn new(status: u16, body: &str) -> Self {
        Self { status, body: body.to_owned(), asked: Arc::default() }
    }

    /// A client of the table that sends each request once.
    pub(crate) fn client(&self) -> Client {
        self.client_with(RetryConfig::disabled())
    }

    /// A client of the table that sends a request at most three times.
    pub(crate) fn repeating_client(&self) -> Client {
        let retries = RetryConfig::standard().with_max_attempts(3);
        self.client_with(retries.with_initial_backoff(Duration::from_millis(1)))
    }

    fn client_with(&self, retries: RetryConfig) -> Client {
        let config = Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("a", "b", None, None, "test"))
            .retry_config(retries)
            .http_client(self.clone())
            .build();
        Client::from_conf(config)
    }

    /// A store on the table.
    pub(crate) fn store(&self) -> DynamoStore {
        Self::store_of(self.client())
    }

    /// A store that uses this client.
    pub(crate) fn store_of(client: Client) -> DynamoStore {
        DynamoStore {
            client,
            table: "t\"".to_owned(),
            layout: Layout::default(),
            has_checked_shards: Arc::default(),
        }
    }

    /// The number of requests that have not been taken yet.
    pub(crate) fn count(&self) -> usize {
        self.asked.lock().expect("no test fails in it").len()
    }

    /// Takes the last request.
    pub(crate) fn last(&self) -> SentRequest {
        let request = self.asked.lock().expect("no test fails in it").pop().expect("a request");
        let header = |name| request.headers().get(name).map(str::to_owned);
        let body = request.body().bytes().expect("a body");
        SentRequest {
            method: request.method().to_owned(),
            uri: request.uri().to_owned(),
            headers: ["content-type", "x-amz-target", "content-length"].map(header),
            body: serde_json::from_slice(body).expect("JSON"),
        }
    }
}

impl HttpConnector for Canned {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        self.asked.lock().expect("no test fails in it").push(request);
        let status = self.status.try_into().expect("a status");
        let answer = HttpResponse::new(status, SdkBody::from(self.body.clone()));
        HttpConnectorFuture::ready(Ok(answer))
    }
}

impl HttpClient for Canned {
    fn http_connector(
        &self,
        _: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}
