//! A server's answers about sources, as text for people. Sends no request.

use std::fmt::Write as _;

use serde_json::Value;

use super::file::EXTRAS;
use crate::answer_text::{columns, elements, list, shown, text, texts};
use crate::output::counted;

/// Members of an answer that are not shown as settings, beside those that a person does not write.
const TOLD: [&str; 3] = ["kind", "on", "warnings"];

/// The sources, one per line, and those that cannot be read.
pub(super) fn sources(answer: &Value) -> String {
    let rows: Vec<_> = list(answer).iter().map(row).collect();
    let mut lines = columns(&rows);
    for damaged in texts(answer, "damaged") {
        writeln!(lines, "{damaged}; it is not asked").unwrap_or_default();
    }
    if lines.is_empty() {
        return "no sources; roomtide sources set --help says how to make one".to_owned();
    }
    lines
}

fn row(source: &Value) -> [String; 4] {
    let kind = text(source, "kind").to_owned();
    [text(source, "id").to_owned(), kind, status(source), news(source)]
}

/// The status of a source, in a word.
fn status(source: &Value) -> String {
    if source["on"] == false { "off" } else { text(&source["state"], "state") }.to_owned()
}

/// The time since when a source fails, the time of its next request, and the reason of a refusal.
fn news(source: &Value) -> String {
    let state = &source["state"];
    let mut news = Vec::new();
    news.extend(state["failing_since"].as_str().map(|since| format!("fails since {since}")));
    let next = state["next"].as_str();
    news.extend(next.map(|next| format!("asked each {}, next {next}", text(state, "every"))));
    let news = news.join(", ");
    match state["error"].as_str() {
        Some(error) if news.is_empty() => error.to_owned(),
        Some(error) => format!("{news}: {error}"),
        None => news,
    }
}

/// The text of a source with its settings.
pub(super) fn source(source: &Value) -> String {
    let mut lines = columns(&[row(source)]);
    let state = &source["state"];
    let requests = counted(state["requests_today"].as_u64().unwrap_or_default(), "request");
    let answered = state["last_success"].as_str();
    let answered = answered.map_or("not answered yet".to_owned(), |at| format!("answered {at}"));
    let host = text(source, "host");
    writeln!(lines, "  {host} {answered}, {requests} today").unwrap_or_default();

    let devices: Vec<_> = texts(source, "devices").collect();
    if !devices.is_empty() {
        writeln!(lines, "  devices {}", devices.join(", ")).unwrap_or_default();
    }

    for (name, value) in source.as_object().into_iter().flatten() {
        if !TOLD.contains(&name.as_str()) && !EXTRAS.contains(&name.as_str()) {
            writeln!(lines, "  {name} {}", shown(value)).unwrap_or_default();
        }
    }

    if let Some(credit) = source["credit"].as_str() {
        writeln!(lines, "  {credit}").unwrap_or_default();
    }
    lines
}

/// The text of all kinds of sources with their members.
pub(super) fn kinds(answer: &Value) -> String {
    let mut lines = String::new();
    for kind in elements(answer, "kinds") {
        let (name, title, every) = (text(kind, "kind"), text(kind, "title"), text(kind, "every"));
        writeln!(lines, "{name}: {title}, asked each {every}").unwrap_or_default();
        let members = elements(kind, "members");
        let rows: Vec<_> = members.map(member).collect();
        lines += &columns(&rows);
        writeln!(lines, "  {}", text(kind, "where")).unwrap_or_default();
    }
    lines
}

/// A member of a kind, in the form in which it is typed.
fn member(member: &Value) -> [String; 2] {
    let value = match text(member, "form") {
        "secret" => "@FILE",
        "flag" => "true|false",
        "number" => "NUMBER",
        _ => "VALUE",
    };
    let hint = text(member, "hint");
    let choices: Vec<_> = texts(member, "choices").collect();
    let one_of =
        if choices.is_empty() { String::new() } else { format!(": {}", choices.join(", ")) };
    let may_lack = if member["is_needed"] == true { "" } else { " (may be left out)" };
    [format!("  {}={value}", text(member, "name")), format!("{hint}{one_of}{may_lack}")]
}

/// The result of a test.
pub(super) fn test(answer: &Value) -> String {
    let mut lines = String::new();
    for request in elements(answer, "requests") {
        let (host, status) = (text(request, "host"), &request["status"]);
        let (milliseconds, bytes) = (&request["ms"], request["bytes"].as_u64().unwrap_or_default());
        let bytes = counted(bytes, "byte");
        writeln!(lines, "{host} answers {status} in {milliseconds} ms, {bytes}")
            .unwrap_or_default();
    }

    let devices: Vec<_> = elements(answer, "devices").map(device).collect();
    lines += &columns(&devices);
    let readings: Vec<_> = elements(answer, "readings").map(reading).collect();
    lines += &columns(&readings);
    if devices.is_empty() && readings.is_empty() {
        lines += "no device and no value\n";
    }

    for refused in texts(answer, "rejected") {
        writeln!(lines, "cannot be taken: {refused}").unwrap_or_default();
    }

    let ignored: Vec<_> = texts(answer, "ignored").collect();
    if !ignored.is_empty() {
        writeln!(lines, "passed over: {}", ignored.join(", ")).unwrap_or_default();
    }
    for (pointer, number) in answer["numbers"].as_object().into_iter().flatten() {
        writeln!(lines, "{pointer} {}", shown(number)).unwrap_or_default();
    }
    lines + "nothing is stored\n"
}

