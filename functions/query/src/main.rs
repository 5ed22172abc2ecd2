//! The deployed `query` function: wiring only.

use aws_lambda_events::event::apigw::ApiGatewayV2httpRequest;
use dynamodb::DynamoStore;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use query::{Query, Settings};
use runtime::clock::{SystemClock, end_of_invocation};
use runtime::{config::Config, invoke::LambdaFunction, telemetry::Telemetry};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = Config::from_env().map_err(|error| error.to_string())?;
    let store = DynamoStore::connect(&config.store, config.layout);
    let query =
        Query::new(store, SystemClock, Telemetry::deployed(&config), Settings::from(&config));
    let name = config.fetching_function.as_deref();
    let fetching = LambdaFunction::connect(&config.lambda, name, SystemClock);
    let query = &query.with_fetching(fetching);
    query.load().await;
    let handle = |event: LambdaEvent<ApiGatewayV2httpRequest>| async move {
        let deadline = end_of_invocation(event.context.deadline, &SystemClock);
        Ok::<_, Error>(query.handle(event.payload, deadline).await)
    };
    lambda_runtime::run(service_fn(handle)).await
}
