//! The deployed `registry` function: wiring only.

use aws_lambda_events::event::dynamodb::Event;
use dynamodb::DynamoStore;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use registry::Registry;
use runtime::clock::{SystemClock, end_of_invocation};
use runtime::dead_letters::SqsQueue;
use runtime::{config::Config, hint::LambdaHint, telemetry::Telemetry};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = Config::from_env().map_err(|error| error.to_string())?;
    let store = DynamoStore::connect(&config.store, config.layout);
    let queue = SqsQueue::connect(config.failures().map_err(|error| error.to_string())?);
    let hint =
        LambdaHint::connect(&config.lambda, config.alerting_function.as_deref(), SystemClock);
    let registry = Registry::new(store, queue, SystemClock, Telemetry::deployed(&config));
    let registry = &registry.with_hint(hint);
    let handle = |event: LambdaEvent<Event>| async move {
        let deadline = end_of_invocation(event.context.deadline, &SystemClock);
        Ok::<_, Error>(Box::pin(registry.handle(event.payload, deadline)).await)
    };
    lambda_runtime::run(service_fn(handle)).await
}
