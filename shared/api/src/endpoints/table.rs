//! The table of endpoints: their parameters, and a row for each operation. Decides nothing.

use domain::{Aggregate, CalendarUnit};

use super::Reply::{File, Influx, Made, Message, One, Page, Progress, Receipt, Rows};
use super::{Access, DETAILS, Endpoint, Function, Kind, Parameter, PayloadFormat};

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

/// The parameters of a page of a list.
const PAGE: &[Parameter] = &[ENTRIES, CURSOR, FORMAT];

/// The parameters of a page of devices.
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

/// The parameters of a page of a room's or a home's devices.
const SOME_DEVICES: &[Parameter] = &[LATEST, ENTRIES, CURSOR, FORMAT];

/// The parameters of a page of readings in a range of time.
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

/// The parameters of an edit of a device.
const RESTORE: &[Parameter] = &[parameter(
    "restore",
    Kind::Flag,
    "Restores what GET has answered about the device: members that only describe are passed over, a metric that is not \
     registered is added, and no setting or verdict is checked against its kind or its readings",
)];

/// The parameters of a deletion that takes several requests.
const BEGUN: &[Parameter] = &[parameter(
    "begun",
    Kind::Timestamp,
    "Continues the deletion whose answer had this value, and begins no other",
)];

/// The parameters of a page of stays.
const STAYS: &[Parameter] = &[
    parameter("from", Kind::Timestamp, "Only stays that end after it"),
    parameter("to", Kind::Timestamp, "Only stays that begin before it"),
    ENTRIES,
    CURSOR,
    FORMAT,
];

/// The parameters of a page of annotations.
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

/// The parameters of a page of messages of an alert.
const TOLD: &[Parameter] = &[
    parameter("from", Kind::Timestamp, "Only messages that were told at it or after"),
    parameter("to", Kind::Timestamp, "Only messages that were told before it"),
    ENTRIES,
    CURSOR,
    FORMAT,
];

const FROM: Parameter =
    parameter("from", Kind::Timestamp, "The start of the range; by default 24 hours before to");
const TO: Parameter = parameter(
    "to",
    Kind::Timestamp,
    "The end of the range, which is not part of it; by default now",
);
const EVERY: Parameter = parameter(
    "every",
    Kind::Choice { of: &CalendarUnit::WORDS, default: None },
    "One row for each unit of the calendar; by default one exact total of the range",
);
const ZONE: Parameter =
    parameter("tz", Kind::Zone, "The time zone of the rows; by default the home's");
const COST_ZONE: Parameter = parameter(
    "tz",
    Kind::Zone,
    "The time zone of the rows; by default that of the tariffs, or the home's if they have several",
);
const METRIC: Parameter =
    parameter("metric", Kind::Metrics, "Only these metrics, each once, separated by commas");
const ENERGY_METRIC: Parameter = parameter(
    "metric",
    Kind::Metrics,
    "The metric of the energy; by default the device's counters of energy",
);
const FUNCTION: Parameter = parameter(
    "fn",
    Kind::Words { of: &Aggregate::WORDS },
    "The values of a row; by default mean,min,max,count, for counters increase,count",
);
const DEVICES_APART: Parameter = parameter("devices", Kind::Flag, "Rows for each device");
const EVENTS: Parameter = parameter("events", Kind::Flag, "Adds the notable steps of counters");
const EXPLAIN: Parameter =
    parameter("explain", Kind::Flag, "Adds the plan of the answer and its cost");

const BY_ROOMS: Parameter =
    parameter("rooms", Kind::Flag, "Rows for each room, combined of its devices");

/// The parameters of a series of one device.
const SERIES: &[Parameter] = &[FROM, TO, EVERY, ZONE, METRIC, FUNCTION, FORMAT];
/// The parameters of a series of several devices.
const SHARED_SERIES: &[Parameter] =
    &[FROM, TO, EVERY, ZONE, METRIC, FUNCTION, DEVICES_APART, FORMAT];
/// The parameters of a series of several rooms.
const SERIES_OF_ROOMS: &[Parameter] =
    &[FROM, TO, EVERY, ZONE, METRIC, FUNCTION, DEVICES_APART, BY_ROOMS, FORMAT];
