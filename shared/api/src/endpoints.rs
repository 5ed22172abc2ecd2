//! The one table of endpoints: routing, authentication, parameters, the `OpenAPI` document and the template's
//! test read it. Answers nothing.

use super::dialect::PREFIX;
use super::{Dialect, Problem, ProblemKind, Request};

/// Which function answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// `functions/ingest`
    Ingest,
    /// `functions/query`
    Query,
}

impl Function {
    /// The name of its package and of its log events.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Query => "query",
        }
    }
}

/// Which handler answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is described by its endpoint's summary")]
pub enum Operation {
    PostReadings,
    /// A payload that devices send by themselves, by the name of the operation; `ingest` has a row for each.
    Payload(&'static str),
    WriteLines,
    ListDevices,
    ShowDevice,
    EditDevice,
    DeleteDevice,
    DeviceReadings,
    DeleteReadings,
    DeviceLatest,
    DeviceStays,
    DeviceSeries,
    DeviceEnergy,
    DeviceEvents,
    DeviceConditions,
    ListRooms,
    ShowRoom,
    EditRoom,
    DeleteRoom,
    RoomDevices,
    RoomReadings,
    RoomStays,
    RoomSeries,
    RoomEnergy,
    ListHomes,
    ShowHome,
    DeleteHome,
    HomeRooms,
    HomeDevices,
    RoomConditions,
    HomeSeries,
    HomeEnergy,
    HomeConditions,
    ListAnnotations,
    PutAnnotation,
    DeleteAnnotation,
    IssueToken,
    ShowConditionsSchema,
    PutConditionsSchema,
    ListAlerts,
    ShowAlert,
    PutAlert,
    DeleteAlert,
    AlertHistory,
    PauseAlert,
    AcknowledgeAlert,
    AcknowledgeByLink,
    PreviewAlert,
    ListChannels,
    ShowChannel,
    PutChannel,
    DeleteChannel,
    TestChannel,
    AllSeries,
    AllEnergy,
    InfluxQl,
    Mcp,
    Health,
    OpenApi,
    InfluxPing,
    InfluxReady,
    InfluxBuckets,
    InfluxOrgs,
    InfluxFlux,
    WebPage,
    WebFile,
}

impl Operation {
    /// Its name in the document of the API.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Payload(name) => name.to_owned(),
            other => format!("{other:?}"),
        }
    }
}

/// Whose token permits a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// No token is needed.
    Public,
    /// A text that may be a token; nobody looks whether it is one. What is answered is the same for all.
    Formed,
    /// Any valid token.
    Any,
    /// A token that reads, or an admin's; what only looks at one room or home, also a token that shows it.
    Read,
    /// A token that writes for some devices, or an admin's.
    Write,
    /// A token that writes for some devices, also where no other request needs one: the readings are in the
    /// address, so a picture in any web page could write them. A page's own requests are refused.
    Address,
    /// An admin's token.
    Admin,
}

/// The room or home of a path, by its id as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// A room.
    Room(&'a str),
    /// A home.
    Home(&'a str),
}

/// A parameter of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// The values that it takes.
    pub kind: Kind,
    /// One line for people.
    pub description: &'static str,
}

/// The values that a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A timestamp, absolute or relative.
    Timestamp,
    /// The id of a device or a room.
    Id,
    /// Names of metrics, separated by commas.
    Metrics,
    /// A cursor of the page before.
    Cursor,
    /// `true` or `1`, `false` or `0`; `false` without it.
    Flag,
    /// The name of a time zone of the IANA database.
    Zone,
    /// A whole number from 1.
    Count {
        /// The value without the parameter.
        default: usize,
        /// The largest value.
        max: usize,
    },
    /// One of several words.
    Choice {
        /// The words.
        of: &'static [&'static str],
        /// The value without the parameter.
        default: Option<&'static str>,
    },
    /// Some of several words, separated by commas.
    Words {
        /// The words.
        of: &'static [&'static str],
    },
    /// A form of an answer; `Accept` decides without it.
    Format,
    /// An age such as `2h`.
    Age,
    /// A word, which the handler reads.
    Word,
    /// A text in any case, or the beginning of one with `*` behind it. The parameter may be repeated.
    Like,
    /// A condition such as `firmware=1.4`. The parameter may be repeated.
    Where,
    /// Any number of parameters, each the name of a metric with the values that are wanted. A metric that
    /// has the name of a parameter of any endpoint is written with [`METRIC_PREFIX`].
    Conditions,
    /// Any number of parameters, each a name that the format knows with a measured value.
    Values,
}

impl Kind {
    /// Tells whether a parameter of this kind may be given several times.
    #[must_use]
    pub const fn is_repeatable(self) -> bool {
        matches!(self, Self::Like | Self::Where)
    }
}

/// What stands before a metric's name where a parameter has the same name. No metric's name has a dot.
pub const METRIC_PREFIX: &str = "metric.";

