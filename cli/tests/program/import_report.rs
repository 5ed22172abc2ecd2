//! The energy of random histories, whole and thinned: as the dry run says it and as the server counts it.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::server::{self, PROGRAM, Server};

/// 2026-01-31T23:00:00Z, in seconds: an hour before a month ends.
const START: i64 = 1_769_900_400;

/// A line of a meter that shows so many hundredths of a kWh.
fn meter_line(shown: u64, at: i64) -> String {
    let (whole, part) = (shown / 100, shown % 100);
    format!(
        "kWh,domain=sensor,entity_id=meter value={whole}.{part:02},state_class_str=\"total_increasing\" {at}000000000\n"
    )
}

/// 60 days of a meter by hours, in hundredths of a kWh: an outage of three days and a zero. Returns the lines and what
/// was used.
fn sixty_days() -> (String, u64) {
    let (mut seed, mut total, mut text) = (25_u64, 400_000_u64, String::new());
    let first = total;
    for hour in 0..60 * 24 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        total += if hour == 0 { 0 } else { (seed >> 33) % 71 };
        if (240..312).contains(&hour) {
            continue;
        }
        let shown = if hour == 700 { 0 } else { total };
        let at = 1_767_225_600 + 3_600 * hour;
        text += &meter_line(shown, at);
    }
    (text, total - first)
}

#[test]
fn the_dry_run_says_what_is_wrong_in_the_energy_and_the_server_counts_it_so() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("export.lp");
    let data = directory.path().join("data");
    let (lines, used) = sixty_days();
    std::fs::write(&file, lines).unwrap();
    let truth = format!("{}.{:02}", used / 100, used % 100);
    let truth = truth.trim_end_matches('0');
    let dry = into(&data, &file, &["--dry-run"]);
    for expected in [
        &format!("  sensor.meter energy: {truth} kWh\n"),
        "1 zero or negative value left out: 2026-01-30T04:00:00.000Z",
        "1 gap of more than 2 hours, the longest of 3 days; ",
        "1 gap of more than 2 hours, the longest of 73.0 hours",
        "\nprovisioned  ",
    ] {
        assert!(dry.contains(expected), "{expected:?} is not in {dry}");
    }
    into(&data, &file, &[]);
    let server = Server::start(&data);
    let path = "/devices/sensor.meter/energy?from=2026-01-01T00:00:00Z&to=2026-03-02T00:00:00Z";
    let energy = server.send("GET", path, "");
    assert!(
        energy.contains(&format!(":{truth},")) || energy.contains(&format!(":{truth}}}")),
        "{energy}"
    );
}

/// Imports into a directory that no server has open, and returns what it says.
fn into(data: &Path, file: &Path, words: &[&str]) -> String {
    let mut import = Command::new(PROGRAM);
    import.arg("import").arg(file).args(words);
    if !words.contains(&"--dry-run") {
        import.arg("--data-dir").arg(data);
    }
    let (code, said) = server::run(&import);
    assert_eq!(code, Some(0), "{said}");
    said
}

/// Ten hours of a meter and of a power, whose values come at random times, with bursts, gaps, zeros and resets.
fn random_house(seed: u64) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut text, mut total, mut second) = (String::new(), 100_000, 0_i64);
    while second < 36_000 {
        second += match random.u8(..20) {
            0 => random.i64(900..6_000),
            1..=8 => random.i64(1..900),
            9..=11 => 900 - second.rem_euclid(900),
            _ => random.i64(1..61),
        };
        total += if random.bool() { 0 } else { random.i64(0..30) };
        match random.u8(..40) {
            0 => total = random.i64(1..50),
            1 => total -= random.i64(0..3),
            _ => {}
        }
        let shown = if random.u8(..30) == 0 { 0 } else { total.max(1) };
        let at = START + second;
        text += &meter_line(shown.unsigned_abs(), at);
        if random.bool() {
            let watts = random.i64(0..3_000);
            writeln!(text, "W,domain=sensor,entity_id=warm value={watts} {at}000000000").unwrap();
        }
    }
    text
}

/// The energy of rows in an answer, in kWh.
fn energies(answer: &Value) -> Vec<f64> {
    let rows = answer["data"].as_array().unwrap().iter().map(|row| &row["kwh"]);
    rows.chain([&answer["total_kwh"]]).map(|kwh| kwh.as_f64().unwrap_or_default()).collect()
}

/// A point with several fields becomes a reading of the device, and one of each of its parts.
#[test]
fn the_dry_run_says_how_many_readings_thinning_leaves() {
    let directory = tempfile::tempdir().unwrap();
    let (file, data) = (directory.path().join("parts.lp"), directory.path().join("data"));
    let lines = (0..3_000).map(|n| {
        let at = START + 30 * n;
        let temp = format!("temp,id=t1 value=2{},battery={}i {at}000000000\n", n % 10, 50 + n % 7);
        temp + &format!("meter,id=m1 energy={},power={} {at}000000000\n", 100 + n, n % 900)
    });
    std::fs::write(&file, lines.collect::<String>()).unwrap();

    let thinned = into(&data, &file, &["--dry-run", "--thin-before", "2027-01-01T00:00:00Z"]);
    let count = thinned.lines().find_map(|line| line.strip_prefix("readings "));
    let count = count.expect(&thinned).trim();
    let whole = into(&data, &file, &["--dry-run"]);
    assert!(
        whole.contains(&format!("--thin-before TIME leaves {count} readings")),
        "{count}: {whole}"
    );
}

#[test]
fn thinned_history_keeps_counters_exact() {
    let directory = tempfile::tempdir().unwrap();
    for seed in 0..4 {
        let file = directory.path().join(format!("{seed}.lp"));
        std::fs::write(&file, random_house(seed)).unwrap();
        let answers = [&["--thin-before", "2026-02-01T06:10:00Z"][..], &[]].map(|options| {
            let data = directory.path().join(format!("{seed}-{}", options.len()));
            into(&data, &file, &[options, &["--again"]].concat());
            let server = Server::start(&data);
            let mut answers = Vec::new();
            for (device, metric) in [("sensor.meter", "energy"), ("sensor.warm", "power")] {
                for every in ["15m", "1d"] {
                    let span = "from=2026-01-31T00:00:00Z&to=2026-02-03T00:00:00Z";
                    let path =
                        format!("/devices/{device}/energy?metric={metric}&{span}&every={every}");
                    answers.push(energies(&server.get(&path)));
                }
            }
            answers
        });
        let [thinned, whole] = answers;
        for (thinned, whole) in thinned.concat().iter().zip(whole.concat()) {
            assert!((thinned - whole).abs() < 1e-8, "house {seed}: {thinned} is not {whole}");
        }
        assert!(whole.concat().iter().sum::<f64>() > 1.0, "there is energy");
        assert_eq!(thinned.concat().len(), whole.concat().len());
    }
}
