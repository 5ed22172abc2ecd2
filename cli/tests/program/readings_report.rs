//! What an import of CSV and NDJSON says afterwards, as that of a history: the comparison, the way back, the meters.

use std::fmt::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use domain::given;
use local::Options;

use crate::export::export;
use crate::history::{http, import, said};
use crate::server::{self, PROGRAM, ROUND, ROUNDS, Server};

/// 2026-01-11T16:00:00Z, in seconds.
const START: i64 = 1_768_147_200;
/// The lines of an import that is killed after its first round.
const LINES: i64 = 3 * ROUND;

fn post(server: &Server, json: &str) {
    let answer = http(server, "POST /readings", json);
    assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
}

fn body(server: &Server, path: &str) -> String {
    let answer = http(server, &format!("GET {path}"), "");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// The file of this ending that an import puts beside its source.
fn beside(file: &Path, ending: &str) -> PathBuf {
    let name = format!("{}.{ending}", file.file_name().unwrap().to_str().unwrap());
    file.with_file_name(name)
}

fn report(file: &Path) -> String {
    std::fs::read_to_string(beside(file, "roomtide-report")).unwrap()
}

/// Begins an import, and kills it once it has noted how far it came.
fn import_and_kill(file: &Path, server: &Server) {
    let mut killed = Command::new(PROGRAM)
        .args(["import", "--url", &server.url])
        .args(ROUNDS)
        .arg(file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let state = beside(file, "roomtide-import");
    assert!((0..30_000).any(|_| {
        std::thread::sleep(Duration::from_millis(2));
        state.exists()
    }));
    killed.kill().unwrap();
    killed.wait().unwrap();
}

#[test]
fn a_killed_import_counts_the_whole_file_and_names_an_hour_that_somebody_else_wrote() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"));
    let file = directory.path().join("readings.csv");
    let mut text = "timestamp,device_id,t\n".to_owned();
    for n in 0..LINES {
        // The reading at which a round ends stands on two lines: the later wins, and both rounds send it.
        let second = if n >= ROUND { n - 1 } else { n };
        writeln!(text, "{},d,{}.5", START + second, n % 7).unwrap();
    }
    std::fs::write(&file, text).unwrap();
    import_and_kill(&file, &server);
    post(&server, &format!(r#"{{"device_id": "d", "timestamp": {}, "t": 100}}"#, START + 60));
    let resumed = said(&file, &server, &ROUNDS, 4);
    assert!(resumed.contains("lines are processed already"), "{resumed}");
    let (sum, other) = sums();
    let count = LINES - 1;
    let named = format!(
        "d t 2026-01: source {count} with the sum {sum}, table {count} with the sum {other}: other values: "
    );
    assert!(resumed.contains(&named), "{named:?} is not in {resumed}");
    let row = format!("# d,t,2026-01,{count},{sum},{count},{other},0,0,other values\n");
    assert!(report(&file).contains(&row), "{row:?} is not in {}", report(&file));
    let again = said(&file, &server, &ROUNDS, 0);
    assert!(again.contains("all counts and sums are the source's"), "{again}");
}

/// The sum of the file, and with another value at one instant.
fn sums() -> (String, String) {
    let tenths = |n: i64| 10 * (n % 7) + 5;
    // The last line of the first round is replaced by the one behind it.
    let all: i64 = (0..LINES).filter(|n| *n != ROUND - 1).map(tenths).sum();
    let other = all - tenths(60) + 1_000;
    let shown = |tenths: i64| {
        let text = format!("{}.{}", tenths / 10, tenths % 10);
        text.strip_suffix(".0").unwrap_or(&text).to_owned()
    };
    (shown(all), shown(other))
}

#[test]
fn what_the_server_refused_before_a_kill_is_not_missing() {
    let directory = tempfile::tempdir().unwrap();
    let earliest_timestamp = given::at("2026-01-01T00:00:00Z");
    let options = Options { earliest_timestamp, ..Options::default() };
    let server = Server::with(&directory.path().join("data"), options);
    let file = directory.path().join("readings.ndjson");
    let mut text = String::new();
    for n in 0..LINES {
        // The first ten are too old for the server.
        let second = if n < 10 { n - 86_400 * 300 } else { n };
        writeln!(text, r#"{{"device_id":"d","timestamp":{},"t":1}}"#, START + second).unwrap();
    }
    std::fs::write(&file, text).unwrap();
    import_and_kill(&file, &server);
    let resumed = said(&file, &server, &ROUNDS, 3);
    for expected in [
        "10 readings refused by the server before",
        "all other counts and sums are the source's",
        "not compared: 10 readings, refused",
    ] {
        assert!(resumed.contains(expected), "{expected:?} is not in {resumed}");
    }
}

#[test]
fn of_a_line_with_several_devices_only_what_is_refused_is_not_counted() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"));
    for id in ["gone", "here"] {
        post(&server, &format!(r#"{{"device_id": "{id}", "timestamp": {START}, "t": 1}}"#));
    }
    let deleted = http(&server, "DELETE /devices/gone", "");
    assert!(deleted.starts_with("HTTP/1.1 202"), "{deleted}");
    let file = directory.path().join("wide.csv");
    let mut text = "timestamp,a,b\n".to_owned();
    for second in 1..=100 {
        writeln!(text, "{},1,2", START + second).unwrap();
    }
    std::fs::write(&file, text).unwrap();
    let said = said(&file, &server, &["--map", "gone:t=a", "--map", "here:t=b"], 3);
    for expected in [
        "100 readings stored",
        "compared 1 month (Etc/UTC) of 1 metrics: all other counts and sums are the source's",
        "not compared: 1 device, which are being deleted",
        "not compared: 100 readings, refused",
    ] {
        assert!(said.contains(expected), "{expected:?} is not in {said}");
    }
}

/// The devices, and the readings of each.
fn table(server: &Server) -> Vec<String> {
    let devices = body(server, "/devices");
    let readings = ["--yes", "old"].into_iter().filter(|id| devices.contains(id)).map(|id| {
        body(
            server,
            &format!("/devices/{id}/readings?from=2020-01-01T00:00:00Z&to=2030-01-01T00:00:00Z"),
        )
    });
    let mut all: Vec<String> = readings.collect();
    all.extend([devices, body(server, "/rooms")]);
    all
}

#[test]
fn the_lines_of_the_report_take_readings_back_also_of_devices_that_look_like_options() {
    for (name, lines) in [
        (
            "a.csv",
            "timestamp,device_id,room,t\n1768147200,--yes,--hall,1\n1768147260,--yes,,2\n1768147200,old,,3\n",
        ),
        (
            "a.ndjson",
            "{\"device_id\":\"--yes\",\"room\":\"--hall\",\"timestamp\":1768147200,\"t\":1}\n\
             {\"device_id\":\"old\",\"timestamp\":1768147200,\"t\":3}\n",
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(name);
        let server = Server::start(&directory.path().join("data"));
        post(&server, r#"{"device_id": "old", "timestamp": 1767225600, "t": 5}"#);
        let before = table(&server);
        std::fs::write(&file, lines).unwrap();
        let done = said(&file, &server, &[], 0);
        assert!(done.contains("all counts and sums are the source's"), "{done}");
        assert_ne!(table(&server), before);
        let mut script = Command::new("sh");
        let script = script
            .arg(directory.path().join(format!("{name}.roomtide-report")))
            .args(["--token", "rt_x"])
            .env("ROOMTIDE", PROGRAM)
            .stdout(Stdio::null())
            .process_group(0);
        let mut script = script.spawn().unwrap();
        let is_back = |_| {
            std::thread::sleep(Duration::from_millis(300));
            table(&server) == before
        };
        let back = (0..200).any(is_back);
        // It waits some minutes for the end of a device's deletion.
        let group = format!("-{}", script.id());
        assert!(Command::new("kill").args(["--", &group]).status().unwrap().success());
        script.wait().unwrap();
        assert!(back, "{:?} is not {before:?}", table(&server));
    }
}

#[test]
fn lines_from_a_pipe_that_come_again_count_once_and_those_without_order_are_not_compared() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"));
    let run = |text: &str| {
        let file = directory.path().join("piped");
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(["import", "-", "--url", &server.url, "--format", "ndjson"]).args(ROUNDS);
        let (code, said) = server::run_process(command.stdin(std::fs::File::open(&file).unwrap()));
        assert_eq!(code, Some(0), "{said}");
        said
    };
    let line = |device: &str, second: i64, value: i64| {
        format!("{{\"device_id\":\"{device}\",\"timestamp\":{},\"t\":{value}}}\n", START + second)
    };
    // The newest first, as many exports have it; a line of the last round comes again.
    let mut text: String = (0..ROUND + 50).rev().map(|n| line("d", n, n)).collect();
    text += &line("d", 0, 5);
    let downwards = run(&text);
    assert!(downwards.contains("all counts and sums are the source's"), "{downwards}");
    let mut text: String = (0..ROUND).map(|n| line("e", n, n)).collect();
    text += &line("e", 7, 5);
    text += &line("f", 7, 5);
    let anyhow = run(&text);
    for expected in
        ["compared 1 month ", "not compared: 1 device, whose lines are in no order of time"]
    {
        assert!(anyhow.contains(expected), "{expected:?} is not in {anyhow}");
    }
}

#[test]
fn an_export_of_an_empty_table_has_nothing_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"));
    for name in ["a.csv", "a.csv.gz", "a.ndjson", "a.ndjson.gz", "a.lp"] {
        let file = directory.path().join(name);
        export(&server, &file, &[]);
        for words in [&["--dry-run"][..], &[]] {
            let text = said(&file, &server, words, 0);
            assert!(text.contains(&format!("{name} has nothing in it")), "{text}");
        }
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 6, "and no report");
    let other = directory.path().join("empty.db");
    std::fs::write(&other, "").unwrap();
    assert_eq!(import(&server, &other, &[]).0, Some(0), "whatever it is called");
}

#[test]
fn the_energy_of_a_csv_is_read_as_it_will_be_counted_and_meters_that_may_measure_the_same_are_named()
 {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"));
    let file = directory.path().join("meters.csv");
    let mut text = "timestamp,device_id,cumulative_kwh_p,temperature\n".to_owned();
    for hour in 0..10 {
        let at = START + 3_600 * hour;
        // The meter begins again near zero.
        let shown = if hour < 5 { 100 + hour } else { hour - 4 };
        writeln!(text, "{at},main,{shown},\n{at},plug,{}.5,\n{at},hall,,20", 7 + hour).unwrap();
    }
    std::fs::write(&file, text).unwrap();
    let dry = said(&file, &server, &["--dry-run"], 0);
    for expected in [
        "counters     2, as they will be counted\n  main cumulative_kwh_p: 9 kWh\n",
        "    1 fall, after which the new value counts (reset): 2026-01-11T21:00:00.000Z from 104 to 1 counts 1\n",
        "  plug cumulative_kwh_p: 9 kWh\n",
        "\n2 devices have counters of energy, and none is behind another: main, plug\n",
        "PATCH /devices/plug with\n  {\"behind\": \"main\"}",
        "readings     30\n",
    ] {
        assert!(dry.contains(expected), "{expected:?} is not in {dry}");
    }
    let text = said(&file, &server, &[], 0);
    assert!(text.contains("none is behind another: main, plug\n"), "{text}");
    let answer = http(&server, "PATCH /devices/plug", r#"{"behind": "main"}"#);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let text = said(&file, &server, &[], 0);
    assert!(text.contains("compared ") && !text.contains("none is behind"), "{text}");
    // A backup says so itself.
    let backup = directory.path().join("backup.ndjson");
    export(&server, &backup, &[]);
    let dry = said(&backup, &server, &["--dry-run"], 0);
    assert!(dry.contains("counters     2, ") && !dry.contains("none is behind"), "{dry}");
}

#[test]
fn devices_and_metrics_may_be_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"));
    let csv = directory.path().join("a.csv");
    std::fs::write(
        &csv,
        "timestamp,device_id,t,linkquality\n1768147200,a,1,90\n1768147200,b,2,90\n",
    )
    .unwrap();
    let lines = directory.path().join("a.lp");
    std::fs::write(
        &lines,
        "m,host=c t=1,linkquality=90 1768147200000000000\nm,host=d t=1 1768147200000000000\n",
    )
    .unwrap();
    let except = ["--except", "*quality", "--except", "b", "--except", "d"];
    for file in [&csv, &lines] {
        let text = said(file, &server, &except, 0);
        assert!(text.contains("compared 1 month (Etc/UTC) of 1 metrics: all"), "{text}");
    }
    let devices = body(&server, "/devices");
    for (word, expected) in
        [("\"a\"", true), ("\"b\"", false), ("c::m", true), ("d::m", false), ("linkquality", false)]
    {
        assert_eq!(devices.contains(word), expected, "{word}: {devices}");
    }
}

#[test]
fn the_log_of_a_meter_has_the_metrics_that_the_meter_sends() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"));
    let status = r#"{"src": "shellypro3em-a", "result": {"sys": {"unixtime": 1771200000},
        "em:0": {"a_current": 0.5, "b_current": 0.6, "c_current": 0.7, "n_current": 0.1, "a_voltage": 230, "b_voltage": 231, "c_voltage": 232},
        "emdata:0": {"a_total_act_energy": 5000, "b_total_act_energy": 6000, "c_total_act_energy": 7000, "total_act": 18000,
        "a_total_act_ret_energy": 1, "b_total_act_ret_energy": 1, "c_total_act_ret_energy": 1, "total_act_ret": 3}}}"#;
    let answer = http(&server, "POST /readings/shelly", status);
    assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
    let known = || {
        let device: serde_json::Value =
            serde_json::from_str(&body(&server, "/devices/shellypro3em-a")).unwrap();
        let metrics = device["metrics"].as_object().unwrap().clone();
        metrics.into_iter().map(|(name, it)| format!("{name} {}", it["unit"])).collect::<Vec<_>>()
    };
    let sent = known();
    assert!(sent.contains(&"current_a \"A\"".to_owned()), "{sent:?}");
    let file = directory.path().join("data.csv");
    let phase = |it: char| {
        ["total_act_energy", "total_act_ret_energy", "avg_voltage", "avg_current"]
            .map(|name| format!("{it}_{name}"))
    };
    let columns = ['a', 'b', 'c'].map(phase).concat().join(",");
    let row = ["1"; 13].join(",");
    std::fs::write(
        &file,
        format!("timestamp,{columns},n_avg_current\n1771180620,{row}\n1771180680,{row}\n"),
    )
    .unwrap();
    let text = said(&file, &server, &["--device-id", "shellypro3em-a"], 0);
    assert!(text.contains("all counts and sums are the source's"), "{text}");
    assert_eq!(known(), sent);
}
