//! Newest values of a device whose metrics come at different rates, against all that it has sent.

use std::collections::BTreeMap;

use domain::{Bucket, FoldRules, QuarterHour, Rollup, TimeRange, Zone};
use fastrand::Rng;
use form_urlencoded::byte_serialize;
use table::StoredRollup;

use super::*;

/// A device that sends `fast` every so many seconds, and `slow` and `rare` in readings of their own.
struct House {
    bench: Bench,
    readings: Vec<Reading>,
}

impl House {
    /// From the begin of the day before until [`at`]`(0)`, 16:00.
    async fn sending(every: i64) -> Self {
        let from = -40 * 3_600;
        let second = |n: i64, metric: &str| {
            let value = n.to_string();
            given::reading("d", at_millis(n * 1_000), None, &[(metric, value.as_str())])
        };
        let mut readings = Vec::new();
        readings.extend((from..=0).step_by(1_800).map(|n| second(n - 599, "slow")));
        readings.extend([from + 7, -26 * 3_600 + 7].map(|n| second(n, "rare")));
        // A second that no other has.
        let fast = (from..=0).step_by(usize::try_from(every).expect("positive"));
        readings.extend(fast.map(|n| second(n - n.rem_euclid(every) + every - 1, "fast")));
        readings.sort_by_key(|reading| reading.at);
        readings.dedup_by_key(|reading| reading.at);
        let bench = Bench::empty();
        bench.store(&readings).await;
        Self { bench, readings }
    }

    fn folded(&self, range: TimeRange) -> Rollup {
        let inside = self.readings.iter().filter(|it| range.contains(it.at));
        Rollup::fold(inside, &FoldRules::default())
    }

    /// Folds the quarters up to a minute, and the days; the last as far as `day_until`.
    async fn seal(&self, quarters_until: i64, day_until: i64) {
        let id = self.readings[0].device.clone();
        given::seal(&self.bench.store, "UTC", at_minute(quarters_until)).await;
        let mut from = at_minute(-40 * 60);
        while from < at_minute(quarters_until) {
            let quarter = QuarterHour::of(from);
            let rollup = self.folded(quarter.range());
            let stored = given::stored_quarter(&id, quarter, rollup);
            given::put_first(&self.bench.store, &stored).await;
            from = quarter.end();
        }
        for begin in [-40 * 60, -16 * 60] {
            let date = Zone::UTC.date(at_minute(begin));
            let whole = Zone::UTC.day(date).expect("it exists");
            let Ok(part) = TimeRange::new(whole.from(), whole.to().min(at_minute(day_until)))
            else {
                continue;
            };
            let stored = given::stored_rollup(&id, Bucket::Day(date), part, self.folded(part));
            given::put_first(&self.bench.store, &StoredRollup { range: part, ..stored }).await;
        }
    }

    /// What InfluxQL says is the last or the first value of a metric in a range of minutes.
    async fn selected(&self, function: &str, metric: &str, (from, to): (i64, i64)) -> Value {
        let (from, to) = (at_minute(from).as_millis(), at_minute(to).as_millis());
        let text = format!(
            "SELECT {function}(value) FROM {metric} WHERE time >= {from}ms AND time < {to}ms"
        );
        let text: String = byte_serialize(text.as_bytes()).collect();
        let answer = self.bench.get(&format!("/query?db=home&epoch=ms&q={text}")).await.json();
        answer["results"][0]["series"][0]["values"][0][1].clone()
    }

    /// The same of all readings.
    fn expected(&self, is_last: bool, metric: &str, (from, to): (i64, i64)) -> Value {
        let inside =
            self.readings.iter().filter(|it| at_minute(from) <= it.at && it.at < at_minute(to));
        let mut values = inside.filter_map(|it| {
            let (_, value) = it.metrics().iter().find(|(name, _)| name.as_str() == metric)?;
            Some(value.clone())
        });
        let found = if is_last { values.next_back() } else { values.next() };
        json!(found)
    }

