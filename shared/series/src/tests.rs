//! Rows against a direct fold of all readings: whatever is rolled up, the answer is the same.

mod allowance;
mod pages;

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use domain::given::{self, at, metric, number, range};
use domain::{
    Bucket, CalendarUnit, Device, DeviceObservation, Exact, Extent, FoldRules, FoldSettings,
    MetricKind, MetricName, MetricRollup, MetricRule, Neighbours, QuarterHour, Reading, Rollup,
    Row, SWEEP_GROUPS, Sample, TimeRange, Timestamp, Zone, areas, increases,
};
use fastrand::Rng;
use rollups::RollupDelay;
use table::given::{invocation, session};
use table::memory_db::MemoryDb;
use table::{
    Expected, KeepRollupState as _, PutReadings as _, PutRollups as _, RollupKey, RollupState,
    Session, StoredRollup,
};

use super::allowance::MAX_ROW_VALUES;
use super::device::{DeviceRows, device_rows};
use super::error::SeriesError;
use super::gather::{DeviceQuestion, DeviceRollups, Level, RollupPiece, gather};
use super::grid::Grid;
use super::horizon::{Horizon, RollupStateCache, ceiling};
use super::values::RowValues;

const COUNTER: &str = "cumulative_kwh_p";
const POWER: &str = "current_w";
const GAUGE: &str = "temperature";
const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

fn plus(at: Timestamp, millis: i64) -> Timestamp {
    at.saturating_add(TimeDelta::milliseconds(millis))
}

fn reading(at: Timestamp, room: &str, values: &[(&str, String)]) -> Reading {
    let values = values.iter().map(|(name, value)| (metric(name), number(value)));
    let room = Some(room.parse().expect("an id"));
    Reading::new(given::device("d"), at, room, values.collect()).expect("a reading")
}

/// A device's readings, what is rolled up of them, and the device.
struct Home {
    store: MemoryDb,
    device: Device,
    readings: Vec<Reading>,
    zone: Zone,
}

impl Home {
    async fn of(readings: Vec<Reading>, zone: &str) -> Self {
        let store = MemoryDb::default();
        store.put_readings(&readings, None, &invocation()).await;
        let mut observation = DeviceObservation::of(&readings[0]);
        readings.iter().for_each(|reading| observation.see(reading));
        let device = observation.new_device(given::device("d"), |_| true);
        Self { store, device, readings, zone: given::zone(zone) }
    }

    /// A meter that is reset, dips, boots and falls silent, with pauses of minutes to days.
    async fn random(random: &mut Rng, zone: &str, first: Timestamp, days: i64) -> Self {
        let (mut now, mut kwh, mut readings) = (plus(first, -2 * DAY), 50_000_i64, Vec::new());
        let mut is_silent = false;
        while now < plus(first, (days + 2) * DAY) {
            kwh = match random.u8(0..60) {
                0 => random.i64(0..50),
                1 => kwh - 5,
                _ => kwh + random.i64(0..3),
            };
            let kwh_shown = if random.u8(0..40) == 0 { 0 } else { kwh.max(0) };
            let mut values = vec![(GAUGE, format!("{}.5", random.i64(-10..30)))];
            is_silent ^= random.u8(0..25) == 0;
            if !is_silent {
                values.push((COUNTER, format!("{}.{}", kwh_shown / 10, kwh_shown % 10)));
            }
            if random.u8(0..4) > 0 {
                values.push((POWER, random.i64(0..3_000).to_string()));
            }
            readings.push(reading(now, "hall", &values));
            let pause = match random.u8(0..80) {
                0 => random.i64(1..5) * DAY,
                1..4 => random.i64(1..20) * HOUR,
                _ => random.i64(1..90) * 60_000,
            };
            now = plus(now, pause + random.i64(0..1_000));
        }
        Self::of(readings, zone).await
    }

    fn fold(&self, of: TimeRange) -> Rollup {
        let inside = self.readings.iter().filter(|it| of.contains(it.at));
        Rollup::fold(inside, &FoldRules::of(&self.device))
    }

    async fn put(&self, bucket: Bucket, range: TimeRange, zone: Option<&str>) {
        let rollup = self.fold(range);
        if !rollup.is_empty() {
            self.put_rollup(bucket, range, zone, rollup).await;
        }
    }