/// The line of a device: the id, the room, and the name at the maker.
fn device(device: &Value) -> [String; 3] {
    let room = device["room"].as_str().map_or("no room".to_owned(), |room| format!("room {room}"));
    [format!("device {}", text(device, "id")), room, text(device, "name").to_owned()]
}

/// The line of a reading with its values.
fn reading(reading: &Value) -> [String; 3] {
    let metrics = reading["metrics"].as_object().into_iter().flatten();
    let values: Vec<String> = metrics
        .map(|(name, metric)| {
            let value = shown(&metric["value"]);
            format!("{name} {value} {}", text(metric, "unit")).trim_end().to_owned()
        })
        .collect();
    let (device, at) = (text(reading, "device"), text(reading, "timestamp"));
    [device.to_owned(), at.to_owned(), values.join(", ")]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sources_stand_below_one_another_and_say_when_they_are_asked_and_what_is_wrong() {
        let answer = json!({
            "data": [
                {"id": "pump", "kind": "json", "on": true, "state": {"state": "failing", "every": "5m",
                 "failing_since": "x", "next": "y", "error": "api.example.org answers 500"}},
                {"id": "remo", "kind": "remo", "on": true, "state": {"state": "ok", "every": "1m", "next": "z"}},
                {"id": "flat", "kind": "octopus", "on": false, "state": {"state": "waiting", "error": "e"}},
            ],
            "damaged": ["old: kind: is missing"],
        });
        assert_eq!(
            sources(&answer),
            "pump  json     failing  fails since x, asked each 5m, next y: api.example.org answers 500\n\
             remo  remo     ok       asked each 1m, next z\n\
             flat  octopus  off      e\n\
             old: kind: is missing; it is not asked\n"
        );
        assert!(sources(&json!({"data": []})).starts_with("no sources"));
    }

    #[test]
    fn a_source_is_shown_with_its_settings() {
        let answer = json!({"id": "w", "kind": "weather", "host": "api.open-meteo.com", "on": true,
            "devices": ["outdoors", "b"], "credit": "by Open-Meteo", "latitude": "52.5", "secrets": ["a", "b"],
            "state": {"state": "ok", "every": "1h", "next": "y", "last_success": "x", "requests_today": 1}});
        assert_eq!(
            source(&answer),
            "w  weather  ok  asked each 1h, next y\n  api.open-meteo.com answered x, 1 request today\n  \
             devices outdoors, b\n  latitude 52.5\n  secrets a,b\n  by Open-Meteo\n"
        );
    }

    #[test]
    fn a_kind_says_what_is_typed_and_where_the_secret_is_found() {
        let answer = json!({"kinds": [{"kind": "remo", "title": "Nature Remo", "every": "1m", "where": "on its page",
        "members": [
            {"name": "token", "form": "secret", "is_needed": true, "hint": "the token"},
            {"name": "meter", "form": "flag", "is_needed": false, "hint": "whether there is a meter"},
            {"name": "zone", "form": "choice", "choices": ["AT", "BE"], "is_needed": true, "hint": "the zone"},
        ]}]});
        assert_eq!(
            kinds(&answer),
            "remo: Nature Remo, asked each 1m\n  token=@FILE       the token\n  \
             meter=true|false  whether there is a meter (may be left out)\n  \
             zone=VALUE        the zone: AT, BE\n  on its page\n"
        );
    }

    #[test]
    fn a_test_shows_devices_values_rooms_and_what_cannot_be_taken() {
        let answer = json!({
            "requests": [{"host": "api.nature.global", "status": 200, "ms": 5, "bytes": 1}],
            "devices": [{"id": "a1", "name": "リビング", "room": "room-a1"}, {"id": "b"}],
            "readings": [{"device": "a1", "timestamp": "x", "metrics": {
                "humidity": {"value": 40, "unit": "%"}, "count": {"value": 2, "unit": null}}}],
            "rejected": ["/t is a text", "temperature is no number"],
            "ignored": ["te", "il"], "numbers": {"/a": 21.4},
        });
        assert_eq!(
            test(&answer),
            "api.nature.global answers 200 in 5 ms, 1 byte\n\
             device a1  room room-a1  リビング\ndevice b   no room\n\
             a1  x  count 2, humidity 40 %\n\
             cannot be taken: /t is a text\ncannot be taken: temperature is no number\n\
             passed over: te, il\n/a 21.4\nnothing is stored\n"
        );
        assert_eq!(test(&json!({"requests": []})), "no device and no value\nnothing is stored\n");
    }
}
