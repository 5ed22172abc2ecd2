//! Rollups of a running server: verified, rebuilt beside it in spite of a kill, written to a file and restored.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use domain::given::device;
use domain::{Exact, QuarterHour, Timestamp};
use dynamodb::DynamoStore;
use runtime::clock::Deadline;
use table::layout::Layout;
use table::{Expected, Invocation, PutRollups as _, ReadRollups as _, RollupKey};

use crate::private::engine_of;
use crate::server::{self, PROGRAM, Server};

/// Days of readings, each of 15 minutes.
const DAYS: i64 = 20;
const BEGIN: i64 = 1_768_089_600; // 2026-01-11T00:00:00Z

fn run(words: &[&str], data: &Path) -> (Option<i32>, String) {
    server::run(Command::new(PROGRAM).args(words).arg("--data-dir").arg(data))
}

fn import(server: &Server, directory: &Path) {
    let lines = (0..DAYS * 96).map(|n| {
        let (at, kwh) = (BEGIN + n * 900, 100 + n);
        format!(r#"{{"device_id":"meter","room":"hall","timestamp":{at},"current_w":{n},"cumulative_kwh_p":{kwh}}}"#)
    });
    let file = directory.join("readings.ndjson");
    fs::write(&file, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let mut command = Command::new(PROGRAM);
    let (code, said) = server::run(command.arg("import").arg(&file).args(["--url", &server.url]));
    assert_eq!(code, Some(0), "{said}");
}

/// Changes the sum of a stored rollup.
fn spoil(data: &Path, day: i64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = DynamoStore::connect(&engine_of(data), Layout::default());
        let invocation = Invocation::until(Deadline::after(Duration::from_secs(60)));
        let quarter =
            QuarterHour::of(Timestamp::from_millis((BEGIN + day * 86_400) * 1_000).unwrap());
        let key = RollupKey::quarter(device("meter"), quarter);
        let mut rollup = store.rollup(&key, &invocation).await.unwrap().unwrap();
        let expected = Expected::Version(rollup.version);
        rollup.version += 1;
        rollup.rollup.metrics.values_mut().for_each(|it| it.sum = Exact::from(-1_i64));
        assert!(store.put_rollup(&rollup, expected, &invocation).await.unwrap());
    });
}

#[test]
fn rollups_are_verified_rebuilt_after_a_kill_and_restored_from_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let server = Server::start(&data);
    import(&server, directory.path());
    let verify = ["rollups", "verify", "--again-after", "0s"];
    let (_, said) = run(&verify, &data);
    let all = format!("{} rollups of 15 minutes and {DAYS} of days compared", DAYS * 96);
    assert!(said.contains(&all) && said.contains("none differs"), "{said}");

    spoil(&data, 0);
    spoil(&data, DAYS - 1);
    let (code, said) = run(&verify, &data);
    assert_eq!(code, Some(1), "{said}");
    let planted = "meter  2026-01-11T00:00:00.000Z  cumulative_kwh_p\n  stored    count 1, sum -1,";
    assert!(said.contains(planted) && said.contains("computed  count 1, sum 100,"), "{said}");
    assert!(said.contains("2026-01-30T00:00:00.000Z  current_w"), "{said}");

    let rebuild = ["rollups", "rebuild"];
    let mut killed = Command::new(PROGRAM);
    let killed = killed.args(rebuild).arg("--data-dir").arg(&data).stderr(Stdio::null());
    let mut killed = killed.spawn().unwrap();
    let progress = data.join("roomtide.rebuild");
    while !progress.exists() {
        assert!(killed.try_wait().unwrap().is_none(), "it ended before it kept its progress");
        std::thread::sleep(Duration::from_millis(2));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(progress.exists(), "it was killed in the middle");
    assert_eq!(run(&verify, &data).0, Some(1), "the last day is still wrong");
    let (code, said) = run(&rebuild, &data);
    assert!(code == Some(0) && said.contains("continuing the rebuild that began"), "{said}");
    let (code, said) = run(&verify, &data);
    assert!(code == Some(0) && said.contains(&all), "{said}");

    let (first, second) = (directory.path().join("a.ndjson.gz"), directory.path().join("b.ndjson"));
    let export =
        |file: &Path, data: &Path| run(&["export", file.to_str().unwrap(), "--rollups"], data).1;
    assert!(export(&first, &data).contains(&format!("{} rollups and 1 stay written", DAYS * 97)));
    drop(server);

    // A table whose readings have expired, but for one that has no rollup yet.
    let data = directory.path().join("restored");
    let server = Server::start(&data);
    let now = r#"{"device_id":"meter","room":"hall","current_w":1}"#;
    ureq::post(format!("{}/readings", server.url)).send(now).unwrap();
    server.wait_for("/devices", |devices| !devices["data"].as_array().unwrap().is_empty());
    let mut inflated = String::new();
    let gzip = flate2::read::GzDecoder::new(fs::File::open(&first).unwrap());
    std::io::Read::read_to_string(&mut { gzip }, &mut inflated).unwrap();
    // A part of the file: the quarters are older than all else that the table has of the device.
    let cut = directory.path().join("cut.ndjson");
    let quarters = inflated.lines().filter(|line| line.contains(r#""sk":{"S":"M15#"#));
    fs::write(&cut, quarters.collect::<Vec<_>>().join("\n")).unwrap();
    let (code, said) = run(&["import", cut.to_str().unwrap(), "--rollups"], &data);
    assert!(code == Some(0), "{said}");
    assert!(export(&second, &data).contains(&format!("{} rollups and 0 stays", DAYS * 96)));

    let restore = ["import", first.to_str().unwrap(), "--rollups"];
    let (code, said) = run(&restore, &data);
    let count = format!("{DAYS} rollups and 1 stay restored");
    assert!(code == Some(0) && said.contains(&count), "{said}");
    assert!(!said.contains("another time zone") && !said.contains("left out"), "{said}");
    let mut again = Command::new(PROGRAM);
    again.args(["import", "-", "--rollups", "--data-dir"]).arg(&data);
    let (_, said) = server::run_process(again.stdin(fs::File::open(&first).unwrap()));
    assert!(said.contains(&format!("{} left as the table has them", DAYS * 97)), "{said}");
    assert!(export(&second, &data).contains(&format!("{} rollups and 1 stay written", DAYS * 97)));
    let restored = fs::read_to_string(&second).unwrap();
    let mut difference = String::new();
    for (before, after) in inflated.lines().zip(restored.lines()).filter(|(a, b)| a != b).take(3) {
        writeln!(difference, "{before}\n{after}").unwrap();
    }
    assert!(inflated == restored, "{difference}");
    let mut import = Command::new(PROGRAM);
    let import = import.arg("import").arg(&first).args(["--url", &server.url]);
    let (code, said) = server::run(import);
    assert!(code == Some(3) && said.contains("rollups are imported with --rollups"), "{said}");
}