/// The body of a successful answer, by the name of its schema in the `OpenAPI` document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// One object.
    One(&'static str),
    /// One object that the request has made.
    Made(&'static str),
    /// A page of a list, in JSON, NDJSON or CSV.
    Page(&'static str),
    /// Rows and what is to be said of them, in JSON; the rows alone in NDJSON or CSV.
    Rows(&'static str),
    /// What became of the readings of a request.
    Receipt(&'static str),
    /// How far a deletion is that takes several requests.
    Progress(&'static str),
    /// As InfluxDB answers.
    Influx,
    /// A message of JSON-RPC, which may tell of a failure; no body where none is wanted.
    Message(&'static str),
    /// A file of the web page, in one of these media types.
    File(&'static [&'static str]),
}

/// A method and a path with at most one parameter, `{id}`, and all that is decided by them alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`; see [`methods`](Self::methods).
    pub method: &'static str,
    /// The path, as the template and `OpenAPI` write it.
    pub path: &'static str,
    /// Which handler answers.
    pub operation: Operation,
    /// Which function answers.
    pub function: Function,
    /// Whose token permits it.
    pub access: Access,
    /// The parameters of its query. Any other is refused.
    pub parameters: &'static [Parameter],
    /// The schema of the request's body, if it takes one.
    pub body: Option<&'static str>,
    /// The answer.
    pub reply: Reply,
    /// One line for people.
    pub summary: &'static str,
}

impl Endpoint {
    /// The methods that it answers: `HEAD` beside a `GET` that changes nothing.
    pub fn methods(&self) -> impl Iterator<Item = &'static str> {
        let has_head = self.method == "GET" && self.access != Access::Address;
        [self.method].into_iter().chain(has_head.then_some("HEAD"))
    }

    /// The version of InfluxDB whose endpoint it is.
    #[must_use]
    pub fn dialect(&self) -> Option<Dialect> {
        Dialect::of(self.path)
    }

    /// Tells whether its query names metrics with their values.
    #[must_use]
    pub fn takes_conditions(&self) -> bool {
        self.parameters.iter().any(|parameter| parameter.kind == Kind::Conditions)
    }

    /// Tells whether its query holds a reading.
    #[must_use]
    pub fn takes_values(&self) -> bool {
        self.parameters.iter().any(|parameter| parameter.kind == Kind::Values)
    }

    /// Whose token permits a request of it to a function. The details of the system's health are for those who may
    /// read; what writers ask first is answered without the table where they write.
    #[must_use]
    pub fn access_of(&self, request: &Request, function: Function) -> Access {
        let is_set = |(name, value): &(String, String)| {
            name == DETAILS && matches!(value.as_str(), "true" | "1")
        };
        match (self.operation, self.access) {
            (Operation::Health, _)
                if self.function == function && request.query().iter().any(is_set) =>
            {
                Access::Read
            }
            (_, Access::Any) if self.function != function => Access::Formed,
            (_, access) => access,
        }
    }

    /// Tells whether clients of InfluxDB ask it before they write, so that it is answered where they write.
    const fn is_asked_by_writers(&self) -> bool {
        matches!(
            self.operation,
            Operation::InfluxPing
                | Operation::InfluxReady
                | Operation::InfluxBuckets
                | Operation::InfluxOrgs
                | Operation::InfluxQl
                | Operation::Health
        )
    }

    /// What its path names by its id.
    #[must_use]
    pub fn subject(&self) -> &'static str {
        match self.path.split('/').nth(1) {
            Some("devices") => "device",
            Some("rooms") => "room",
            Some("homes") => "home",
            Some("alerts") => "rule",
            Some("annotations") => "annotation",
            Some("channels") => "channel",
            _ => "id",
        }
    }

    /// The room or home that a request of it only looks at, which a token may be limited to.
    #[must_use]
    pub fn looks_at<'a>(&self, id: &'a str) -> Option<Place<'a>> {
        let only_looks = self.method == "GET" && self.access == Access::Read && self.has_id();
        match self.subject() {
            "room" if only_looks => Some(Place::Room(id)),
            "home" if only_looks => Some(Place::Home(id)),
            _ => None,
        }
    }

    /// Tells whether its path names a device, a room, a home, an annotation, a rule or a channel.
    #[must_use]
    pub fn has_id(&self) -> bool {
        self.path.contains("{id}")
    }
}

const fn parameter(name: &'static str, kind: Kind, description: &'static str) -> Parameter {
    Parameter { name, kind, description }
}

const CURSOR: Parameter = parameter("cursor", Kind::Cursor, "next_cursor of the page before");
const FORMAT: Parameter =
    parameter("format", Kind::Format, "The form of the answer; Accept works as well");
const LATEST: Parameter = parameter("latest", Kind::Flag, "Adds the newest values");
const ENTRIES: Parameter = limit(100, 1_000);
const READINGS: Parameter = limit(1_000, 10_000);

const fn limit(default: usize, max: usize) -> Parameter {
    let description = "The largest number of entries of a page; a page has fewer if they are large";
    parameter("limit", Kind::Count { default, max }, description)
}

/// A page of a list.
const PAGE: &[Parameter] = &[ENTRIES, CURSOR, FORMAT];

/// A page of devices.
const DEVICES: &[Parameter] = &[
    parameter("room", Kind::Id, "Only devices in this room"),
    parameter("name", Kind::Like, "Only devices of this name, or whose name begins with it: kit*"),
    parameter(
        "kind",
        Kind::Like,
        "Only devices of this kind, or whose kind begins with it: thermo*",
    ),
    parameter(
        "tag",
        Kind::Like,
        "Only devices with this tag, or a tag that begins with it; if repeated, with all of them",
    ),
    parameter(
        "where",
        Kind::Where,
        "Only devices that meet the condition, if repeated all of them: the name of an attribute or of a \
         metric, one of = < <= > >=, and a value, such as firmware=1.4",
    ),
    parameter(
        "silent",
        Kind::Age,
        "Only devices whose newest reading is older than this, such as 2h",
    ),
    LATEST,
    EXPLAIN,
    ENTRIES,
    CURSOR,
    FORMAT,
];

/// A page of a room's or a home's devices.
const SOME_DEVICES: &[Parameter] = &[LATEST, ENTRIES, CURSOR, FORMAT];

/// A page of readings in a range of time.
const RANGE: &[Parameter] = &[
    FROM,
    TO,
    parameter(
        "order",
        Kind::Choice { of: &["asc", "desc"], default: Some("asc") },
        "Oldest or newest first",
    ),
    parameter("metrics", Kind::Metrics, "Only these metrics, each once, separated by commas"),
    READINGS,
    CURSOR,
    FORMAT,
];

