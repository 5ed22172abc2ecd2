//! `POST /tokens`: makes a write token for one device, or a view token for rooms and homes. Revokes no token.

use std::collections::BTreeSet;

use api::{Problem, ProblemKind, Response, body};
use domain::{DeviceId, HomeId, Label, RoomId, Scope, Timestamp, Token, ViewScope, lifetime};
use runtime::new_token::NewToken;
use serde::{Deserialize, Serialize};

use crate::ports::Store;
use crate::shared_state::Call;

/// The maximum size of a body. A body with a hundred ids is smaller.
const MAX_BODY: usize = 32 << 10;

/// A new token as an admin describes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenBody {
    scope: ScopeName,
    device: Option<DeviceId>,
    rooms: Option<BTreeSet<RoomId>>,
    homes: Option<BTreeSet<HomeId>>,
    name: Option<Label>,
    expires: Option<String>,
}

/// The scopes of tokens that are made here; `roomtide token create` makes the others.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ScopeName {
    Write,
    View,
}

/// `POST /tokens`
pub(crate) async fn issue(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let now = call.session.now;

    let body: TokenBody = body::read(call.request, MAX_BODY)?;
    let new = NewToken { issued_by: call.grant.token().copied(), ..body.token()? };
    let (token, secret) = new.make(now).map_err(|error| {
        call.log.error("token.error", &error);
        Problem::new(ProblemKind::Internal, "No token can be made: there are no random bits.")
    })?;

    call.session.add_token(&token).await?;
    call.log.set("token.issued", token.hash.short());
    let response = Response::json(201, &Issued::of(&token, &secret));
    Ok(response.with("cache-control", "no-store"))
}

/// A new token, with its secret.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "IssuedToken", deny_unknown_fields))]
pub(crate) struct Issued<'a> {
    /// The secret, which is shown only here.
    token: &'a str,
    /// The id by which `roomtide token` lists and revokes the token.
    id: String,
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["write", "view"])))]
    scope: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<&'a DeviceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = domain::MAX_VIEWED)))]
    rooms: Option<&'a BTreeSet<RoomId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = domain::MAX_VIEWED)))]
    homes: Option<&'a BTreeSet<HomeId>>,
    name: Option<&'a Label>,
    created: Timestamp,
    expires: Option<Timestamp>,
}

impl<'a> Issued<'a> {
    fn of(token: &'a Token, secret: &'a str) -> Self {
        let (mut device, mut rooms, mut homes) = (None, None, None);
        match &token.scope {
            Scope::Write(scope) => device = scope.devices.only(),
            Scope::View(view) => (rooms, homes) = (Some(&view.rooms), Some(&view.homes)),
            Scope::Read | Scope::Admin => {}
        }

        Self {
            token: secret,
            id: token.hash.short(),
            scope: token.scope.name(),
            device,
            rooms,
            homes,
            name: token.name.as_ref(),
            created: token.created,
            expires: token.expires,
        }
    }
}

impl TokenBody {
    fn token(self) -> Result<NewToken, Problem> {
        let Self { scope, device, rooms, homes, name, expires } = self;
        let lifetime = expires.as_deref().map(lifetime).transpose();
        let lifetime = lifetime.map_err(|why| Problem::field("expires", why))?;

        let wrong = |field: &str, why: &str| Err(Problem::field(field, why));
        let scope = match (scope, device) {
            (ScopeName::Write, _) if rooms.is_some() => return wrong("rooms", "go with view"),
            (ScopeName::Write, _) if homes.is_some() => return wrong("homes", "go with view"),
            (ScopeName::Write, None) => {
                return wrong("device", "is needed: the one device of the token");
            }
            (ScopeName::Write, Some(device)) => Scope::Write([device].into()),
            (ScopeName::View, Some(_)) => return wrong("device", "goes with write"),
            (ScopeName::View, None) => {
                let view = ViewScope::new(rooms.unwrap_or_default(), homes.unwrap_or_default());
                let view = view.map_err(|why| Problem::field("rooms", why))?;
                if lifetime.is_none() {
                    return wrong("expires", "is needed: a view token is for a while, such as 30d");
                }
                Scope::View(view)
            }
        };
        Ok(NewToken { scope, name, lifetime, issued_by: None })
    }
}
