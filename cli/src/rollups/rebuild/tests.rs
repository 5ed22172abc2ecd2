//! What a rebuild stores, in transactions and one by one, is what the folds of one bucket after the other store. Spoils
//! the rollups of random houses before each.

use std::collections::{BTreeMap, BTreeSet};

use domain::given::always;
use domain::{
    ConditionsSchema, DevicePatch, Edit, Encoding, MetricKind, MetricPatch, Order, Reading,
    SchemaMetric, Zone,
};
use dynamodb::DynamoStore;
use fastrand::Rng;
use local::{Options, System};
use rollups::{Assumed, DeviceFolds, DeviceRules};
use runtime::clock::SystemClock;
use table::given::{self, invocation};
use table::layout::Layout;
use table::{
    EditRegistry as _, KeepRollupState as _, ListDevices as _, PutConditionsSchema as _,
    PutReadings as _, PutRollups as _, ReadConditionsSchema as _, ReadRollups as _, RollupKey,
    Session, StoredRollup,
};

use super::*;
use crate::rollups::{Args, Command};
use crate::tests::parsed;

const DEVICES: [&str; 2] = ["d0", "d1"];
const ZONES: [&str; 3] = ["Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu"];

/// The ways to make rollups again.
#[derive(Debug, Clone, Copy)]
enum Way {
    BucketByBucket,
    DayByDay,
    InTransactions,
}

struct House {
    system: System,
    store: DynamoStore,
    directory: tempfile::TempDir,
}

/// Readings of days on which clocks change and of others, with gaps, counters that start over, and moves.
fn readings(rng: &mut Rng) -> Vec<Reading> {
    let mut readings = Vec::new();
    for device in DEVICES {
        let mut at = given::at("2025-03-20T07:03:00Z");
        let mut total = 0.0;
        for _ in 0..rng.usize(60..120) {
            let gap = if rng.usize(0..20) == 0 { 4_000_000 } else { 9_000 };
            at = at.saturating_add(TimeDelta::seconds(rng.i64(1..gap)));
            total = if rng.usize(0..20) == 0 { 0.0 } else { total + rng.f64() };
            let room = format!("room-{}", rng.usize(0..3));
            let room = rng.bool().then_some(room.as_str());
            let (energy, warmth) = (format!("{total:.3}"), rng.i32(-200..300).to_string());
            let metrics = [("energy_kwh", energy.as_str()), ("temperature", warmth.as_str())];
            let metrics = &metrics[rng.usize(0..2)..];
            readings.push(given::reading(device, at, room, metrics));
        }
    }
    let now = SystemClock.now();
    readings.retain(|it| it.at < now);
    readings
}

impl House {
    async fn new(rng: &mut Rng) -> Self {
        let options = Options {
            listens: false,
            conditions_index: Some(true),
            time_zone: ZONES[rng.usize(..3)].parse().unwrap(),
            ..Options::default()
        };
        let system = Box::pin(System::start(options)).await.unwrap();
        let store = DynamoStore::connect(system.store_config(), Layout::default());
        let store = store.as_laid_out(&invocation()).await.unwrap();
        let metric = |name: &str| SchemaMetric {
            name: given::metric(name),
            encoding: Encoding::Float,
            bits: 8,
        };
        let metrics = ["energy_kwh", "temperature"].map(metric);
        let schema = ConditionsSchema::new(1, metrics.into()).unwrap();
        let put = store.put_conditions_schema(&schema, Expected::Absent, &invocation()).await;
        put.unwrap();
        let readings = readings(rng);
        given::register_devices_of(&store, &readings).await;
        for some in readings.chunks(100) {
            let put = store.put_readings(some, None, &invocation()).await;
            assert!(put.not_stored.is_empty());
        }
        let house = Self { system, store, directory: tempfile::tempdir().unwrap() };
        house.system.settle().await.unwrap();
        let kind = Edit::Set(MetricKind::Counter);
        let metric = MetricPatch { kind, ..MetricPatch::default() };
        let metrics = [(given::metric("temperature"), Some(metric))].into();
        let patch = DevicePatch { metrics, ..DevicePatch::default() };
        let device = DEVICES[rng.usize(..2)].parse().unwrap();
        house.store.edit_device(&device, &patch, SystemClock.now(), &invocation()).await.unwrap();
        house
    }

    async fn devices(&self) -> Vec<Device> {
        self.store.all_devices(&invocation()).await.unwrap().found
    }

