//! `POST /tokens`: makes a write token of one device, or a token that shows rooms and homes. Lists and revokes none.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;

use api::json::{Members, WrongKind, string};
use api::{Problem, ProblemKind, Response};
use chrono::TimeDelta;
use domain::{
    DeviceId, HomeId, IdError, Label, RoomId, Scope, Timestamp, Token, ViewScope, excerpt, lifetime,
};
use runtime::clock::Clock;
use runtime::http::Call;
use runtime::new_token::NewToken;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::body;
use crate::handlers::Handlers;
use crate::ports::Store;

/// The largest body: more than a hundred ids take.
const MAX_BODY: usize = 32 << 10;
/// More members than there are, so that the wrong one is named.
const MAX_MEMBERS: usize = 16;

/// `POST /tokens`
pub(crate) async fn issue(
    _: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let now = call.session.now;

    let text = body::text(call.request, MAX_BODY)?;
    let new = NewToken { issued_by: call.grant.token().copied(), ..parse(&text)? };
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
struct Issued<'a> {
    token: &'a str,
    id: String,
    scope: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<&'a DeviceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rooms: Option<&'a BTreeSet<RoomId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
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

/// Reads what is to be made. `null` is as if it were not there.
fn parse(text: &str) -> Result<NewToken, Problem> {
    let mut members = Members::parse(text, MAX_MEMBERS).map_err(|why| {
        let detail = format!("The body is no JSON object that describes a token: {why}.");
        Problem::new(ProblemKind::BadRequest, detail)
    })?;
    let mut take = |name: &str| members.take_non_null(name);
    let scope =
        take("scope").map(|value| read(value, "scope", |scope| Ok::<_, IdError>(scope.to_owned())));
    let device = take("device").map(|value| read(value, "device", str::parse::<DeviceId>));
    let rooms = take("rooms").map(|value| ids::<RoomId>(value, "rooms")).transpose()?;
    let homes = take("homes").map(|value| ids::<HomeId>(value, "homes")).transpose()?;
    let name = take("name").map(|value| read(value, "name", str::parse::<Label>)).transpose()?;
    let lifetime = take("expires").map(|value| read(value, "expires", lifetime)).transpose()?;
    if let Some((name, _)) = members.into_iter().next() {
        let message = "unknown member; expected scope, device, rooms, homes, name and expires";
        return Err(Problem::field(&excerpt(&name), message));
    }
    let scope = match scope.transpose()?.as_deref() {
        Some("write") if rooms.is_some() => return Err(Problem::field("rooms", "go with view")),
        Some("write") if homes.is_some() => return Err(Problem::field("homes", "go with view")),
        Some("write") => {
            let missing = || Problem::field("device", "is needed: the one device of the token");
            Scope::Write([device.transpose()?.ok_or_else(missing)?].into())
        }
        Some("view") if device.is_some() => {
            return Err(Problem::field("device", "goes with write"));
        }
        Some("view") => view(rooms, homes, lifetime)?,
        other => {
            let given =
                other.map_or("is needed".to_owned(), |value| format!("is {:?}", excerpt(value)));
            let message =
                format!("{given}; expected write or view: roomtide token create makes the others");
            return Err(Problem::field("scope", message));
        }
    };
    Ok(NewToken { scope, name, lifetime, issued_by: None })
}

fn view(
    rooms: Option<BTreeSet<RoomId>>,
    homes: Option<BTreeSet<HomeId>>,
    lifetime: Option<TimeDelta>,
) -> Result<Scope, Problem> {
    let view = ViewScope::new(rooms.unwrap_or_default(), homes.unwrap_or_default());
    let view = view.map_err(|why| Problem::field("rooms", format!("{why}")))?;
    if lifetime.is_none() {
        let message = "is needed: a view token is for a while, such as 30d";
        return Err(Problem::field("expires", message));
    }
    Ok(Scope::View(view))
}

/// Parses the text of a JSON string. The problem names the field.
fn read<T, E: Display>(
    value: &RawValue,
    name: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<T, Problem> {
    let text = string(value).map_err(|why| Problem::field(name, why.to_string()))?;
    parse(&text).map_err(|why| Problem::field(name, why.to_string()))
}

/// Ids in an array.
fn ids<T: FromStr<Err = IdError> + Ord>(
    value: &RawValue,
    name: &str,
) -> Result<BTreeSet<T>, Problem> {
    let ids: Vec<&RawValue> = serde_json::from_str(value.get())
        .map_err(|_| Problem::field(name, WrongKind::of(value, "an array of ids").to_string()))?;
    let id = |(n, id): (usize, &RawValue)| read(id, &format!("{name}[{n}]"), str::parse);
    ids.into_iter().enumerate().map(id).collect()
}