    async fn put_rollup(
        &self,
        bucket: Bucket,
        range: TimeRange,
        zone: Option<&str>,
        rollup: Rollup,
    ) {
        let stored = StoredRollup {
            key: RollupKey { device: self.device.id().clone(), bucket },
            range,
            zone: zone.map(ToOwned::to_owned),
            version: 1,
            settings: self.device.fold_settings().number,
            raw_until: None,
            expires: None,
            is_frozen: false,
            indexed: None,
            rollup,
        };
        let put = self.store.put_rollup(&stored, Expected::Absent, &invocation()).await;
        assert!(put.expect("memory"));
    }

    /// Rolls up what lies in a range, but of the days only those that `has_day` wants.
    async fn roll_up(&self, of: TimeRange, mut has_day: impl FnMut() -> bool) {
        let mut quarter = QuarterHour::of(ceiling(of.from()));
        while quarter.end() <= of.to() {
            self.put(Bucket::QuarterHour(quarter), quarter.range(), None).await;
            quarter = quarter.next();
        }
        let mut day = of.from();
        while day < of.to() {
            let date = self.zone.date(day);
            let whole = self.zone.day(date).expect("it exists");
            if whole.to() <= of.to() && of.from() <= whole.from() && has_day() {
                self.put(Bucket::Day(date), whole, Some(self.zone.name())).await;
            }
            day = whole.to();
        }
        self.seal(of).await;
    }

    async fn seal(&self, of: TimeRange) {
        let state = RollupState {
            zone: self.zone.name().to_owned(),
            since: of.from(),
            sealed: [of.to(); SWEEP_GROUPS],
            queue: None,
        };
        self.store.begin_rollups(&state, &invocation()).await.expect("memory");
    }

    /// How far the rollups are.
    async fn horizon(&self, now: Timestamp) -> Horizon {
        let known = RollupStateCache::new(RollupDelay::default());
        known.read(Session::new(&self.store, &invocation(), now)).await.expect("memory")
    }

    async fn values<'a>(&self, question: &DeviceQuestion<'a>, names: &[&str]) -> DeviceRows<'a> {
        let names: Vec<MetricName> = names.iter().map(|name| metric(name)).collect();
        let invocation = invocation();
        let session = session(&self.store, &invocation);
        device_rows(session, question, &names, |_| true).await.expect("within reach")
    }

    /// What the device measured of a metric in a room, as one row, and what was read for it.
    async fn in_room(
        &self,
        room: &str,
        name: &str,
        whole: TimeRange,
        now: Timestamp,
    ) -> (RowValues, DeviceRollups) {
        let (rooms, grid) = ([given::room(room)].into(), Grid::total(whole));
        let horizon = self.horizon(now).await;
        let question = DeviceQuestion::of(&self.device, &grid, &horizon, Level::Days, now);
        let question = DeviceQuestion { rooms: Some(&rooms), ..question };
        let DeviceRows { metrics, gathered, .. } = self.values(&question, &[name]).await;
        (metrics[&metric(name)].rows[0].clone(), gathered)
    }

    async fn gathered(
        &self,
        range: TimeRange,
        now: Timestamp,
    ) -> Result<DeviceRollups, SeriesError> {
        let horizon = self.horizon(now).await;
        let grid = Grid::total(range);
        let question = DeviceQuestion::of(&self.device, &grid, &horizon, Level::Days, now);
        gather(session(&self.store, &invocation()), &question).await
    }

    async fn answer(
        &self,
        grid: &Grid,
        coarsest: Level,
        now: Timestamp,
    ) -> BTreeMap<MetricName, Vec<RowValues>> {
        let horizon = self.horizon(now).await;
        let question = DeviceQuestion::of(&self.device, grid, &horizon, coarsest, now);
        let found = self.values(&question, &[COUNTER, POWER, GAUGE]).await;
        found.metrics.into_iter().map(|(name, it)| (name, it.rows)).collect()
    }

    /// The rows as a fold of all readings has them.
    fn expected(&self, grid: &Grid, name: &MetricName, now: Timestamp) -> Vec<RowValues> {
        let rule = MetricRule::of(&self.device.metrics()[name]);
        let samples = || {
            let values = self.readings.iter().filter_map(|it| {
                let value = it.metrics().get(name)?.clone();
                Some(Sample::new(it.at, value))
            });
            let takes_all =
                !matches!(rule, MetricRule::Counter(_)) || self.device.metrics()[name].is_net;
            values.filter(move |it| takes_all || it.value.is_positive())
        };
        let whole = grid.range();
        let neighbours = Neighbours {
            before: samples().rfind(|it| it.at < whole.from()),
            after: samples().find(|it| it.at >= whole.to()),
        };
        let rollups: Vec<Option<MetricRollup>> =
            grid.rows().iter().map(|row| self.fold(*row).metrics.get(name).cloned()).collect();
        let rows: Vec<Row<'_>> = (grid.rows().iter().zip(&rollups))
            .map(|(range, rollup)| Row { range: *range, rollup: rollup.as_ref() })
            .collect();
        let mut expected: Vec<RowValues> = rollups
            .iter()
            .map(|rollup| RowValues { rollup: rollup.clone(), ..RowValues::default() })
            .collect();
        match &rule {
            MetricRule::Counter(rule) => {
                for (row, it) in expected.iter_mut().zip(increases(&rows, &neighbours, rule)) {
                    row.increase = it;
                }
            }
            MetricRule::Power(hold) => {
                for (row, it) in expected.iter_mut().zip(areas(&rows, &neighbours, *hold, now)) {
                    row.area = it;
                }
            }
            MetricRule::Gauge => {}
        }
        expected
    }
}

