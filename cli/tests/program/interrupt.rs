//! An import that is ended by Ctrl-C or killed: what is stored, and how it continues. An export that a signal ends.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::server::{self, PROGRAM, ROUND, ROUNDS, Server};

#[test]
fn an_interrupted_import_says_what_is_stored_and_how_to_continue() {
    ["-INT", "-TERM"].into_iter().for_each(interrupt_by);
}

fn interrupt_by(signal: &str) {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let file = directory.path().join("readings.ndjson");
    let mut writer = std::io::BufWriter::new(fs::File::create(&file).unwrap());
    for n in 0..30_000 {
        let at = 1_768_147_200 + n;
        writeln!(writer, r#"{{"device_id": "d", "timestamp": {at}, "t": 1}}"#).unwrap();
    }
    writer.into_inner().unwrap();

    let mut import = Command::new(PROGRAM);
    let import = import.arg("import").arg(&file).args(["--url", &server.url, "--batch", "100"]);
    let mut import = import.stderr(Stdio::piped()).spawn().unwrap();
    // Until the first reading is stored.
    let latest = format!("{}/devices/d/latest", server.url);
    let is_stored = || ureq::get(&latest).call().is_ok();
    assert!((0..400).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        is_stored()
    }));
    std::thread::sleep(Duration::from_millis(200));
    kill(signal, import.id());
    assert_eq!(import.wait().unwrap().code(), Some(130));
    let stderr = BufReader::new(import.stderr.take().unwrap()).lines();
    let lines: Vec<String> = stderr.map(Result::unwrap).collect();
    let said = lines.last().unwrap();
    assert!(said.starts_with("roomtide: stopped; ") && said.ends_with(": interrupted"), "{said}");
    assert!(said.contains(" stored, the same command "), "{said}");
    let state = directory.path().join("readings.ndjson.roomtide-import");
    let state = fs::read_to_string(state).unwrap();
    let before = r#"{"device":{"id":"d","before":{"is_new":true,"has_past":false,"from":"2026-01-11T16:00:00.000Z""#;
    assert!(state.contains(before), "it can be taken back: {state}");
}

#[test]
fn a_shuffled_file_is_sent_by_time_and_continues_after_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let file = directory.path().join("shuffled.ndjson");
    let count = 3 * ROUND;
    // A step that has no divisor in common with the count visits each second once.
    let lines = (0..count).map(|n| {
        let second = n * 17_389 % count;
        format!(r#"{{"device_id": "d", "timestamp": {}, "t": {second}}}"#, 1_768_147_200 + second)
    });
    fs::write(&file, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let import = || {
        let mut import = Command::new(PROGRAM);
        import.arg("import").arg(&file).args(["--url", &server.url]).args(ROUNDS);
        import
    };

    let mut killed = import().stderr(Stdio::null()).spawn().unwrap();
    let state = directory.path().join("shuffled.ndjson.roomtide-import");
    server::wait_for_stored_lines(&state);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let state = server::stored_lines(&state).unwrap();
    let sent = state["lines"].as_i64().unwrap();
    let newest = chrono::DateTime::from_timestamp(1_768_147_200 + sent - 1, 0).unwrap();
    let newest = newest.to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
    assert_eq!(state["witness"]["timestamp"], newest, "the oldest are sent first");

    let (_, said) = server::run(&import());
    assert!(said.contains(&format!("{sent} lines are processed already")), "{said}");
    assert!(said.contains(&format!("{} readings stored", count - sent)), "{said}");
    let range = "from=2026-01-11T16:00:00Z&to=2026-01-13T00:00:00Z&limit=10000";
    let mut found = 0;
    let mut cursor = String::new();
    loop {
        let url = format!("{}/devices/d/readings?{range}{cursor}", server.url);
        let page = ureq::get(&url).call().unwrap().body_mut().read_to_string().unwrap();
        let page: Value = serde_json::from_str(&page).unwrap();
        for row in page["data"].as_array().unwrap() {
            assert_eq!(row["t"], found);
            found += 1;
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found, count);
}

/// A server of one device whose readings never come; its address.
fn stalling() -> String {
    fn answer(mut stream: TcpStream) -> std::io::Result<()> {
        let mut request = String::new();
        let mut lines = BufReader::new(stream.try_clone()?);
        lines.read_line(&mut request)?;
        if request.contains("/readings") {
            std::thread::sleep(Duration::from_secs(60));
        }
        let body = if request.contains("/ready") {
            r#"{"status": "ready", "up": "0s"}"#
        } else if request.contains("/devices") {
            r#"{"data": [{"device_id": "d"}]}"#
        } else {
            r#"{"data": []}"#
        };
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || answer(stream.unwrap()));
        }
    });
    url
}

