//! Episodes against a filter over the folds of all readings, whichever way they are found.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use domain::given;
use domain::{
    Basis, Bucket, Condition, ConditionsSchema, Decimal, Device, DeviceObservation, DevicePatch,
    Edit, Encoding, Exact, FoldRules, MetricKind, MetricPatch, QuarterHour, Reading, Rollup,
    RoomId, SWEEP_GROUPS, SchemaMetric, TimeRange, Timestamp, Verdict, Zone,
};
use fastrand::Rng;
use rollups::RollupDelay;
use table::given::{invocation, session};
use table::layout::CONDITIONS_INDEX;
use table::memory_db::MemoryDb;
use table::{
    DeleteReadings as _, Expected, Indexing, KeepRollupState as _, PutConditionsSchema as _,
    PutReadings as _, PutRollups as _, ReadRollups as _, Refold, RollupKey, RollupState,
    SetConditionsReady as _, StoredRollup,
};

use super::matching::months;
use super::plan::IndexPlan;
use super::{EpisodeSearch, find};
use crate::error::SeriesError;
use crate::gather::{DeviceQuestion, Level};
use crate::grid::Grid;
use crate::horizon::{Horizon, RollupStateCache};

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60;

fn at(minute: i64) -> Timestamp {
    let start = given::at("2026-01-30T00:00:00Z");
    start.saturating_add(TimeDelta::milliseconds(minute * MINUTE))
}

fn range(from: i64, to: i64) -> TimeRange {
    given::range(at(from), at(to))
}

fn number(tenths: i64) -> Decimal {
    given::number(&format!("{tenths}e-1"))
}

/// A device that measures now and then, in two rooms, with silences and without one of its metrics at times.
struct Home {
    store: MemoryDb,
    device: Device,
    readings: Vec<Reading>,
    horizon: Horizon,
    now: Timestamp,
    indexing: Indexing,
}

fn reading(minute: i64, room: Option<&str>, metrics: &[(&str, i64)]) -> Reading {
    let metrics = metrics.iter().map(|(name, tenths)| (given::metric(name), number(*tenths)));
    let room = room.map(|it| it.parse().expect("an id"));
    Reading::new(given::device("d"), at(minute), room, metrics.collect()).expect("valid")
}

fn random_readings(random: &mut Rng, days: i64) -> Vec<Reading> {
    let (mut minute, mut readings) = (0, Vec::new());
    let (mut temperature, mut humidity, mut room) = (220, 500, "hall");
    while minute < days * DAY {
        temperature = (temperature + random.i64(-9..10)).clamp(150, 300);
        humidity = (humidity + random.i64(-19..20)).clamp(200, 800);
        if random.u8(0..30) == 0 {
            room = if room == "hall" { "loft" } else { "hall" };
        }
        let mut metrics = vec![("co2", random.i64(4_000..9_000)), ("temperature", temperature)];
        if random.u8(0..8) > 0 {
            metrics.push(("humidity", humidity));
        }
        readings.push(reading(minute, Some(room), &metrics));
        minute += if random.u8(0..200) == 0 { random.i64(60..DAY) } else { random.i64(1..30) };
    }
    readings
}

fn schema() -> ConditionsSchema {
    let metric = |name: &str, low, high| {
        let knots = Encoding::Decimal(vec![number(low), number(high)]);
        SchemaMetric { name: given::metric(name), encoding: knots, bits: 10 }
    };
    // Values beyond the domain are clamped.
    let metrics = vec![metric("temperature", 170, 280), metric("humidity", 200, 800)];
    ConditionsSchema::new(1, metrics).expect("a schema")
}

/// A schema with a metric that the periods of [`one_warm_hour`] lack.
fn wider_schema() -> ConditionsSchema {
    let mut metrics = schema().metrics().to_vec();
    metrics.push(SchemaMetric { name: given::metric("co2"), ..metrics[0].clone() });
    ConditionsSchema::new(2, metrics).expect("a schema")
}

async fn put_schema(store: &MemoryDb, schema: &ConditionsSchema, expected: Expected) {
    let put = store.put_conditions_schema(schema, expected, &invocation()).await;
    assert!(put.expect("memory"));
}