/// The parameters of the energy of one device.
const ENERGY: &[Parameter] = &[FROM, TO, EVERY, ZONE, ENERGY_METRIC, EVENTS, FORMAT];
/// The parameters of the energy of several devices.
const SHARED_ENERGY: &[Parameter] =
    &[FROM, TO, EVERY, ZONE, ENERGY_METRIC, DEVICES_APART, EVENTS, FORMAT];
const MONTH: Parameter = parameter(
    "from",
    Kind::Timestamp,
    "The start of the range; by default that of the local month",
);
const TARIFF: Parameter = parameter(
    "tariff",
    Kind::Word,
    "Up to 5 tariffs, separated by commas, all billed by the meters of the first; by default each tariff with meters \
     by its own",
);
const LINES_APART: Parameter = parameter("lines", Kind::Flag, "A row for each line of the bill");
/// The parameters of the cost of all meters.
const COST: &[Parameter] = &[
    MONTH,
    TO,
    EVERY,
    COST_ZONE,
    TARIFF,
    LINES_APART,
    parameter("devices", Kind::Flag, "Adds the shares of devices"),
    FORMAT,
];
/// The parameters of the cost of one device.
const DEVICE_COST: &[Parameter] = &[MONTH, TO, EVERY, COST_ZONE, TARIFF, LINES_APART, FORMAT];
/// The parameters of the notable steps of counters.
const NOTABLE: &[Parameter] = &[FROM, TO, METRIC, FORMAT];
/// The parameters of conditions on the metrics of a device, or of the devices of a room.
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
/// The parameters of a deletion of readings.
const DELETION: &[Parameter] = &[
    parameter("from", Kind::Timestamp, "The start of the range; required"),
    parameter("to", Kind::Timestamp, "The end of the range, which is not part of it; required"),
];
/// The parameters of the health of the system.
const HEALTH: &[Parameter] = &[parameter(
    DETAILS,
    Kind::Flag,
    "Adds how far the rollups reach, and their time zone; needs a token that reads",
)];

/// The parameters of requests that store line protocol, for each version of InfluxDB.
const LINES: &[Parameter] = &[
    parameter("precision", Kind::Word, "The unit of the timestamps"),
    parameter("accept_partial", Kind::Word, "false stores nothing if a line is refused"),
    parameter("device_tags", Kind::Word, "The tags that identify a device"),
    parameter("room_tag", Kind::Word, "The tag that names a room"),
];

/// The parameters of InfluxQL, in an address or a form.
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

/// The parameters of ChirpStack's events. Its integration adds `event`.
const EVENT: &[Parameter] = &[
    DEVICE,
    ROOM,
    parameter("event", Kind::Word, "The kind of event, which ChirpStack appends; it means nothing"),
];

/// The query parameters of a reading that is sent by `GET`.
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

