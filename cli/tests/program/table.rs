//! Commands on a table without a system around it, as a restored one is: only its keys and its address are known.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::export::export;
use crate::private::engine_of;
use crate::server::{self, PROGRAM, Server};

const READINGS: &str = r#"[
    {"device_id": "meter", "timestamp": "2026-01-11T16:00:00Z", "room": "hall", "current_w": 512.50},
    {"device_id": "meter", "timestamp": "2026-01-11T16:01:00Z", "room": "hall", "current_w": 1},
    {"device_id": "desk", "timestamp": "2026-01-11T16:00:00Z", "temperature": 21}]"#;

/// Runs the program on the table that the server in `data` has, by the API of `DynamoDB` alone.
fn run(data: &Path, table: Option<&str>, words: &[&str]) -> (Option<i32>, String) {
    let config = engine_of(data);
    let mut command = Command::new(PROGRAM);
    let command = command.args(words).args(["--table", table.unwrap_or(&config.table)]);
    let command = command.args(["--region", "eu-west-1", "--endpoint", &config.endpoint.unwrap()]);
    let command = command.env("AWS_ACCESS_KEY_ID", config.credentials.access_key_id);
    let command = command.env("AWS_SECRET_ACCESS_KEY", config.credentials.secret_access_key);
    server::run_process(command)
}

#[test]
fn readings_are_exported_from_a_table_as_from_a_server() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let server = Server::start(&data);
    let posted = ureq::post(format!("{}/readings", server.url)).send(READINGS).unwrap();
    assert_eq!(posted.status(), 201);
    let file = |name: &str| directory.path().join(name);
    let to = |name: &str| file(name).display().to_string();

    let (code, said) = run(&data, None, &["export", &to("table.ndjson")]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("3 readings of 2 devices"), "{said}");
    export(&server, &file("server.ndjson"), &[]);
    let text = std::fs::read_to_string(file("table.ndjson")).unwrap();
    assert_eq!(text, std::fs::read_to_string(file("server.ndjson")).unwrap());
    assert!(text.contains(r#""current_w":512.5"#), "{text}");

    let part = ["export", &to("part.csv"), "--device", "desk"];
    assert_eq!(run(&data, None, &part).0, Some(0));
    let part = std::fs::read_to_string(file("part.csv")).unwrap();
    assert_eq!(part.lines().count(), 2, "{part}");

    let (code, said) = run(&data, Some("no-table"), &["export", &to("none.ndjson")]);
    assert_eq!(code, Some(1));
    assert!(said.contains("the table no-table cannot be read"), "{said}");
    assert!(!file("none.ndjson").exists());
}

#[test]
fn status_tells_the_same_of_a_server_of_its_data_and_of_its_table() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let server = Server::start(&data);
    ureq::post(format!("{}/readings", server.url)).send(READINGS).unwrap();
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let own = |words: &[&str]| server::run(Command::new(PROGRAM).arg("status").args(words));
    let (code, told) = own(&["--json", "--url", &server.url]);
    assert_eq!(code, Some(0), "{told}");
    let told = json(&told);
    assert_eq!((&told["devices"], &told["more_devices"]), (&2.into(), &false.into()), "{told}");
    assert_eq!(told["newest_reading"], "2026-01-11T16:01:00.000Z", "{told}");
    let of_data = own(&["--json", "--data-dir", &data.display().to_string()]).1;
    let of_table = run(&data, None, &["status", "--json"]).1;
    for other in [json(&of_data), json(&of_table)] {
        for member in ["devices", "newest_reading", "time_zone", "command_version"] {
            assert_eq!(other[member], told[member], "{member}");
        }
    }
    let (_, text) = own(&["--url", &server.url]);
    assert!(text.contains("answers\n  devices  2 devices\n  newest   2026-01-11T16:01"), "{text}");

    let opened = server::run(Command::new(PROGRAM).args(["open", "--print", "--url", &server.url]));
    assert_eq!(opened, (Some(0), format!("{}/\n", server.url)));
    drop(server);
    for command in ["status", "open"] {
        let mut asked = Command::new(PROGRAM);
        let (code, said) = server::run(asked.args([command, "--url", "http://127.0.0.1:1"]));
        assert_eq!(code, Some(1));
        assert!(said.contains("cannot reach http://127.0.0.1:1"), "{said}");
    }
}

#[test]
fn a_list_of_tokens_is_json_and_the_first_ones_are_made_once() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let _server = Server::start(&data);
    let (code, made) = run(&data, None, &["token", "first"]);
    assert_eq!((code, made.matches(": rt_").count()), (Some(0), 3), "{made}");
    let (code, again) = run(&data, None, &["token", "first"]);
    assert_eq!(code, Some(1));
    assert!(again.contains("has tokens already"), "{again}");
    let listed: Value =
        serde_json::from_str(&run(&data, None, &["token", "list", "--json"]).1).unwrap();
    let mut scopes: Vec<&str> =
        listed.as_array().unwrap().iter().map(|it| it["scope"].as_str().unwrap()).collect();
    scopes.sort_unstable();
    assert_eq!(scopes, ["admin", "read", "write any device"]);
}

#[test]
fn the_version_and_a_qr_code_are_told() {
    let version = Command::new(PROGRAM).arg("--version").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    assert!(version.starts_with(concat!("roomtide ", env!("CARGO_PKG_VERSION"))), "{version}");
    let mut drawing = Command::new(PROGRAM);
    let drawing = drawing.arg("qr").stdin(std::process::Stdio::piped());
    let mut drawing = drawing.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut input = drawing.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"https://page.example/\n").unwrap();
    drop(input);
    let drawn = String::from_utf8(drawing.wait_with_output().unwrap().stdout).unwrap();
    // 25 modules, with four around them, two a line; without colours, because this is no terminal.
    assert_eq!(drawn.lines().count(), 17, "{drawn}");
    assert!(!drawn.contains('\u{1b}'));
}