/// The edit of a device.
const RESTORE: &[Parameter] = &[parameter(
    "restore",
    Kind::Flag,
    "Sets verdicts without checking their steps, whose readings may come later or be gone",
)];

/// A deletion that takes several requests.
const BEGUN: &[Parameter] = &[parameter(
    "begun",
    Kind::Timestamp,
    "Continues the deletion whose answer had this value, and begins no other",
)];

/// A page of stays.
const STAYS: &[Parameter] = &[
    parameter("from", Kind::Timestamp, "Only stays that end after it"),
    parameter("to", Kind::Timestamp, "Only stays that begin before it"),
    ENTRIES,
    CURSOR,
    FORMAT,
];

/// A page of annotations.
const ANNOTATIONS: &[Parameter] = &[
    parameter("from", Kind::Timestamp, "Only annotations that end after it"),
    parameter("to", Kind::Timestamp, "Only annotations that begin before it"),
    parameter("device", Kind::Id, "Only annotations of this device"),
    parameter("room", Kind::Id, "Only annotations of this room itself"),
    parameter("home", Kind::Id, "Only annotations of this home itself"),
    ENTRIES,
    CURSOR,
    FORMAT,
];

/// A page of what was told.
const TOLD: &[Parameter] = &[
    parameter("from", Kind::Timestamp, "Only messages that were told at it or after"),
    parameter("to", Kind::Timestamp, "Only messages that were told before it"),
    ENTRIES,
    CURSOR,
    FORMAT,
];

/// The functions of a series, by name.
pub const FUNCTIONS: &[&str] =
    &["mean", "min", "max", "sum", "count", "first", "last", "time_mean", "increase"];

/// The units of a series' rows.
pub const UNITS: &[&str] = &["1m", "5m", "15m", "30m", "1h", "6h", "1d", "1w", "1mo", "1y"];

const FROM: Parameter =
    parameter("from", Kind::Timestamp, "The start of the range; by default 24 hours before to");
const TO: Parameter = parameter(
    "to",
    Kind::Timestamp,
    "The end of the range, which is not part of it; by default now",
);
const EVERY: Parameter = parameter(
    "every",
    Kind::Choice { of: UNITS, default: None },
    "One row for each unit of the calendar; by default one exact total of the range",
);
const ZONE: Parameter =
    parameter("tz", Kind::Zone, "The time zone of the rows; by default the home's");
const METRIC: Parameter =
    parameter("metric", Kind::Metrics, "Only these metrics, each once, separated by commas");
const ENERGY_METRIC: Parameter = parameter(
    "metric",
    Kind::Metrics,
    "The metric of the energy; by default the device's counters of energy",
);
const FUNCTION: Parameter = parameter(
    "fn",
    Kind::Words { of: FUNCTIONS },
    "The values of a row; by default mean,min,max,count, for counters increase,count",
);
const DEVICES_APART: Parameter = parameter("devices", Kind::Flag, "Rows for each device");
const EVENTS: Parameter = parameter("events", Kind::Flag, "Adds the notable steps of counters");
const EXPLAIN: Parameter =
    parameter("explain", Kind::Flag, "Adds the plan of the answer and its cost");

const BY_ROOMS: Parameter =
    parameter("rooms", Kind::Flag, "Rows for each room, combined of its devices");

/// A series of one device.
const SERIES: &[Parameter] = &[FROM, TO, EVERY, ZONE, METRIC, FUNCTION, EXPLAIN, FORMAT];
/// A series of several devices.
const SHARED_SERIES: &[Parameter] =
    &[FROM, TO, EVERY, ZONE, METRIC, FUNCTION, DEVICES_APART, EXPLAIN, FORMAT];
/// A series of several rooms.
const SERIES_OF_ROOMS: &[Parameter] =
    &[FROM, TO, EVERY, ZONE, METRIC, FUNCTION, DEVICES_APART, BY_ROOMS, EXPLAIN, FORMAT];
/// The energy of one device.
const ENERGY: &[Parameter] = &[FROM, TO, EVERY, ZONE, ENERGY_METRIC, EVENTS, EXPLAIN, FORMAT];
/// The energy of several devices.
const SHARED_ENERGY: &[Parameter] =
    &[FROM, TO, EVERY, ZONE, ENERGY_METRIC, DEVICES_APART, EVENTS, EXPLAIN, FORMAT];
/// What was notable.
const NOTABLE: &[Parameter] = &[FROM, TO, METRIC, FORMAT];
/// Conditions on the metrics of a device or of the devices of a room.
const CONDITIONS: &[Parameter] = &[
    FROM,
    TO,
    parameter(
        "conditions",
        Kind::Conditions,
        "Each metric with its values, both ends inside: temperature=28..&humidity=70..90; \
         metric.from=..5 for a metric with the name of a parameter",
    ),
    parameter("exact", Kind::Flag, "Refines the episodes by readings, where readings are kept"),
    EXPLAIN,
    FORMAT,
];
/// The readings to delete.
const DELETION: &[Parameter] = &[
    parameter("from", Kind::Timestamp, "The start of the range; required"),
    parameter("to", Kind::Timestamp, "The end of the range, which is not part of it; required"),
];
/// The health of the system.
const HEALTH: &[Parameter] = &[parameter(
    DETAILS,
    Kind::Flag,
    "Adds how far the rollups reach, and their time zone; needs a token that reads",
)];
/// The parameter of the health that asks for more than everybody may know.
const DETAILS: &str = "details";

/// The parameters of storing line protocol, of every version.
const LINES: &[Parameter] = &[
    parameter("precision", Kind::Word, "The unit of the timestamps"),
    parameter("accept_partial", Kind::Word, "false stores nothing if a line is refused"),
    parameter("device_tags", Kind::Word, "The tags that identify a device"),
    parameter("room_tag", Kind::Word, "The tag that names a room"),
];

