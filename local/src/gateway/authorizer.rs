//! Checks a request's token before its body is read. Grants nothing: the functions check again.

use api::{Problem, ProblemKind, Request};
use dynamodb::DynamoStore;
use runtime::auth::Auth;
use runtime::authentication::Authenticator;
use runtime::clock::{Clock as _, SystemClock};
use runtime::telemetry::{Telemetry, WideEvent};
use table::{Invocation, Session};

/// Refuses requests whose token is missing, unknown or revoked.
///
/// API Gateway reads a body before it invokes a function, so the functions check the token after the body has arrived.
/// On a local network that would let everybody send bodies.
#[derive(Debug)]
pub(crate) struct Authorizer {
    authenticator: Authenticator,
    store: DynamoStore,
    telemetry: Telemetry,
}

impl Authorizer {
    /// An authorizer that looks tokens up in a table.
    pub(crate) fn new(store: DynamoStore, telemetry: Telemetry) -> Self {
        Self { authenticator: Authenticator::new(Auth::On), store, telemetry }
    }

    /// Refuses a request that every function would refuse, whatever the body is.
    pub(super) async fn authorize(
        &self,
        request: &Request,
        invocation: &Invocation,
    ) -> Result<(), Problem> {
        let mut log = WideEvent::begin("authorizer");
        let session = Session::new(&self.store, invocation, SystemClock.now());
        let grant = self.authenticator.authenticate(request, session, &mut log).await;

        // Refusals are not logged, only failures of the table.
        if let Err(problem) = &grant
            && problem.kind != ProblemKind::Unauthorized
        {
            log.cause(problem);
            log.emit(invocation, &self.telemetry, &SystemClock);
        }
        grant.map(drop)
    }
}
