//! Authentication: looks up a request's token, caches it and checks the endpoint's access. Issues no token.

use chrono::TimeDelta;

use crate::auth::Auth;
use crate::telemetry::WideEvent;
use api::endpoints::{Access, PathPlace};
use api::{Problem, ProblemKind, Request, TokenSecret};
use domain::{HomeId, RoomId, Scope, Token, TokenHash, ViewScope, WriteScope, check_token};
use table::{BoundedMemory, FindToken, Session};

/// How long a looked-up token is cached. A revoked token may still be accepted for this time.
pub const TOKEN_CACHE_AGE: TimeDelta = TimeDelta::seconds(30);
/// The largest number of cached tokens, including unknown ones. A client that tries many tokens only
/// empties the cache.
const MAX_CACHED_TOKENS: usize = 10_000;

const NO_EDITS: &str = "Without authentication (Auth=off) anybody may read and store readings, and nobody may edit or delete without an admin token.";

/// The refusal of an admin token in an address: browsers keep addresses in their histories, and servers in their logs.
const ADMIN_IN_ADDRESS: &str = "An admin token is not taken in an address, nor by an address that stores a reading; use a write token.";

/// The refusal of a view token in an address. A link that shows a home has the token after `#`: browsers do not send
/// this part, so no log has it.
const VIEW_IN_ADDRESS: &str = "A view token is not taken in an address, which logs keep; send it in the header Authorization.";

/// The access that a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeededAccess<'a> {
    /// The access of the endpoint, which decides which tokens permit the request.
    pub access: Access,
    /// The room or home, if the request only reads this room or home.
    pub place: Option<PathPlace<'a>>,
}

impl From<Access> for NeededAccess<'_> {
    fn from(access: Access) -> Self {
        Self { access, place: None }
    }
}

/// Checks the tokens of requests. A process shares one authenticator by reference.
#[derive(Debug)]
pub struct Authenticator {
    auth: Auth,
    /// The looked-up tokens; `None` stands for a token that the table does not have.
    tokens: BoundedMemory<TokenHash, Option<Token>>,
}

/// The permissions of a request: those of its token, or all if no token is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    scope: Option<Scope>,
    token: Option<TokenHash>,
    /// Whether the request counts as a request without a token, which may only read and store.
    is_anybody: bool,
}

impl Authenticator {
    /// An authenticator that demands tokens as `auth` says.
    pub fn new(auth: Auth) -> Self {
        Self { auth, tokens: BoundedMemory::new(MAX_CACHED_TOKENS, TOKEN_CACHE_AGE) }
    }

    /// If `auth` requires tokens, refuses a request without a token or with a malformed token. Looks up no token.
    pub fn check_form(&self, request: &Request) -> Result<(), Problem> {
        if self.auth == Auth::On { formed(request).map(drop) } else { Ok(()) }
    }

    /// Authenticates a request, unless the endpoint needs no token, or only a well-formed token. Refuses a token that
    /// does not permit the endpoint.
    pub async fn authorize(
        &self,
        request: &Request,
        asked: NeededAccess<'_>,
        session: Session<'_, impl FindToken>,
        log: &mut WideEvent,
    ) -> Result<Grant, Problem> {
        let grant = match (asked.access, self.auth) {
            (Access::Public | Access::Formed, _) => return Ok(Grant::all()),
            (Access::Admin, Auth::Off) if request.secret.is_none() => {
                return Err(forbidden(NO_EDITS));
            }
            (Access::Address, _) | (Access::Admin, Auth::Off) => {
                self.look_up(request, session, log).await?
            }
            // Anybody may read. An admin token also shows settings; any other token counts as no token.
            (Access::Read, Auth::Off) if request.secret.is_some() => {
                let known = self.look_up(request, session, log).await.ok();
                known.filter(Grant::may_edit).unwrap_or_else(|| Grant::without_token(self.auth))
            }
            _ => self.authenticate(request, session, log).await?,
        };

        grant.check(asked)?;
        Ok(grant)
    }