/// Readings of more than three pages without a rollup: they are folded page by page.
#[tokio::test]
async fn rows_are_the_same_wherever_a_page_of_readings_ends() {
    let first = at("2025-06-01T00:00:07Z");
    let value = |n: i64| {
        let counted = (n / 3 + 10).to_string();
        [(COUNTER, counted), (POWER, (n % 97).to_string()), (GAUGE, (n % 31).to_string())]
    };
    let room = |n: i64| if (12_000..13_000).contains(&n) { "loft" } else { "hall" };
    let of = |n: i64| reading(plus(first, n * 1_003), room(n), &value(n));
    let home = Home::of((0..32_000).map(of).collect(), "UTC").await;
    let (now, whole) = (plus(first, DAY), range(plus(first, -60_000), plus(first, 10 * HOUR)));
    for (unit, coarsest) in [
        (None, Level::Days),
        (Some(CalendarUnit::Minute), Level::Readings),
        (Some(CalendarUnit::QuarterHour), Level::QuarterHours),
    ] {
        let grid = unit.map_or_else(
            || Grid::total(whole),
            |unit| Grid::of(unit, whole, home.zone).expect("few rows"),
        );
        for (name, rows) in home.answer(&grid, coarsest, now).await {
            assert_eq!(rows, home.expected(&grid, &name, now), "{unit:?} {name}");
        }
    }
}

/// Hundreds of devices are held at once.
#[tokio::test]
async fn of_a_device_there_are_its_rows_and_its_stays_and_no_second_copy() {
    let first = at("2025-06-01T00:00:00Z");
    let room = |n: i64| if (400..500).contains(&n) { "loft" } else { "hall" };
    let of = |n: i64| {
        let others = [("humidity", "50".to_owned()), (GAUGE, n.to_string())];
        reading(plus(first, n * 60_000), room(n), &others)
    };
    let home = Home::of((0..1_440).map(of).collect(), "UTC").await;
    let horizon = home.horizon(Timestamp::MAX).await;
    let grid = Grid::of(CalendarUnit::Minute, range(first, plus(first, DAY)), home.zone);
    let grid = grid.expect("few rows");
    let question =
        DeviceQuestion::of(&home.device, &grid, &horizon, Level::Readings, plus(first, 2 * DAY));
    let names = [metric(GAUGE)];

    let wanted = BTreeSet::from(names.clone());
    let found = gather(
        session(&home.store, &invocation()),
        &DeviceQuestion { metrics: Some(&wanted), ..question },
    )
    .await;
    let pieces = found.expect("within reach").pieces;
    let is_asked = |piece: &RollupPiece| piece.rollup.metrics.keys().eq(&names);
    assert!(pieces.len() == 1_440 && pieces.iter().all(is_asked), "only what is asked for");

    let DeviceRows { gathered, metrics, .. } = home.values(&question, &[GAUGE]).await;
    assert_eq!((gathered.pieces.len(), gathered.of_readings.len()), (3, 0));
    assert!(gathered.pieces.iter().all(|piece| piece.rollup.metrics.is_empty()));
    assert_eq!(metrics[&metric(GAUGE)].rows.len(), 1_440);
    let bytes = size_of::<RowValues>() * MAX_ROW_VALUES;
    assert!(bytes < 450 << 20, "{bytes} of a function of 1,024 MB");
}

