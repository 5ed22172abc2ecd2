//! An import into a directory that no server has open: killed, on a full disk, two at once. What a loader makes of
//! readings is compared with the stream's functions elsewhere.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::server::{self, PROGRAM, ROUND, ROUNDS, Server};

/// The readings of a file of two rounds, so that one is stored while the next one is sent: a round is 16,000.
const TWO_ROUNDS: i64 = 20_000;
/// The seconds between two readings: eight are in a quarter of an hour, more or less.
const EVERY: i64 = 120;

/// A file of so many readings, one in each so many seconds.
fn write(file: &Path, count: i64, every: i64) {
    let mut writer = std::io::BufWriter::new(fs::File::create(file).unwrap());
    for n in 0..count {
        let at = 1_700_000_000 + every * n;
        writeln!(
            writer,
            r#"{{"device_id": "d", "timestamp": {at}, "room": "cellar", "energy_kwh": {n}}}"#
        )
        .unwrap();
    }
    writer.into_inner().unwrap();
}

/// Runs a command on the data; its exit code, and what it said.
fn roomtide(words: &[&str], data: &Path) -> (Option<i32>, String) {
    server::run(Command::new(PROGRAM).args(words).arg("--data-dir").arg(data))
}

/// Imports a file; the exit code, and what is said.
fn import(file: &Path, data: &Path) -> (Option<i32>, String) {
    roomtide(&["import", file.to_str().unwrap()], data)
}

/// Asserts that every rollup is what the readings make it; returns how many of 15 minutes and of days there are.
fn rollups(data: &Path) -> (u64, u64) {
    let (_, said) = roomtide(&["rollups", "verify", "--again-after", "0s"], data);
    assert!(said.contains("none differs"), "{said}");
    let numbers: Vec<u64> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
    (numbers[0], numbers[2])
}

fn readings(data: &Path, file: &Path) -> usize {
    drop(fs::remove_file(file));
    let (code, said) = roomtide(&["export", file.to_str().unwrap()], data);
    assert_eq!(code, Some(0), "{said}");
    let text = fs::read_to_string(file).unwrap();
    text.lines().filter(|line| line.contains("timestamp")).count()
}

#[test]
fn an_import_needs_no_server_and_all_of_it_is_rolled_up() {
    let directory = tempfile::tempdir().unwrap();
    let (file, data) = (directory.path().join("r.ndjson"), directory.path().join("data"));
    write(&file, 5 * 720, EVERY);
    for is_new in [true, false] {
        let (code, said) = import(&file, &data);
        assert!(code == Some(0) && said.contains("3600 readings stored"), "{said}");
        assert_eq!(said.contains("is new, and its days are those of "), is_new, "{said}");
        let (quarters, days) = rollups(&data);
        // The first reading is not at the begin of a quarter of an hour, so five days touch one more.
        assert_eq!(quarters, 5 * 96 + 1);
        assert!((5..=6).contains(&days), "{days}");
    }
    assert_eq!(readings(&data, &directory.path().join("out.ndjson")), 3_600);
}

#[test]
fn a_killed_import_leaves_readings_with_their_rollups_and_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let (file, data) = (directory.path().join("r.ndjson"), directory.path().join("data"));
    let lines = 6 * ROUND;
    write(&file, lines, EVERY);
    let state = directory.path().join("r.ndjson.roomtide-import");
    let import = || {
        let mut import = Command::new(PROGRAM);
        import.arg("import").arg(&file).args(ROUNDS).arg("--data-dir").arg(&data);
        import
    };
    let mut killed = import().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // Within one of the rounds that follow, whichever it is.
    let rounds = 1 + i64::from(std::process::id() % 3);
    let acknowledged = || server::stored_lines(&state)?["lines"].as_i64();
    assert!((0..30_000).any(|_| {
        std::thread::sleep(Duration::from_millis(2));
        acknowledged().is_some_and(|lines| lines >= rounds * ROUND)
    }));
    killed.kill().unwrap();
    killed.wait().unwrap();
    let out = directory.path().join("out.ndjson");
    let before = readings(&data, &out);
    assert!(i64::try_from(before).unwrap() >= rounds * ROUND, "{before}");
    rollups(&data);
    let (code, said) = server::run(&import());
    assert!(code == Some(0) && said.contains("continuing"), "{said}");
    assert_eq!(i64::try_from(readings(&data, &out)).unwrap(), lines);
    rollups(&data);
}

