//! The body of a request as text. Knows no member of it.

use std::borrow::Cow;

use api::{Problem, ProblemKind, Request};

/// The text of a body of JSON, inflated, of at most `max` bytes.
pub(crate) fn text(request: &Request, max: usize) -> Result<Cow<'_, str>, Problem> {
    let body = request.json_body()?;
    if body.len() > max {
        let detail = format!("The body is {} bytes long; at most {max} are taken.", body.len());
        return Err(Problem::new(ProblemKind::TooLarge, detail));
    }
    let text = match body {
        Cow::Borrowed(body) => std::str::from_utf8(body).ok().map(Cow::Borrowed),
        Cow::Owned(body) => String::from_utf8(body).ok().map(Cow::Owned),
    };
    text.ok_or_else(|| Problem::new(ProblemKind::BadRequest, "The body is not UTF-8."))
}
