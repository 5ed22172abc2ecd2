//! Who may do what: a request's token, looked up once and remembered for a short while. Issues none.

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;
use std::time::Duration;

use crate::clock::Clock;
use crate::telemetry::WideEvent;
use api::{Problem, ProblemKind, Request};
use domain::{DeviceId, Scope, Timestamp, Token, TokenHash};
use table::{FindToken, Invocation};

/// How long a token is remembered: so long a revoked one may go on.
pub const TOKEN_CACHE_AGE: Duration = Duration::from_secs(30);
/// How many are remembered. Unknown ones are among them, so whoever tries many only empties this.
const MAX_CACHED_TOKENS: usize = 10_000;

/// The gate of a function.
#[derive(Debug)]
pub struct Authenticator<C> {
    open: bool,
    clock: C,
    known: Mutex<HashMap<TokenHash, Known>>,
}

/// What the store said of a token; an unknown one is none.
#[derive(Debug, Clone)]
struct Known {
    token: Option<Token>,
    since: Timestamp,
}

/// What a request is permitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant(Option<Scope>);

impl<C: Clock> Authenticator<C> {
    /// A gate that asks for tokens, or that lets everybody through because only this machine can reach it.
    #[must_use]
    pub fn new(asks: bool, clock: C) -> Self {
        Self { open: !asks, clock, known: Mutex::default() }
    }

    /// What the request's token permits. An unknown token and a revoked one look alike; a token that
    /// could not be looked up is refused with the store's problem, whose causes go to the log.
    pub async fn authenticate(
        &self,
        request: &Request,
        store: &impl FindToken,
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> Result<Grant, Problem> {
        if self.open {
            return Ok(Grant(None));
        }
        let refused = |detail: &str| Problem::new(ProblemKind::Unauthorized, detail);
        let Some(secret) = &request.secret else {
            let detail = "There is no token in the request; send the header \
                          \"Authorization: Bearer TOKEN\", with the word Bearer.";
            return Err(refused(detail));
        };
        let hash = TokenHash::of(secret.expose());
        let token = match self.remembered(&hash) {
            Some(known) => known.token,
            None => {
                let token = store.token(&hash, invocation).await.map_err(|error| {
                    log.error("token.error", &error);
                    Problem::from(&error)
                })?;
                self.remember(hash, token.clone());
                token
            }
        };
        let valid = token.filter(|token| token.hash == hash && token.revoked.is_none());
        let token = valid.ok_or_else(|| refused("The token is not valid."))?;
        Ok(Grant(Some(token.scope)))
    }

    fn remembered(&self, hash: &TokenHash) -> Option<Known> {
        let known = self.known.lock().expect("nothing panics while it holds the tokens");
        let known = known.get(hash)?;
        let age = self.clock.now().as_millis() - known.since.as_millis();
        let fresh = u128::try_from(age).is_ok_and(|age| age < TOKEN_CACHE_AGE.as_millis());
        fresh.then(|| known.clone())
    }

    fn remember(&self, hash: TokenHash, token: Option<Token>) {
        let mut known = self.known.lock().expect("nothing panics while it holds the tokens");
        if known.len() >= MAX_CACHED_TOKENS {
            known.clear();
        }
        known.insert(hash, Known { token, since: self.clock.now() });
    }
}

impl Grant {
    /// Refuses who may not ask.
    pub fn read(&self) -> Result<(), Problem> {
        match self.0 {
            None | Some(Scope::Read | Scope::Admin) => Ok(()),
            Some(Scope::Write(_)) => Err(forbidden("The token may only store readings.")),
        }
    }

    /// Refuses who may not edit the registry.
    pub fn edit(&self) -> Result<(), Problem> {
        match self.0 {
            None | Some(Scope::Admin) => Ok(()),
            Some(_) => Err(forbidden("Only an admin token may edit.")),
        }
    }

    /// The devices whose readings may be stored; none are all. Refuses who may store nothing.
    pub fn write(&self) -> Result<Option<&BTreeSet<DeviceId>>, Problem> {
        match &self.0 {
            None | Some(Scope::Admin) => Ok(None),
            Some(Scope::Write(devices)) => Ok(Some(devices)),
            Some(Scope::Read) => Err(forbidden("The token may only read.")),
        }
    }
}

/// The answer to who is known and may not.
#[must_use]
pub fn forbidden(detail: &str) -> Problem {
    Problem::new(ProblemKind::Forbidden, detail)
}
