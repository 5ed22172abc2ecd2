//! `/annotations`: lists what people noted of times, keeps and deletes notes. No sum heeds them.

use api::json::{Members, string};
use api::{Problem, ProblemKind, Response};
use domain::{Annotated, Annotation, AnnotationId, DeviceId, HomeId, RoomId, Timestamp, excerpt};
use runtime::clock::Clock;
use runtime::http::Call;
use serde_json::json;
use serde_json::value::RawValue;
use table::{AnnotationPage, AnnotationQuery};

use crate::answer::cursor;
use crate::answer::page::RowPage;
use crate::answer::rows::{ANNOTATION_COLUMNS, AnnotationRow};
use crate::answer::sheet::Columns;
use crate::body;
use crate::handlers::Handlers;
use crate::ports::Store;
use crate::readings::ranges::open_range;
use crate::registry::lookup;

/// The largest body: more than the longest text takes.
const MAX_BODY: usize = 8 << 10;
/// More members than there are, so that the wrong one is named.
const MAX_MEMBERS: usize = 16;

/// `GET /annotations`
pub(crate) async fn list(
    _: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let query = query(call)?;
    let found = call.session.annotations(&query).await;
    let AnnotationPage { annotations, has_more } = found?;
    let Call { request, params, .. } = call;
    let query_fingerprint = params.query_fingerprint(request);
    let behind = |annotation: &Annotation| {
        cursor::encode_annotations(&query_fingerprint, query.range, &annotation.id)
    };
    let rest = annotations.last().filter(|_| has_more).map(behind);
    let rows: Vec<AnnotationRow<'_>> = annotations.iter().map(AnnotationRow::from).collect();
    let columns = || Columns { own: &ANNOTATION_COLUMNS, known: Vec::new() };
    let format = params.format(request);
    let behind = |row: usize| behind(&annotations[row]);
    Ok(RowPage::of(format, request, params).write(&rows, columns, rest, behind))
}

/// The page that a request asks for.
fn query(call: &Call<'_, impl Store>) -> Result<AnnotationQuery, Problem> {
    let Call { request, params, .. } = call;
    let device = params.parse::<DeviceId>("device")?.map(Annotated::Device);
    let room = params.parse::<RoomId>("room")?.map(Annotated::Room);
    let home = params.parse::<HomeId>("home")?.map(Annotated::Home);
    let about = one_of([("device", device), ("room", room), ("home", home)])?;
    let limit = params.limit();
    let (range, after) = match params.get("cursor") {
        Some(cursor) => {
            let fingerprint = params.query_fingerprint(request);
            let (range, after) = cursor::decode_annotations(&fingerprint, cursor)?;
            (range, Some(after))
        }
        None => (open_range(params, call.session.now)?, None),
    };
    Ok(AnnotationQuery { range, about, after, limit })
}

/// The one that is named of a device, a room and a home. Two are refused.
fn one_of(named: [(&str, Option<Annotated>); 3]) -> Result<Option<Annotated>, Problem> {
    let mut named = named.into_iter().filter_map(|(name, owner)| Some((name, owner?)));
    let first = named.next();
    if let (Some((first, _)), Some((second, _))) = (&first, named.next()) {
        return Err(Problem::field(second, format!("stands beside {first}; name one of them")));
    }
    Ok(first.map(|(_, about)| about))
}

/// `PUT /annotations/{id}`
pub(crate) async fn put(
    handlers: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let Handlers { registry, .. } = handlers;

    let annotation = {
        let text = body::text(call.request, MAX_BODY)?;
        parse(annotation_id(call)?, &text)?
    };
    match &annotation.about {
        Annotated::Device(id) => drop(lookup::device_of(id, registry, call).await?),
        Annotated::Room(id) => drop(lookup::room_of(id, registry, call).await?),
        Annotated::Home(id) => drop(lookup::rooms_of_home(id, registry, call).await?),
    }
    let put = call.session.put_annotation(&annotation).await;
    put?;
    Ok(Response::json(200, &AnnotationRow::from(&annotation)))
}

/// `DELETE /annotations/{id}`
pub(crate) async fn delete(
    _: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let id = annotation_id(call)?;
    let deleted = call.session.delete_annotation(&id).await;
    let deleted = usize::from(deleted?);
    Ok(Response::json(200, &json!({"deleted": deleted, "has_more": false, "left": 0})))
}

fn annotation_id(call: &Call<'_, impl Store>) -> Result<AnnotationId, Problem> {
    call.id.parse().map_err(|why| Problem::field("annotation_id", format!("{why}")))
}

/// Reads an annotation. `null` is as if it were not there.
fn parse(id: AnnotationId, text: &str) -> Result<Annotation, Problem> {
    let mut members = Members::parse(text, MAX_MEMBERS).map_err(|why| {
        let detail = format!("The body is no JSON object that describes an annotation: {why}.");
        Problem::new(ProblemKind::BadRequest, detail)
    })?;
    let mut take = |name: &str| members.take_non_null(name);
    let device = read(take("device"), "device", |id| id.parse().map(Annotated::Device))?;
    let room = read(take("room"), "room", |id| id.parse().map(Annotated::Room))?;
    let home = read(take("home"), "home", |id| id.parse().map(Annotated::Home))?;
    let to = read(take("to"), "to", Timestamp::parse_absolute)?;
    let text = read(take("text"), "text", str::parse)?;
    if let Some((name, _)) = members.into_iter().next() {
        let message =
            "unknown member; expected device, room or home, and text and to; the id has the begin";
        return Err(Problem::field(&excerpt(&name), message));
    }
    let about = one_of([("device", device), ("room", room), ("home", home)])?;
    let about = about.ok_or_else(|| Problem::field("device", "is needed, or room, or home"))?;
    let text = text.ok_or_else(|| Problem::field("text", "is needed"))?;
    if let Some(to) = to {
        Annotation::check_end(&id, to).map_err(|why| Problem::field("to", why.to_string()))?;
    }
    Ok(Annotation { id, to, about, text })
}

/// A string that is read by its type.
fn read<T, E: std::fmt::Display>(
    value: Option<&RawValue>,
    name: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, Problem> {
    let Some(value) = value else { return Ok(None) };
    let text = string(value).map_err(|why| Problem::field(name, why.to_string()))?;
    parse(&text).map(Some).map_err(|why| Problem::field(name, why.to_string()))
}
