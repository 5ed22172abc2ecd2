//! When the registry in memory is read: by its age, for what it lacks, and by questions at once.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::clock::TestClock;
use domain::given::{self, at_millis, metric, number};
use domain::{DeviceObservation, Reading};
use futures_util::FutureExt as _;
use table::RegisterDevices as _;
use table::given::session;
use table::memory_db::MemoryDb;

/// Questions whose log nobody reads.
impl CachedRegistry<TestClock> {
    async fn ask(
        &self,
        session: Session<'_, impl ReadRegistry>,
    ) -> StoreResult<Arc<RegistrySnapshot>> {
        self.snapshot(session, &mut WideEvent::begin("test")).await
    }

    async fn list(
        &self,
        session: Session<'_, impl ReadRegistry>,
    ) -> StoreResult<Arc<RegistrySnapshot>> {
        self.snapshot_for_list(session, &mut WideEvent::begin("test")).await
    }

    async fn now(
        &self,
        session: Session<'_, impl ReadRegistry>,
    ) -> StoreResult<Arc<RegistrySnapshot>> {
        self.refresh(session, &mut WideEvent::begin("test")).await
    }

    async fn missing(
        &self,
        session: Session<'_, impl ReadRegistry>,
    ) -> StoreResult<Arc<RegistrySnapshot>> {
        self.refresh_for_missing(session, &mut WideEvent::begin("test")).await
    }
}

fn setup() -> (MemoryDb, CachedRegistry<TestClock>, TestClock, Invocation) {
    let clock = TestClock::at(at_millis(0));
    let cache = CachedRegistry::new(Duration::from_secs(60), clock.clone());
    (MemoryDb::default(), cache, clock, Invocation::until(Deadline::after(Duration::from_secs(5))))
}

#[tokio::test]
async fn it_is_read_once_until_it_has_grown_old() {
    let (store, cache, clock, invocation) = setup();
    for _ in 0..3 {
        cache.ask(session(&store, &invocation)).await.expect("read");
    }
    assert_eq!(store.calls().reads, 2, "devices and rooms");
    clock.advance(Duration::from_secs(60));
    cache.ask(session(&store, &invocation)).await.expect("read");
    assert_eq!(store.calls().reads, 4);
}

#[tokio::test]
async fn a_list_has_what_was_registered_two_seconds_ago_and_reads_it_once_however_many_ask() {
    let (store, cache, clock, invocation) = setup();
    for _ in 0..2 {
        cache.list(session(&store, &invocation)).await.expect("read");
    }
    assert_eq!(store.calls().reads, 4, "an empty registry is read each time");
    add_devices(&store, 2, &invocation).await;
    let listed = async |count: usize| {
        let asked = (0..5).map(|_| cache.list(session(&store, &invocation)));
        for read in futures_util::future::join_all(asked).await {
            assert_eq!(read.expect("read").devices.len(), count);
        }
    };
    listed(2).await;
    let reads = store.calls().reads;
    add_devices(&store, 3, &invocation).await;
    clock.advance(Duration::from_millis(1_999));
    listed(2).await;
    assert_eq!(store.calls().reads, reads);
    clock.advance(Duration::from_millis(1));
    listed(3).await;
    assert_eq!(store.calls().reads, reads + 2);

    cache.state().last_read_halves = MAX_LIST_HALVES + 1;
    clock.advance(Duration::from_secs(59));
    listed(3).await;
    assert_eq!(store.calls().reads, reads + 2, "a large registry is read when it is too old");
}

#[tokio::test]
async fn a_list_of_a_table_that_does_not_answer_is_the_old_one_and_asks_less_often() {
    let (store, cache, clock, invocation) = setup();
    add_devices(&store, 2, &invocation).await;
    cache.list(session(&store, &invocation)).await.expect("read");
    store.fail_with((0..1_000).map(|_| StoreError::TimedOut));
    let before = store.calls().reads;
    for _ in 0..25 {
        clock.advance(Duration::from_millis(2_400));
        let old = cache.list(session(&store, &invocation)).await.expect("the old one");
        assert_eq!(old.devices.len(), 2);
    }
    let asked = store.calls().reads - before;
    assert!((3..=7).contains(&asked), "{asked}");
}