fn total(rows: &[RowValues]) -> Option<Exact> {
    let amounts = rows.iter().filter_map(|row| row.increase.amount.as_ref());
    amounts.fold(None, |sum, it| Some(sum.map_or_else(|| it.clone(), |sum: Exact| &sum + it)))
}

fn total_area(rows: &[RowValues]) -> Option<Exact> {
    let areas = rows.iter().filter_map(|row| row.area.as_ref());
    areas.fold(None, |sum, it| {
        Some(sum.map_or_else(|| it.area.clone(), |sum: Exact| &sum + &it.area))
    })
}

/// What rows add up to.
type Amount = fn(&[RowValues]) -> Option<Exact>;

/// The zones of tests, each with a day on which its clock changes.
const ZONES: [(&str, &str); 5] = [
    ("Europe/Berlin", "2025-03-30T00:00:00Z"),
    ("Europe/Berlin", "2025-10-26T00:00:00Z"),
    ("Australia/Lord_Howe", "2025-04-05T15:00:00Z"),
    ("Asia/Kathmandu", "2025-06-01T00:00:00Z"),
    ("UTC", "2025-12-31T23:00:00Z"),
];

#[tokio::test]
async fn rows_are_the_fold_of_the_readings_whatever_is_rolled_up() {
    let runs = 60;
    let mut counted = 0;
    for seed in 0..runs {
        let mut random = Rng::with_seed(seed);
        let (zone, first) = ZONES[random.usize(0..ZONES.len())];
        let first = plus(at(first), -random.i64(2..5) * DAY);
        let days = random.i64(6..12);
        let home = Home::random(&mut random, zone, first, days).await;
        let end = plus(first, days * DAY);
        let now = plus(first, (days + 3) * DAY);
        let moment = |random: &mut Rng| plus(first, random.i64(-2 * DAY..(days + 2) * DAY));
        let (one, other) = (moment(&mut random), moment(&mut random));
        if one != other && random.u8(0..8) > 0 {
            let since = QuarterHour::of(one.min(other)).start();
            let sealed = QuarterHour::of(one.max(other)).end();
            let mut days = Rng::with_seed(seed + 1_000);
            home.roll_up(range(since, sealed), || days.u8(0..4) > 0).await;
        }
        let asked = if random.bool() { zone } else { ZONES[random.usize(0..ZONES.len())].0 };
        let asked: Zone = given::zone(asked);
        let edges = [plus(first, random.i64(0..DAY)), plus(end, -random.i64(0..DAY))];
        let whole = range(edges[0], edges[1]);
        let unit = CalendarUnit::ALL[random.usize(2..CalendarUnit::ALL.len())];
        let grids = [
            (Grid::total(whole), Level::Days),
            (Grid::of(unit, whole, asked).expect("few rows"), Level::of(Some(unit))),
        ];
        for (grid, coarsest) in &grids {
            if grid.range().to().since(grid.range().from()) > TimeDelta::days(25) {
                continue;
            }
            let answer = home.answer(grid, *coarsest, now).await;
            for (name, rows) in &answer {
                let expected = home.expected(grid, name, now);
                for (n, (row, expected)) in rows.iter().zip(&expected).enumerate() {
                    assert_eq!(row, expected, "seed {seed}: {zone} {unit} {name} row {n}");
                }
                assert_eq!(rows.len(), expected.len());
                counted += rows.len();
            }
        }
    }
    assert!(counted > 5_000, "{counted} rows");
}

