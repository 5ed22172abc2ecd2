//! The one table of routes: what the template deploys, the functions answer and the `OpenAPI` document lists.

use super::{Problem, ProblemKind, Request};

/// Which function answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// `functions/ingest`
    Ingest,
    /// `functions/query`
    Query,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is described by its route's summary")]
pub enum Operation {
    PostReadings,
    ListDevices,
    ShowDevice,
    EditDevice,
    DeviceReadings,
    DeviceLatest,
    ListRooms,
    ShowRoom,
    EditRoom,
    RoomDevices,
    RoomReadings,
    RoomLatest,
    Health,
    OpenApi,
}

impl Operation {
    /// The parameters of its query. Any other is refused.
    #[must_use]
    pub const fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::ListDevices => &["room", "latest", "limit", "cursor", "format"],
            Self::RoomDevices => &["latest", "limit", "cursor", "format"],
            Self::ListRooms | Self::RoomLatest => &["limit", "cursor", "format"],
            Self::DeviceReadings | Self::RoomReadings => {
                &["from", "to", "order", "metrics", "limit", "cursor", "format"]
            }
            Self::PostReadings => &["merge", "rooms"],
            Self::ShowDevice
            | Self::EditDevice
            | Self::DeviceLatest
            | Self::ShowRoom
            | Self::EditRoom
            | Self::Health
            | Self::OpenApi => &[],
        }
    }
}

/// A method and a path with at most one parameter, `{id}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// `GET`, `POST` or `PATCH`; what answers `GET` answers `HEAD` as well.
    pub method: &'static str,
    /// The path, as the template and `OpenAPI` write it.
    pub path: &'static str,
    /// What it does.
    pub operation: Operation,
    /// Who answers it.
    pub function: Function,
    /// One line for people.
    pub summary: &'static str,
}

impl Route {
    /// The methods that it answers: what can be got can be asked for its headers alone.
    pub fn methods(&self) -> impl Iterator<Item = &'static str> {
        [self.method].into_iter().chain((self.method == "GET").then_some("HEAD"))
    }
}

const fn route(
    method: &'static str,
    path: &'static str,
    operation: Operation,
    summary: &'static str,
) -> Route {
    let function = match operation {
        Operation::PostReadings => Function::Ingest,
        _ => Function::Query,
    };
    Route { method, path, operation, function, summary }
}

/// All routes.
pub const ROUTES: &[Route] = &[
    route("POST", "/readings", Operation::PostReadings, "Store readings"),
    route("GET", "/devices", Operation::ListDevices, "List the devices"),
    route("GET", "/devices/{id}", Operation::ShowDevice, "Show a device"),
    route(
        "PATCH",
        "/devices/{id}",
        Operation::EditDevice,
        "Edit a device's name, room, kind, tags and metrics",
    ),
    route(
        "GET",
        "/devices/{id}/readings",
        Operation::DeviceReadings,
        "A device's readings in a time range",
    ),
    route(
        "GET",
        "/devices/{id}/latest",
        Operation::DeviceLatest,
        "A device's newest value of each metric",
    ),
    route("GET", "/rooms", Operation::ListRooms, "List the rooms"),
    route("GET", "/rooms/{id}", Operation::ShowRoom, "Show a room"),
    route("PATCH", "/rooms/{id}", Operation::EditRoom, "Edit a room's name"),
    route("GET", "/rooms/{id}/devices", Operation::RoomDevices, "List the devices in a room"),
    route(
        "GET",
        "/rooms/{id}/readings",
        Operation::RoomReadings,
        "A room's readings in a time range, its devices merged in time order",
    ),
    route(
        "GET",
        "/rooms/{id}/latest",
        Operation::RoomLatest,
        "The newest values of a room's devices",
    ),
    route("GET", "/health", Operation::Health, "Whether the system answers"),
    route("GET", "/openapi.json", Operation::OpenApi, "This API as an OpenAPI 3.1 document"),
];

/// A request's route and its `{id}`, decoded; empty where the path has none.
pub fn find(request: &Request) -> Result<(&'static Route, String), Problem> {
    find_path(&request.method, &request.path)
}

/// See [`find`].
pub fn find_path(method: &str, path: &str) -> Result<(&'static Route, String), Problem> {
    let matching: Vec<_> =
        ROUTES.iter().filter_map(|route| Some((route, parameter(route.path, path)?))).collect();
    let asked = format!("{method} {}", domain::excerpt(path));
    if matching.is_empty() {
        let detail = format!("There is no {asked}; /openapi.json lists what there is.");
        return Err(Problem::new(ProblemKind::NotFound, detail));
    }
    let methods: Vec<_> = matching.iter().flat_map(|(route, _)| route.methods()).collect();
    let answers = |route: &Route| route.methods().any(|known| known == method);
    matching.into_iter().find(|(route, _)| answers(route)).ok_or_else(|| {
        let detail = format!("There is no {asked}; on this path: {}.", methods.join(", "));
        Problem { allowed: methods, ..Problem::new(ProblemKind::MethodNotAllowed, detail) }
    })
}

fn parameter(template: &str, path: &str) -> Option<String> {
    let mut found = String::new();
    let mut segments = path.trim_end_matches('/').split('/');
    for expected in template.split('/') {
        let segment = segments.next()?;
        if expected == "{id}" {
            let decoded = percent_encoding::percent_decode_str(segment).decode_utf8_lossy();
            found = decoded.into_owned();
        } else if expected != segment {
            return None;
        }
    }
    segments.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(method: &str, path: &str) -> Result<(Operation, String), u16> {
        find_path(method, path)
            .map(|(route, id)| (route.operation, id))
            .map_err(|problem| problem.kind.status())
    }

    #[test]
    fn a_path_has_one_route_and_an_id() {
        assert_eq!(found("GET", "/devices"), Ok((Operation::ListDevices, String::new())));
        assert_eq!(found("GET", "/devices/"), Ok((Operation::ListDevices, String::new())));
        assert_eq!(found("GET", "/devices/a%3Ab"), Ok((Operation::ShowDevice, "a:b".into())));
        assert_eq!(found("GET", "/rooms/r/latest"), Ok((Operation::RoomLatest, "r".into())));
        assert_eq!(found("HEAD", "/rooms/r/latest"), Ok((Operation::RoomLatest, "r".into())));
        assert_eq!(
            found("PATCH", "/devices/readings"),
            Ok((Operation::EditDevice, "readings".into()))
        );
    }

    #[test]
    fn everything_else_is_not_found_or_not_allowed() {
        assert_eq!(found("GET", "/"), Err(404));
        assert_eq!(found("GET", "/devices/x/y"), Err(404));
        assert_eq!(found("GET", "/devices/x/readings/y"), Err(404));
        assert_eq!(found("GET", "/readings"), Err(405));
        assert_eq!(found("HEAD", "/readings"), Err(405));
        assert_eq!(found("DELETE", "/devices/x"), Err(405));
    }
}