/// The parameters of InfluxQL, in the address or in a form.
const INFLUXQL: &[Parameter] = &[
    parameter("q", Kind::Word, "The statements, separated by semicolons"),
    parameter(
        "db",
        Kind::Word,
        "Any name, because readings are in no database; required except for SHOW DATABASES",
    ),
    parameter("rp", Kind::Word, "Any name: there is one retention policy"),
    parameter("epoch", Kind::Word, "ns, u, ms, s, m or h: times as numbers; by default RFC 3339"),
    parameter("params", Kind::Word, "A JSON object with the values of $name in the statements"),
    parameter("pretty", Kind::Word, "true indents the answer"),
];

/// The parameters of storing readings.
const STORING: &[Parameter] = &[
    parameter(
        "merge",
        Kind::Flag,
        "Sets the given metrics and keeps the others of that device and timestamp; by default a \
         reading replaces the stored one",
    ),
    parameter(
        "rooms",
        Kind::Choice { of: &["given"], default: None },
        "given stores rooms as they are sent, for history: no room comes from the registry or from a \
         person's choice",
    ),
];

const DEVICE: Parameter =
    parameter("device", Kind::Id, "The device; by default the one that the payload names");
const ROOM: Parameter = parameter("room", Kind::Id, "The room; by default the device's");

/// The parameters of a device's own payload.
const PAYLOAD: &[Parameter] = &[DEVICE, ROOM];

/// The parameters of ChirpStack's events, whose integration adds one.
const EVENT: &[Parameter] = &[
    DEVICE,
    ROOM,
    parameter("event", Kind::Word, "The kind of event, which ChirpStack appends; it means nothing"),
];

/// The parameters of a reading in an address.
const ADDRESS: &[Parameter] = &[
    DEVICE,
    ROOM,
    parameter("time", Kind::Timestamp, "The timestamp; by default the time of arrival"),
    parameter(
        "values",
        Kind::Values,
        "Each metric with its value, such as temperature=21.5; an unknown name is refused",
    ),
];

/// An endpoint of `ingest` that takes what devices send by themselves.
const fn payload(
    path: &'static str,
    operation: &'static str,
    parameters: &'static [Parameter],
    summary: &'static str,
) -> Endpoint {
    Endpoint {
        method: "POST",
        function: Function::Ingest,
        access: Access::Write,
        body: Some("Payload"),
        ..get(path, Operation::Payload(operation), parameters, Reply::Receipt("Receipt"), summary)
    }
}

/// An endpoint of `ingest` that takes a reading in its address.
const fn address(path: &'static str, operation: &'static str, summary: &'static str) -> Endpoint {
    Endpoint {
        method: "GET",
        access: Access::Address,
        body: None,
        ..payload(path, operation, ADDRESS, summary)
    }
}

/// An endpoint of `query` that reads.
const fn get(
    path: &'static str,
    operation: Operation,
    parameters: &'static [Parameter],
    reply: Reply,
    summary: &'static str,
) -> Endpoint {
    let (function, access) = (Function::Query, Access::Read);
    Endpoint {
        method: "GET",
        path,
        operation,
        function,
        access,
        parameters,
        body: None,
        reply,
        summary,
    }
}

/// An endpoint of `query` that deletes what its path names.
const fn delete(path: &'static str, operation: Operation, summary: &'static str) -> Endpoint {
    let reply = Reply::Progress("Deletion");
    Endpoint {
        method: "DELETE",
        access: Access::Admin,
        ..get(path, operation, &[], reply, summary)
    }
}

