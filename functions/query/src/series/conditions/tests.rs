//! Episodes against a filter over the folds of all readings, whichever way they are found.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::TimeDelta;
use domain::{
    Basis, Condition, Decimal, Device, DeviceObservation, Exact, FoldRules, Quarter, Reading,
    Rollup, RoomId, SWEEP_GROUPS, TimeRange, Timestamp, Zone,
};
use fastrand::Rng;
use table::memory::MemoryStore;
use table::{
    Deadline, Expected, Invocation, KeepRollupState as _, PutReadings as _, PutRollups as _,
    RollupKey, RollupState, StoredRollup,
};

use super::request::ConditionsRequest;
use super::{find, plain};
use crate::series::gather::{Ask, Level};
use crate::series::grid::Grid;
use crate::series::horizon::Horizon;

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60;

fn at(minute: i64) -> Timestamp {
    let start = Timestamp::parse("2026-01-30T00:00:00Z", Timestamp::MIN).expect("a timestamp");
    start.saturating_add(TimeDelta::milliseconds(minute * MINUTE))
}

fn range(from: i64, to: i64) -> TimeRange {
    TimeRange::new(at(from), at(to)).expect("a range")
}

fn invocation() -> Invocation {
    Invocation::until(Deadline::after(Duration::from_secs(60)))
}

fn number(tenths: i64) -> Decimal {
    Decimal::parse(&format!("{tenths}e-1")).expect("few digits")
}

/// A device that measures now and then, in two rooms, with silences and without one of its metrics at times.
struct Home {
    store: MemoryStore,
    device: Device,
    readings: Vec<Reading>,
    horizon: Horizon,
    now: Timestamp,
}

impl Home {
    async fn random(random: &mut Rng, days: i64, sealed: i64) -> Self {
        let (mut minute, mut readings) = (0, Vec::new());
        let (mut temperature, mut humidity, mut room) = (220, 500, "hall");
        while minute < days * DAY {
            temperature = (temperature + random.i64(-9..10)).clamp(150, 300);
            humidity = (humidity + random.i64(-19..20)).clamp(200, 800);
            if random.u8(0..30) == 0 {
                room = if room == "hall" { "loft" } else { "hall" };
            }
            let mut metrics = vec![("co2", random.i64(4_000..9_000)), ("temperature", temperature)];
            if random.u8(0..4) > 0 {
                metrics.push(("humidity", humidity));
            }
            let metrics = metrics
                .into_iter()
                .map(|(name, tenths)| (name.parse().expect("a name"), number(tenths)));
            let reading = Reading::new(
                "d".parse().expect("an id"),
                at(minute),
                Some(room.parse().expect("an id")),
                metrics.collect(),
            );
            readings.push(reading.expect("valid"));
            minute += if random.u8(0..60) == 0 { random.i64(60..DAY) } else { random.i64(1..12) };
        }
        let store = MemoryStore::default();
        store.put_readings(&readings, None, &invocation()).await;
        let mut observation = DeviceObservation::of(&readings[0]);
        readings.iter().for_each(|reading| observation.see(reading));
        let device = observation.new_device("d".parse().expect("an id"), |_| true);
        let state = RollupState {
            zone: "UTC".to_owned(),
            since: Timestamp::MIN,
            sealed: [at(sealed); SWEEP_GROUPS],
            queue: None,
        };
        store.begin_rollups(&state, &invocation()).await.expect("memory");
        let horizon = Horizon::read(&store, &invocation()).await.expect("memory");
        let home = Self { store, device, readings, horizon, now: at(days * DAY) };
        for quarter in home.quarters(range(-15, sealed)) {
            home.put(quarter, None).await;
        }
        home
    }

    fn quarters(&self, range: TimeRange) -> Vec<Quarter> {
        let all = self.readings.iter().filter(|it| range.contains(it.at));
        let mut quarters: Vec<Quarter> = all.map(|it| Quarter::of(it.at)).collect();
        quarters.dedup();
        quarters
    }

    fn fold(&self, quarter: Quarter, room: Option<&RoomId>) -> Rollup {
        let is_inside = |it: &&Reading| {
            quarter.range().contains(it.at) && (room.is_none() || it.room.as_ref() == room)
        };
        Rollup::fold(self.readings.iter().filter(is_inside), &FoldRules::of(&self.device))
    }

    async fn put(&self, quarter: Quarter, version: Option<u64>) {
        let stored = StoredRollup {
            key: RollupKey::quarter(self.device.id.clone(), quarter),
            range: quarter.range(),
            zone: None,
            version: version.unwrap_or(0) + 1,
            settings: 0,
            raw_until: None,
            expires: None,
            is_frozen: false,
            rollup: self.fold(quarter, None),
        };
        let expected = version.map_or(Expected::Absent, Expected::Version);
        let put = self.store.put_rollup(&stored, expected, &invocation()).await;
        assert!(put.expect("memory"));
    }

