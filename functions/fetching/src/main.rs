//! The deployed `fetching` function: wiring only.

use dynamodb::DynamoStore;
use fetching::{Event, Fetching, Outside};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use outgoing::Reach;
use runtime::clock::{SystemClock, end_of_invocation};
use runtime::{config::Config, invoke::LambdaFunction, telemetry::Telemetry};
use sending::HttpSender;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = Config::from_env().map_err(|error| error.to_string())?;
    let store = DynamoStore::connect(&config.store, config.layout);
    let name = config.ingest_function.as_deref();
    let ingest = LambdaFunction::connect(&config.lambda, name, SystemClock);
    let outside = Outside::deployed(HttpSender::new(Reach::Public), ingest);
    let fetching = &Fetching::new(store, outside, SystemClock, Telemetry::deployed(&config));
    let handle = |event: LambdaEvent<Event>| async move {
        let deadline = end_of_invocation(event.context.deadline, &SystemClock);
        fetching.handle(event.payload, deadline).await
    };
    lambda_runtime::run(service_fn(handle)).await
}