/// An endpoint of `query` that takes an object and answers with another.
const fn edit(
    (method, path, body): (&'static str, &'static str, &'static str),
    operation: Operation,
    reply: &'static str,
    summary: &'static str,
) -> Endpoint {
    Endpoint {
        method,
        access: Access::Admin,
        body: Some(body),
        ..get(path, operation, &[], Reply::One(reply), summary)
    }
}

/// An endpoint of InfluxDB.
const fn influx(
    (method, path): (&'static str, &'static str),
    operation: Operation,
    access: Access,
    summary: &'static str,
) -> Endpoint {
    Endpoint { method, access, ..get(path, operation, &[], Reply::Influx, summary) }
}

/// An endpoint of InfluxDB that stores line protocol.
const fn write(path: &'static str) -> Endpoint {
    Endpoint {
        function: Function::Ingest,
        parameters: LINES,
        body: Some("LineProtocol"),
        ..influx(("POST", path), Operation::WriteLines, Access::Write, "Store line protocol")
    }
}

const fn ping(path: &'static str) -> Endpoint {
    influx(
        ("GET", path),
        Operation::InfluxPing,
        Access::Public,
        "Answer a ping of InfluxDB's clients",
    )
}

const fn ready(path: &'static str) -> Endpoint {
    influx(
        ("GET", path),
        Operation::InfluxReady,
        Access::Public,
        "Tell InfluxDB's clients that the system is ready",
    )
}

const fn buckets(path: &'static str) -> Endpoint {
    influx(("GET", path), Operation::InfluxBuckets, Access::Any, "The one bucket")
}

const fn orgs(path: &'static str) -> Endpoint {
    influx(("GET", path), Operation::InfluxOrgs, Access::Any, "The one organisation")
}

const fn flux(path: &'static str) -> Endpoint {
    let endpoint = influx(("POST", path), Operation::InfluxFlux, Access::Any, "Refuse Flux");
    Endpoint { body: Some("Flux"), ..endpoint }
}

/// InfluxQL, whose statements may also be in a form.
const fn influxql(
    method: &'static str,
    path: &'static str,
    body: Option<&'static str>,
) -> Endpoint {
    let endpoint = influx(
        (method, path),
        Operation::InfluxQl,
        Access::Any,
        "Ask in InfluxQL, as Grafana does",
    );
    Endpoint { body, parameters: INFLUXQL, ..endpoint }
}

/// All endpoints.
pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: "POST",
        function: Function::Ingest,
        access: Access::Write,
        body: Some("Readings"),
        ..get(
            "/readings",
            Operation::PostReadings,
            STORING,
            Reply::Receipt("Receipt"),
            "Store readings",
        )
    },
    payload(
        "/readings/tasmota",
        "PostTasmota",
        PAYLOAD,
        "Store Tasmota's SENSOR, STATE or STATUS8",
    ),
    payload("/readings/shelly", "PostShelly", PAYLOAD, "Store a Shelly's notification or status"),
    payload(
        "/readings/zigbee2mqtt",
        "PostZigbee2Mqtt",
        PAYLOAD,
        "Store a message of Zigbee2MQTT about a device",
    ),
    payload(
        "/readings/switchbot",
        "PostSwitchBot",
        &[ROOM],
        "Store a report of SwitchBot's webhook, or a status",
    ),
    payload(
        "/readings/remo",
        "PostRemo",
        PAYLOAD,
        "Store an answer of Nature's cloud about Remo devices or smart meters",
    ),
    payload(
        "/readings/ttn",
        "PostThingsStack",
        PAYLOAD,
        "Store an uplink of The Things Stack, version 3",
    ),
    payload(
        "/readings/chirpstack",
        "PostChirpStack",
        EVENT,
        "Store an uplink of ChirpStack, version 4",
    ),
    address("/readings/quick", "QuickReading", "Store a reading in an address"),
    address(
        "/readings/shelly",
        "ShellyReading",
        "Store a reading in an address that a Shelly's action calls",
    ),
    get("/devices", Operation::ListDevices, DEVICES, Reply::Page("Device"), "List the devices"),
    get("/devices/{id}", Operation::ShowDevice, &[], Reply::One("Device"), "Show a device"),
    Endpoint {
        method: "PATCH",
        access: Access::Admin,
        body: Some("DevicePatch"),
        ..get(
            "/devices/{id}",
            Operation::EditDevice,
            RESTORE,
            Reply::One("Device"),
            "Edit a device's name, room, kind, tags, attributes and metrics",
        )
    },
    Endpoint {
        parameters: BEGUN,
        ..delete(
            "/devices/{id}",
            Operation::DeleteDevice,
            "Delete a device and all that belongs to it, up to 10,000 items a request",
        )
    },
    get(
        "/devices/{id}/readings",
        Operation::DeviceReadings,
        RANGE,
        Reply::Page("StoredReading"),
        "A device's readings in a time range",
    ),
    Endpoint {
        method: "DELETE",
        access: Access::Admin,
        ..get(
            "/devices/{id}/readings",
            Operation::DeleteReadings,
            DELETION,
            Reply::One("Deletion"),
            "Delete a device's readings in a time range, at most 1,000",
        )
    },
    get(
        "/devices/{id}/latest",
        Operation::DeviceLatest,
        &[],
        Reply::One("Latest"),
        "A device's newest value of each metric",
    ),
    get(
        "/devices/{id}/stays",
        Operation::DeviceStays,
        STAYS,
        Reply::Page("Stay"),
        "The rooms in which a device has been, in time order",
    ),
    get(
        "/devices/{id}/series",
        Operation::DeviceSeries,
        SERIES,
        Reply::Rows("Series"),
        "A device's metrics by units of the calendar",
    ),
    get(
        "/devices/{id}/energy",
        Operation::DeviceEnergy,
        ENERGY,
        Reply::Rows("Energy"),
        "A device's energy in kWh by units of the calendar",
    ),
    get(
        "/devices/{id}/events",
        Operation::DeviceEvents,
        NOTABLE,
        Reply::Rows("Events"),
        "Notable steps of a device's counters, with their readings",
    ),
    get(
        "/devices/{id}/conditions",
        Operation::DeviceConditions,
        CONDITIONS,
        Reply::Rows("Conditions"),
        "Episodes in which a device's metrics had given values, by means of 15 minutes",
    ),
    get("/rooms", Operation::ListRooms, PAGE, Reply::Page("Room"), "List the rooms"),
    get("/rooms/{id}", Operation::ShowRoom, &[], Reply::One("Room"), "Show a room"),
    Endpoint {
        method: "PATCH",
        access: Access::Admin,
        body: Some("RoomPatch"),
        ..get(
            "/rooms/{id}",
            Operation::EditRoom,
            &[],
            Reply::One("Room"),
            "Edit a room's name and home",
        )
    },
    delete("/rooms/{id}", Operation::DeleteRoom, "Delete a room in which no device is"),
    get(
        "/rooms/{id}/devices",
        Operation::RoomDevices,
        SOME_DEVICES,
        Reply::Page("Device"),
        "List the devices in a room",
    ),
    get(
        "/rooms/{id}/readings",
        Operation::RoomReadings,
        RANGE,
        Reply::Page("StoredReading"),
        "A room's readings in a time range, its devices merged in time order",
    ),
    get(
        "/rooms/{id}/stays",
        Operation::RoomStays,
        STAYS,
        Reply::Page("Stay"),
        "The devices that have been in a room, in time order",
    ),
    get(
        "/rooms/{id}/series",
        Operation::RoomSeries,
        SHARED_SERIES,
        Reply::Rows("Series"),
        "A room's metrics by units of the calendar",
    ),
    get(
        "/rooms/{id}/energy",
        Operation::RoomEnergy,
        SHARED_ENERGY,
        Reply::Rows("Energy"),
        "A room's energy in kWh by units of the calendar",
    ),
    get(
        "/rooms/{id}/conditions",
        Operation::RoomConditions,
        CONDITIONS,
        Reply::Rows("Conditions"),
        "Episodes in which a room's devices had given values, by means of 15 minutes",
    ),
    get("/homes", Operation::ListHomes, PAGE, Reply::Page("Home"), "List the homes"),
    get("/homes/{id}", Operation::ShowHome, &[], Reply::One("Home"), "Show a home"),
    delete("/homes/{id}", Operation::DeleteHome, "Take all rooms out of a home"),
    get(
        "/homes/{id}/rooms",
        Operation::HomeRooms,
        PAGE,
        Reply::Page("Room"),
        "List the rooms of a home",
    ),
    get(
        "/homes/{id}/devices",
        Operation::HomeDevices,
        SOME_DEVICES,
        Reply::Page("Device"),
        "List the devices in the rooms of a home",
    ),
    get(
        "/homes/{id}/series",
        Operation::HomeSeries,
        SERIES_OF_ROOMS,
        Reply::Rows("Series"),
        "A home's metrics by units of the calendar",
    ),
    get(
        "/homes/{id}/energy",
        Operation::HomeEnergy,
        SHARED_ENERGY,
        Reply::Rows("Energy"),
        "A home's energy in kWh by units of the calendar",
    ),
    get(
        "/homes/{id}/conditions",
        Operation::HomeConditions,
        CONDITIONS,
        Reply::Rows("Conditions"),
        "Episodes in which a home's devices had given values, by means of 15 minutes",
    ),
    get(
        "/series",
        Operation::AllSeries,
        SERIES_OF_ROOMS,
        Reply::Rows("Series"),
        "The metrics of all devices by units of the calendar",
    ),
    get(
        "/energy",
        Operation::AllEnergy,
        SHARED_ENERGY,
        Reply::Rows("Energy"),
        "The energy of all devices in kWh by units of the calendar",
    ),
    get(
        "/annotations",
        Operation::ListAnnotations,
        ANNOTATIONS,
        Reply::Page("Annotation"),
        "List what people noted of times, in time order",
    ),
    Endpoint {
        method: "PUT",
        access: Access::Admin,
        body: Some("NewAnnotation"),
        ..get(
            "/annotations/{id}",
            Operation::PutAnnotation,
            &[],
            Reply::One("Annotation"),
            "Note something of a time; the id begins with the time",
        )
    },
    Endpoint {
        method: "DELETE",
        access: Access::Admin,
        ..get(
            "/annotations/{id}",
            Operation::DeleteAnnotation,
            &[],
            Reply::One("Deletion"),
            "Delete an annotation",
        )
    },
    Endpoint {
        method: "POST",
        access: Access::Admin,
        body: Some("NewToken"),
        ..get(
            "/tokens",
            Operation::IssueToken,
            &[],
            Reply::Made("IssuedToken"),
            "Make a write token of one device, or a token that shows rooms and homes for a while",
        )
    },
    get(
        "/conditions/schema",
        Operation::ShowConditionsSchema,
        &[],
        Reply::One("ConditionsSchema"),
        "Show the schema by which an index finds conditions",
    ),
    Endpoint {
        method: "PUT",
        access: Access::Admin,
        body: Some("NewConditionsSchema"),
        ..get(
            "/conditions/schema",
            Operation::PutConditionsSchema,
            &[],
            Reply::One("ConditionsSchema"),
            "Replace the schema by which an index finds conditions; roomtide rollups rebuild applies it",
        )
    },
    get(
        "/alerts",
        Operation::ListAlerts,
        &[],
        Reply::One("Alerts"),
        "List the rules of alerts, their states and the channels",
    ),
    get(
        "/alerts/{id}",
        Operation::ShowAlert,
        &[],
        Reply::One("Alert"),
        "Show a rule of alerts and its states",
    ),
    edit(
        ("PUT", "/alerts/{id}", "AlertRule"),
        Operation::PutAlert,
        "Alert",
        "Save a rule of alerts, at most 100",
    ),
    Endpoint {
        method: "DELETE",
        access: Access::Admin,
        ..get(
            "/alerts/{id}",
            Operation::DeleteAlert,
            &[],
            Reply::One("Deletion"),
            "Delete a rule of alerts; its states end and what waits is dropped",
        )
    },
    get(
        "/alerts/{id}/history",
        Operation::AlertHistory,
        TOLD,
        Reply::Page("ToldMessage"),
        "What was told by a rule in the last 90 days, newest first",
    ),
    edit(
        ("POST", "/alerts/{id}/pause", "AlertPause"),
        Operation::PauseAlert,
        "Alert",
        "Let a rule tell nothing until a time, or end that",
    ),
    edit(
        ("POST", "/alerts/{id}/acknowledge", "AlertAcknowledgement"),
        Operation::AcknowledgeAlert,
        "Alert",
        "Acknowledge what fires: it is not repeated",
    ),
    Endpoint {
        access: Access::Public,
        ..edit(
            ("POST", "/acknowledge", "LinkAcknowledgement"),
            Operation::AcknowledgeByLink,
            "Acknowledged",
            "Acknowledge the episode of a message by the key of its link, and nothing else",
        )
    },
    Endpoint {
        access: Access::Read,
        ..edit(
            ("POST", "/alerts/preview", "AlertTrial"),
            Operation::PreviewAlert,
            "AlertPreview",
            "The episodes that a rule would have had in up to 31 days",
        )
    },
    get(
        "/channels",
        Operation::ListChannels,
        &[],
        Reply::One("Channels"),
        "List the channels by which alerts are told",
    ),
    get(
        "/channels/{id}",
        Operation::ShowChannel,
        &[],
        Reply::One("Channel"),
        "Show a channel, without what is secret",
    ),
    edit(
        ("PUT", "/channels/{id}", "NewChannel"),
        Operation::PutChannel,
        "Channel",
        "Save a channel, at most 10; without its secret, the stored one stays",
    ),
    Endpoint {
        method: "DELETE",
        access: Access::Admin,
        ..get(
            "/channels/{id}",
            Operation::DeleteChannel,
            &[],
            Reply::One("Deletion"),
            "Delete a channel and its secret",
        )
    },
    edit(
        ("POST", "/channels/{id}/test", "Nothing"),
        Operation::TestChannel,
        "WaitingTest",
        "Send a test by a channel, within a minute",
    ),
    Endpoint {
        method: "POST",
        body: Some("McpMessage"),
        ..get(
            "/mcp",
            Operation::Mcp,
            &[],
            Reply::Message("McpAnswer"),
            "Answer a language model's tools, by the Model Context Protocol",
        )
    },
    influxql("GET", "/query", None),
    influxql("POST", "/query", Some("InfluxQl")),
    influxql("GET", "/influx/query", None),
    influxql("POST", "/influx/query", Some("InfluxQl")),
    Endpoint {
        access: Access::Public,
        ..get(
            "/health",
            Operation::Health,
            HEALTH,
            Reply::One("Health"),
            "Check the health of the system",
        )
    },
    get(
        "/openapi.json",
        Operation::OpenApi,
        &[],
        Reply::One("OpenApi"),
        "This API as an OpenAPI 3.1 document",
    ),
    write("/write"),
    write("/influx/write"),
    write("/api/v2/write"),
    write("/influx/api/v2/write"),
    write("/api/v3/write_lp"),
    write("/influx/api/v3/write_lp"),
    ping("/ping"),
    ping("/influx/ping"),
    Endpoint {
        access: Access::Public,
        ..get(
            "/influx/health",
            Operation::Health,
            HEALTH,
            Reply::One("Health"),
            "Check the health of the system",
        )
    },
    ready("/ready"),
    ready("/influx/ready"),
    buckets("/api/v2/buckets"),
    buckets("/influx/api/v2/buckets"),
    orgs("/api/v2/orgs"),
    orgs("/influx/api/v2/orgs"),
    flux("/api/v2/query"),
    flux("/influx/api/v2/query"),
    Endpoint {
        access: Access::Public,
        ..get("/", Operation::WebPage, &[], Reply::File(&["text/html"]), "The web page")
    },
    Endpoint {
        access: Access::Public,
        ..get(
            "/assets/{id}",
            Operation::WebFile,
            &[],
            Reply::File(&["text/javascript", "text/css", "image/svg+xml"]),
            "A file of the web page",
        )
    },
];