    /// The newest values, which are true: a value that is not older than `as_of` is the newest, and what is missing
    /// was not sent since then.
    async fn newest(&self) -> Value {
        let answer = self.bench.get("/devices/d/latest").await.json();
        let as_of = answer["as_of"].as_str().expect("a timestamp");
        let mut newest = BTreeMap::new();
        for reading in &self.readings {
            let at = reading.at.to_string();
            newest.extend(reading.metrics().keys().map(|name| (name.to_string(), at.clone())));
        }
        for (name, at) in newest {
            match answer["metrics"][&name]["timestamp"].as_str() {
                Some(found) if found >= as_of => assert_eq!(found, at, "{name}: {answer}"),
                Some(found) => assert!(found <= at.as_str(), "{name}: {answer}"),
                None => assert!(at.as_str() < as_of, "{name}: {answer}"),
            }
        }
        answer
    }
}

#[tokio::test]
async fn what_no_day_has_yet_is_found_in_quarters_and_readings() {
    // Rollups up to now, twenty minutes behind as they are, hours behind, and of no day yet.
    for (quarters, days) in [(0, 0), (-20, -8 * 60), (-20, -16 * 60), (-15, -20), (-75, -10 * 60)] {
        let house = House::sending(15).await;
        house.seal(quarters, days).await;
        let answer = house.newest().await;
        assert_eq!(answer["metrics"]["slow"]["timestamp"], at_millis(-599_000).to_string());
        let rare = at_millis((-26 * 3_600 + 7) * 1_000).to_string();
        assert_eq!(answer["metrics"]["rare"]["timestamp"], rare, "{quarters} {days}");
        let first_day = at_minute(-40 * 60).to_string();
        assert_eq!(answer["as_of"], first_day, "{quarters} {days}");
    }
}

#[tokio::test]
async fn where_more_was_sent_than_is_read_the_answer_says_how_far_it_looked() {
    let house = House::sending(1).await;
    house.seal(-30, -8 * 60).await;
    let answer = house.newest().await;
    let as_of = answer["as_of"].as_str().expect("a timestamp");
    assert!(
        as_of > at_minute(-30).to_string().as_str() && as_of < at_minute(-3).to_string().as_str(),
        "{answer}"
    );
    assert_eq!(answer["metrics"]["rare"]["value"], -26 * 3_600 + 7, "it may not be the newest");
    // Without any rollup too.
    let house = House::sending(1).await;
    let answer = house.newest().await;
    assert!(answer["metrics"]["rare"].is_null(), "{answer}");
}

/// The rollup of a quarter that a deletion of a reading of now has made says nothing of the quarter's other readings.
#[tokio::test]
async fn a_rollup_that_a_deletion_has_made_ahead_of_the_others_tells_nothing() {
    // The slow value is behind the 110 newest, in the quarter that a deletion has folded.
    let house = House::sending(4).await;
    house.seal(-30, -8 * 60).await;
    let id = house.readings[0].device.clone();
    for quarter in [QuarterHour::of(at_minute(-1)), QuarterHour::of(at_minute(300))] {
        let stored = given::stored_quarter(&id, quarter, Rollup::default());
        given::put_first(&house.bench.store, &stored).await;
    }
    let answer = house.newest().await;
    assert_eq!(answer["metrics"]["slow"]["timestamp"], at_millis(-599_000).to_string());
}

#[tokio::test]
async fn influxql_finds_the_last_and_the_first_value_behind_many_others() {
    let mut random = Rng::with_seed(7);
    let mut found = 0;
    for (quarters, days) in [(-20, -8 * 60), (-20, -16 * 60), (-75, -10 * 60)] {
        let house = House::sending(15).await;
        house.seal(quarters, days).await;
        for _ in 0..40 {
            let (one, other) = (random.i64(-2_400..2), random.i64(-2_400..2));
            let range = (one.min(other), one.max(other) + 1);
            for metric in ["slow", "rare", "fast"] {
                for (function, is_last) in [("last", true), ("first", false)] {
                    let expected = house.expected(is_last, metric, range);
                    let answer = house.selected(function, metric, range).await;
                    assert_eq!(answer, expected, "{function} of {metric} in {range:?}, {quarters}");
                    found += usize::from(!answer.is_null());
                }
            }
        }
    }
    assert!(found > 500, "{found}");
}
