//! The look at a request's token before its body is taken. Permits nothing: the functions look again.

use shared::access::Gate;
use shared::clock::SystemClock;
use shared::config::StoreConfig;
use shared::http::{Problem, Request};
use shared::store::Budget;
use shared::store::dynamodb::DynamoStore;

/// Refuses requests whose token is missing, unknown or revoked.
///
/// API Gateway takes a body before a function sees the request, so the functions ask for the token when
/// the body is there. On a local network that would let anybody send us bodies.
#[derive(Debug)]
pub(crate) struct Guard {
    gate: Gate<SystemClock>,
    store: DynamoStore,
}

impl Guard {
    /// A guard that knows the tokens of a table.
    pub(crate) fn new(config: &StoreConfig) -> Self {
        Self { gate: Gate::new(true, SystemClock), store: DynamoStore::connect(config) }
    }

    /// Refuses what no function would take, whatever the body is.
    pub(super) async fn check(&self, request: &Request, budget: &Budget) -> Result<(), Problem> {
        self.gate.admit(request, &self.store, budget).await.map(drop)
    }
}