/// The endpoint of a request that `function` was given, and its `{id}`, decoded; empty where the path
/// has none.
pub fn find(request: &Request, function: Function) -> Result<(&'static Endpoint, String), Problem> {
    let found = find_path(&request.method, &request.path);
    let is_here = |endpoint: &Endpoint| {
        endpoint.function == function
            || function == Function::Ingest && endpoint.is_asked_by_writers()
    };
    let is_unknown = |problem: &Problem| problem.kind == ProblemKind::NotFound;
    match found {
        Ok((endpoint, id)) if is_here(endpoint) => Ok((endpoint, id)),
        Err(problem) if function == Function::Query || !is_unknown(&problem) => Err(problem),
        _ => Err(elsewhere(request, function)),
    }
}

/// A request for what another address answers, in a stack whose functions have an address each. Neither function
/// knows the other's, apart from the page's.
#[must_use]
pub fn elsewhere(request: &Request, function: Function) -> Problem {
    let (method, path) = (&request.method, domain::excerpt(&request.path));
    let there = match function {
        Function::Ingest => {
            "which stores readings; questions and the page are at the stack's output PageUrl, on a laptop at the \
             port of --port"
        }
        Function::Query => {
            "which stores no readings; these go to the stack's output IngestUrl, on a laptop to the port of \
             --ingest-port"
        }
    };
    let detail = format!("{method} {path} is not answered at this address, {there}.");
    Problem::new(ProblemKind::Elsewhere, detail)
}