#[tokio::test]
async fn an_old_snapshot_is_better_than_none() {
    let (store, cache, clock, invocation) = setup();
    store.fail_with([StoreError::TimedOut]);
    assert!(cache.ask(session(&store, &invocation)).await.is_err());
    cache.ask(session(&store, &invocation)).await.expect("read");
    clock.advance(Duration::from_secs(60));
    store.fail_with([StoreError::TimedOut]);
    let mut log = WideEvent::begin("test");
    cache.snapshot(session(&store, &invocation), &mut log).await.expect("the old one");
    let line = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&line);
    let telemetry =
        Telemetry::to(Arc::new(move |text| sink.lock().expect("no panic").push_str(text)));
    log.emit(&invocation, &telemetry, &clock);
    let line = line.lock().expect("no panic");
    assert!(line.contains("registry.error") && line.contains("WARN"), "{line}");
}

#[tokio::test]
async fn while_the_table_does_not_answer_it_is_asked_less_and_less_often() {
    let (store, cache, clock, invocation) = setup();
    cache.ask(session(&store, &invocation)).await.expect("read");
    clock.advance(Duration::from_secs(60));
    let outage = || (0..1_000).map(|_| StoreError::TimedOut);
    store.fail_with(outage());
    let before = store.calls().reads;
    for _ in 0..600 {
        cache.ask(session(&store, &invocation)).await.expect("the old one");
        clock.advance(Duration::from_millis(100));
    }
    let asked = store.calls().reads - before;
    // After 0, 1, 3, 7, 15 and 31 of 60 seconds; the first of two requests fails at once.
    assert_eq!(asked, 6);
    store.end_troubles();
    clock.advance(MAX_PAUSE);
    cache.ask(session(&store, &invocation)).await.expect("read");
    clock.advance(Duration::from_secs(60));
    cache.ask(session(&store, &invocation)).await.expect("read");
    assert_eq!(store.calls().reads, before + asked + 4, "and as ever once it answers");
}

/// A table whose lists take their time.
struct Slow<'a>(&'a MemoryDb, Duration);

impl ReadRegistry for Slow<'_> {
    async fn devices(&self, invocation: &Invocation) -> StoreResult<Listing<Device>> {
        tokio::time::sleep(self.1).await;
        self.0.devices(invocation).await
    }

    async fn rooms(&self, invocation: &Invocation) -> StoreResult<Listing<Room>> {
        self.0.rooms(invocation).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_takes_longer_than_the_first_refresh_is_read_in_the_end() {
    let (store, cache, clock, invocation) = setup();
    cache.ask(session(&store, &invocation)).await.expect("read");
    add_devices(&store, 2, &invocation).await;

    let slow = Slow(&store, Duration::from_secs(7));
    let mut refreshes = 0;
    loop {
        clock.advance(MAX_PAUSE);
        let read = cache.ask(session(&slow, &invocation)).await.expect("the old one");
        refreshes += 1;
        if read.devices.len() == 2 {
            break;
        }
        assert!(refreshes < 6, "it is never read");
    }
    assert!(refreshes > 1, "nobody waits so long for the first refresh");
}

#[test]
fn a_deletion_waits_longer_than_any_instance_may_not_know() {
    let minutes = |age: u64, devices: Option<Listing<Device>>| {
        let clock = TestClock::at(at_millis(0));
        let cache = CachedRegistry::new(Duration::from_secs(60 * age), clock);
        let snapshot = RegistrySnapshot::of(devices, None, Timestamp::MIN);
        cache.deletion_quiet(&snapshot).num_minutes()
    };
    assert_eq!(minutes(1, Some(Listing::default())), domain::DELETION_QUIET.num_minutes());
    assert_eq!(minutes(1, None), 61);
    assert_eq!(minutes(60, Some(Listing::default())), 61);
}

/// A table that is asked while this process writes a room to it.
struct Meanwhile<'a>(&'a MemoryDb, &'a CachedRegistry<TestClock>, Room);

impl ReadRegistry for Meanwhile<'_> {
    async fn devices(&self, invocation: &Invocation) -> StoreResult<Listing<Device>> {
        self.0.devices(invocation).await
    }

    async fn rooms(&self, invocation: &Invocation) -> StoreResult<Listing<Room>> {
        let before = self.0.rooms(invocation).await;
        self.1.keep_room(self.2.clone());
        before
    }
}