impl Home {
    async fn of(readings: Vec<Reading>, sealed: i64, now: i64, is_indexed: bool) -> Self {
        let mut store = MemoryDb::default();
        let mut indexing = Indexing::Off;
        if is_indexed {
            store = MemoryDb::with_conditions_index();
            put_schema(&store, &schema(), Expected::Absent).await;
            assert!(store.set_conditions_ready(1, &invocation()).await.expect("memory"));
            indexing = Indexing::By(schema().into());
        }
        store.put_readings(&readings, None, &invocation()).await;
        let mut observation = DeviceObservation::of(&readings[0]);
        readings.iter().for_each(|reading| observation.see(reading));
        let device = observation.new_device(given::device("d"), |_| true);
        let state = RollupState {
            zone: "UTC".to_owned(),
            since: Timestamp::MIN,
            sealed: [at(sealed); SWEEP_GROUPS],
            queue: None,
        };
        store.begin_rollups(&state, &invocation()).await.expect("memory");
        let horizon = RollupStateCache::new(RollupDelay::default());
        let horizon = horizon.read(session(&store, &invocation())).await.expect("memory");
        let home = Self { store, device, readings, horizon, now: at(now), indexing };
        for quarter in home.quarters(range(-15, sealed)) {
            home.put(quarter, None).await;
        }
        home
    }

    fn quarters(&self, range: TimeRange) -> Vec<QuarterHour> {
        let all = self.readings_in(range).iter();
        let mut quarters: Vec<QuarterHour> =
            all.map(|reading| QuarterHour::of(reading.at)).collect();
        quarters.dedup();
        quarters
    }

    /// The readings in a range; all of them are in order.
    fn readings_in(&self, range: TimeRange) -> &[Reading] {
        let position = |at| self.readings.partition_point(|reading| reading.at < at);
        &self.readings[position(range.from())..position(range.to())]
    }

    fn fold(&self, quarter: QuarterHour) -> Rollup {
        Rollup::fold(self.readings_in(quarter.range()), &FoldRules::of(&self.device))
    }

    async fn put(&self, quarter: QuarterHour, version: Option<u64>) {
        let rollup = self.fold(quarter);
        let stored = StoredRollup {
            key: RollupKey::quarter(self.device.id().clone(), quarter),
            range: quarter.range(),
            zone: None,
            version: version.unwrap_or(0) + 1,
            settings: 0,
            raw_until: None,
            expires: None,
            is_frozen: false,
            indexed: self.indexing.of(Bucket::QuarterHour(quarter), &rollup),
            rollup,
        };
        let expected = version.map_or(Expected::Absent, Expected::Version);
        let put = self.store.put_rollup(&stored, expected, &invocation()).await;
        assert!(put.expect("memory"));
    }

    /// Replaces a reading, and folds its quarter of an hour again.
    async fn correct(&mut self, reading: Reading) {
        self.store.put_readings(std::slice::from_ref(&reading), None, &invocation()).await;
        let quarter = QuarterHour::of(reading.at);
        let known = self.readings.iter_mut().find(|it| it.at == reading.at);
        *known.expect("it replaces one") = reading;
        let key = RollupKey::quarter(self.device.id().clone(), quarter);
        let stored = self.store.rollup(&key, &invocation()).await.expect("memory");
        self.put(quarter, Some(stored.expect("it is rolled up").version)).await;
    }

    /// The quarters that match, by a look at each.
    fn expected(&self, asked: &EpisodeSearch, room: Option<&RoomId>) -> Vec<QuarterHour> {
        let is_matching = |quarter: &QuarterHour| {
            let rollup = self.fold(*quarter);
            let is_here = room.is_none() || rollup.rooms.contains(&room.cloned());
            is_here
                && asked.conditions.iter().all(|condition| {
                    rollup.metrics.get(&condition.metric).is_some_and(|it| {
                        let mean = it.sum.rounded_quotient(&Exact::from(it.count)).expect("a mean");
                        condition.interval.contains(&mean.to_decimal().expect("few digits"))
                    })
                })
        };
        self.quarters(asked.range).into_iter().filter(is_matching).collect()
    }

