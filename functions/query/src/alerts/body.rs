//! The bodies of requests about alerts: objects of JSON of a bounded size. Knows no member.

use ::alerts::MemberError;
use api::json::{Members, MembersError};
use api::{Problem, ProblemKind, Request};
use serde_json::{Map, Value};

/// The largest body, inflated.
const MAX_BODY: usize = 64 << 10;
/// More members than a rule has, so that the wrong one is named.
const MAX_MEMBERS: usize = 64;

/// The members of a request's body; without a body there are none.
pub(crate) fn object(request: &Request) -> Result<Map<String, Value>, Problem> {
    let body = request.json_body()?;
    if body.len() > MAX_BODY {
        let detail =
            format!("The body is {} bytes long; at most {MAX_BODY} are taken.", body.len());
        return Err(Problem::new(ProblemKind::TooLarge, detail));
    }
    if body.is_empty() {
        return Ok(Map::new());
    }
    let bad = |detail: String| Problem::new(ProblemKind::BadRequest, detail);
    let text = std::str::from_utf8(&body).map_err(|_| bad("The body is not UTF-8.".to_owned()))?;
    members(text).map_err(|why| bad(format!("The body is no JSON object: {why}.")))
}

/// The members of an object, none of them twice.
fn members(text: &str) -> Result<Map<String, Value>, MembersError> {
    let read = |(name, value): (std::borrow::Cow<'_, str>, &serde_json::value::RawValue)| {
        let value = serde_json::from_str(value.get()).map_err(MembersError::Syntax)?;
        Ok((name.into_owned(), value))
    };
    Members::parse(text, MAX_MEMBERS)?.into_iter().map(read).collect()
}

/// Refuses members that nobody asked for.
pub(crate) fn only(members: &Map<String, Value>, known: &[&str]) -> Result<(), Problem> {
    let unknown = members.keys().find(|name| !known.contains(&name.as_str()));
    unknown.map_or(Ok(()), |name| {
        let expected = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let message = format!("unknown member; expected {expected}");
        Err(Problem::field(&domain::excerpt(name), message))
    })
}

/// The problem of a member.
pub(crate) fn wrong(error: MemberError) -> Problem {
    Problem::field(&error.field, error.why)
}

/// A member that is a string.
pub(crate) fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Result<&'a str, Problem> {
    match members.get(name) {
        Some(value) => value.as_str().ok_or_else(|| Problem::field(name, "must be a string")),
        None => Err(Problem::field(name, "is missing")),
    }
}

/// A member that is read by its type.
pub(crate) fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
    members: &Map<String, Value>,
    name: &str,
) -> Result<T, Problem> {
    text(members, name)?.parse().map_err(|why: T::Err| Problem::field(name, why.to_string()))
}
