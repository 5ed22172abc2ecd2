//! What a sender writes and what is imported of the same data become the same devices and readings.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use crate::server::{self, PROGRAM, Server};

/// What two senders wrote: Home Assistant's integration and Telegraf's plugin.
const LINES: [&str; 3] = [
    "°C,domain=sensor,entity_id=living value=VALUE,device_class_str=\"temperature\",friendly_name_str=\"Living, \\\"big\\\"\",state_class_str=\"measurement\" TIME",
    "kWh,domain=sensor,entity_id=meter value=1VALUE,device_class_str=\"energy\",state_class_str=\"total_increasing\" TIME",
    "cpu,cpu=cpu\\ 0,host=pi,room=Living\\ room usage_idle=VALUE,usage_user=1.25,n=3i,ok=true TIME",
];

/// The lines of three minutes.
fn lines() -> Vec<String> {
    let line = |minute: i64, line: &str| {
        let nanos = (1_768_147_200 + 60 * minute) * 1_000_000_000 + 123_456_789;
        line.replace("VALUE", &format!("2{minute}.5")).replace("TIME", &nanos.to_string())
    };
    (0..3).flat_map(|minute| LINES.map(|it| line(minute, it))).collect()
}

/// The same as an export has them: one field a line, series after series, the write-ahead log last.
fn export(lines: &[String]) -> String {
    let mut text =
        "# DDL\nCREATE DATABASE home WITH NAME autogen\n# DML\n# CONTEXT-DATABASE:home\n\
        # CONTEXT-RETENTION-POLICY:autogen\n# writing tsm data\n"
            .to_owned();
    let (log, files): (Vec<_>, Vec<_>) = lines.iter().enumerate().partition(|(n, _)| *n >= 6);
    for (part, title) in [(files, ""), (log, "# writing wal data\n")] {
        text.push_str(title);
        let mut fields = Vec::new();
        for (_, line) in part {
            let read = local::read_line(line.as_bytes()).unwrap().unwrap();
            let head = line.split(" value=").next().unwrap().split(" usage_idle=").next().unwrap();
            let at = read.timestamp.unwrap();
            let of = |(key, value): (String, String)| {
                (head.to_owned(), key.clone(), at, format!("{head} {key}={value} {at}"))
            };
            fields.extend(
                read.fields.iter().map(|(key, value)| of((key.to_string(), value.to_string()))),
            );
        }
        fields.sort();
        fields.iter().for_each(|(.., line)| writeln!(text, "{line}").unwrap());
    }
    text
}