    /// The quarters of the episodes that are found, and the plan.
    async fn found(
        &self,
        request: &EpisodeSearch,
        room: Option<&RoomId>,
    ) -> (Vec<QuarterHour>, IndexPlan) {
        let grid = Grid::quarters(request.range);
        let rooms: Option<BTreeSet<RoomId>> = room.map(|it| [it.clone()].into());
        let questions = [self.question(&grid, rooms.as_ref())];
        let found = find(session(&self.store, &invocation()), &questions, request).await;
        let (found, plan) = found.expect("answered");
        let quarters =
            found.iter().flat_map(|(_, episode)| Grid::quarters(episode.range).rows().to_vec());
        (quarters.map(|it| QuarterHour::of(it.from())).collect(), plan)
    }

    fn question<'a>(
        &'a self,
        grid: &'a Grid,
        rooms: Option<&'a BTreeSet<RoomId>>,
    ) -> DeviceQuestion<'a> {
        let (coarsest, now) = (Level::QuarterHours, self.now);
        let question = DeviceQuestion::of(&self.device, grid, &self.horizon, coarsest, now);
        DeviceQuestion { rooms, ..question }
    }
}

fn request(conditions: &[(&str, String)], range: TimeRange) -> EpisodeSearch {
    let conditions = conditions.iter().map(|(name, values)| Condition {
        metric: given::metric(name),
        interval: given::interval(values),
    });
    EpisodeSearch { conditions: conditions.collect(), range, is_exact: false }
}

fn random_request(random: &mut Rng, days: i64) -> EpisodeSearch {
    let interval = |random: &mut Rng, low: i64, high: i64| {
        let (a, b) = (random.i64(low..high), random.i64(low..high));
        match random.u8(0..4) {
            0 => format!("{a}.."),
            1 => format!("..{a}"),
            _ => format!("{}..{}", a.min(b), a.max(b)),
        }
    };
    let mut conditions = vec![("temperature", interval(random, 14, 31))];
    if random.u8(0..5) > 0 {
        conditions.push(("humidity", interval(random, 18, 82)));
    }
    if random.u8(0..9) == 0 {
        conditions.push(("co2", "450..".to_owned()));
    }
    let from = random.i64(0..days * 96 - 1);
    let to = random.i64(from + 1..=days * 96);
    request(&conditions, range(from * 15, to * 15))
}

#[tokio::test]
async fn the_episodes_are_those_of_a_filter_over_all_readings() {
    let mut random = Rng::with_seed(7);
    let (mut matched, mut by_index) = (0, 0);
    for n in 0..10 {
        let days = random.i64(12..40);
        let readings = random_readings(&mut random, days);
        let unsealed = [0, 15 * random.i64(0..8 * 96)][random.usize(0..2)];
        let sealed = days * DAY - unsealed;
        let mut home = Home::of(readings, sealed, days * DAY, n % 4 > 0).await;
        for round in 0..3 {
            for room in [None, Some("hall"), Some("attic")] {
                let room: Option<RoomId> = room.map(|it| it.parse().expect("an id"));
                let request = random_request(&mut random, days);
                let (found, plan) = home.found(&request, room.as_ref()).await;
                assert_eq!(found, home.expected(&request, room.as_ref()), "{request:?} {plan:?}");
                matched += found.len();
                by_index += usize::from(plan.reason.is_none());
            }
            for _ in 0..5 * round {
                let sealed = home.readings.iter().filter(|it| it.at < at(sealed)).count();
                let old = &home.readings[random.usize(0..sealed)];
                let minute = old.at.since(at(0)).num_minutes();
                let metrics =
                    [("temperature", random.i64(150..300)), ("humidity", random.i64(200..800))];
                let metrics = &metrics[..random.usize(1..=2)];
                home.correct(reading(minute, Some("hall"), metrics)).await;
            }
        }
    }
    assert!(matched > 3_000, "{matched} quarters matched");
    assert!(by_index > 12, "{by_index} answers came from the index");
}

