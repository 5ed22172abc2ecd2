//! The look at a request's token before its body is taken. Permits nothing: the functions look again.

use api::{Problem, ProblemKind, Request};
use dynamodb::DynamoStore;
use runtime::authentication::Authenticator;
use runtime::clock::SystemClock;
use runtime::telemetry::{Telemetry, WideEvent};
use table::Invocation;

/// Refuses requests whose token is missing, unknown or revoked.
///
/// API Gateway takes a body before a function sees the request, so the functions ask for the token when
/// the body is there. On a local network that would let anybody send us bodies.
#[derive(Debug)]
pub(crate) struct Guard {
    authenticator: Authenticator<SystemClock>,
    store: DynamoStore,
    telemetry: Telemetry,
}

impl Guard {
    /// A guard that knows the tokens of a table.
    pub(crate) fn new(store: DynamoStore, telemetry: Telemetry) -> Self {
        Self { authenticator: Authenticator::new(true, SystemClock), store, telemetry }
    }

    /// Refuses what no function would take, whatever the body is.
    pub(super) async fn check(
        &self,
        request: &Request,
        invocation: &Invocation,
    ) -> Result<(), Problem> {
        let mut log = WideEvent::begin("guard");
        let admitted =
            self.authenticator.authenticate(request, &self.store, invocation, &mut log).await;
        // Who is refused here is nothing to report, unless the table could not be asked.
        if admitted.as_ref().is_err_and(|problem| problem.kind != ProblemKind::Unauthorized) {
            log.emit(invocation, &self.telemetry, &SystemClock);
        }
        admitted.map(drop)
    }
}