#[tokio::test]
async fn an_answer_that_was_under_way_does_not_take_back_what_was_kept() {
    let (store, cache, _, invocation) = setup();
    let kitchen: RoomId = given::room("kitchen");
    let room = Room::new(kitchen.clone(), Timestamp::MIN);
    let read =
        cache.ask(session(&Meanwhile(&store, &cache, room), &invocation)).await.expect("read");
    assert!(read.rooms.contains_key(&kitchen));
    cache.now(session(&store, &invocation)).await.expect("read");
    let read = cache.ask(session(&store, &invocation)).await.expect("read");
    assert!(!read.rooms.contains_key(&kitchen), "what is asked for later knows better");
}

#[tokio::test]
async fn of_requests_at_once_each_has_the_new_registry() {
    let (store, cache, clock, invocation) = setup();
    cache.ask(session(&store, &invocation)).await.expect("read");
    clock.advance(Duration::from_secs(60));
    let asked = (0..5).map(|_| cache.ask(session(&store, &invocation)));
    let now = clock.now();
    for read in futures_util::future::join_all(asked).await {
        assert_eq!(read.expect("read").read_at, now);
    }
    assert_eq!(store.calls().reads, 4, "and it is read once");
}

#[tokio::test]
async fn what_memory_does_not_hold_is_not_read_each_time() {
    let (store, cache, clock, invocation) = setup();
    add_devices(&store, MAX_CACHED_ENTRIES + 1, &invocation).await;
    let read = cache.ask(session(&store, &invocation)).await.expect("read");
    assert!(!read.has_all_devices && read.has_all_rooms && !read.is_empty());
    for n in 0..2 * MAX_KEPT {
        cache.keep_device(device(n));
    }
    let read = cache.ask(session(&store, &invocation)).await.expect("read");
    assert!(read.devices.is_empty(), "{}", read.devices.len());
    assert_eq!(store.calls().reads, 2);
    for _ in 0..59 {
        clock.advance(Duration::from_secs(60));
        cache.ask(session(&store, &invocation)).await.expect("read");
    }
    assert_eq!(store.calls().reads, 2 + 59, "the rooms only");
    clock.advance(Duration::from_secs(60));
    cache.ask(session(&store, &invocation)).await.expect("read");
    assert_eq!(store.calls().reads, 2 + 59 + 2);
}

#[tokio::test]
async fn a_clock_that_is_set_back_keeps_no_snapshot_for_ever() {
    let (store, cache, clock, invocation) = setup();
    cache.ask(session(&store, &invocation)).await.expect("read");
    clock.set(Timestamp::MIN);
    cache.ask(session(&store, &invocation)).await.expect("read");
    assert_eq!(store.calls().reads, 4);
}

/// A table whose answers wait until each is let through; what they say is what was there when they were asked.
struct Gate<'a> {
    store: &'a MemoryDb,
    answers: tokio::sync::Semaphore,
    begun: AtomicU64,
}

impl<'a> Gate<'a> {
    fn of(store: &'a MemoryDb) -> Self {
        Self { store, answers: tokio::sync::Semaphore::new(0), begun: AtomicU64::new(0) }
    }

    fn begun(&self) -> u64 {
        self.begun.load(Ordering::SeqCst)
    }
}