/// Sixty days, warm and damp in one hour of the tenth day.
fn one_warm_hour() -> Vec<Reading> {
    let reading = |n: i64| {
        let is_warm = (10 * DAY..10 * DAY + 60).contains(&(n * 5));
        let values = if is_warm {
            [("temperature", 275), ("humidity", 750)]
        } else {
            [("temperature", 200), ("humidity", 400)]
        };
        reading(n * 5, Some("hall"), &values)
    };
    (0..60 * DAY / 5).map(reading).collect()
}

fn warm_and_damp() -> EpisodeSearch {
    let conditions = [("temperature", "27..".to_owned()), ("humidity", "70..".to_owned())];
    request(&conditions, range(0, 60 * DAY))
}

#[tokio::test]
async fn an_index_that_lags_shows_what_it_has_and_the_newest_hour_needs_none() {
    let mut home = Home::of(one_warm_hour(), 60 * DAY, 60 * DAY, true).await;
    let request = warm_and_damp();
    let (found, plan) = home.found(&request, None).await;
    assert_eq!((found.len(), plan.reason), (4, None));
    home.store.freeze_index(&CONDITIONS_INDEX);
    home.correct(reading(10 * DAY, Some("hall"), &[("temperature", 1), ("humidity", 1)])).await;
    let newest =
        reading(60 * DAY - 5, Some("hall"), &[("temperature", 2_000), ("humidity", 2_000)]);
    home.correct(newest).await;
    let (late, plan) = home.found(&request, None).await;
    assert_eq!((late.len(), plan.reason), (5, None));
    assert_eq!(late[..4], found, "as it was");
    home.store.follow_index(&CONDITIONS_INDEX);
    let (found, _) = home.found(&request, None).await;
    assert_eq!(found, late[1..]);
    assert_eq!(found, home.expected(&request, None));
}

#[tokio::test]
async fn after_a_change_of_settings_the_index_serves_again_once_the_rollups_follow() {
    let mut readings = one_warm_hour();
    readings[0] =
        reading(0, Some("hall"), &[("temperature", 200), ("humidity", 400), ("water", 10)]);
    let mut home = Home::of(readings, 60 * DAY, 60 * DAY, true).await;
    let request = warm_and_damp();
    let patch = |verdicts: Edit<BTreeMap<Timestamp, Verdict>>, kind| {
        let metric = MetricPatch { kind, verdicts, ..MetricPatch::default() };
        let metrics = [(given::metric("water"), Some(metric))].into();
        DevicePatch { metrics, ..DevicePatch::default() }
    };
    patch(Edit::Keep, Edit::Set(MetricKind::Counter)).apply(&mut home.device, at(0));
    assert_eq!(home.device.fold_settings().number, 1);
    let id = home.device.id().clone();
    let (found, plan) = home.found(&request, None).await;
    let why = plan.reason.expect("some rollups may be of the time before");
    assert_eq!(why, "settings of the metrics of d have changed, and its rollups do not follow yet");
    for (settings, under_way, serves) in
        [(0, Some((1, at(5 * DAY))), false), (1, None, true), (1, Some((2, at(0))), true)]
    {
        let refold = Refold { settings, under_way };
        home.store.set_refold(&id, &refold, &invocation()).await.expect("memory");
        let (again, plan) = home.found(&request, None).await;
        assert_eq!((again, plan.reason.is_none()), (found.clone(), serves), "{refold:?}");
    }
    // A verdict concerns its instant alone.
    for (minute, serves) in [(-DAY, true), (DAY, false)] {
        let verdicts = Edit::Set([(at(minute), Verdict::Discard)].into());
        let known = home.device.clone();
        patch(verdicts, Edit::Keep).apply(&mut home.device, at(0));
        assert_eq!(home.device.fold_settings().number, 2);
        let (again, plan) = home.found(&request, None).await;
        assert_eq!((again, plan.reason.is_none()), (found.clone(), serves), "{minute}");
        home.device = known;
    }
}