/// Where clients of InfluxDB 3 ask in SQL: by HTTP, and by gRPC.
const SQL: [&str; 2] = ["/api/v3/query_", "/arrow.flight.protocol.FlightService/"];

/// The endpoint of a method and a path, whichever function answers it, and its `{id}`.
pub fn find_path(method: &str, path: &str) -> Result<(&'static Endpoint, String), Problem> {
    let matching: Vec<_> =
        ENDPOINTS.iter().filter_map(|it| Some((it, matched_id(it.path, path)?))).collect();
    let asked = format!("{method} {}", domain::excerpt(path));
    if matching.is_empty() {
        let detail = if SQL.iter().any(|it| path.trim_start_matches(PREFIX).starts_with(it)) {
            "SQL and Flight SQL are not supported; ask /query in InfluxQL.".to_owned()
        } else {
            format!("There is no {asked}; /openapi.json lists what there is.")
        };
        return Err(Problem::new(ProblemKind::NotFound, detail));
    }
    let methods: Vec<_> = matching.iter().flat_map(|(endpoint, _)| endpoint.methods()).collect();
    let answers = |endpoint: &Endpoint| endpoint.methods().any(|known| known == method);
    matching.into_iter().find(|(endpoint, _)| answers(endpoint)).ok_or_else(|| {
        let detail = format!("There is no {asked}; on this path: {}.", methods.join(", "));
        Problem { allowed: methods, ..Problem::new(ProblemKind::MethodNotAllowed, detail) }
    })
}

