//! Checks a request's token before its body is read. Grants nothing: the functions check again.

use api::{Problem, ProblemKind, Request};
use dynamodb::DynamoStore;
use runtime::auth::Auth;
use runtime::authentication::Authenticator;
use runtime::clock::SystemClock;
use runtime::telemetry::{Telemetry, WideEvent};
use table::Invocation;

/// Refuses requests whose token is missing, unknown or revoked.
///
/// API Gateway reads a body before it invokes a function, so the functions check the token when the body
/// is there. On a local network that would let everybody send bodies.
#[derive(Debug)]
pub(crate) struct Authorizer {
    authenticator: Authenticator<SystemClock>,
    store: DynamoStore,
    telemetry: Telemetry,
}

impl Authorizer {
    /// An authorizer that looks tokens up in a table.
    pub(crate) fn new(store: DynamoStore, telemetry: Telemetry) -> Self {
        Self { authenticator: Authenticator::new(Auth::On, SystemClock), store, telemetry }
    }

    /// Refuses a request that every function would refuse, whatever its body is.
    pub(super) async fn authorize(
        &self,
        request: &Request,
        invocation: &Invocation,
    ) -> Result<(), Problem> {
        let mut log = WideEvent::begin("authorizer");
        let grant =
            self.authenticator.authenticate(request, &self.store, invocation, &mut log).await;
        // A refusal is not logged, unless the table did not answer.
        if grant.as_ref().is_err_and(|problem| problem.kind != ProblemKind::Unauthorized) {
            log.emit(invocation, &self.telemetry, &SystemClock);
        }
        grant.map(drop)
    }
}