fn kill(signal: &str, id: u32) {
    let killed = Command::new("kill").args([signal, &id.to_string()]).status().unwrap();
    assert!(killed.success());
}

fn files(directory: &Path) -> usize {
    fs::read_dir(directory).unwrap().count()
}

/// Whether whoever runs these tests ignores a signal, as `nohup` does with a hangup and a shell with Ctrl-C in what it
/// runs in the background: then what they start ignores it too.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[test]
fn an_import_that_a_signal_ends_leaves_no_copy_of_a_database() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        if is_ignored(code - 128) {
            continue;
        }
        let directory = tempfile::tempdir().unwrap();
        let mut import = Command::new(PROGRAM);
        import.args(["import", "-", "--dry-run"]).env("TMPDIR", directory.path());
        import.stdin(Stdio::piped()).stderr(Stdio::null());
        let mut import = import.spawn().unwrap();
        // The rest of the database does not come.
        let mut database = import.stdin.take().unwrap();
        database.write_all(b"SQLite format 3\0").unwrap();
        database.write_all(&vec![0; 20_000]).unwrap();

        let is_begun = || {
            std::thread::sleep(Duration::from_millis(50));
            let mut entries = fs::read_dir(directory.path()).unwrap();
            entries.any(|entry| files(&entry.unwrap().path()) == 1)
        };
        assert!((0..400).any(|_| is_begun()), "nothing is unpacked");
        kill(signal, import.id());
        assert_eq!(import.wait().unwrap().code(), Some(code));
        assert_eq!(files(directory.path()), 0, "{signal} leaves a copy");
    }
}

#[test]
fn an_export_that_a_signal_ends_leaves_no_file() {
    let url = stalling();
    for (signal, code, name) in [
        ("-INT", 130, "a.ndjson"),
        ("-TERM", 143, "a.csv"),
        ("-HUP", 129, "a.ndjson.gz"),
        ("-INT", 130, "a.lp"),
        ("-INT", 130, "a.parquet"),
        ("-TERM", 143, "b.parquet"),
    ] {
        if is_ignored(code - 128) {
            continue;
        }
        let directory = tempfile::tempdir().unwrap();
        // With `nohup` a closed terminal is no reason to end.
        for goes_on in [false, true] {
            let mut export = Command::new("sh");
            let ignored = if goes_on { "trap '' HUP; " } else { "" };
            export.args(["-c", &format!("{ignored}exec \"$@\""), "sh", PROGRAM, "export"]);
            export.arg(directory.path().join(name)).args(["--url", &url]);
            let mut export = export.stderr(Stdio::null()).spawn().unwrap();
            let begins = || {
                std::thread::sleep(Duration::from_millis(50));
                files(directory.path()) == 1
            };
            assert!((0..400).any(|_| begins()), "{name} is not begun");
            std::thread::sleep(Duration::from_millis(200));
            if goes_on {
                kill("-HUP", export.id());
                std::thread::sleep(Duration::from_millis(300));
                assert!(export.try_wait().unwrap().is_none(), "it ended");
                kill("-TERM", export.id());
                assert_eq!(export.wait().unwrap().code(), Some(143));
            } else {
                kill(signal, export.id());
                assert_eq!(export.wait().unwrap().code(), Some(code));
            }
            assert_eq!(files(directory.path()), 0, "{signal} leaves a file");
        }
    }
}
