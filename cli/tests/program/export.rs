//! Exports in each format: what comes back by an import, while somebody writes or deletes, on a full disk.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::json;

use crate::server::{PROGRAM, Server, run, run_process};

/// Exports what a server has.
pub(crate) fn export(server: &Server, file: &Path, more: &[&str]) -> String {
    let mut command = Command::new(PROGRAM);
    let (code, said) = run(command.args(["export", "--url", &server.url]).args(more).arg(file));
    assert_eq!(code, Some(0), "{said}");
    said
}

fn import(server: &Server, file: &Path) -> String {
    let mut command = Command::new(PROGRAM);
    let (code, said) = run(command.args(["import", "--url", &server.url]).arg(file));
    assert_eq!(code, Some(0), "{said}");
    said
}

/// Readings as texts: ids that a mapping of tags could not give back, and numbers that a float could not.
fn hostile() -> Vec<String> {
    let long = "d".repeat(128);
    let ids = [
        "a4:cf:12:00:00:01",
        "pi::cpu",
        "-plug",
        "null",
        "nan",
        "plug-abcdefghijkl",
        "readings",
        "a..b",
        "digits",
        &long,
    ];
    let numbers = [
        "12345678901234567890123456789012345678",
        "0.1234567890123456789012345678901234567",
        "-1.5e-100",
        "9.99e125",
        "0",
        "-0.001",
        "9007199254740993",
        "21.50",
    ];
    let mut all = Vec::new();
    for (n, id) in ids.iter().enumerate() {
        for (m, number) in numbers.iter().enumerate() {
            // A device moves, and has readings without a room.
            let room = match m {
                0..3 => r#","room":"attic:1""#,
                3..6 => r#","room":"-hall""#,
                _ => "",
            };
            let at = format!("2026-01-11T16:{n:02}:{m:02}.00{m}Z");
            let metrics = format!(r#""time":{number},"value":{number},"temperature_f":{m}"#);
            all.push(format!(r#"{{"device_id":"{id}","timestamp":"{at}"{room},{metrics}}}"#));
        }
    }
    all
}

/// A home whose rooms are all named by readings.
fn furnish(server: &Server) {
    server.send("POST", "/readings", &hostile().join("\n"));
    // What a line teaches: names, units, tags, a counter.
    let lines = "kWh,domain=sensor,entity_id=zähler\\ 1 value=5.25,device_class_str=\"energy\",friendly_name_str=\"Zähler = \\\"Keller\\\", 1\",state_class_str=\"total_increasing\" 1768147200000000000\n\
                 cpu,host=pi,room=Küche\\ 1 usage_idle=98.5 1768147200000000000\n";
    server.send("POST", "/write", lines);
    server.wait_for("/devices", |it| it["data"].as_array().unwrap().len() == 12);
    server.wait_for("/devices/-plug", |it| it["metrics"]["temperature_f"].is_object());
    let name = "a=b \"c\", 'd' \\ Küche";
    for (path, patch) in [
        ("/devices/-plug", json!({"name": name, "room": "-hall", "tags": ["a b", "=c"]})),
        ("/devices/-plug", json!({"metrics": {"value": {"kind": "counter", "unit": "m³"}}})),
        (
            "/devices/null",
            json!({"kind": "power", "attributes": {"firmware": "1.10=2", "ports": ["a", "b"]}}),
        ),
        ("/rooms/attic:1", json!({"name": "Attic, \"1\" = top"})),
    ] {
        server.send("PATCH", path, &patch.to_string());
    }
    server.wait_for("/rooms/attic:1", |it| it["name"].is_string());
    server.wait_for("/devices/null", |it| it["attributes"].is_object());
}

#[test]
fn an_imported_export_is_exported_again_byte_for_byte() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let server = Server::start(&at("old"));
    furnish(&server);
    let files = ["readings.lp", "readings.csv", "readings.ndjson"];
    files.iter().for_each(|name| drop(export(&server, &at(name), &[])));
    let mut asked = Command::new(PROGRAM);
    let asked = asked.args(["export", "--url", &server.url, "--format", "lp", "-"]);
    let (_, as_asked) = run_process(asked);
    let lines = fs::read_to_string(at("readings.lp")).unwrap();
    assert_eq!(as_asked, lines, "standard output");
    let digits = "0.1234567890123456789012345678901234567";
    let line = format!("room=attic:1 temperature_f=1,Time={digits},value={digits} 17681472");
    assert!(lines.contains(&line) && lines.contains(",Time=-1.5E-100,"), "{lines}");
    drop(server);

    for (name, has_settings) in [("readings.lp", true), ("readings.csv", false)] {
        let server = Server::start(&at(&format!("of-{name}")));
        import(&server, &at(name));
        server.wait_for("/devices", |it| it["data"].as_array().unwrap().len() == 12);
        let again = format!("again-{name}");
        export(&server, &at(&again), &[]);
        let [before, after] = [name, &again].map(|name| fs::read_to_string(at(name)).unwrap());
        assert_eq!(after, before, "{name}");
        // NDJSON says what CSV does not hold: kinds, units and names come back with line protocol only.
        export(&server, &at("again.ndjson"), &[]);
        let readings = |name: &str| -> Vec<String> {
            let text = fs::read_to_string(at(name)).unwrap();
            let is_reading = |line: &&str| line.starts_with("{\"device_id\"");
            text.lines().filter(is_reading).map(str::to_owned).collect()
        };
        assert_eq!(readings("again.ndjson"), readings("readings.ndjson"), "{name}");
        if has_settings {
            let [before, after] =
                ["readings.ndjson", "again.ndjson"].map(|it| fs::read_to_string(at(it)).unwrap());
            assert_eq!(after, before, "the settings too");
            let said = import(&server, &at(name));
            assert!(said.contains("readings stored"), "{said}");
            let mut command = Command::new(PROGRAM);
            let command = command.args(["import", "--url", &server.url, "--only", "a"]);
            let (code, said) = run(command.arg(at(name)));
            assert_eq!(code, Some(1), "{said}");
            assert!(said.contains("is an export of Roomtide; --from, --to and --only"), "{said}");
        }
    }
}

/// Posts readings of a device that is known and of ever new ones, until it is told to end; the number of posts.
fn write_on(url: &str, end: &AtomicBool, posts: &AtomicU64) {
    while !end.load(Ordering::Acquire) {
        let n = posts.fetch_add(1, Ordering::AcqRel);
        let at = 1_768_147_200_000 + n;
        let body = format!(
            "{{\"device_id\":\"known\",\"timestamp\":{at},\"t\":{n}}}\n{{\"device_id\":\"new-{n}\",\"timestamp\":{at},\"m{}\":{n}}}",
            n % 50
        );
        ureq::post(format!("{url}/readings")).send(body).unwrap();
    }
}

/// Addresses and bodies may be secret too.
#[test]
fn no_export_has_a_source_or_its_secret() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let server = Server::start(&at("data"));
    let source = json!({
        "kind": "json", "url": "https://api.example.invalid/geheim-path", "headers": {"x-api-key": "{key}"},
        "secrets": {"key": "geheim-key"}, "metrics": {"temperature": "/flow"},
    });
    server.send("PUT", "/sources/pump", &source.to_string());
    let reading = json!({"device_id": "pump", "room": "hall", "temperature": 20});
    server.send("POST", "/readings", &reading.to_string());
    server.wait_for("/devices", |devices| devices.to_string().contains("hall"));

    let files = ["a.ndjson", "a.lp", "a.csv"];
    let mut said: Vec<String> = files.iter().map(|name| export(&server, &at(name), &[])).collect();
    let mut asked = Command::new(PROGRAM);
    said.push(run_process(asked.args(["export", "--url", &server.url, "-"])).1);
    said.extend(files.iter().map(|name| fs::read_to_string(at(name)).unwrap()));
    drop(server);

    let mut rollups = Command::new(PROGRAM);
    rollups.args(["export", "--rollups", "--data-dir"]).arg(at("data")).arg(at("rollups.ndjson"));
    let (code, text) = run(&rollups);
    assert_eq!(code, Some(0), "{text}");
    said.extend([text, fs::read_to_string(at("rollups.ndjson")).unwrap()]);

    assert!(said.iter().filter(|text| text.contains("pump")).count() >= 4, "{said:?}");
    assert!(!said.iter().any(|text| text.contains("geheim")), "{said:?}");
}

#[test]
fn an_export_while_somebody_writes_has_all_that_was_there_before() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"));
    let before: Vec<String> = (0..12_000_i64)
        .map(|n| format!(r#"{{"device_id":"known","timestamp":{},"t":1}}"#, 1_700_000_000 + n))
        .collect();
    for part in before.chunks(2_000) {
        server.send("POST", "/readings", &part.join("\n"));
    }
    let (end, posts) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let writer = {
        let (url, end, posts) = (server.url.clone(), Arc::clone(&end), Arc::clone(&posts));
        std::thread::spawn(move || write_on(&url, &end, &posts))
    };
    for name in ["a.ndjson", "a.lp", "a.csv", "a.parquet"] {
        let written = posts.load(Ordering::Acquire);
        let path = directory.path().join(name);
        export(&server, &path, &[]);
        if name == "a.parquet" {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.ends_with('\n'), "{name} ends in the middle of a line");
        let known = |line: &&str| {
            line.starts_with("{\"device_id\":\"known\"")
                || line.starts_with("readings,device_id=known ")
                || line.contains(",known,")
        };
        let all: Vec<&str> = text.lines().filter(known).collect();
        let expected = 12_000 + usize::try_from(written).unwrap().saturating_sub(1);
        assert!(all.len() >= expected, "{name}: {} of {expected}", all.len());
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{name}: each once");
    }
    assert!(posts.load(Ordering::Acquire) > 4, "nobody wrote");
    end.store(true, Ordering::Release);
    writer.join().unwrap();
}

/// A server of three devices, and its address. One is deleted after its first page, one before.
fn deleting() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = String::new();
            BufReader::new(stream.try_clone().unwrap()).read_line(&mut request).unwrap();
            let reading = |id: &str| {
                format!(r#"{{"device_id":"{id}","timestamp":"2026-01-11T16:00:00.000Z","t":1}}"#)
            };
            let (status, body) = match request.split(' ').nth(1).unwrap() {
                it if it.contains("cursor=") => {
                    ("410 Gone", r#"{"detail":"is being deleted"}"#.to_owned())
                }
                it if it.starts_with("/devices/gone/") => {
                    ("200 OK", format!(r#"{{"data":[{}],"next_cursor":"x"}}"#, reading("gone")))
                }
                it if it.starts_with("/devices/here/") => {
                    ("200 OK", format!(r#"{{"data":[{}]}}"#, reading("here")))
                }
                it if it.starts_with("/devices/never/") => ("404 Not Found", "{}".to_owned()),
                "/ready" => ("200 OK", r#"{"status":"ready","up":"0s"}"#.to_owned()),
                it if it.starts_with("/devices") => (
                    "200 OK",
                    r#"{"data":[{"device_id":"gone"},{"device_id":"here"},{"device_id":"never"}]}"#
                        .to_owned(),
                ),
                _ => ("200 OK", r#"{"data":[]}"#.to_owned()),
            };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
            );
            stream.write_all([head, body].concat().as_bytes()).unwrap();
        }
    });
    url
}

#[test]
fn a_device_that_is_deleted_meanwhile_ends_no_export_and_is_named() {
    let url = deleting();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.ndjson");
    let mut command = Command::new(PROGRAM);
    let (code, said) = run(command.args(["export", "--url", &url]).arg(&file));
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("deleted meanwhile") && said.contains(": gone, never"), "{said}");
    let text = fs::read_to_string(&file).unwrap();
    let described: Vec<_> = text.lines().filter(|it| it.starts_with("{\"device\":")).collect();
    assert_eq!(described, [r#"{"device":{"device_id":"here"}}"#]);
    assert_eq!(text.lines().count(), 3, "{text}");
}

#[test]
fn a_full_disk_fails_an_export_which_names_the_file_and_leaves_none() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"));
    // Digits that gzip cannot shorten.
    let mut random = fastrand::Rng::with_seed(1);
    let readings: Vec<String> = (0..4_000_i64)
        .map(|n| {
            let at = 1_768_147_200 + n;
            format!(
                r#"{{"device_id":"d","timestamp":{at},"room":"r","t":{}}}"#,
                random.u64(1 << 50..1 << 60)
            )
        })
        .collect();
    for part in readings.chunks(1_000) {
        server.send("POST", "/readings", &part.join("\n"));
    }
    server.wait_for("/devices", |it| it["data"].as_array().unwrap().len() == 1);
    let place = directory.path().join("place");
    fs::create_dir(&place).unwrap();
    // The room's readings are sorted first; so few of them in memory.
    let room = ["--room", "r"];
    // A shell's limit of the size of files, beyond which writing fails as on a full disk.
    let limit = "trap '' XFSZ; ulimit -f 20; exec \"$@\"";
    for (name, more, expected) in [
        ("a.ndjson", &[][..], "cannot write "),
        ("a.ndjson.gz", &[], "cannot write "),
        ("a.lp", &[], "cannot write "),
        ("a.csv", &[], "cannot write a temporary file of all rows"),
        ("a.parquet", &[], "cannot write "),
        ("a.parquet", &room, "cannot write "),
    ] {
        let mut command = Command::new("sh");
        command.args(["-c", limit, "sh", PROGRAM, "export", "--url", &server.url]);
        command.args(more);
        let (code, said) = run_process(command.arg(place.join(name)));
        assert_eq!(code, Some(1), "{name}: {said}");
        assert!(said.contains(expected) && said.contains("os error"), "{name}: {said}");
        assert!(expected.contains("temporary") || said.contains("place"), "{name}: {said}");
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0, "{name} leaves a file");
    }
}