    /// Returns the permissions of the request's token. If `auth` requires no token, returns those of a request without
    /// a token, and looks nothing up. Unknown and revoked tokens are refused alike. If a token cannot be looked up, the
    /// error is the store's problem, and its causes are logged.
    pub async fn authenticate(
        &self,
        request: &Request,
        session: Session<'_, impl FindToken>,
        log: &mut WideEvent,
    ) -> Result<Grant, Problem> {
        if self.auth != Auth::On {
            return Ok(Grant::without_token(self.auth));
        }
        self.look_up(request, session, log).await
    }

    /// Looks up the request's token, even if `auth` requires none.
    async fn look_up(
        &self,
        request: &Request,
        session: Session<'_, impl FindToken>,
        log: &mut WideEvent,
    ) -> Result<Grant, Problem> {
        let secret = formed(request)?;
        let hash = TokenHash::of(secret.expose());
        let token = match self.tokens.get(&hash, session.now) {
            Some(token) => token,
            None => {
                let token = session.token(&hash).await?;
                self.tokens.keep(hash, token.clone(), session.now);
                token
            }
        };

        let known = token.filter(|token| token.hash == hash);
        if known.is_some() {
            log.set("token.id", hash.short());
        }

        let valid = known.filter(|token| token.revoked.is_none());
        let token = valid.ok_or_else(|| refused("The token is not valid."))?;
        log.set("token.scope", token.scope.name());
        if let Some(at) = token.expires.filter(|_| token.has_expired(session.now)) {
            return Err(refused(&format!("The token expired at {at}; create another one.")));
        }

        match token.scope {
            Scope::Admin if secret.is_in_address() => return Err(forbidden(ADMIN_IN_ADDRESS)),
            Scope::View(_) if secret.is_in_address() => return Err(forbidden(VIEW_IN_ADDRESS)),
            _ => {}
        }

        Ok(Grant { scope: Some(token.scope), token: Some(hash), is_anybody: false })
    }
}

/// The request's token, if it is well-formed.
fn formed(request: &Request) -> Result<&TokenSecret, Problem> {
    let secret = request.secret.as_ref().ok_or_else(|| {
        refused(
            "There is no token in the request; send the header \"Authorization: Bearer TOKEN\", with the \
             word Bearer.",
        )
    })?;
    check_token(secret.expose()).map_err(|why| refused(&why.to_string()))?;
    Ok(secret)
}

/// 401: there is no valid token.
fn refused(detail: &str) -> Problem {
    Problem::new(ProblemKind::Unauthorized, detail)
}

impl Grant {
    /// All permissions.
    const fn all() -> Self {
        Self { scope: None, token: None, is_anybody: false }
    }

    /// The permissions of a request without a token: to read and to store if `auth` is `Off`, else all.
    fn without_token(auth: Auth) -> Self {
        Self { is_anybody: auth == Auth::Off, ..Self::all() }
    }

    /// Whether edits are permitted, so that settings may be shown.
    pub const fn may_edit(&self) -> bool {
        match self.scope {
            None => !self.is_anybody,
            Some(Scope::Admin) => true,
            Some(_) => false,
        }
    }

    /// The token, if it was looked up.
    pub const fn token(&self) -> Option<&TokenHash> {
        self.token.as_ref()
    }

    /// Refuses a request that the permissions do not cover.
    pub fn check<'a>(&self, asked: impl Into<NeededAccess<'a>>) -> Result<(), Problem> {
        let NeededAccess { access, place } = asked.into();

        match (access, &self.scope) {
            (Access::Public | Access::Formed, _) => Ok(()),
            // Nothing else decides what a view token permits: answers are not filtered.
            (Access::Read, Some(Scope::View(view)))
                if place.is_some_and(|place| shows(view, place)) =>
            {
                Ok(())
            }
            (_, Some(Scope::View(view))) => {
                Err(forbidden(&format!("The token shows {view}, and nothing else.")))
            }
            (Access::Any, _)
            | (Access::Read | Access::Write | Access::Admin, None | Some(Scope::Admin))
            | (Access::Address, None)
            | (Access::Read, Some(Scope::Read))
            | (Access::Write | Access::Address, Some(Scope::Write(_))) => Ok(()),
            (Access::Read, Some(Scope::Write(_))) => {
                Err(forbidden("The token may only store readings."))
            }
            (Access::Write | Access::Address, Some(Scope::Read)) => {
                Err(forbidden("The token may only read."))
            }
            (Access::Address, Some(Scope::Admin)) => Err(forbidden(ADMIN_IN_ADDRESS)),
            (Access::Admin, Some(_)) => Err(forbidden("Only an admin token may edit.")),
        }
    }

    /// The limits of a write token; `None`: no limits.
    pub const fn writing(&self) -> Option<&WriteScope> {
        match &self.scope {
            Some(Scope::Write(scope)) => Some(scope),
            _ => None,
        }
    }
}