#[tokio::test]
async fn any_partition_of_a_range_adds_up_to_its_total() {
    for seed in 0..20 {
        let mut random = Rng::with_seed(seed);
        let first = at("2025-03-28T00:00:00Z");
        let home = Home::random(&mut random, "Europe/Berlin", first, 6).await;
        home.roll_up(range(first, plus(first, 5 * DAY)), || true).await;
        let whole = range(plus(first, HOUR), plus(first, 6 * DAY - 1));
        let mut edges: Vec<Timestamp> =
            (0..4).map(|_| plus(first, random.i64(HOUR + 1..6 * DAY - 1))).collect();
        edges.extend([whole.from(), whole.to()]);
        edges.sort();
        edges.dedup();
        // Long past; and with readings ahead of now.
        for now in [plus(first, 20 * DAY), plus(first, random.i64(5 * DAY + HOUR..6 * DAY))] {
            let answer = home.answer(&Grid::total(whole), Level::Days, now).await;
            let amounts: [(_, Amount); 2] = [(metric(COUNTER), total), (metric(POWER), total_area)];
            for (name, amount) in &amounts {
                let all = home.expected(&Grid::total(whole), name, now);
                let expected = amount(&all);
                assert_eq!(amount(&answer[name]), expected, "seed {seed}: {name} at {now}");
                let mut sum = Exact::zero();
                for pair in edges.windows(2) {
                    let part = Grid::total(range(pair[0], pair[1]));
                    let expected = home.expected(&part, name, now);
                    let answer = home.answer(&part, Level::Days, now).await.remove(name);
                    let answer = answer.expect("rows");
                    assert_eq!(answer, expected, "seed {seed}: {name} {pair:?} at {now}");
                    sum += &amount(&answer).unwrap_or_else(Exact::zero);
                }
                assert_eq!(Some(sum), expected, "seed {seed}: {name} {edges:?} at {now}");
            }
        }
    }
}

#[tokio::test]
async fn a_power_ahead_of_now_holds_in_each_part_of_a_range_as_in_the_whole() {
    let now = at("2025-03-28T00:00:00Z");
    let minute = |n: i64| plus(now, n * 60_000);
    let power = |n, watts: &str| reading(minute(n), "hall", &[(POWER, watts.to_owned())]);
    let home = Home::of(vec![power(-5, "60"), power(60, "600"), power(90, "0")], "UTC").await;
    let of = async |from, to| {
        let grid = Grid::total(range(minute(from), minute(to)));
        let answer = home.answer(&grid, Level::Days, now).await;
        total_area(&answer[&metric(POWER)])
    };
    // A value holds for 15 minutes.
    let minutes = |watt_minutes: i64| Some(Exact::from(watt_minutes * 60_000));
    assert_eq!(of(60, 100).await, minutes(600 * 15));
    assert_eq!(of(60, 65).await, minutes(600 * 5));
    assert_eq!(of(65, 100).await, minutes(600 * 10));
    assert_eq!(of(-5, 20).await, minutes(60 * 15), "a value follows");
    assert_eq!(of(95, 100).await, None, "none follows");
}

#[tokio::test]
async fn a_power_ahead_of_now_holds_in_a_room_until_the_device_leaves() {
    let now = at("2025-03-28T00:00:00Z");
    let minute = |n: i64| plus(now, n * 60_000);
    let power = |n, room| reading(minute(n), room, &[(POWER, "600".to_owned())]);
    let gauge = |n, room| reading(minute(n), room, &[(GAUGE, "20".to_owned())]);
    for first_elsewhere in [power(65, "loft"), gauge(65, "loft")] {
        let readings = vec![
            power(55, "hall"),
            power(60, "hall"),
            first_elsewhere,
            power(70, "loft"),
            power(80, "hall"),
            gauge(85, "hall"),
        ];
        let home = Home::of(readings, "UTC").await;
        let of = async |from, to| {
            let whole = range(minute(from), minute(to));
            let (row, _) = home.in_room("hall", POWER, whole, now).await;
            total_area(&[row])
        };
        let minutes = |number: i64| Some(Exact::from(600 * number * 60_000));
        assert_eq!(of(40, 90).await, minutes(10));
        for (from, to, held) in [(40, 62, 7), (62, 90, 3), (40, 65, 10), (65, 90, 0), (60, 64, 4)] {
            let expected = if held > 0 { minutes(held) } else { None };
            assert_eq!(of(from, to).await, expected, "{from} to {to}");
        }
    }
}