#[tokio::test]
async fn an_index_that_cannot_answer_says_why_and_the_answer_is_the_same() {
    let indexed = Home::of(one_warm_hour(), 60 * DAY, 60 * DAY, true).await;
    let without_index = Home::of(one_warm_hour(), 60 * DAY, 60 * DAY, false).await;
    let with = |conditions: &[(&str, &str)], days| {
        let conditions: Vec<_> =
            conditions.iter().map(|(name, it)| (*name, (*it).to_owned())).collect();
        request(&conditions, range(0, days * DAY))
    };
    let both = [("temperature", "27.."), ("humidity", "70..")];
    for (home, request, expected) in [
        (&without_index, with(&both, 60), "the table has no index by conditions"),
        (&indexed, with(&both[..1], 60), "a condition on one metric is no box"),
        (&indexed, with(&both, 6), "the range is shorter than 7 days"),
        (
            &indexed,
            with(&[("temperature", "17.."), ("humidity", "20..")], 60),
            "the conditions hold over half of the schema's domain",
        ),
        (
            &indexed,
            with(&[("temperature", "17.."), ("humidity", "30..45")], 60),
            "the index is estimated to cost over a fifth of all rollups",
        ),
    ] {
        let (found, plan) = home.found(&request, None).await;
        assert_eq!(plan.reason.as_deref(), Some(expected));
        assert_eq!(found, home.expected(&request, None));
    }
    put_schema(&indexed.store, &wider_schema(), Expected::Version(1)).await;
    let (found, plan) = indexed.found(&warm_and_damp(), None).await;
    let reason = plan.reason.expect("it is not ready");
    assert_eq!(reason, "the index is not complete: run `roomtide rollups rebuild`");
    assert_eq!(found.len(), 4);
    assert!(indexed.store.set_conditions_ready(2, &invocation()).await.expect("memory"));
    let (found, plan) = indexed.found(&warm_and_damp(), None).await;
    let reason = plan.reason.expect("no period has all of its metrics");
    assert_eq!(reason, "the index lacks periods without co2, which is not asked about");
    assert_eq!(found.len(), 4);
}

#[tokio::test]
async fn where_the_oldest_quarters_have_expired_the_rollups_answer() {
    let home = Home::of(one_warm_hour(), 60 * DAY, 60 * DAY, true).await;
    let date = Zone::UTC.date(at(0));
    let rollup = Rollup::fold(&home.readings[..10], &FoldRules::of(&home.device));
    let day = StoredRollup {
        key: RollupKey::day(home.device.id().clone(), date),
        range: Zone::UTC.day(date).expect("a day"),
        zone: Some("UTC".to_owned()),
        version: 1,
        settings: 0,
        raw_until: None,
        expires: None,
        is_frozen: false,
        indexed: None,
        rollup,
    };
    home.store.put_rollup(&day, Expected::Absent, &invocation()).await.expect("memory");
    assert_eq!(home.found(&warm_and_damp(), None).await.1.reason, None);
    for n in 0..96 {
        let quarter = QuarterHour::of(at(15 * n));
        home.store.delete_rollup(&RollupKey::quarter(home.device.id().clone(), quarter));
    }
    let request = warm_and_damp();
    let grid = Grid::quarters(request.range);
    let questions = [home.question(&grid, None)];
    let found = find(session(&home.store, &invocation()), &questions, &request).await;
    let Err(SeriesError::OutOfReach(why)) = found else { panic!("{found:?}") };
    assert!(why.contains("have expired. Ask from that time"), "{why}");
}