#[test]
fn an_interrupted_import_names_no_reading_that_is_not_stored() {
    let directory = tempfile::tempdir().unwrap();
    let (file, data) = (directory.path().join("r.ndjson"), directory.path().join("data"));
    write(&file, TWO_ROUNDS, EVERY);
    let mut import = Command::new(PROGRAM);
    let import = import.arg("import").arg(&file).arg("--data-dir").arg(&data);
    let import = import.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    assert!((0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        data.exists()
    }));
    std::thread::sleep(Duration::from_millis(1_500));
    let interrupt = Command::new("kill").args(["-INT", &import.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    let output = import.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    // Where nothing was stored yet, there is no directory.
    let stored = data.exists().then(|| readings(&data, &directory.path().join("out.ndjson")));
    let named = said.split(" reading").next().and_then(|it| it.rsplit(' ').next()?.parse().ok());
    // It may have ended just before.
    let named =
        if output.status.success() { Some(usize::try_from(TWO_ROUNDS).unwrap()) } else { named };
    assert_eq!(named, stored, "{said}");
    if stored.is_some() {
        rollups(&data);
    }
}

#[test]
fn a_source_that_cannot_be_read_makes_no_directory() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let cut = flate2::read::GzEncoder::new(&b"timestamp,device_id,t\n1,d,2\n"[..], <_>::default());
    let cut: Vec<u8> = std::io::Read::bytes(cut).take(30).map(Result::unwrap).collect();
    let database = [&b"SQLite format 3\0"[..], &[7; 5_000]].concat();
    for (name, bytes, expected) in [
        ("missing.csv", None, "cannot read "),
        ("unknown", Some(&b"hello\n"[..]), "begins with \"hello\""),
        ("columns.csv", Some(b"a,b\n1,2\n"), "there is no column"),
        ("cut.csv.gz", Some(&cut), "cannot be read"),
        ("home-assistant_v2.db", Some(&database), "cannot be read as a database"),
        ("backup.tar", Some(&[0; 512]), "not a text"),
        ("utf-16.csv", Some(b"\xff\xfet\0i\0"), "`iconv -f UTF-16 -t UTF-8` converts it"),
        ("empty", Some(b""), "is empty"),
    ] {
        let file = place.path().join(name);
        if let Some(bytes) = bytes {
            fs::write(&file, bytes).unwrap();
        }
        let (code, said) = import(&file, &data);
        assert_eq!(code, Some(1), "{name}: {said}");
        assert!(said.contains(expected), "{name}: {said}");
        assert!(!data.exists(), "{name}");
    }
}

#[test]
fn a_directory_that_is_in_use_is_not_imported_into() {
    let directory = tempfile::tempdir().unwrap();
    let (file, data) = (directory.path().join("r.ndjson"), directory.path().join("data"));
    write(&file, 144, EVERY);
    let server = Server::start(&data);
    let mut import = Command::new(PROGRAM);
    let import = import.arg("import").arg(&file).arg("--data-dir").arg(&data);
    let (code, said) = server::run_process(import);
    assert_eq!(code, Some(1));
    assert!(said.contains("is in use by another roomtide"), "{said}");
    let mut import = Command::new(PROGRAM);
    let import = import.arg("import").arg(&file).args(["--url", &server.url]);
    let (code, said) = server::run(import);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_full_disk_stops_an_import_and_what_is_stored_has_its_rollups() {
    let directory = tempfile::tempdir().unwrap();
    let (file, data) = (directory.path().join("r.ndjson"), directory.path().join("data"));
    // Many days, because those are stored one after another: the limit is in the middle of them.
    write(&file, TWO_ROUNDS, 600);
    let mut limited = Command::new("sh");
    // A shell's limit of the size of files, in blocks of 512 or 1,024 bytes.
    limited.args(["-c", "trap '' XFSZ; ulimit -f 12000; exec \"$@\"", "sh", PROGRAM, "import"]);
    let (code, said) = server::run_process(limited.arg(&file).arg("--data-dir").arg(&data));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("disk"), "{said}");
    let stored = readings(&data, &directory.path().join("out.ndjson"));
    let expected = format!("stopped; {stored} readings stored, the same command ");
    assert!(stored > 0 && said.contains(&expected), "{said}");
    rollups(&data);
    let (code, said) = import(&file, &data);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(readings(&data, &directory.path().join("out.ndjson")), 20_000);
    rollups(&data);
}

#[test]
fn a_full_disk_leaves_no_directory_in_which_nothing_is_stored() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("r.ndjson");
    write(&file, 3_000, EVERY);
    let (above, old) = (directory.path().join("above"), directory.path().join("old"));
    fs::create_dir(&old).unwrap();
    fs::write(old.join("notes.txt"), "").unwrap();
    // The data, the table, the registry, the readings: what has no room, for any size of a block.
    for blocks in [2, 40, 100, 200, 400, 1_000] {
        for data in [above.join("data"), old.clone()] {
            let mut limited = Command::new("sh");
            let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
            limited.args(["-c", &script, "sh", PROGRAM, "import"]).arg(&file);
            let (code, said) = server::run_process(limited.arg("--data-dir").arg(&data));
            assert_eq!(code, Some(1), "{blocks}: {said}");
            let removed = format!(
                "what this command made in {} is removed again: it has no reading",
                data.display()
            );
            assert!(said.contains(&removed), "{blocks}: {said}");
            assert!(said.contains("disk") && !said.contains("damaged"), "{blocks}: {said}");
        }
        assert!(!above.exists(), "{blocks}");
        let left: Vec<_> = fs::read_dir(&old).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(left, ["notes.txt"], "{blocks}");
        for left in ["report", "import"] {
            let left = directory.path().join(format!("r.ndjson.roomtide-{left}"));
            assert!(!left.exists(), "{blocks}: {left:?}");
        }
    }
    let data = above.join("data");
    let (code, said) = import(&file, &data);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(readings(&data, &directory.path().join("out.ndjson")), 3_000);
    // A directory that has something stays, whatever a later import does.
    let cut = directory.path().join("cut.csv");
    fs::write(&cut, "timestamp,device_id,t\n1700000000,d,warm\n").unwrap();
    let (code, said) = roomtide(&["import", cut.to_str().unwrap()], &data);
    assert_eq!(code, Some(3), "{said}");
    assert!(!said.contains("removed"), "{said}");
    rollups(&data);
}