pub(crate) fn http(server: &Server, head: &str, body: &str) -> String {
    let address = server.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(stream, "{head} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Imports a file; the exit code, and what is said.
pub(crate) fn import(server: &Server, file: &Path, words: &[&str]) -> (Option<i32>, String) {
    let mut import = Command::new(PROGRAM);
    import.arg("import");
    if !words.contains(&"--dry-run") {
        import.args(["--url", &server.url]);
    }
    server::run(import.args(words).arg(file))
}

/// What an import says that ends with this code.
pub(crate) fn said(file: &Path, server: &Server, words: &[&str], code: i32) -> String {
    let (found, said) = import(server, file, words);
    assert_eq!(found, Some(code), "{said}");
    said
}

/// Everything that a server knows of these devices, but when it learned it.
fn known(server: &Server) -> Vec<String> {
    let mut all = Vec::new();
    for device in ["sensor.living", "sensor.meter"] {
        all.push(format!("/devices/{device}"));
        all.push(format!(
            "/devices/{device}/readings?from=2026-01-11T16:00:00Z&to=2026-01-11T17:00:00Z"
        ));
    }
    let queries =
        ["SELECT+*+FROM+cpu", "SELECT+*+FROM+%22%C2%B0C%22", "SELECT+*+FROM+kWh", "SHOW+SERIES"];
    all.extend(queries.map(|query| format!("/query?db=home&q={query}")));
    all.iter()
        .map(|path| {
            let answer = http(server, &format!("GET {path}"), "");
            assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
            answer.split_once("\r\n\r\n").unwrap().1.to_owned()
        })
        .collect()
}

#[test]
fn what_is_written_and_what_is_imported_is_one_series() {
    let directory = tempfile::tempdir().unwrap();
    let lines = lines();
    let file = directory.path().join("export");
    std::fs::write(&file, export(&lines)).unwrap();
    let [written, imported] =
        ["written", "imported"].map(|name| Server::start(&directory.path().join(name)));
    let answer = http(&written, "POST /write?db=home", &lines.join("\n"));
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    let text = said(&file, &imported, &[], 0);
    assert!(text.contains("9 points stored"), "{text}");
    let expected = known(&written);
    assert!(expected[1].contains("20.5") && expected.concat().contains("Living"), "{expected:?}");
    assert_eq!(known(&imported), expected);
    // Into the table of the sender it changes nothing.
    said(&file, &written, &["--again"], 0);
    assert_eq!(known(&written), expected);
}

#[test]
fn a_dry_run_names_series_units_and_what_is_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("export.lp");
    let text = export(&lines()) + "m s=\"text\" 1768147200000000000\nm v=1\n";
    std::fs::write(&file, text).unwrap();
    let (code, said) = dry_run(&file, &[]);
    assert_eq!(code, Some(3), "{said}");
    for expected in [
        "database     home, retention policy autogen\n",
        "1 point left out, which have texts only\n",
        "series       3\n",
        "  kWh,domain=sensor,entity_id=meter\n    3 points from 2026-01-11T16:00:00.123Z to 2026-01-11T16:02:00.123Z: \
         sensor.meter energy (kWh)\n",
        "pi:cpu_0:Living_room::cpu",
        "room Living_room\n",
        "write units  12\n",
        "refused      1\n",
        "has no timestamp",
    ] {
        assert!(said.contains(expected), "{expected:?} is not in {said}");
    }
}

#[test]
fn a_source_that_cannot_be_imported_is_named_with_what_there_is() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x");
    for (bytes, words, expected) in [
        (b"PAR1\0\0".as_slice(), &[][..], "is a Parquet file"),
        (b"hello\n", &[], "line protocol (influx_inspect export"),
        (
            b"m v=1 1\n",
            &["--time-zone", "UTC"],
            "is line protocol; the options for CSV do not fit it",
        ),
        (b"m v=1 1\n", &["--merge"], "points are always merged"),
        (b"{}\n", &["--precision", "s"], "is NDJSON; --database and --precision do not fit it"),
        (b"m v=1 1\n", &["--database", "x"], "--database \"x\" is not in the file"),
        (b"# DML\n", &[], "has no points that can be imported"),
    ] {
        std::fs::write(&file, bytes).unwrap();
        let (code, said) = dry_run(&file, words);
        assert!(code == Some(1) && said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn a_dry_run_writes_the_map_and_the_import_follows_what_a_person_made_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let (file, map) = (directory.path().join("export.lp"), directory.path().join("series.csv"));
    std::fs::write(&file, export(&lines())).unwrap();
    let mapped = ["--map", map.to_str().unwrap()];
    let (code, text) = dry_run(&file, &mapped);
    assert_eq!(code, Some(0), "{text}");
    let text = std::fs::read_to_string(&map).unwrap();
    assert!(
        text.contains(
            "yes,,,3,2026-01-11T16:00:00.123Z,2026-01-11T16:02:00.123Z,sensor.meter energy (kWh)\n"
        ),
        "{text}"
    );
    let text = text
        .replace("entity_id=meter\",yes,,", "entity_id=meter\",yes,sensor.cellar,Cellar")
        .replace("entity_id=living\",yes", "entity_id=living\",no")
        .replace("room=Living\\ room\",yes,,", "room=Living\\ room\",yes,server,Big room");
    std::fs::write(&map, text).unwrap();
    let server = Server::start(&directory.path().join("data"));
    let text = said(&file, &server, &mapped, 0);
    assert!(text.contains("12 points of series that the map leaves out"), "{text}");
    let devices = http(&server, "GET /devices", "");
    for id in ["\"sensor.cellar\"", "\"server::cpu\"", "\"Cellar\"", "\"Big_room\""] {
        assert!(devices.contains(id), "{id}: {devices}");
    }
    assert!(!devices.contains("living") && !devices.contains("sensor.meter"), "{devices}");
    let part = [
        "--only",
        "sensor.living",
        "--from",
        "2026-01-11T16:01:00Z",
        "--to",
        "2026-01-11T16:02:00Z",
    ];
    let text = said(&file, &server, &part, 0);
    assert!(text.contains("1 point stored"), "{text}");
    std::fs::write(&map, "series\nx\n").unwrap();
    let text = said(&file, &server, &mapped, 1);
    assert!(text.contains("--map: ") && text.contains("row 2"), "{text}");
}

/// What a dry run of a file or a directory says, and its exit code.
fn dry_run(path: &Path, words: &[&str]) -> (Option<i32>, String) {
    server::run(Command::new(PROGRAM).args(["import", "--dry-run"]).args(words).arg(path))
}

#[test]
fn a_meter_s_log_needs_its_device_and_options_for_columns_make_it_any_csv() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("data.csv");
    std::fs::write(
        &file,
        "timestamp,total_act_energy,max_voltage\n1771180620,2.5,230\n1771180680,3.5,230\n",
    )
    .unwrap();
    let (code, said) = dry_run(&file, &[]);
    assert!(
        code == Some(1) && said.contains("is the log of a Shelly meter; --device-id names it"),
        "{said}"
    );
    let (code, said) = dry_run(&file, &["--device-id", "shelly-1"]);
    assert_eq!(code, Some(0), "{said}");
    for expected in [
        "left out     1 columns that the meter's status does not have: max_voltage\n",
        "3 points from 2026-02-15T18:37:00.000Z to 2026-02-15T18:39:00.000Z: shelly-1 cumulative_kwh_p",
        "unit         shelly-1 cumulative_kwh_p: kWh, a counter\n",
    ] {
        assert!(said.contains(expected), "{expected:?} is not in {said}");
    }
    let (code, said) = dry_run(&file, &["--map", "m:total=total(total_act_energy)"]);
    assert!(code == Some(0) && said.contains("readings     2\n"), "{said}");
    let (code, said) = dry_run(&file, &["--device-id", "m", "--storage", "x"]);
    assert!(code == Some(1) && said.contains("--storage does not fit it"), "{said}");
}

#[test]
fn a_directory_is_emoncms_and_so_is_an_archive_of_it_on_standard_input() {
    let directory = tempfile::tempdir().unwrap();
    let fina = directory.path().join("phpfina");
    std::fs::create_dir(&fina).unwrap();
    let (code, said) = dry_run(directory.path(), &[]);
    assert!(code == Some(1) && said.contains("has no feed of Emoncms"), "{said}");
    let words = [0, 0, 10, 1_771_180_620_u32];
    std::fs::write(fina.join("7.meta"), words.map(u32::to_le_bytes).concat()).unwrap();
    std::fs::write(fina.join("7.dat"), [7_000.55_f32, 7_000.75].map(f32::to_le_bytes).concat())
        .unwrap();
    let list = r#"[{"id": "7", "name": "use_kwh", "tag": "emonpi", "unit": "kWh"}]"#;
    std::fs::write(directory.path().join("list.json"), list).unwrap();
    let unpacked = dry_run(directory.path(), &[]);

    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("emoncms.tar");
    let mut archive = tar::Builder::new(std::fs::File::create(&file).unwrap());
    archive.append_dir_all("backup", directory.path()).unwrap();
    archive.into_inner().unwrap();
    let mut piped = Command::new(PROGRAM);
    let piped = piped.args(["import", "--dry-run", "-"]);
    let piped = server::run_process(piped.stdin(std::fs::File::open(&file).unwrap()));

    for (code, said) in [unpacked, piped] {
        assert_eq!(code, Some(0), "{said}");
        for expected in [
            "feeds        1 of Emoncms\n",
            "2 points from 2026-02-15T18:37:00.000Z to 2026-02-15T18:37:10.000Z: emonpi use_kwh",
            "unit         emonpi use_kwh: kWh, a counter\n",
        ] {
            assert!(said.contains(expected), "{expected:?} is not in {said}");
        }
    }
}