#[tokio::test]
async fn a_counter_has_its_share_across_any_number_of_readings_that_are_not_rolled_up() {
    let first = at("2025-03-28T00:00:00Z");
    let second = |n: i64| plus(first, n * 1_000);
    let counter = |n, kwh: &str| reading(second(n), "hall", &[(COUNTER, kwh.to_owned())]);
    // More readings without the counter than one query reads. Only the first hour is rolled up.
    let count = 3_600 + 10_500;
    let mut readings = vec![counter(60, "100"), counter(count, "200")];
    readings.extend((61..count).map(|n| reading(second(n), "hall", &[(GAUGE, "21".to_owned())])));
    let home = Home::of(readings, "UTC").await;
    home.roll_up(range(first, second(3_600)), || true).await;
    for (from, to) in [(61, 75), (count - 75, count), (count - 75, count + 1)] {
        let grid = Grid::total(range(second(from), second(to)));
        let now = second(2 * count);
        let answer = home.answer(&grid, Level::Days, now).await;
        let expected = home.expected(&grid, &metric(COUNTER), now);
        assert!(total(&expected).is_some(), "{from} to {to}");
        assert_eq!(total(&answer[&metric(COUNTER)]), total(&expected), "{from} to {to}");
    }
}

/// A counter is found before the rollups begin, however many readings without it there are until then.
#[tokio::test]
async fn a_counter_has_its_share_up_to_readings_from_before_the_rollups() {
    let first = at("2025-03-28T00:00:00Z");
    let second = |n: i64| plus(first, n * 1_000);
    let counter = |n, kwh: &str| reading(second(n), "hall", &[(COUNTER, kwh.to_owned())]);
    let hour = |n: i64| n * 3_600;
    let mut readings = vec![counter(60, "100"), counter(14_000, "200"), counter(hour(5), "900")];
    let between = (61..14_000).chain(14_001..hour(4));
    readings.extend(between.map(|n| reading(second(n), "hall", &[(GAUGE, "21".to_owned())])));
    readings.sort_by_key(|reading| reading.at);
    let home = Home::of(readings, "UTC").await;
    home.roll_up(range(second(hour(4)), second(hour(6))), || true).await;

    let grid = Grid::total(range(second(61), second(75)));
    let answer = home.answer(&grid, Level::Days, second(hour(6))).await;
    let expected = home.expected(&grid, &metric(COUNTER), second(hour(6)));
    assert!(total(&expected).is_some());
    assert_eq!(total(&answer[&metric(COUNTER)]), total(&expected));
}

#[tokio::test]
async fn both_days_of_a_clock_change_are_whole() {
    for (first, hours) in [("2025-03-29T23:00:00Z", 23), ("2025-10-25T22:00:00Z", 25)] {
        let first = at(first);
        let readings = (-4..200)
            .map(|n| reading(plus(first, n * HOUR / 4), "hall", &[(COUNTER, (n + 10).to_string())]))
            .collect();
        let home = Home::of(readings, "Europe/Berlin").await;
        home.roll_up(range(plus(first, -HOUR), plus(first, 30 * HOUR)), || true).await;
        let zone: Zone = given::zone("Europe/Berlin");
        let grid = Grid::of(CalendarUnit::Day, range(first, plus(first, 1)), zone).expect("one");
        let rows = &home.answer(&grid, Level::Days, plus(first, 9 * DAY)).await[&metric(COUNTER)];
        let expected = Exact::from(hours * 4_i64);
        assert_eq!(rows[0].increase.amount, Some(expected), "a quarter counts 1");
        assert_eq!(rows[0].rollup.as_ref().map(|it| it.count), u64::try_from(hours * 4).ok());
    }
}

#[tokio::test]
async fn a_device_that_moved_counts_in_each_room_for_its_stay() {
    let first = at("2025-06-01T00:00:00Z");
    let readings: Vec<Reading> = (0..192)
        .map(|n| {
            let room = if (40..60).contains(&n) { "loft" } else { "hall" };
            reading(plus(first, n * HOUR / 4 + 1), room, &[(COUNTER, (n + 10).to_string())])
        })
        .collect();
    let home = Home::of(readings, "UTC").await;
    home.roll_up(range(first, plus(first, 2 * DAY)), || true).await;
    let (whole, now) = (range(first, plus(first, 2 * DAY)), plus(first, 9 * DAY));
    for (room, expected, count) in [("hall", 39 + 131, 172), ("loft", 19, 20)] {
        let (row, gathered) = home.in_room(room, COUNTER, whole, now).await;
        assert_eq!(row.increase.amount, Some(Exact::from(i64::from(expected))), "{room}");
        assert_eq!(row.rollup.as_ref().map(|it| it.count), Some(count), "{room}");
        let levels: BTreeSet<_> = [Level::Days, Level::QuarterHours].into();
        assert!(gathered.levels.is_subset(&levels), "{:?}", gathered.levels);
    }
}