#[tokio::test]
async fn readings_refine_an_episode_that_the_mean_blurs_and_drop_one_that_it_invents() {
    let values = |n: i64| match n {
        // Above for the last 10 minutes of a quarter and the first 10 of the next.
        5..25 => (300, 750),
        // The mean is above, and no reading is above in both.
        30..38 => (400, 500),
        38..45 => (200, 950),
        _ => (200, 500),
    };
    let minute = |n| {
        let (temperature, humidity) = values(n);
        reading(n, None, &[("temperature", temperature), ("humidity", humidity)])
    };
    let home = Home::of((0..60).map(minute).collect(), 0, 60, false).await;
    let conditions = [("temperature", "26..".to_owned()), ("humidity", "66..".to_owned())];
    let mut request = request(&conditions, range(0, 60));
    let grid = Grid::quarters(request.range);
    let questions = [home.question(&grid, None)];
    let spans = |found: &[(&domain::DeviceId, domain::Episode)]| -> Vec<(TimeRange, Basis)> {
        found.iter().map(|(_, it)| (it.range, it.basis)).collect()
    };
    let (found, _) =
        find(session(&home.store, &invocation()), &questions, &request).await.expect("answered");
    assert_eq!(spans(&found), [(range(0, 45), Basis::Mean15)]);
    request.is_exact = true;
    let (found, _) =
        find(session(&home.store, &invocation()), &questions, &request).await.expect("answered");
    assert_eq!(spans(&found), [(range(5, 25), Basis::Readings)]);
    assert!(found[0].1.extremes.values().all(|it| it.min == it.max));
}

/// An episode as this file knows it: from and to in minutes, and the extremes of each metric in tenths. `None` where
/// its readings are gone.
type Span = (i64, i64, Option<BTreeMap<String, (i64, i64)>>);

/// The episodes of all readings of a range, by a look at each minute.
fn by_minutes(
    readings: &[(i64, &str, BTreeMap<&str, i64>)],
    conditions: &[(&str, i64, i64)],
    room: Option<&str>,
    (from, to): (i64, i64),
) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for minute in from..to {
        // Since the device has been elsewhere, and within 15 minutes.
        let held: Vec<_> = readings
            .iter()
            .rev()
            .filter(|(at, ..)| *at <= minute)
            .take_while(|(at, of, _)| minute - at < 15 && room.is_none_or(|room| room == *of))
            .collect();
        let value = |name| held.iter().find_map(|(.., metrics)| metrics.get(name).copied());
        let values = conditions.iter().map(|(name, low, high)| {
            let value = value(*name).filter(|value| (low..=high).contains(&value))?;
            Some(((*name).to_owned(), (value, value)))
        });
        let Some(values) = values.collect::<Option<BTreeMap<_, _>>>() else { continue };
        match spans.last_mut() {
            Some((_, end, Some(extremes))) if *end == minute => {
                *end += 1;
                for (name, (value, _)) in values {
                    let known = extremes.get_mut(&name).expect("each has all");
                    *known = (known.0.min(value), known.1.max(value));
                }
            }
            _ => spans.push((minute, minute + 1, Some(values))),
        }
    }
    spans
}

