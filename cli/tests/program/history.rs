//! A directory of Emoncms and its archive on standard input, whose files are binary.

use std::path::Path;
use std::process::Command;

use crate::server::{self, PROGRAM};

/// What a dry run of a file or a directory says, and its exit code.
fn dry_run(path: &Path, words: &[&str]) -> (Option<i32>, String) {
    server::run(Command::new(PROGRAM).args(["import", "--dry-run"]).args(words).arg(path))
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
