//! Tests of what is said of counters, against an oracle that knows what was used.

use super::*;

/// The quarters of an hour of 60 days.
const QUARTERS: u64 = 60 * 96;
/// 2026-01-01T00:00:00Z.
const START: u64 = 1_767_225_600;
/// The hundredths of a kWh that were used, and those that the meter showed before it showed zero.
const TRUTH: u64 = 50_365;
const SHOWN: u64 = 466_035;

/// What a meter showed: an instant and hundredths of a kWh.
type Shown = Vec<(u64, u64)>;

/// 60 days of a meter by quarters of an hour, with an outage of three days and a zero while it boots. What is used in a
/// quarter comes from a seed; the truth is what was used, whatever was shown.
fn sixty_days(seed: u64) -> Shown {
    let (zero, outage) = (3_000, 1_000..1_000 + 3 * 96);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut used = vec![0; usize::try_from(QUARTERS).unwrap()];
    for _ in 0..TRUTH {
        used[random.usize(1..usize::try_from(QUARTERS).unwrap())] += 1;
    }
    let before: u64 = used[..zero].iter().sum();
    let mut total = SHOWN - before;
    let mut all = Shown::new();
    for (quarter, used) in used.iter().enumerate() {
        total += used;
        if !outage.contains(&quarter) {
            let shown = if quarter == zero { 0 } else { total };
            all.push((START + 900 * u64::try_from(quarter).unwrap(), shown));
        }
    }
    all
}

fn energy(shown: &Shown, own: BTreeMap<String, OwnSum>) -> Energy {
    let mut energy = Energy::new(own);
    for (at, hundredths) in shown {
        let line = format!(
            "kWh,domain=sensor,entity_id=meter value={}.{:02},device_class_str=\"energy\",\
             state_class_str=\"total_increasing\" {at}000000000",
            hundredths / 100,
            hundredths % 100
        );
        let read =
            history::read_points(line.as_bytes(), Timestamp::MAX, &history::LineRules::default())
                .unwrap();
        for reading in &read.readings {
            energy.add(reading);
        }
    }
    energy
}

#[test]
fn an_outage_and_a_zero_of_60_days_change_nothing() {
    for seed in 1..4 {
        let shown = sixty_days(seed);
        let text = energy(&shown, BTreeMap::new()).to_string();
        for expected in [
            "counters     1, as they will be counted\n",
            "\n  sensor.meter energy: 503.65 kWh\n",
            "\n    1 zero or negative value left out: 2026-02-01T06:00:00.000Z\n",
            "\n    1 gap of more than 2 hours, the longest of 3 days; ",
        ] {
            assert!(text.contains(expected), "{expected:?} is not in {text}");
        }
        assert!(!text.contains("\n    2026-0"), "there is no other sum: {text}");
    }
}

#[test]
fn home_assistant_s_own_sum_stands_beside_it() {
    let shown = sixty_days(7);
    let notes = history::notes::Notes::default();
    // Its statistics are in Wh, and it counted the recovery from the zero in whole.
    let mut sum = 10_000;
    for pair in shown.windows(2) {
        let step = pair[1].1.saturating_sub(pair[0].1);
        if sum == 10_000 {
            notes.sum("sensor.meter", Some("Wh"), nanos(pair[0].0), &sum.to_string());
        }
        sum += 10 * step;
        notes.sum("sensor.meter", Some("Wh"), nanos(pair[1].0), &sum.to_string());
    }
    let text = energy(&shown, notes.own_sums()).to_string();
    let expected = "sensor.meter energy: 503.65 kWh, by Home Assistant's sum 5164 kWh\n";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains(", by Home Assistant's sum 48"), "February: {text}");
}

fn nanos(second: u64) -> i64 {
    i64::try_from(second * 1_000_000_000).unwrap()
}

#[test]
fn each_kind_of_step_is_named_with_what_it_counts() {
    let values = [10_000, 10_100, 0, 10_200, 50, 150, 149, 1_000_000_000, 1_000_000_100];
    let shown: Shown = (0..).zip(values).map(|(n, it)| (START + 60 * n, it)).collect();
    let text = energy(&shown, BTreeMap::new()).to_string();
    for expected in [
        "1 fall, after which the new value counts (reset): 2026-01-01T00:04:00.000Z from 102 to 0.5 counts 0.5",
        "1 small fall (dip): 2026-01-01T00:06:00.000Z from 1.5 to 1.49 counts -0.01",
        "1 jump that no meter makes and that counts nothing (suspect): 2026-01-01T00:07:00.000Z",
        "1 zero or negative value left out: 2026-01-01T00:02:00.000Z",
        // 1 + 1 + 0.5 + 1 - 0.01 + 1.
        "sensor.meter energy: 4.49 kWh\n",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in {text}");
    }
}

/// The truth is what the table counts: an hour before midnight, three after it.
#[test]
fn a_gap_over_the_end_of_a_month_is_counted_in_both() {
    let midnight = START + 31 * 86_400;
    let shown = vec![(START, 10_000), (midnight - 3_600, 10_100), (midnight + 3 * 3_600, 10_500)];
    let energy = energy(&shown, BTreeMap::new());
    let counter = energy.counters.values().next().unwrap();
    let months = counter.months.iter().map(|(month, amount)| format!("{month}: {amount}"));
    assert_eq!(months.collect::<Vec<_>>(), ["2026-01: 2", "2026-02: 3"]);
}

#[test]
fn what_is_right_is_one_line() {
    let shown: Shown = (0..100).map(|n| (START + 60 * n, 10_000 + n)).collect();
    let text = energy(&shown, BTreeMap::new()).to_string();
    assert_eq!(text, "counters     1, as they will be counted\n  sensor.meter energy: 0.99 kWh\n");
    assert_eq!(Energy::default().to_string(), "");
}
