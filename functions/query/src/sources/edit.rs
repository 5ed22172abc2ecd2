//! `GET /sources`, and `GET`, `PUT` and `DELETE /sources/{id}`. A secret is written and never read.

use api::endpoints::fetched_formats;
use api::{Problem, Response, body};
use domain::MemberError;
use polling::{PolledSource, SecretTexts};
use serde_json::{Map, Value, json};
use table::{SourceSecrets, StoredSource};

use super::rows::{SourceRow, SourceRows};
use super::{MAX_BODY, all, needed_secrets, source_id, warnings};
use crate::ports::Store;
use crate::registry::lookup::not_found;
use crate::saved::{contended, ensure_at_most};
use crate::shared_state::Call;

/// The maximum number of sources.
const MAX_SOURCES: usize = 20;

/// `GET /sources`
pub(crate) async fn list(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let stored = all(call).await?;
    let with_settings = call.grant.may_edit();
    let rows = stored.iter().map(|stored| SourceRow::of(stored, with_settings, call.session.now));

    let (mut data, mut damaged) = (Vec::new(), Vec::new());
    for (stored, row) in stored.iter().zip(rows) {
        match row {
            Ok(row) => data.push(row),
            Err(why) => damaged.push(format!("{}: {why}", stored.id)),
        }
    }
    Ok(Response::json(200, &SourceRows::new(data, damaged)))
}

/// `GET /sources/{id}`
pub(crate) async fn show(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let stored = known(call).await?;
    let row = SourceRow::of(&stored, call.grant.may_edit(), call.session.now)?;
    Ok(Response::json(200, &row))
}

/// `PUT /sources/{id}`: saves a source. Stored secrets that are not sent stay, if the request and the reader of its
/// answer are the same.
pub(crate) async fn put(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let id = source_id(&call.id)?;
    let mut members: Map<String, Value> = body::read(call.request, MAX_BODY)?;
    let secrets = SecretTexts::read(members.remove("secrets"))?;

    let stored = all(call).await?;
    let before = stored.iter().find(|stored| stored.id == id);
    let source = PolledSource::read(members, call.shared.reach)?;
    source.check_reader()?;
    ensure_format_is_read(&source)?;
    match before {
        Some(before) => before.ensure_same_kind(&source)?,
        None => ensure_at_most(MAX_SOURCES, "sources", stored.len() + 1)?,
    }

    let secrets = secrets_to_store(&source, secrets, before)?;
    let mut saved = StoredSource::new(id, before, &source, call.session.now);
    if let Some(secrets) = &secrets {
        saved.lacks_secrets = source.check_secrets(&secrets.texts).is_err();
    }

    if let Some(before) = before
        && secrets.is_none()
        && before.settings == saved.settings
    {
        return shown_saved(before, &source, call).await;
    }

    if !call.session.save_source(&saved, secrets.as_ref()).await? {
        return Err(contended("source"));
    }

    // Other requests may have saved sources at the same moment, so the number is checked again. The source stays saved
    // if the number cannot be read.
    if before.is_none()
        && let Ok(now) = all(call).await
        && let Err(too_many) = ensure_at_most(MAX_SOURCES, "sources", now.len())
    {
        call.session.delete_source(&saved.id).await?;
        return Err(too_many);
    }

    shown_saved(&saved, &source, call).await
}

/// Refuses payloads of a format that the function ingest does not read.
fn ensure_format_is_read(source: &PolledSource) -> Result<(), MemberError> {
    let Some(format) = source.format() else { return Ok(()) };
    let known: Vec<_> = fetched_formats().collect();
    if known.contains(&format) {
        return Ok(());
    }
    let why = format!("{format:?} is not known; expected one of {}", known.join(", "));
    Err(MemberError::of("format", why))
}

/// The secrets to store with a source. `None` if the stored secrets stay, because the request and the reader of its
/// answer are the same.
fn secrets_to_store(
    source: &PolledSource,
    given: Option<SecretTexts>,
    before: Option<&StoredSource>,
) -> Result<Option<SourceSecrets>, Problem> {
    if let Some(given) = given {
        source.check_secrets(&given)?;
        return Ok(Some(SourceSecrets::given_for(source, given)));
    }

    if before.is_some_and(|before| before.has_secrets_for(source)) {
        return Ok(None);
    }

    // A source that is restored from an export has no secrets at first. It is off until they are given.
    let has_none = before.is_none_or(|before| before.lacks_secrets);
    let is_restored = has_none && !source.is_on;
    if source.needed_secrets().is_empty() || is_restored {
        return Ok(Some(SourceSecrets::given_for(source, SecretTexts::default())));
    }

    let names = needed_secrets(source);
    let why = if has_none {
        format!("is missing; give {names}")
    } else {
        format!(
            "must be given again ({names}): the request, or what is read of its answer, is another one than that for which \
             they are stored"
        )
    };
    Err(MemberError::of("secrets", why).into())
}

/// A saved source, with its warnings.
async fn shown_saved(
    stored: &StoredSource,
    source: &PolledSource,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let warnings = warnings::of_saved(stored, source, call).await;
    let warnings = warnings.map_err(|failure| {
        let detail = format!("The source is saved, but not shown. {}", failure.detail);
        Problem { detail, ..failure }
    })?;
    let row = SourceRow::of(stored, true, call.session.now)?;
    Ok(Response::json(200, &row.with_warnings(warnings)))
}

/// `DELETE /sources/{id}`: deletes a source and its secrets. The readings stay.
pub(crate) async fn delete(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let stored = known(call).await?;
    call.session.delete_source(&stored.id).await?;
    Ok(Response::json(200, &json!({"deleted": 1, "has_more": false})))
}

/// The source that the request's path names.
async fn known(call: &mut Call<'_, impl Store>) -> Result<StoredSource, Problem> {
    let id = source_id(&call.id)?;
    let found = all(call).await?.into_iter().find(|stored| stored.id == id);
    found.ok_or_else(|| not_found("source", id.as_str()))
}