/// Passes all rows to a macro. `table!` makes [`Operation`] and [`ENDPOINTS`] from them, and `query` the `match` over
/// its handlers.
///
/// A row has the function, the operation with its handler in `query`, and the access. Then come methods and paths, each
/// with the schema of its body, the parameters, the answer, a description in one line, and the payload format. An
/// operation without a handler reads no table in `query`.
#[macro_export]
macro_rules! endpoints {
    ($make:ident) => {
        $make! {
            { Ingest PostReadings: Write POST "/readings" takes "Readings", STORING, Receipt("Receipt"), "Store readings" }
            { Ingest PostTasmota: Write POST "/readings/tasmota" takes "Payload", PAYLOAD, Receipt("Receipt"),
              "Store Tasmota's SENSOR, STATE or STATUS8",
              PayloadFormat { owner: "Tasmota's", topic: Some("tasmota"), has_local_times: true } }
            { Ingest PostShelly: Write POST "/readings/shelly" takes "Payload", PAYLOAD, Receipt("Receipt"),
              "Store a Shelly's notification or status",
              PayloadFormat { owner: "Shelly's", topic: Some("shelly"), has_local_times: false } }
            { Ingest PostZigbee2Mqtt: Write POST "/readings/zigbee2mqtt" takes "Payload", PAYLOAD, Receipt("Receipt"),
              "Store a message of Zigbee2MQTT about a device",
              PayloadFormat { owner: "Zigbee2MQTT's", topic: Some("zigbee2mqtt"), has_local_times: true } }
            { Ingest PostSwitchBot: Write POST "/readings/switchbot" takes "Payload", &[ROOM], Receipt("Receipt"),
              "Store a report of SwitchBot's webhook, or a status",
              PayloadFormat { owner: "SwitchBot's", topic: None, has_local_times: false } }
            { Ingest PostRemo: Write POST "/readings/remo" takes "Payload", PAYLOAD, Receipt("Receipt"),
              "Store an answer of Nature's cloud about Remo devices or smart meters",
              PayloadFormat { owner: "Nature Remo's", topic: None, has_local_times: false } }
            { Ingest PostThingsStack: Write POST "/readings/ttn" takes "Payload", PAYLOAD, Receipt("Receipt"),
              "Store an uplink of The Things Stack, version 3",
              PayloadFormat { owner: "The Things Stack's", topic: Some("ttn"), has_local_times: false } }
            { Ingest PostChirpStack: Write POST "/readings/chirpstack" takes "Payload", EVENT, Receipt("Receipt"),
              "Store an uplink of ChirpStack, version 4",
              PayloadFormat { owner: "ChirpStack's", topic: Some("chirpstack"), has_local_times: false } }
            { Ingest QuickReading: Address GET "/readings/quick", ADDRESS, Receipt("Receipt"), "Store a reading in an address",
              PayloadFormat::ADDRESS }
            { Ingest ShellyReading: Address GET "/readings/shelly", ADDRESS, Receipt("Receipt"),
              "Store a reading in an address that a Shelly's action calls",
              PayloadFormat::ADDRESS }
            { Query ListDevices = lists::devices: Read GET "/devices", DEVICES, Page("Device"), "List the devices" }
            { Query ShowDevice = lists::device: Read GET "/devices/{id}", &[], One("Device"), "Show a device" }
            { Query EditDevice = edit::device: Admin PATCH "/devices/{id}" takes "DevicePatch", RESTORE, One("Device"),
              "Edit a device's name, room, kind, tags, attributes and metrics" }
            { Query DeleteDevice = deletion::device: Admin DELETE "/devices/{id}", BEGUN, Progress("Deletion"),
              "Delete a device and all that belongs to it, up to 10,000 items a request" }
            { Query DeviceReadings = ranges::of_device: Read GET "/devices/{id}/readings", RANGE, Page("StoredReading"),
              "A device's readings in a time range" }
            { Query DeleteReadings = remove::readings: Admin DELETE "/devices/{id}/readings", DELETION, One("Deletion"),
              "Delete a device's readings in a time range, at most 1,000" }
            { Query DeviceLatest = latest::of_device: Read GET "/devices/{id}/latest", &[], One("Latest"),
              "A device's newest value of each metric" }
            { Query DeviceStays = stays::of_device: Read GET "/devices/{id}/stays", STAYS, Page("Stay"),
              "The rooms in which a device has been, in time order" }
            { Query DeviceSeries = series::series(Device): Read GET "/devices/{id}/series", SERIES, Rows("Series"),
              "A device's metrics by units of the calendar" }
            { Query DeviceEnergy = series::energy(Device): Read GET "/devices/{id}/energy", ENERGY, Rows("Energy"),
              "A device's energy in kWh by units of the calendar" }
            { Query DeviceCost = series::device_cost: Read GET "/devices/{id}/cost", DEVICE_COST, Rows("Cost"),
              "What a device's energy cost, as if all of it had been bought" }
            { Query DeviceEvents = series::device_events: Read GET "/devices/{id}/events", NOTABLE, Rows("Events"),
              "Notable steps of a device's counters, with their readings" }
            { Query DeviceConditions = series::conditions(Device): Read GET "/devices/{id}/conditions", CONDITIONS, Rows("Conditions"),
              "Episodes in which a device's metrics had given values, by means of 15 minutes" }
            { Query ListRooms = lists::rooms: Read GET "/rooms", PAGE, Page("Room"), "List the rooms" }
            { Query ShowRoom = lists::room: Read GET "/rooms/{id}", &[], One("Room"), "Show a room" }
            { Query EditRoom = edit::room: Admin PATCH "/rooms/{id}" takes "RoomPatch", &[], One("Room"),
              "Edit a room's name and home" }
            { Query DeleteRoom = deletion::room: Admin DELETE "/rooms/{id}", &[], Progress("Deletion"),
              "Delete a room in which no device is" }
            { Query RoomDevices = lists::devices_of_room: Read GET "/rooms/{id}/devices", SOME_DEVICES, Page("Device"),
              "List the devices in a room" }
            { Query RoomReadings = ranges::of_room: Read GET "/rooms/{id}/readings", RANGE, Page("StoredReading"),
              "A room's readings in a time range, its devices merged in time order" }
            { Query RoomStays = stays::in_room: Read GET "/rooms/{id}/stays", STAYS, Page("Stay"),
              "The devices that have been in a room, in time order" }
            { Query RoomSeries = series::series(Room): Read GET "/rooms/{id}/series", SHARED_SERIES, Rows("Series"),
              "A room's metrics by units of the calendar" }
            { Query RoomEnergy = series::energy(Room): Read GET "/rooms/{id}/energy", SHARED_ENERGY, Rows("Energy"),
              "A room's energy in kWh by units of the calendar" }
            { Query RoomConditions = series::conditions(Room): Read GET "/rooms/{id}/conditions", CONDITIONS, Rows("Conditions"),
              "Episodes in which a room's devices had given values, by means of 15 minutes" }
            { Query ListHomes = homes::homes: Read GET "/homes", PAGE, Page("Home"), "List the homes" }
            { Query ShowHome = homes::home: Read GET "/homes/{id}", &[], One("Home"), "Show a home" }
            { Query DeleteHome = deletion::home: Admin DELETE "/homes/{id}", &[], Progress("Deletion"),
              "Take all rooms out of a home" }
            { Query HomeRooms = homes::rooms: Read GET "/homes/{id}/rooms", PAGE, Page("Room"), "List the rooms of a home" }
            { Query HomeDevices = lists::devices_of_home: Read GET "/homes/{id}/devices", SOME_DEVICES, Page("Device"),
              "List the devices in the rooms of a home" }
            { Query HomeSeries = series::series(Home): Read GET "/homes/{id}/series", SERIES_OF_ROOMS, Rows("Series"),
              "A home's metrics by units of the calendar" }
            { Query HomeEnergy = series::energy(Home): Read GET "/homes/{id}/energy", SHARED_ENERGY, Rows("Energy"),
              "A home's energy in kWh by units of the calendar" }
            { Query HomeConditions = series::conditions(Home): Read GET "/homes/{id}/conditions", CONDITIONS, Rows("Conditions"),
              "Episodes in which a home's devices had given values, by means of 15 minutes" }
            { Query AllSeries = series::series(All): Read GET "/series", SERIES_OF_ROOMS, Rows("Series"),
              "The metrics of all devices by units of the calendar" }
            { Query AllEnergy = series::energy(All): Read GET "/energy", SHARED_ENERGY, Rows("Energy"),
              "The energy of all devices in kWh by units of the calendar" }
            { Query Cost = series::cost: Read GET "/cost", COST, Rows("Cost"),
              "What energy cost, or would have cost, by tariffs" }
            { Query ListTariffs = tariffs::list: Read GET "/tariffs", &[], One("Tariffs"), "List the tariffs" }
            { Query ShowTariff = tariffs::show: Read GET "/tariffs/{id}", &[], One("Tariff"), "Show a tariff" }
            { Query PutTariff = tariffs::put: Admin PUT "/tariffs/{id}" takes "NewTariff", &[], One("Tariff"),
              "Save a tariff, at most 20; a version in the body must be the stored one" }
            { Query DeleteTariff = tariffs::delete: Admin DELETE "/tariffs/{id}", &[], One("Deletion"), "Delete a tariff" }
            { Query ListAnnotations = annotations::list: Read GET "/annotations", ANNOTATIONS, Page("Annotation"),
              "List what people noted of times, in time order" }
            { Query PutAnnotation = annotations::put: Admin PUT "/annotations/{id}" takes "NewAnnotation", &[], One("Annotation"),
              "Note something of a time; the id begins with the time" }
            { Query DeleteAnnotation = annotations::delete: Admin DELETE "/annotations/{id}", &[], One("Deletion"),
              "Delete an annotation" }
            { Query IssueToken = tokens::issue: Admin POST "/tokens" takes "NewToken", &[], Made("IssuedToken"),
              "Make a write token of one device, or a token that shows rooms and homes for a while" }
            { Query ShowConditionsSchema = conditions_schema::show: Read GET "/conditions/schema", &[], One("ConditionsSchema"),
              "Show the schema by which an index finds conditions" }
            { Query PutConditionsSchema = conditions_schema::put: Admin PUT "/conditions/schema" takes "NewConditionsSchema", &[], One("ConditionsSchema"),
              "Replace the schema by which an index finds conditions; roomtide rollups rebuild applies it" }
            { Query ListAlerts = rules::list: Read GET "/alerts", &[], One("Alerts"),
              "List the rules of alerts, their states and the channels" }
            { Query ShowAlert = rules::show: Read GET "/alerts/{id}", &[], One("Alert"), "Show a rule of alerts and its states" }
            { Query PutAlert = rules::put: Admin PUT "/alerts/{id}" takes "AlertRule", &[], One("Alert"),
              "Save a rule of alerts, at most 100" }
            { Query DeleteAlert = rules::delete: Admin DELETE "/alerts/{id}", &[], One("Deletion"),
              "Delete a rule of alerts; its states end and what waits is dropped" }
            { Query AlertHistory = history::history: Read GET "/alerts/{id}/history", TOLD, Page("LoggedMessage"),
              "The messages of a rule in the last 90 days, newest first" }
            { Query PauseAlert = pause::pause: Admin POST "/alerts/{id}/pause" takes "AlertPause", &[], One("Alert"),
              "Pause the messages of a rule until a time, or end the pause" }
            { Query AcknowledgeAlert = acknowledge::by_token: Admin POST "/alerts/{id}/acknowledge" takes "AlertAcknowledgement", &[], One("Alert"),
              "Acknowledge what fires: it is not repeated" }
            { Query AcknowledgeByLink = acknowledge::by_link: Public POST "/acknowledge" takes "LinkAcknowledgement", &[], One("Acknowledged"),
              "Acknowledge the episode of a message by the key of its link, and nothing else" }
            { Query PreviewAlert = preview::preview: Read POST "/alerts/preview" takes "AlertTrial", &[], One("AlertPreview"),
              "The episodes that a rule would have had in up to 31 days" }
            { Query ListChannels = channels::list: Read GET "/channels", &[], One("Channels"),
              "List the channels by which alerts are told" }
            { Query ShowChannel = channels::show: Read GET "/channels/{id}", &[], One("Channel"),
              "Show a channel, without what is secret" }
            { Query PutChannel = channels::put: Admin PUT "/channels/{id}" takes "NewChannel", &[], One("Channel"),
              "Save a channel, at most 10; without its secret, the stored one stays" }
            { Query DeleteChannel = channels::delete: Admin DELETE "/channels/{id}", &[], One("Deletion"),
              "Delete a channel and its secret" }
            { Query TestChannel = channels::test: Admin POST "/channels/{id}/test" takes "Nothing", &[], One("WaitingTest"),
              "Send a test by a channel, within a minute" }
            { Query ListSources = sources_edit::list: Read GET "/sources", &[], One("Sources"),
              "List the sources that are asked, and the kinds of sources" }
            { Query ShowSource = sources_edit::show: Read GET "/sources/{id}", &[], One("Source"),
              "Show a source and its state; its settings to an admin, and its secrets to nobody" }
            { Query PutSource = sources_edit::put: Admin PUT "/sources/{id}" takes "NewSource", &[], One("Source"),
              "Save a source, at most 20; without its secrets, those stored for the same request stay" }
            { Query DeleteSource = sources_edit::delete: Admin DELETE "/sources/{id}", &[], One("Deletion"),
              "Delete a source and its secrets; its readings stay" }
            { Query TestSource = sources_trial::test: Admin POST "/sources/test" takes "NewSource", &[], One("SourceTest"),
              "Ask a source and store nothing" }
            { Query Mcp = mcp::answer: Read POST "/mcp" takes "McpMessage", &[], Message("McpAnswer"),
              "Answer a language model's tools, by the Model Context Protocol" }
            { Query InfluxQl = influxql::query: Any GET "/query" | POST "/query" takes "InfluxQl"
              | GET "/influx/query" | POST "/influx/query" takes "InfluxQl", INFLUXQL, Influx,
              "Ask in InfluxQL, as Grafana does" }
            { Query Health = health::health: Public GET "/health" | GET "/influx/health", HEALTH, One("Health"),
              "Check the health of the system" }
            { Query OpenApi: Read GET "/openapi.json", &[], One("OpenApi"), "This API as an OpenAPI 3.1 document" }
            { Ingest WriteLines: Write POST "/write" takes "LineProtocol" | POST "/influx/write" takes "LineProtocol"
              | POST "/api/v2/write" takes "LineProtocol" | POST "/influx/api/v2/write" takes "LineProtocol"
              | POST "/api/v3/write_lp" takes "LineProtocol" | POST "/influx/api/v3/write_lp" takes "LineProtocol",
              LINES, Influx,
              "Store line protocol" }
            { Query InfluxPing: Public GET "/ping" | GET "/influx/ping", &[], Influx, "Answer a ping of InfluxDB's clients" }
            { Query InfluxReady: Public GET "/ready" | GET "/influx/ready", &[], Influx,
              "Tell InfluxDB's clients that the system is ready" }
            { Query InfluxBuckets: Any GET "/api/v2/buckets" | GET "/influx/api/v2/buckets", &[], Influx, "The one bucket" }
            { Query InfluxOrgs: Any GET "/api/v2/orgs" | GET "/influx/api/v2/orgs", &[], Influx, "The one organisation" }
            { Query InfluxFlux: Any POST "/api/v2/query" takes "Flux" | POST "/influx/api/v2/query" takes "Flux", &[], Influx,
              "Refuse Flux" }
            { Query WebPage: Public GET "/", &[], File(&["text/html"]), "The web page" }
            { Query WebFile: Public GET "/assets/{id}", &[], File(&["text/javascript", "text/css", "image/svg+xml"]),
              "A file of the web page" }
        }
    };
}