#[tokio::test]
async fn a_reading_whose_values_do_not_count_takes_a_device_elsewhere() {
    let first = at("2025-06-01T00:00:00Z");
    let minute = |n: i64| plus(first, n * 60_000);
    let watts = |n, room| reading(minute(n), room, &[(POWER, "600".to_owned())]);
    let mut readings: Vec<Reading> = (0..3).map(|n| watts(n * 5, "hall")).collect();
    readings.push(reading(minute(18), "loft", &[(COUNTER, "0".to_owned())]));
    readings.extend([watts(25, "loft"), watts(29, "loft"), watts(45, "hall")]);
    for sealed in [0, 45, 60] {
        let home = Home::of(readings.clone(), "UTC").await;
        home.roll_up(range(first, minute(sealed.max(1))), || true).await;
        // Of 600 W those are the minutes in the hall: to the reading in the loft, and from the return for 15.
        for (from, to, minutes) in [(0, 90, 18 + 15), (0, 22, 18), (22, 90, 15), (16, 30, 2)] {
            let whole = range(minute(from), minute(to));
            let (row, _) = home.in_room("hall", POWER, whole, minute(90)).await;
            let expected = Exact::from(minutes * 60_000 * 600_u64);
            assert_eq!(row.area.expect("some").area, expected, "{sealed}: {from} to {to}");
        }
    }
}

#[tokio::test]
async fn rollups_are_counted_as_they_are_found_however_long_the_silence_between_them() {
    let (first, last) = (at("2016-01-01T00:00:00Z"), at("2026-01-01T00:00:00Z"));
    let home = Home::of(vec![reading(first, "hall", &[(GAUGE, "1".to_owned())])], "UTC").await;
    let rollup = home.fold(range(first, last));
    let mut quarter = QuarterHour::of(first);
    for _ in 1..45_000 {
        home.put_rollup(Bucket::QuarterHour(quarter), quarter.range(), None, rollup.clone()).await;
        quarter = quarter.next();
    }
    let newest = QuarterHour::of(plus(last, -DAY));
    home.put_rollup(Bucket::QuarterHour(newest), newest.range(), None, rollup.clone()).await;
    home.seal(range(first, last)).await;
    let reads = home.store.calls().reads;
    let found = home.gathered(range(first, last), last).await.expect("45,000 rollups");
    assert_eq!(found.pieces.len(), 45_000);
    assert!(home.store.calls().reads - reads < 75, "{} reads", home.store.calls().reads - reads);
    let one_more = newest.next();
    home.put_rollup(Bucket::QuarterHour(one_more), one_more.range(), None, rollup).await;
    let refused = home.gathered(range(first, last), last).await.expect_err("one rollup too many");
    let SeriesError::OutOfReach(detail) = refused else { panic!("{refused:?}") };
    let fitting = format!("the rollups before {} fit", one_more.start());
    assert!(detail.contains(&fitting), "{detail}");
    home.gathered(range(first, one_more.start()), last).await.expect("what the refusal advises");
}

