//! A function that sends the items of a file, whatever it is asked: what storing them costs the SDK alone.
//! Reads no request, looks at no answer, sends nothing twice.

use std::collections::HashMap;
use std::env;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, ReturnConsumedCapacity, WriteRequest};
use aws_smithy_http_client::tls;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// As many as `ingest` sends with one request, and as many requests as it has under way.
const BATCH: usize = 25;
const IN_FLIGHT: usize = 8;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let (client, table) = (&client()?, &env::var("TABLE_NAME")?);
    let batches = &batches()?;
    let handle = async |_: LambdaEvent<IgnoredAny>| {
        let requests = batches.iter().map(|batch| {
            client
                .batch_write_item()
                .request_items(table, batch.clone())
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
        });
        stream::iter(requests).buffered(IN_FLIGHT).try_collect::<Vec<_>>().await?;
        Ok::<_, Error>(json!({"statusCode": 201}))
    };
    lambda_runtime::run(service_fn(handle)).await
}

/// The SDK as the functions configure it.
fn client() -> Result<Client, Error> {
    let credentials = Credentials::new(
        env::var("AWS_ACCESS_KEY_ID")?,
        env::var("AWS_SECRET_ACCESS_KEY")?,
        env::var("AWS_SESSION_TOKEN").ok(),
        None,
        "environment",
    );
    let http = aws_smithy_http_client::Builder::new()
        .tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring))
        .build_https();
    let retries = RetryConfig::standard()
        .with_max_attempts(4)
        .with_initial_backoff(Duration::from_millis(50))
        .with_max_backoff(Duration::from_secs(1));
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(1))
        .operation_attempt_timeout(Duration::from_secs(2))
        .build();
    let config = Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new(env::var("AWS_REGION")?))
        .endpoint_url(env::var("AWS_ENDPOINT_URL_DYNAMODB")?)
        .credentials_provider(credentials)
        .retry_config(retries)
        .timeout_config(timeouts)
        .http_client(http)
        .build();
    Ok(Client::from_conf(config))
}

/// The items of the file that `ITEMS` names, as the requests that put them.
fn batches() -> Result<Vec<Vec<WriteRequest>>, Error> {
    let items: Vec<HashMap<String, Value>> =
        serde_json::from_slice(&std::fs::read(env::var("ITEMS")?)?)?;
    let put = |item: &HashMap<String, Value>| {
        let attributes = item.iter().map(|(name, value)| Ok((name.clone(), attribute(value)?)));
        let item = attributes.collect::<Result<_, Error>>()?;
        let put = PutRequest::builder().set_item(Some(item)).build()?;
        Ok(WriteRequest::builder().put_request(put).build())
    };
    items.chunks(BATCH).map(|batch| batch.iter().map(put).collect()).collect()
}

/// One attribute as the API writes it. Readings have strings and numbers.
fn attribute(value: &Value) -> Result<AttributeValue, Error> {
    match value.as_object().and_then(|types| types.iter().next()) {
        Some((kind, Value::String(text))) if kind == "S" => Ok(AttributeValue::S(text.clone())),
        Some((kind, Value::String(text))) if kind == "N" => Ok(AttributeValue::N(text.clone())),
        _ => Err(format!("{value} is no attribute that a reading has").into()),
    }
}
