//! `/annotations`: lists, stores and deletes people's notes about times. Sums ignore the notes.

use api::{Problem, Response, body};
use domain::{Annotated, Annotation, AnnotationId, DeviceId, HomeId, Label, RoomId, Timestamp};
use serde::Deserialize;
use serde_json::json;
use table::{AnnotationQuery, Page};

use crate::answer::range_page::{self, RangeListPage};
use crate::answer::rows::{ANNOTATION_COLUMNS, AnnotationRow};
use crate::ports::Store;
use crate::readings::ranges::open_range;
use crate::registry::lookup;
use crate::shared_state::Call;

/// The maximum size of a body: more than the longest text needs.
const MAX_BODY: usize = 8 << 10;

/// An annotation as a person writes it. Its id contains its begin.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnnotationBody {
    device: Option<DeviceId>,
    room: Option<RoomId>,
    home: Option<HomeId>,
    text: Label,
    to: Option<String>,
}

/// `GET /annotations`
pub(crate) async fn list(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let query = query(call)?;
    let Page { items: annotations, has_more } = call.session.annotations(&query).await?;
    let rows: Vec<AnnotationRow<'_>> = annotations.iter().map(AnnotationRow::from).collect();
    let page = RangeListPage { range: query.range, own: &ANNOTATION_COLUMNS, has_more };
    Ok(page.write(call, &rows, |row| annotations[row].id.clone()))
}

/// The page that a request asks for.
fn query(call: &Call<'_, impl Store>) -> Result<AnnotationQuery, Problem> {
    let Call { request, params, .. } = call;
    let device = params.parse::<DeviceId>("device")?.map(Annotated::Device);
    let room = params.parse::<RoomId>("room")?.map(Annotated::Room);
    let home = params.parse::<HomeId>("home")?.map(Annotated::Home);
    let about = one_of([("device", device), ("room", room), ("home", home)])?;
    let (range, after) =
        range_page::begin(request, params, || open_range(params, call.session.now))?;
    Ok(AnnotationQuery { range, about, after, limit: params.limit() })
}

/// The device, room or home that is named, if any. Two names are refused.
fn one_of(named: [(&str, Option<Annotated>); 3]) -> Result<Option<Annotated>, Problem> {
    let mut named = named.into_iter().filter_map(|(name, owner)| Some((name, owner?)));
    let first = named.next();
    if let (Some((first, _)), Some((second, _))) = (&first, named.next()) {
        return Err(Problem::field(second, format!("stands beside {first}; name one of them")));
    }
    Ok(first.map(|(_, about)| about))
}

/// `PUT /annotations/{id}`
pub(crate) async fn put(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let body: AnnotationBody = body::read(call.request, MAX_BODY)?;
    let annotation = body.annotation(lookup::path_id(call)?)?;
    match &annotation.about {
        Annotated::Device(id) => drop(lookup::device_of(id, call).await?),
        Annotated::Room(id) => drop(lookup::room_of(id, call).await?),
        Annotated::Home(id) => drop(lookup::rooms_of_home(id, call).await?),
    }
    call.session.put_annotation(&annotation).await?;
    Ok(Response::json(200, &AnnotationRow::from(&annotation)))
}

/// `DELETE /annotations/{id}`
pub(crate) async fn delete(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let id = lookup::path_id(call)?;
    let deleted = usize::from(call.session.delete_annotation(&id).await?);
    Ok(Response::json(200, &json!({"deleted": deleted, "has_more": false, "left": 0})))
}

impl AnnotationBody {
    fn annotation(self, id: AnnotationId) -> Result<Annotation, Problem> {
        let device = self.device.map(Annotated::Device);
        let room = self.room.map(Annotated::Room);
        let home = self.home.map(Annotated::Home);
        let about = one_of([("device", device), ("room", room), ("home", home)])?;
        let about = about.ok_or_else(|| Problem::field("device", "is needed, or room, or home"))?;

        let end = |text: &str| {
            let to = Timestamp::parse_absolute(text).map_err(|why| why.to_string())?;
            Annotation::check_end(&id, to).map_err(|why| why.to_string())?;
            Ok(to)
        };
        let to = self.to.as_deref().map(end).transpose();
        let to = to.map_err(|why: String| Problem::field("to", why))?;
        Ok(Annotation { id, to, about, text: self.text })
    }
}