impl ReadRegistry for Gate<'_> {
    async fn devices(&self, invocation: &Invocation) -> StoreResult<Listing<Device>> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.store.devices(invocation).await
    }

    async fn rooms(&self, invocation: &Invocation) -> StoreResult<Listing<Room>> {
        let found = self.store.rooms(invocation).await;
        self.answers.acquire().await.expect("it is never closed").forget();
        found
    }
}

async fn add_room(store: &MemoryDb, id: &str, home: Option<&str>, invocation: &Invocation) {
    let mut room = Room::new(given::room(id), Timestamp::MIN);
    room.home = home.map(|home| home.parse().expect("an id"));
    store.register_room(&room, invocation).await.expect("memory");
}

async fn add_devices(store: &MemoryDb, count: usize, invocation: &Invocation) {
    for n in 0..count {
        store.register_device(&device(n), invocation).await.expect("memory");
    }
}

fn device(n: usize) -> Device {
    let metrics = [(metric("co2"), number("1"))];
    let any = Reading::stored(given::device("d"), Timestamp::MIN, None, metrics.into());
    let observation = DeviceObservation::of(&any.expect("a reading"));
    observation.new_device(given::device(&format!("d{n}")), |_| false)
}

#[tokio::test]
async fn of_ten_who_ask_while_it_is_read_one_reads_for_the_others() {
    let (store, cache, _, invocation) = setup();
    let gate = Gate::of(&store);
    for missing in [false, true] {
        let asked = (0..10).map(|_| async {
            if missing {
                cache.missing(session(&gate, &invocation)).await
            } else {
                cache.now(session(&gate, &invocation)).await
            }
        });
        let before = gate.begun();
        let all = futures_util::future::join_all(asked);
        let (read, ()) = tokio::join!(all, async { gate.answers.add_permits(2) });
        assert!(read.iter().all(Result::is_ok));
        // The first, and for those who asked after it had begun one of them.
        assert_eq!(gate.begun() - before, 2);
    }
}

#[tokio::test]
async fn a_failure_of_one_who_reads_for_others_is_not_theirs() {
    let (store, cache, _, invocation) = setup();
    store.fail_with([StoreError::TimedOut]);
    let asked = (0..3).map(|_| cache.now(session(&store, &invocation)));
    let read = futures_util::future::join_all(asked).await;
    assert_eq!(read.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true, true]);
}

proptest::proptest! {
    /// Steps: somebody asks, for what is missing or not; another instance writes a room; the read that is under
    /// way ends; it is cut short, as by a client that goes away.
    #[test]
    fn whoever_asks_is_told_of_everything_written_before(
        steps in proptest::collection::vec(0_u8..6, 1..40),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(async {
            let (store, cache, _, invocation) = setup();
            let gate = Gate::of(&store);
            let mut asked = Vec::new();
            let mut written = 0;
            for step in steps.into_iter().chain([4; 80]) {
                match step {
                    0 | 1 => {
                        let (cache, gate, invocation) = (&cache, &gate, &invocation);
                        let asks = async move {
                            match step {
                                0 => cache.now(session(gate, invocation)).await,
                                _ => cache.missing(session(gate, invocation)).await,
                            }
                        };
                        asked.push((written, Box::pin(asks)));
                    }
                    2 => {
                        add_room(&store, &format!("room-{written}"), None, &invocation).await;
                        written += 1;
                    }
                    3 if !asked.is_empty() => drop(asked.remove(0)),
                    _ => gate.answers.add_permits(usize::from(gate.answers.available_permits() == 0)),
                }
                // Twice: the first who is done wakes the others.
                for _ in 0..2 {
                    let mut waiting = Vec::new();
                    for (before, mut asks) in asked {
                        match (&mut asks).now_or_never() {
                            Some(read) => assert!(read.expect("read").rooms.len() >= before),
                            None => waiting.push((before, asks)),
                        }
                    }
                    asked = waiting;
                }
            }
            assert!(asked.is_empty(), "everybody has an answer");
        });
    }
}