/// Whether the scope of a view token lists the room or the home.
fn shows(view: &ViewScope, place: PathPlace<'_>) -> bool {
    match place {
        PathPlace::Room(id) => id.parse().is_ok_and(|id: RoomId| view.rooms.contains(&id)),
        PathPlace::Home(id) => id.parse().is_ok_and(|id: HomeId| view.homes.contains(&id)),
    }
}

/// 403: authenticated, but not permitted.
pub fn forbidden(detail: &str) -> Problem {
    Problem::new(ProblemKind::Forbidden, detail)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api::gateway;
    use aws_lambda_events::event::apigw::ApiGatewayV2httpRequest;
    use domain::given::{at_second, home, room};
    use domain::token_of;
    use serde_json::json;
    use table::AddToken as _;
    use table::given::{invocation, secret, token};
    use table::memory_db::MemoryDb;

    use super::*;
    use crate::clock::{Clock as _, TestClock};

    #[test]
    fn each_scope_reaches_the_endpoints_that_it_is_for() {
        let write = || Scope::Write(["d".parse().expect("an id")].into());
        for (scope, permitted) in [
            (None, &[Access::Read, Access::Write, Access::Admin, Access::Address][..]),
            (Some(Scope::Admin), &[Access::Read, Access::Write, Access::Admin]),
            (Some(Scope::Read), &[Access::Read]),
            (Some(write()), &[Access::Write, Access::Address]),
            (Some(Scope::View(ViewScope::default())), &[]),
        ] {
            let grant = Grant { scope, ..Grant::all() };
            for access in [Access::Read, Access::Write, Access::Admin, Access::Address] {
                let result = grant.check(access).map_err(|problem| problem.kind);
                let expected =
                    if permitted.contains(&access) { Ok(()) } else { Err(ProblemKind::Forbidden) };
                assert_eq!(result, expected, "{grant:?} {access:?}");
            }
            assert!(grant.check(Access::Public).is_ok());
        }
    }

    #[test]
    fn a_view_token_permits_looks_at_its_own_rooms_and_homes_and_nothing_else() {
        let view = ViewScope { rooms: [room("hall")].into(), homes: [home("villa")].into() };
        let grant = Grant { scope: Some(Scope::View(view)), ..Grant::all() };
        let permits = |access, place| grant.check(NeededAccess { access, place }).is_ok();
        for (place, permitted) in [
            (None, false),
            (Some(PathPlace::Room("hall")), true),
            (Some(PathPlace::Home("villa")), true),
            (Some(PathPlace::Room("villa")), false),
            (Some(PathPlace::Home("hall")), false),
            (Some(PathPlace::Room("hal")), false),
            (Some(PathPlace::Room("hall2")), false),
            (Some(PathPlace::Room("hall/../attic")), false),
            (Some(PathPlace::Room("HALL")), false),
            (Some(PathPlace::Room("")), false),
        ] {
            assert_eq!(permits(Access::Read, place), permitted, "{place:?}");
            for access in [Access::Any, Access::Write, Access::Address, Access::Admin] {
                assert!(!permits(access, place), "{access:?} {place:?}");
            }
            assert!(permits(Access::Public, place));
        }
        let refused = grant.check(Access::Any).expect_err("refused").detail;
        assert_eq!(refused, "The token shows the room hall and the home villa, and nothing else.");
    }

    struct Bench {
        store: MemoryDb,
        clock: TestClock,
        authenticator: Authenticator,
    }

    impl Bench {
        async fn new(auth: Auth, tokens: &[Token]) -> Self {
            let (store, clock) = (MemoryDb::default(), TestClock::at(at_second(0)));
            for token in tokens {
                store.add_token(token, &invocation()).await.expect("memory");
            }
            Self { authenticator: Authenticator::new(auth), store, clock }
        }

        /// The kind and the words of a refusal, and how often the table was read.
        async fn ask(&self, secret: &str, access: Access) -> (Result<(), (u16, String)>, usize) {
            let mut event = json!(ApiGatewayV2httpRequest::default());
            event["headers"] = json!({"authorization": format!("Bearer {secret}")});
            let event = serde_json::from_value(event).expect("an event");
            let request = gateway::request(event).expect("a request");
            let before = self.store.calls().reads;
            let (invocation, mut log) = (invocation(), WideEvent::begin("test"));
            let session = Session::new(&self.store, &invocation, self.clock.now());
            let answer =
                self.authenticator.authorize(&request, access.into(), session, &mut log).await;
            let answer = answer.map(drop).map_err(|it| (it.kind.status(), it.detail));
            (answer, self.store.calls().reads - before)
        }
    }

    #[tokio::test]
    async fn what_cannot_be_a_token_is_refused_without_a_look_at_the_table() {
        let bench = Bench::new(Auth::On, &[]).await;
        let whole = token_of("0123456789abcdefghijklmnopqrstuvwxyzABCDE-_");
        let mistyped = whole.replace('c', "d");
        for (secret, expected, reads) in [
            ("", "There is no token", 0),
            ("x", "a token is rt_ with 43 or 49 characters after it", 0),
            (&whole[..30], "a token is rt_ with 43 or 49 characters after it", 0),
            (&mistyped, "mistyped or cut", 0),
            (&whole, "The token is not valid.", 1),
            (&secret("unknown"), "The token is not valid.", 1),
        ] {
            let (answer, read) = bench.ask(secret, Access::Read).await;
            let (status, detail) = answer.expect_err(secret);
            assert_eq!((status, read), (401, reads), "{secret}");
            assert!(detail.contains(expected), "{secret}: {detail}");
            assert!(secret.is_empty() || !detail.contains(secret), "{detail}");
        }
    }

    #[tokio::test]
    async fn a_token_ends_when_it_says_also_where_it_is_cached() {
        let token = Token { expires: Some(at_second(10)), ..token("read", Scope::Read) };
        let bench = Bench::new(Auth::On, &[token]).await;
        assert_eq!(bench.ask(&secret("read"), Access::Read).await, (Ok(()), 1));
        bench.clock.advance(Duration::from_millis(9_999));
        assert_eq!(bench.ask(&secret("read"), Access::Read).await, (Ok(()), 0), "cached");
        bench.clock.advance(Duration::from_millis(1));
        let (answer, read) = bench.ask(&secret("read"), Access::Read).await;
        let expected = "The token expired at 2026-01-11T16:00:10.000Z; create another one.";
        assert_eq!((answer, read), (Err((401, expected.to_owned())), 0));
    }

    #[tokio::test]
    async fn without_authentication_only_an_admin_edits_and_the_owner_of_a_laptop_does_all() {
        let tokens = [token("admin", Scope::Admin), token("read", Scope::Read)];
        let bench = Bench::new(Auth::Off, &tokens).await;
        for (name, access, status) in [
            ("", Access::Read, None),
            ("", Access::Write, None),
            ("", Access::Any, None),
            ("", Access::Admin, Some(403)),
            ("", Access::Address, Some(401)),
            ("unknown", Access::Admin, Some(401)),
            ("read", Access::Admin, Some(403)),
            ("admin", Access::Admin, None),
        ] {
            let (answer, _) = bench.ask(&secret(name), access).await;
            assert_eq!(answer.as_ref().err().map(|it| it.0), status, "{name} {access:?}");
            if (name, access) == ("", Access::Admin) {
                let (_, detail) = answer.expect_err("refused");
                assert!(detail.starts_with("Without authentication (Auth=off)"), "{detail}");
            }
        }
        let bench = Bench::new(Auth::Owner, &[]).await;
        for access in [Access::Read, Access::Write, Access::Admin] {
            assert_eq!(bench.ask("", access).await, (Ok(()), 0), "{access:?}");
        }
    }
}