/// The decoded `{id}` of a path that has the form of the template; empty where the template has none.
fn matched_id(template: &str, path: &str) -> Option<String> {
    let mut id = String::new();
    let mut segments = path.trim_end_matches('/').split('/');
    for expected in template.trim_end_matches('/').split('/') {
        let segment = segments.next()?;
        if expected == "{id}" {
            id = percent_encoding::percent_decode_str(segment).decode_utf8_lossy().into_owned();
        } else if expected != segment {
            return None;
        }
    }
    segments.next().is_none().then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(method: &str, path: &str) -> Result<(Operation, String), u16> {
        find_path(method, path)
            .map(|(endpoint, id)| (endpoint.operation, id))
            .map_err(|problem| problem.kind.status())
    }

    #[test]
    fn a_path_has_one_endpoint_and_an_id() {
        assert_eq!(found("GET", "/devices"), Ok((Operation::ListDevices, String::new())));
        assert_eq!(found("GET", "/"), Ok((Operation::WebPage, String::new())));
        assert_eq!(found("GET", "/assets/a.js"), Ok((Operation::WebFile, "a.js".into())));
        assert_eq!(found("GET", "/devices/"), Ok((Operation::ListDevices, String::new())));
        assert_eq!(found("GET", "/devices/a%3Ab"), Ok((Operation::ShowDevice, "a:b".into())));
        assert_eq!(found("GET", "/rooms/r/stays"), Ok((Operation::RoomStays, "r".into())));
        assert_eq!(found("HEAD", "/rooms/r/stays"), Ok((Operation::RoomStays, "r".into())));
        assert_eq!(
            found("PATCH", "/devices/readings"),
            Ok((Operation::EditDevice, "readings".into()))
        );
    }

    #[test]
    fn everything_else_is_not_found_or_not_allowed() {
        assert_eq!(found("GET", "/devices/x/y"), Err(404));
        assert_eq!(found("GET", "/devices/x/readings/y"), Err(404));
        assert_eq!(found("GET", "/readings"), Err(405));
        assert_eq!(found("HEAD", "/readings"), Err(405));
        assert_eq!(found("HEAD", "/readings/quick"), Err(405), "it would write");
        assert_eq!(
            found("POST", "/readings/shelly"),
            Ok((Operation::Payload("PostShelly"), String::new()))
        );
        assert_eq!(
            found("GET", "/readings/shelly"),
            Ok((Operation::Payload("ShellyReading"), String::new()))
        );
        assert_eq!(found("DELETE", "/devices"), Err(405));
        assert_eq!(found("DELETE", "/rooms/x/readings"), Err(405));
    }

    #[test]
    fn a_function_answers_its_own_endpoints_only() {
        let request = |method: &str, path: &str| Request {
            method: method.to_owned(),
            path: path.to_owned(),
            ..Request::default()
        };
        let post = request("POST", "/readings");
        assert!(find(&post, Function::Ingest).is_ok());
        let problem = find(&post, Function::Query).expect_err("ingest answers it");
        assert_eq!(
            problem.detail,
            "POST /readings is not answered at this address, which stores no readings; these go to the \
             stack's output IngestUrl, on a laptop to the port of --ingest-port."
        );
        for (method, path, status) in [
            ("GET", "/devices", 404),
            ("GET", "/", 404),
            ("GET", "/assets/x.js", 404),
            ("GET", "/nothing", 404),
            ("POST", "/api/v2/query", 404),
            ("DELETE", "/devices/d", 404),
            ("GET", "/readings", 405),
        ] {
            let problem = find(&request(method, path), Function::Ingest).expect_err(path);
            assert_eq!(problem.kind.status(), status, "{path}");
            let names = problem.detail.contains("the stack's output PageUrl");
            assert_eq!(names, status == 404, "{path}: {}", problem.detail);
        }
    }

    #[test]
    fn what_writers_ask_first_is_answered_where_they_write() {
        let asked = |path: &str, raw_query: &str, function| {
            let (path, raw_query) = (path.to_owned(), raw_query.to_owned());
            let request =
                Request { method: "GET".to_owned(), path, raw_query, ..Request::default() };
            let (endpoint, _) = find(&request, function).expect("it is answered");
            endpoint.access_of(&request, function)
        };
        for prefix in ["", PREFIX] {
            for (path, query, at_ingest, at_query) in [
                ("/ping", "", Access::Public, Access::Public),
                ("/ready", "", Access::Public, Access::Public),
                ("/health", "", Access::Public, Access::Public),
                ("/health", "details=0", Access::Public, Access::Public),
                ("/health", "details=1", Access::Public, Access::Read),
                ("/query", "", Access::Formed, Access::Any),
                ("/api/v2/buckets", "", Access::Formed, Access::Any),
                ("/api/v2/orgs", "", Access::Formed, Access::Any),
            ] {
                let path = format!("{prefix}{path}");
                assert_eq!(asked(&path, query, Function::Ingest), at_ingest, "{path}?{query}");
                assert_eq!(asked(&path, query, Function::Query), at_query, "{path}?{query}");
            }
        }
    }

    #[test]
    fn whoever_changes_something_needs_more_than_a_reader_s_token() {
        for endpoint in ENDPOINTS {
            let access = endpoint.access;
            // InfluxDB's queries may be POSTs, and a model's questions are.
            let asks = matches!(
                endpoint.operation,
                Operation::InfluxFlux
                    | Operation::InfluxQl
                    | Operation::Mcp
                    | Operation::PreviewAlert
            );
            let changes = (endpoint.method != "GET" || endpoint.takes_values()) && !asks;
            // The link of a message is the permission.
            let is_link = endpoint.operation == Operation::AcknowledgeByLink;
            let may_change = matches!(access, Access::Write | Access::Admin | Access::Address);
            assert_eq!(changes, may_change || is_link, "{endpoint:?}");
            assert_eq!(endpoint.takes_values(), access == Access::Address, "{endpoint:?}");
            let holds_no_data = matches!(
                endpoint.operation,
                Operation::Health
                    | Operation::InfluxPing
                    | Operation::InfluxReady
                    | Operation::WebPage
                    | Operation::WebFile
                    | Operation::AcknowledgeByLink
            );
            assert_eq!(access == Access::Public, holds_no_data, "{endpoint:?}");
            let has_body = matches!(endpoint.method, "POST" | "PUT" | "PATCH");
            assert_eq!(has_body, endpoint.body.is_some(), "{endpoint:?}");
        }
    }
}