/// A client that asks ten times a second for a home that there is not, and another instance that makes it.
#[tokio::test]
async fn what_is_missing_costs_at_most_so_many_entries_a_second_and_is_found_in_time() {
    for (count, pause, read_in_a_minute) in
        [(0, 0, 600), (99, 0, 600), (100, 1, 60), (1_000, 10, 6), (5_000, 50, 1), (9_000, 60, 1)]
    {
        let (store, cache, clock, invocation) = setup();
        add_devices(&store, count, &invocation).await;
        let gate = Gate::of(&store);
        gate.answers.add_permits(10_000);
        cache.ask(session(&gate, &invocation)).await.expect("read");
        clock.advance(Duration::from_secs(60));
        cache.ask(session(&gate, &invocation)).await.expect("read");
        let before = gate.begun();
        let ask = async || {
            clock.advance(Duration::from_millis(100));
            let known = cache.ask(session(&gate, &invocation)).await.expect("read");
            let home = "cabin".parse().expect("an id");
            if known.rooms_of(&home).next().is_none() {
                let read = cache.missing(session(&gate, &invocation)).await.expect("read");
                return read.rooms_of(&home).next().is_some();
            }
            true
        };
        for _ in 0..600 {
            assert!(!ask().await);
        }
        assert_eq!(gate.begun() - before, read_in_a_minute, "{count}");
        add_room(&store, "loft", Some("cabin"), &invocation).await;
        let mut tenths = 1;
        while !ask().await {
            tenths += 1;
        }
        assert!(tenths <= (pause * 10).max(1), "{count} devices: {tenths}");
    }
}

#[tokio::test]
async fn what_this_process_has_written_itself_is_there_at_once() {
    let (store, cache, _, invocation) = setup();
    add_devices(&store, 5_000, &invocation).await;
    cache.ask(session(&store, &invocation)).await.expect("read");
    let mut loft = Room::new(given::room("loft"), Timestamp::MIN);
    loft.home = Some(given::home("cabin"));
    cache.keep_room(loft);
    cache.keep_device(device(5_000));
    let known = cache.ask(session(&store, &invocation)).await.expect("read");
    assert_eq!(known.rooms_of(&given::home("cabin")).count(), 1);
    assert_eq!(known.devices.len(), 5_001);
    assert_eq!(store.calls().reads, 2);
}

/// As for a request that teaches a metric while others answer from the registry as it was.
#[tokio::test]
async fn a_change_copies_no_device_and_room_but_its_own() {
    let (store, cache, _, invocation) = setup();
    add_devices(&store, 3_000, &invocation).await;
    for n in 0..300 {
        add_room(&store, &format!("room-{n}"), None, &invocation).await;
    }
    let before = cache.ask(session(&store, &invocation)).await.expect("read");
    cache.keep_device(device(1_234).next_version());
    cache.keep_room(Room::new(given::room("room-x"), Timestamp::MIN));
    cache.forget_room(&given::room("room-7"));
    let deletion = Deletion::begin(Timestamp::MIN, 0);
    cache.keep_deleted(DeletedDevice { id: device(77).id().clone(), deletion });
    let after = cache.current().expect("read");
    let copied = |a: &RegistrySnapshot, b: &RegistrySnapshot| {
        let is_same = |it: &&Device| b.devices.get(it.id()).is_some_and(|b| std::ptr::eq(*it, b));
        let is_same_room = |it: &&Room| b.rooms.get(&it.id).is_some_and(|b| std::ptr::eq(*it, b));
        let devices = a.devices.len() - a.devices.values().filter(is_same).count();
        (devices, a.rooms.len() - a.rooms.values().filter(is_same_room).count())
    };
    assert_eq!(copied(&after, &before), (1, 1), "the one that is changed, the one that is new");
    assert_eq!(copied(&before, &after), (2, 1), "the changed and the deleted, the removed");
    assert_eq!(before.devices.get(device(1_234).id()).map(Device::version), Some(0));
}