    /// The quarters that match, by a look at each.
    fn expected(&self, asked: &ConditionsRequest, room: Option<&RoomId>) -> Vec<Quarter> {
        let is_matching = |quarter: &Quarter| {
            let rollup = self.fold(*quarter, room);
            asked.conditions.iter().all(|condition| {
                rollup.metrics.get(&condition.metric).is_some_and(|it| {
                    let mean = it.sum.rounded_quotient(&Exact::from(it.count)).expect("a mean");
                    condition.interval.contains(&mean.to_decimal().expect("few digits"))
                })
            })
        };
        self.quarters(asked.range).into_iter().filter(is_matching).collect()
    }
}

fn request(conditions: &[(&str, String)], range: TimeRange) -> ConditionsRequest {
    let conditions = conditions.iter().map(|(name, values)| Condition {
        metric: name.parse().expect("a name"),
        interval: values.parse().expect("an interval"),
    });
    ConditionsRequest {
        format: api::Format::Json,
        conditions: conditions.collect(),
        range,
        is_exact: false,
        is_explained: false,
    }
}

fn random_request(random: &mut Rng, days: i64) -> ConditionsRequest {
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
    let from = random.i64(0..days * 96 - 1);
    let to = random.i64(from + 1..=days * 96);
    request(&conditions, range(from * 15, to * 15))
}

#[tokio::test]
async fn the_episodes_are_those_of_a_filter_over_all_readings() {
    let mut random = Rng::with_seed(7);
    let mut matched = 0;
    for _ in 0..40 {
        let days = random.i64(3..12);
        let sealed = [0, 15 * random.i64(0..days * 96), days * DAY][random.usize(0..3)];
        let home = Home::random(&mut random, days, sealed).await;
        for room in [None, Some("hall"), Some("attic")] {
            let room: Option<RoomId> = room.map(|it| it.parse().expect("an id"));
            let rooms: Option<BTreeSet<RoomId>> = room.clone().map(|it| [it].into());
            let request = random_request(&mut random, days);
            let grid = Grid::quarters(request.range);
            let ask = Ask {
                device: &home.device,
                rooms: rooms.as_ref(),
                grid: &grid,
                horizon: &home.horizon,
                coarsest: Level::Quarters,
                now: home.now,
            };
            let found = plain::matching(&home.store, &ask, &request, &invocation()).await;
            let found: Vec<Quarter> = found.expect("answered").into_keys().collect();
            assert_eq!(found, home.expected(&request, room.as_ref()), "{request:?} {room:?}");
            matched += found.len();
        }
    }
    assert!(matched > 300, "{matched} quarters matched");
}

#[tokio::test]
async fn readings_refine_an_episode_that_the_mean_blurs_and_drop_one_that_it_invents() {
    let minutes = |n: i64| match n {
        // Above for the last 10 minutes of a quarter and the first 10 of the next.
        5..25 => (300, 750),
        // The mean is above, and no reading is above in both.
        30..38 => (400, 500),
        38..45 => (200, 950),
        _ => (200, 500),
    };
    let mut readings = Vec::new();
    for n in 0..60 {
        let (temperature, humidity) = minutes(n);
        let metrics = [("temperature", temperature), ("humidity", humidity)];
        let metrics = metrics.map(|(name, tenths)| (name.parse().expect("a name"), number(tenths)));
        let reading = Reading::new("d".parse().expect("an id"), at(n), None, metrics.into());
        readings.push(reading.expect("valid"));
    }
    let store = MemoryStore::default();
    store.put_readings(&readings, None, &invocation()).await;
    let mut observation = DeviceObservation::of(&readings[0]);
    readings.iter().for_each(|reading| observation.see(reading));
    let device = observation.new_device("d".parse().expect("an id"), |_| true);
    let horizon = Horizon::read(&store, &invocation()).await.expect("memory");
    let conditions = [("temperature", "26..".to_owned()), ("humidity", "66..".to_owned())];
    let mut request = request(&conditions, range(0, 60));
    let grid = Grid::quarters(request.range);
    let ask = Ask {
        device: &device,
        rooms: None,
        grid: &grid,
        horizon: &horizon,
        coarsest: Level::Quarters,
        now: at(60),
    };
    let asks = [ask];
    let spans = |found: &[(&domain::DeviceId, domain::Episode)]| -> Vec<(TimeRange, Basis)> {
        found.iter().map(|(_, it)| (it.range, it.basis)).collect()
    };
    let found = find(&store, &asks, &request, &invocation()).await.expect("answered");
    assert_eq!(spans(&found), [(range(0, 45), Basis::Mean15)]);
    request.is_exact = true;
    let found = find(&store, &asks, &request, &invocation()).await.expect("answered");
    assert_eq!(spans(&found), [(range(5, 25), Basis::Readings)]);
    let extremes: BTreeMap<_, _> = found[0].1.extremes.iter().collect();
    assert!(extremes.values().all(|it| it.min == it.max));
}

#[test]
fn a_range_is_cut_at_months_of_utc() {
    let months = plain::months(range(0, 40 * DAY));
    let february = Zone::UTC.day("2026-02-01".parse().expect("a date")).expect("a day");
    assert_eq!((months.len(), months[1].from()), (3, february.from()));
    assert_eq!((months[0].from(), months[2].to()), (at(0), at(40 * DAY)));
}
