//! What tests are given: short constructors of ids, timestamps, readings and events. Holds no state.

use aws_lambda_events::event::apigw::ApiGatewayV2httpRequest;
use domain::{
    Annotated, Annotation, ConditionsSchema, DevicePatch, Edit, Encoding, MetricPatch, Reading,
    SchemaMetric, TimeRange,
};
use serde_json::{Value, json};
pub(crate) use table::given::{
    START, always, at_millis as at, device, device_of, invocation, label, metric, minute, number,
    put_first, register_devices_of, register_room, room, seal, store_home, stored_quarter,
    stored_rollup, tags, unit,
};

/// The answer of a port that is asked with an invocation of its own; a failure ends the test.
macro_rules! answer {
    ($store:ident.$port:ident($($argument:expr),*)) => { answer!(@$store, $port, $($argument),*) };
    ($home:ident.store.$port:ident($($argument:expr),*)) => {
        answer!(@$home.store, $port, $($argument),*)
    };
    ($table:ident.store().$port:ident($($argument:expr),*)) => {
        answer!(@$table.store(), $port, $($argument),*)
    };
    (@$store:expr, $port:ident, $($argument:expr),*) => {
        $store.$port($($argument,)* &crate::given::invocation()).await.expect("the table answers")
    };
}
pub(crate) use answer;

pub(crate) fn range(from: i64, to: i64) -> TimeRange {
    TimeRange::new(at(from), at(to)).expect("a range")
}

/// An annotation of a moment, about a device.
pub(crate) fn annotation(millis: i64, id: &str) -> Annotation {
    Annotation {
        id: format!("{}-note", at(millis)).parse().expect("an id"),
        to: None,
        about: Annotated::Device(device(id)),
        text: label("Kettle"),
    }
}

/// An edit of the settings of a metric.
pub(crate) fn patch_of(name: &str, settings: MetricPatch) -> DevicePatch {
    DevicePatch { metrics: [(metric(name), Some(settings))].into(), ..DevicePatch::default() }
}

/// A person puts a device into a room.
pub(crate) fn into_room(id: &str) -> DevicePatch {
    DevicePatch { room: Edit::Set(room(id)), ..DevicePatch::default() }
}

/// A person names a device.
pub(crate) fn named(name: &str) -> DevicePatch {
    DevicePatch { name: Edit::Set(label(name)), ..DevicePatch::default() }
}

/// A reading without a room.
pub(crate) fn reading(id: &str, millis: i64, metrics: &[(&str, &str)]) -> Reading {
    table::given::reading(id, at(millis), None, metrics)
}

/// A temperature in a room.
pub(crate) fn reading_in(id: &str, millis: i64, in_room: &str) -> Reading {
    placed(reading(id, millis, &[("temperature", "21.5")]), in_room)
}

/// The reading, in a room.
pub(crate) fn placed(mut reading: Reading, in_room: &str) -> Reading {
    reading.room = Some(room(in_room));
    reading.named_room.clone_from(&reading.room);
    reading
}

/// A reading as a client sends it.
pub(crate) fn sent(reading: &Reading) -> Value {
    let mut body =
        json!({"device_id": reading.device.as_str(), "timestamp": reading.at.to_string()});
    if let Some(room) = &reading.room {
        body["room"] = room.as_str().into();
    }
    for (name, value) in reading.metrics() {
        body[name.as_str()] = serde_json::from_str(value.as_str()).expect("a number is JSON");
    }
    body
}

/// `POST /readings`, as API Gateway hands it to the function.
pub(crate) fn post(readings: &[Reading]) -> ingest::Event {
    let body: Value = readings.iter().map(sent).collect();
    ingest::Event::Http(Box::new(request("POST", "/readings", "", Some(&body))))
}

/// A request, as API Gateway hands it to a function.
pub(crate) fn request(
    method: &str,
    path: &str,
    query: &str,
    body: Option<&Value>,
) -> ApiGatewayV2httpRequest {
    let event = json!({
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": query,
        "headers": {"content-type": "application/json"},
        "requestContext": {
            "http": {"method": method, "path": path}, "requestId": "test", "stage": "$default",
        },
        "body": body.map(Value::to_string),
        "isBase64Encoded": false,
    });
    serde_json::from_value(event).expect("an event of API Gateway")
}

/// A text as the value of a parameter in an address.
pub(crate) fn percent_encoded(text: &str) -> String {
    let encoded = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encoded).collect()
}

/// An answer, taken apart.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: i64,
    pub(crate) headers: Value,
    pub(crate) body: Value,
}

impl Answer {
    /// What a function gave back to API Gateway.
    pub(crate) fn of(response: &impl serde::Serialize) -> Self {
        let response = serde_json::to_value(response).expect("an answer is JSON");
        let body = response["body"].as_str().unwrap_or_default();
        Self {
            status: response["statusCode"].as_i64().expect("an answer has a status"),
            headers: response["headers"].clone(),
            body: serde_json::from_str(body).unwrap_or_default(),
        }
    }

    /// The read units and the write units that it says it cost.
    pub(crate) fn units(&self) -> (f64, f64) {
        let units = |name: &str| {
            let text = self.headers[name].as_str().expect("text");
            text.parse().expect("a number")
        };
        (units("x-consumed-read-units"), units("x-consumed-write-units"))
    }
}

/// A schema of temperature and humidity.
pub(crate) fn schema(version: u8) -> ConditionsSchema {
    schema_of(version, &[("temperature", "15", "30"), ("humidity", "20", "80")])
}

/// A schema of metrics with their domains.
pub(crate) fn schema_of(version: u8, domains: &[(&str, &str, &str)]) -> ConditionsSchema {
    let metric = |(name, low, high): &(&str, &str, &str)| {
        let knots = [low, high].map(|it| number(it));
        SchemaMetric { name: metric(name), encoding: Encoding::Decimal(knots.into()), bits: 12 }
    };
    ConditionsSchema::new(version, domains.iter().map(metric).collect()).expect("a schema")
}
