//! Compares a stored rollup with a computed one, metric by metric. Reads no table.

use std::collections::BTreeSet;

use domain::{Bucket, MetricName, MetricRollup, OfKind, Rollup, RoomId};
use table::RollupKey;

/// Names a rollup by its device, and the start of the quarter of an hour or the date of the day.
pub(super) fn shown(RollupKey { device, bucket }: &RollupKey) -> String {
    match bucket {
        Bucket::QuarterHour(quarter) => format!("{device}  {}", quarter.start()),
        Bucket::Day(date) => format!("{device}  {date}"),
    }
}

/// Returns a text for each metric in which the stored rollup, if there is one, differs from the computed one, and for
/// the rooms of the readings. A missing rollup equals an empty one.
pub(super) fn differences(
    key: &RollupKey,
    stored: Option<&Rollup>,
    computed: &Rollup,
) -> Vec<String> {
    let (nothing, key) = (Rollup::default(), shown(key));
    let rollup = stored.unwrap_or(&nothing);
    let mut found = Vec::new();
    let mut note = |what: &str, stored: String, computed: String| {
        found.push(format!("{key}  {what}\n  stored    {stored}\n  computed  {computed}"));
    };
    if rollup.rooms != computed.rooms {
        note("rooms", rooms(stored), rooms(Some(computed)));
    }

    let names: BTreeSet<&MetricName> =
        rollup.metrics.keys().chain(computed.metrics.keys()).collect();
    for name in names {
        let (stored, computed) = (rollup.metrics.get(name), computed.metrics.get(name));
        if stored != computed {
            note(name.as_str(), described(stored), described(computed));
        }
    }
    found
}

fn rooms(rollup: Option<&Rollup>) -> String {
    let Some(rollup) = rollup else { return "no rollup".to_owned() };
    if rollup.rooms.is_empty() {
        return "no reading".to_owned();
    }
    let room =
        |room: &Option<RoomId>| room.as_ref().map_or_else(|| "no room".into(), RoomId::to_string);
    rollup.rooms.iter().map(room).collect::<Vec<_>>().join(", ")
}

fn described(metric: Option<&MetricRollup>) -> String {
    let Some(MetricRollup { count, sum, min, max, first, last, of_kind }) = metric else {
        return "nothing".to_owned();
    };
    let mut parts = vec![
        format!("count {count}, sum {sum}, min {min}, max {max}"),
        format!("first {} at {}", first.value, first.at),
        format!("last {} at {}", last.value, last.at),
    ];
    match of_kind {
        OfKind::Gauge => {}
        OfKind::Counter { increase, flags } => {
            parts.push(format!("increase {increase}"));
            parts.extend(flags.iter().map(|flag| flag.as_str().to_owned()));
        }
        OfKind::Power { area, held } => {
            parts.push(format!("area {area} over {} ms", held.num_milliseconds()));
        }
    }

    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use domain::given::at_millis;
    use domain::{FoldRules, QuarterHour, Reading, Timestamp};

    use super::*;

    fn fold(lines: &[&str]) -> Rollup {
        let read = |json: &&str| history::read_reading(json, Timestamp::MAX).unwrap();
        let readings: Vec<Reading> = lines.iter().map(read).collect();
        Rollup::fold(&readings, &FoldRules::default())
    }

    #[test]
    fn each_metric_that_differs_is_shown_with_all_that_is_stored_of_it() {
        let computed = fold(&[
            r#"{"device_id":"d","timestamp":1768147200,"t":1,"current_w":60,"cumulative_kwh_p":9}"#,
            r#"{"device_id":"d","timestamp":1768147260,"t":1,"current_w":0,"cumulative_kwh_p":1}"#,
        ]);
        let mut stored = computed.clone();
        let name = |text: &str| text.parse::<MetricName>().unwrap();
        let power = stored.metrics.get_mut(&name("current_w")).unwrap();
        let OfKind::Power { area, .. } = &mut power.of_kind else { panic!("a power") };
        *area += &domain::Exact::from(1_i64);
        stored.metrics.remove(&name("cumulative_kwh_p"));
        let quarter = QuarterHour::of(at_millis(0));
        let key = RollupKey::quarter("d".parse().unwrap(), quarter);
        let ends = "at 2026-01-11T16:00:00.000Z, last";
        let end = "at 2026-01-11T16:01:00.000Z";
        let shown = |stored| differences(&key, stored, &computed);
        assert_eq!(
            shown(Some(&stored)),
            [
                format!(
                    "d  2026-01-11T16:00:00.000Z  cumulative_kwh_p\n  stored    nothing\n  computed  \
                     count 2, sum 10, min 1, max 9, first 9 {ends} 1 {end}, increase 1, reset"
                ),
                format!(
                    "d  2026-01-11T16:00:00.000Z  current_w\n  stored    count 2, sum 60, min 0, max 60, \
                     first 60 {ends} 0 {end}, area 3600001 over 60000 ms\n  computed  count 2, sum 60, \
                     min 0, max 60, first 60 {ends} 0 {end}, area 3600000 over 60000 ms"
                ),
            ]
        );
        assert_eq!(shown(Some(&computed)), [""; 0]);
        let missing = shown(None);
        assert!(missing[0].ends_with("rooms\n  stored    no rollup\n  computed  no room"));
        assert_eq!(missing.len(), 4, "{missing:?}");
        assert!(differences(&key, None, &Rollup::default()).is_empty());
    }
}
