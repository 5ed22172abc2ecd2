//! The deployed `alerting` function: wiring only.

use alerting::{Alerting, Carrier, Event, Settings, Sns};
use dynamodb::DynamoStore;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use outgoing::Reach;
use runtime::clock::{SystemClock, end_of_invocation};
use runtime::{config::Config, telemetry::Telemetry};
use sending::HttpSender;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = Config::from_env().map_err(|error| error.to_string())?;
    let store = DynamoStore::connect(&config.store, config.layout);
    let (http, email) = (HttpSender::new(Reach::Public), Sns::connect(&config.sns, SystemClock));
    let carrier = Carrier::new(http, email);
    let (telemetry, settings) = (Telemetry::deployed(&config), Settings::try_from(&config)?);
    let alerting = &Alerting::new(store, carrier, SystemClock, telemetry, settings);
    let handle = |event: LambdaEvent<Event>| async move {
        let deadline = end_of_invocation(event.context.deadline, &SystemClock);
        alerting.handle(event.payload, deadline).await
    };
    lambda_runtime::run(service_fn(handle)).await
}
