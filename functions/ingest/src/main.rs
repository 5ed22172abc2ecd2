//! The deployed `ingest` function: wiring only.

use dynamodb::DynamoStore;
use ingest::{Event, Ingest, Settings};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use runtime::clock::{SystemClock, end_of_invocation};
use runtime::config::Config;
use runtime::telemetry::Telemetry;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = Config::from_env().map_err(|error| error.to_string())?;
    let store = DynamoStore::connect(&config.store, config.layout);
    let ingest =
        Ingest::new(store, SystemClock, Telemetry::deployed(&config), Settings::from(&config));
    ingest.load().await;

    let ingest = &ingest;
    let handle = |event: LambdaEvent<Event>| async move {
        let deadline = end_of_invocation(event.context.deadline, &SystemClock);
        ingest.handle(event.payload, deadline).await.map_err(Error::from)
    };
    lambda_runtime::run(service_fn(handle)).await
}
