//! The deployed `fetching` function: wiring only.

use std::sync::Arc;
use std::time::Duration;

use dynamodb::DynamoStore;
use fetching::{Event, Fetching, Outside};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use outgoing::Reach;
use runtime::clock::{SystemClock, end_of_invocation};
use runtime::invoke::LambdaFunction;
use runtime::{config::Config, telemetry::Telemetry};
use sending::HttpSender;

/// How long ingest may take for a part of an answer.
const INGEST_TIMEOUT: Duration = Duration::from_secs(20);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = Config::from_env().map_err(|error| error.to_string())?;
    let store = DynamoStore::connect(&config.store, config.layout);
    let (lambda, name) = (&config.lambda, config.ingest_function.as_deref());
    let ingest = LambdaFunction::connect(lambda, name, INGEST_TIMEOUT, SystemClock);
    let http = Arc::new(HttpSender::new(Reach::Public));
    let outside = Outside { http, ingest: Arc::new(ingest), reach: Reach::Public };
    let fetching = &Fetching::new(store, outside, SystemClock, Telemetry::deployed(&config));
    let handle = |event: LambdaEvent<Event>| async move {
        let deadline = end_of_invocation(event.context.deadline, &SystemClock);
        fetching.handle(event.payload, deadline).await
    };
    lambda_runtime::run(service_fn(handle)).await
}
