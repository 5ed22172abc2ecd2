//! The deployed `rollup` function: wiring only.

use dynamodb::DynamoStore;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use rollup::{Event, Rollup, Settings};
use runtime::clock::{SystemClock, end_of_invocation};
use runtime::config::Config;
use runtime::dead_letters::SqsQueue;
use runtime::telemetry::Telemetry;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = Config::from_env().map_err(|error| error.to_string())?;
    let store = DynamoStore::connect(&config.store, config.layout);
    let work = SqsQueue::connect(config.work().map_err(|error| error.to_string())?);
    let letters = SqsQueue::connect(config.failures().map_err(|error| error.to_string())?);
    let settings = Settings::from(&config);
    let rollup =
        &Rollup::new(store, work, letters, SystemClock, Telemetry::deployed(&config), settings);
    let handle = |event: LambdaEvent<Event>| async move {
        let deadline = end_of_invocation(event.context.deadline, &SystemClock);
        rollup.handle(event.payload, deadline).await
    };
    lambda_runtime::run(service_fn(handle)).await
}
