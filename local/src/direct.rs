//! Functions that invoke one another within one process, instead of through Lambda's API. Contains no rule of the
//! functions.

use std::fmt::Display;
use std::sync::Arc;

use dynamodb::DynamoStore;
use runtime::clock::{Deadline, SystemClock};
use runtime::invoke::{InvokeFunction, Invoking, NotInvoked};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The ingest function on the engine's table.
pub(crate) type Ingest = ingest::Ingest<DynamoStore, SystemClock>;
/// The fetching function on the engine's table.
pub(crate) type Fetching = fetching::Fetching<DynamoStore, SystemClock>;

/// The ingest function, for calls by other functions.
#[derive(Debug)]
pub(crate) struct DirectIngest(pub(crate) Arc<Ingest>);

/// The fetching function, for calls by other functions.
#[derive(Debug)]
pub(crate) struct DirectFetching(pub(crate) Arc<Fetching>);

impl InvokeFunction for DirectIngest {
    fn invoke(&self, event: String, deadline: Deadline) -> Invoking<'_> {
        Box::pin(async move { answer(self.0.handle(read(&event)?, deadline).await) })
    }
}

impl InvokeFunction for DirectFetching {
    fn invoke(&self, event: String, deadline: Deadline) -> Invoking<'_> {
        Box::pin(async move { answer(self.0.handle(read(&event)?, deadline).await) })
    }
}

/// Parses the event of a function. An error repeats no part of the event.
fn read<T: DeserializeOwned>(event: &str) -> Result<T, NotInvoked> {
    serde_json::from_str(event).map_err(|_| NotInvoked("the event cannot be read".to_owned()))
}

fn answer<T: Serialize, E: Display>(reply: Result<T, E>) -> Result<String, NotInvoked> {
    let reply = reply.map_err(|why| NotInvoked(why.to_string()))?;
    serde_json::to_string(&reply).map_err(|why| NotInvoked(why.to_string()))
}