#[tokio::test]
async fn exact_episodes_begin_and_end_where_all_readings_say_so() {
    let mut random = Rng::with_seed(21);
    let (mut shown, mut gone, mut beyond) = (0, 0, 0);
    for _ in 0..60 {
        let days = random.i64(2..5);
        let (mut minute, mut room, mut readings) = (0, "hall", Vec::new());
        let (mut temperature, mut humidity) = (220, 500);
        let is_slow = random.bool();
        while minute < days * DAY {
            let (t, h) = if is_slow { (3, 8) } else { (25, 80) };
            temperature = (temperature + random.i64(-t..=t)).clamp(190, 250);
            humidity = (humidity + random.i64(-h..=h)).clamp(400, 600);
            if random.u8(0..25) == 0 {
                room = if room == "hall" { "loft" } else { "hall" };
            }
            let mut metrics = BTreeMap::from([("temperature", temperature)]);
            match random.u8(0..4) {
                0 => {}
                1 => drop(std::mem::replace(&mut metrics, [("humidity", humidity)].into())),
                _ => drop(metrics.insert("humidity", humidity)),
            }
            readings.push((minute, room, metrics));
            minute += match random.u8(0..40) {
                0 => random.i64(16..200),
                1..5 => 15 - minute % 15,
                5..9 => 15,
                _ => random.i64(1..12),
            };
        }
        let stored = |(at, room, metrics): &(i64, &str, BTreeMap<&str, i64>)| {
            let metrics: Vec<_> = metrics.iter().map(|(name, it)| (*name, *it)).collect();
            reading(*at, Some(room), &metrics)
        };
        let all = readings.iter().map(stored).collect();
        let home = Home::of(all, days * DAY, days * DAY, false).await;
        // Changed since they were rolled up, some for hours: the means do not show that yet.
        let steady = random.i64(0..days * DAY);
        for (at, _, metrics) in &mut readings {
            if (steady..steady + 200).contains(at) || random.u8(0..30) == 0 {
                metrics.values_mut().for_each(|it| *it = if *it < 300 { 220 } else { 500 });
            }
        }
        let changed: Vec<Reading> = readings.iter().map(stored).collect();
        home.store.put_readings(&changed, None, &invocation()).await;
        // And expired, while the rollups stay.
        let expired = random.i64(0..DAY);
        let keys = changed.iter().filter(|it| it.at < at(expired)).map(table::ReadingKey::of);
        home.store.delete_readings(&keys.collect::<Vec<_>>(), &invocation()).await;
        readings.retain(|(at, ..)| *at >= expired);
        for room in [None, Some("hall"), Some("loft")] {
            let (t, h) = (random.i64(200..230), random.i64(420..520));
            let conditions = [("temperature", t, t + 15), ("humidity", h, h + 60)];
            let conditions = &conditions[..random.usize(1..=2)];
            let texts: Vec<_> = conditions
                .iter()
                .map(|(name, low, high)| (*name, format!("{}..{}", number(*low), number(*high))))
                .collect();
            let from = random.i64(0..96) * 15;
            let to = random.i64(from / 15 + 1..=days * 96) * 15;
            let mut request = request(&texts, range(from, to));
            let grid = Grid::quarters(request.range);
            let rooms: Option<BTreeSet<RoomId>> = room.map(|it| [given::room(it)].into());
            // What is asked may reach beyond now.
            let now = to - random.i64(0..15) * random.i64(0..2);
            let questions =
                [DeviceQuestion { now: at(now), ..home.question(&grid, rooms.as_ref()) }];
            let spans = async |request: &EpisodeSearch| -> Vec<Span> {
                let found = find(session(&home.store, &invocation()), &questions, request).await;
                let minute = |it: Timestamp| it.since(at(0)).num_minutes();
                let tenths = |it: &Decimal| (1..1_000).find(|n| number(*n) == *it).expect("few");
                let span = |(_, it): (_, domain::Episode)| {
                    let extremes = it
                        .extremes
                        .iter()
                        .map(|(name, it)| (name.to_string(), (tenths(&it.min), tenths(&it.max))));
                    let extremes = (it.basis == Basis::Readings).then(|| extremes.collect());
                    (minute(it.range.from()), minute(it.range.to()), extremes)
                };
                found.expect("answered").0.into_iter().map(span).collect()
            };
            let plain = spans(&request).await;
            request.is_exact = true;
            let exact = spans(&request).await;

            let is_around = |span: &Span| {
                plain.iter().any(|(from, to, _)| from - 15 < span.1 && span.0 < to + 15)
            };
            let mut expected = by_minutes(&readings, conditions, room, (from, now));
            expected.retain(is_around);
            let is_further =
                |it: &&Span| !plain.iter().any(|(from, to, _)| from - 15 < it.0 && it.1 < to + 15);
            beyond += expected.iter().filter(is_further).count();
            let has_readings =
                |(from, to, _): &&Span| readings.iter().any(|(at, ..)| (*from..*to).contains(at));
            expected.extend(plain.iter().filter(|it| !has_readings(it)).cloned());
            expected.sort();
            gone += exact.iter().filter(|it| it.2.is_none()).count();
            shown += exact.len();
            assert_eq!(exact, expected, "{request:?} {room:?} {plain:?}");
        }
    }
    assert!(shown > 800 && gone > 80 && beyond > 40, "{shown} {gone} {beyond}");
}

#[test]
fn a_range_is_cut_at_months_of_utc() {
    let months = months(range(0, 40 * DAY));
    let february = Zone::UTC.day(given::date("2026-02-01")).expect("a day");
    assert_eq!((months.len(), months[1].from()), (3, february.from()));
    assert_eq!((months[0].from(), months[2].to()), (at(0), at(40 * DAY)));
}