    async fn rollups(&self) -> Vec<StoredRollup> {
        let mut rollups = Vec::new();
        let all = always();
        let dates = "0001-01-01".parse().unwrap()..="9999-12-31".parse().unwrap();
        for device in self.devices().await {
            let (id, invocation) = (device.id(), invocation());
            rollups.extend(self.store.quarters(id, all, true, &invocation).await.unwrap());
            let days =
                self.store.days(id, dates.clone(), Order::Ascending, 10_000, &invocation).await;
            rollups.extend(days.unwrap());
        }
        rollups
    }

    /// Takes what they sum up from rollups.
    async fn spoil(&self) {
        for known in self.rollups().await {
            let (expected, version) = (Expected::Version(known.version), known.version + 1);
            let spoilt = StoredRollup { version, rollup: domain::Rollup::default(), ..known };
            assert!(self.store.put_rollup(&spoilt, expected, &invocation()).await.unwrap());
        }
    }

    async fn make_again(&self, way: Way, zone: Zone) {
        let bulk = match way {
            Way::BucketByBucket => return self.fold_each(zone).await,
            Way::DayByDay => None,
            Way::InTransactions => Some(self.system.bulk()),
        };
        let words = ["roomtide", "rebuild", "--time-zone", zone.name()];
        let Command::Rebuild(args) = parsed::<Args>(words).unwrap().action else { panic!("asked") };
        let path = self.directory.path().join("progress");
        let progress =
            RunScope { path, table: "the bench".to_owned(), again: args.scope.progress.again };
        let rebuilt =
            Box::pin(run(&args, &self.store, bulk, &progress, SystemClock)).await.unwrap();
        let found = self.rollups().await;
        let quarters = found.iter().filter(|it| matches!(it.key.bucket, Bucket::QuarterHour(_)));
        assert_eq!((rebuilt.quarters, rebuilt.kept), (quarters.count() as u64, 0));
    }

    async fn fold_each(&self, zone: Zone) {
        let indexing = self.store.indexing(&invocation()).await.unwrap();
        assert!(matches!(indexing, Indexing::By(_)));
        let (seen, retention) = (SeenRooms::default(), Retention::default());
        for device in self.devices().await {
            let device = &DeviceRules::of(&device).indexed(&indexing);
            let invocation = invocation();
            let session = Session::new(&self.store, &invocation, SystemClock.now());
            let fold = DeviceFolds { session, device, seen: &seen, retention: &retention };
            let all = always();
            let quarters = fold.quarters_of(all, Assumed::Nothing).await.unwrap().folded;
            let dates: BTreeSet<_> = quarters.iter().map(|it| zone.date(it.start())).collect();
            for date in dates {
                fold.day(zone, date, Timestamp::MAX, Assumed::Nothing).await.unwrap();
            }
        }
    }
}

/// Those that sum up something by their keys, without how often they were put. A day of another zone, on whose date the
/// zone has nothing, counts as absent.
fn by_key(rollups: Vec<StoredRollup>) -> BTreeMap<RollupKey, StoredRollup> {
    let all = rollups.into_iter().filter(|it| !it.rollup.is_empty());
    all.map(|it| (it.key.clone(), StoredRollup { version: 0, ..it })).collect()
}

#[tokio::test]
async fn every_way_to_make_rollups_again_leaves_the_same() {
    for seed in 0..3 {
        println!("seed {seed}");
        let mut rng = Rng::with_seed(seed);
        let house = Box::pin(House::new(&mut rng)).await;
        // Often another zone than that of the first folds. The function folds in it too, by its schedule.
        let zone: Zone = ZONES[rng.usize(..3)].parse().unwrap();
        house.store.set_rebuilt(Timestamp::MIN, zone.name(), &invocation()).await.unwrap();
        let mut expected = None;
        for way in [Way::BucketByBucket, Way::DayByDay, Way::InTransactions] {
            house.spoil().await;
            house.make_again(way, zone).await;
            let found = by_key(house.rollups().await);
            assert!(found.len() > 80, "{}", found.len());
            assert!(found.values().any(|it| it.settings > 0), "{way:?}");
            let expected = expected.get_or_insert_with(|| found.clone());
            let differs = found.iter().find(|(key, it)| expected.get(key) != Some(it));
            assert_eq!(differs.map(|(key, it)| (it, expected.get(key))), None, "{way:?}");
            assert_eq!(found.len(), expected.len(), "{way:?}");
        }
        let House { system, store, .. } = house;
        drop(store);
        system.shutdown().await.unwrap();
    }
}