// Makes operations and endpoints from the rows. An operation may have several endpoints.
macro_rules! table {
    ($({
        $function:ident $operation:ident $(= $($handler:ident)::+ $(($scope:ident))?)?:
        $access:ident $($method:ident $path:literal $(takes $body:literal)?)|+,
        $parameters:expr, $reply:expr, $summary:literal $(, $payload:expr)?
    })*) => {
        /// An operation of the API, which one handler answers.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each is described by its endpoint's summary")]
        pub enum Operation {
            $($operation,)*
        }

        impl Operation {
            /// The name of the operation in the document of the API.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$operation => stringify!($operation),)*
                }
            }

            /// The format of the payloads that the operation takes; `None` if the API itself defines the body.
            pub const fn payload(self) -> Option<PayloadFormat> {
                match self {
                    $(Self::$operation => first(&[$($payload)?]),)*
                }
            }
        }

        /// All endpoints.
        pub const ENDPOINTS: &[Endpoint] = &[$($(Endpoint {
            method: stringify!($method),
            path: $path,
            operation: Operation::$operation,
            function: Function::$function,
            access: Access::$access,
            parameters: $parameters,
            body: first(&[$($body)?]),
            reply: $reply,
            summary: $summary,
        },)+)*];
    };
}

crate::endpoints!(table);

/// The value of an optional column; `None` if the row has no value there.
const fn first<T: Copy>(values: &[T]) -> Option<T> {
    match values {
        [] => None,
        [value, ..] => Some(*value),
    }
}