#[tokio::test]
async fn rollups_of_older_settings_are_read_from_readings_for_a_month_then_used_and_told() {
    let first = at("2025-06-01T00:00:00Z");
    let (days, now) = (40, plus(first, 60 * DAY));
    let readings = (0..days * 24)
        .map(|n| reading(plus(first, n * HOUR), "hall", &[(POWER, "100".to_owned())]))
        .collect();
    let mut home = Home::of(readings, "UTC").await;
    home.roll_up(range(first, plus(first, days * DAY)), || true).await;
    let whole = |days: i64| range(first, plus(first, days * DAY));
    let concerning = |device: &Device, extent| {
        let changed = device.changed(|it| {
            let power = it.metrics.get_mut(&metric(POWER)).expect("it has sent it");
            power.hold = Some(TimeDelta::hours(1));
            it.fold_settings = FoldSettings { number: 1, changes: [(1, extent)].into() };
        });
        changed.expect("a device")
    };
    home.device = concerning(&home.device, Extent::ALL);

    let month = home.gathered(whole(31), now).await.expect("within reach");
    assert_eq!(month.levels, [Level::Readings].into());
    let grid = Grid::total(whole(31));
    let answer = &home.answer(&grid, Level::Days, now).await[&metric(POWER)];
    assert_eq!(answer[0], home.expected(&grid, &metric(POWER), now)[0]);
    let held = answer[0].area.as_ref().map(|area| area.held);
    assert_eq!(held, Some(TimeDelta::days(31)), "the rollups have a quarter of each hour");

    let more = home.gathered(whole(days), now).await.expect("within reach");
    assert_eq!(more.levels, [Level::Readings, Level::Days].into());
    let days_of_older_settings = more.pieces.iter().filter(|piece| piece.level == Level::Days);
    assert_eq!(days_of_older_settings.count(), 9);

    let third = range(plus(first, 2 * DAY), plus(first, 3 * DAY));
    let extent = Extent { first: third.from(), last: third.from() };
    home.device = concerning(&home.device, extent);
    let one = home.gathered(whole(days), now).await.expect("within reach");
    let read = one.pieces.iter().filter(|piece| piece.level == Level::Readings);
    assert_eq!(read.map(|piece| piece.range).collect::<Vec<_>>(), [third]);

    for mut stored in home.store.rollups() {
        let expected = Expected::Version(stored.version);
        (stored.raw_until, stored.version) = (Some(now), stored.version + 1);
        assert!(home.store.put_rollup(&stored, expected, &invocation()).await.expect("memory"));
    }
    let expired = home.gathered(whole(days), now).await.expect("within reach");
    assert_eq!(expired.levels, [Level::Days].into());
}

/// The readings of a counter that rises, shown as it is for some dozens of readings, then negative or as zero.
fn a_counter_that_is_negative_for_hours(whole: TimeRange, random: &mut Rng) -> Vec<Reading> {
    let (mut readings, mut moment, mut wh, mut left) = (Vec::new(), whole.from(), 50_000, 0);
    while moment < whole.to() {
        left = if left == 0 { random.i64(-60..60) } else { left - left.signum() };
        wh += random.i64(0..300);
        let shown = if left < 0 { -random.i64(0..2) * wh } else { wh };
        let value = Exact::from(&number(&format!("{shown}e-3"))).to_string();
        readings.push(reading(moment, "hall", &[(COUNTER, value)]));
        moment = plus(moment, random.i64(1..40) * 60_000);
    }
    readings
}

/// Values that took part by older settings and do not any more, or the other way round, run for hours: those next to a
/// range are far away.
#[tokio::test]
async fn rows_are_those_of_the_newest_settings_whatever_was_rolled_up_before() {
    let (first, name) = (at("2025-06-01T00:00:00Z"), metric(COUNTER));
    let (whole, now) = (range(first, plus(first, 6 * DAY)), plus(first, 8 * DAY));
    for seed in 0..60 {
        let mut random = Rng::with_seed(seed);
        let readings = a_counter_that_is_negative_for_hours(whole, &mut random);
        let mut home = Home::of(readings, "UTC").await;
        let device = home.device.clone();
        let of = |(kind, is_net): (MetricKind, bool), number| {
            let changed = device.changed(|it| {
                let info = it.metrics.get_mut(&name).expect("it has sent it");
                (info.kind, info.is_net) = (kind, is_net);
                let changes = (1..=number).map(|it| (it, Extent::ALL)).collect();
                it.fold_settings = FoldSettings { number, changes };
            });
            changed.expect("a device")
        };
        let kinds =
            [(MetricKind::Gauge, false), (MetricKind::Counter, false), (MetricKind::Counter, true)];
        let before = random.usize(0..3);
        home.device = of(kinds[before], 0);
        home.roll_up(whole, || seed % 2 == 0).await;
        home.device = of(kinds[(before + random.usize(1..3)) % 3], 1);
        let cut = plus(first, random.i64(DAY..5 * DAY));
        let parts = [range(first, cut), range(cut, whole.to()), whole];
        for (n, part) in parts.into_iter().enumerate() {
            let six = Grid::of(CalendarUnit::Hours6, part, Zone::UTC).expect("few rows");
            for (grid, coarsest) in [(Grid::total(part), Level::Days), (six, Level::QuarterHours)] {
                let answer = &home.answer(&grid, coarsest, now).await[&name];
                let expected = home.expected(&grid, &name, now);
                assert_eq!(answer, &expected, "seed {seed}, part {n}, {coarsest:?}");
            }
        }
    }
}
