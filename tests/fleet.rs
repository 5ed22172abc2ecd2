//! A fleet: more devices than memory holds, listed and fed through the functions, and what its month costs.
//! Folds no rollup.
//!
//! With `ROOMTIDE_FLEET=1000000` the fleet is that large, and its figures are printed.

use std::fmt;
use std::io::Write as _;

use domain::{FoldRules, QuarterHour, Rollup, Room};
use dynamodb::DynamoStore;
use runtime::clock::Stopwatch;
use serde_json::{Value, json};
use table::item::{self, Kind as _};
use table::layout::Layout;
use table::shards::Shards;
use table::{
    FindRegistry as _, PutReadings as _, ReadRegistry as _, RegisterDevices as _, RoomVisit,
};

use crate::engine::{Engine, Table};
use crate::generated::assert_documented;
use crate::given::{
    Answer, answer, at, device, device_of, invocation, put_first, reading_in, register_devices_of,
    request, room, seal, stored_quarter,
};
use crate::home::Home;
use crate::stored::{note_seen, put};

/// The number of partitions of the fleet's devices.
const SHARDS: u64 = 4;
/// The number of devices in a room.
const ROOM: usize = 10;
/// The number of readings of a request.
const BATCH: usize = 500;
/// The numbers of devices whose readings are stored, of a fleet that is measured and of one that is checked.
const MEASURED: usize = 50_000;
const CHECKED: usize = 1_500;

/// The table and the functions, and the ids of the devices, sorted.
struct Fleet {
    table: Table,
    ids: Vec<String>,
    home: Home<DynamoStore>,
}

fn room_of(n: usize) -> String {
    format!("room-{:06}", n / ROOM)
}

fn print(line: fmt::Arguments<'_>) {
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// The memory of this process with its engine, where the system tells.
fn print_memory(when: &str) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(line) = status.lines().find(|line| line.starts_with("VmRSS")) {
        print(format_args!("{when}: {line}"));
    }
}

impl Fleet {
    /// The devices have UUIDs. The first is registered by the port, the others are put as the port would.
    async fn of(number: usize, room_index: &str) -> Self {
        let engine = Engine::embedded().await;
        let shards = SHARDS.to_string();
        let parameters = [("DeviceShards", shards.as_str()), ("RoomIndex", room_index)];
        let table = engine.table_without_stream(&parameters).await;
        let mut rng = fastrand::Rng::with_seed(11);
        let mut ids: Vec<String> = (0..number)
            .map(|_| {
                let hex = format!("{:032x}", rng.u128(..));
                format!("{}-{}-{}", &hex[..8], &hex[8..16], &hex[16..])
            })
            .collect();
        ids.sort_unstable();
        let shards = Shards::new(SHARDS).expect("a number");
        let layout = Layout { shards, ..Layout::default() };
        let new = |n: usize| {
            let first = reading_in(&ids[n], 0, &room_of(n));
            device_of([&first])
        };
        let store = table.store();
        answer!(store.register_device(&new(0)));
        let devices = (1..number).map(|n| item::from_device(&new(n), layout));
        let rooms =
            (0..number.div_ceil(ROOM)).map(|n| Room::new(room(&room_of(n * ROOM)), at(0)).item());
        table.put_all(devices.chain(rooms)).await;
        Self { home: Home::at(store, at(3_600_000)), table, ids }
    }

    async fn get(&self, path: &str, parameters: &str) -> Answer {
        let answer = self.ask(path, parameters).await;
        assert_eq!(answer.status, 200, "{path}?{parameters}: {}", answer.body);
        answer
    }

    async fn ask(&self, path: &str, parameters: &str) -> Answer {
        loop {
            let answer = self.home.get(path, parameters).await;
            // A request to the engine has five seconds, which a busy machine may take.
            if answer.status != 503 {
                return answer;
            }
            print(format_args!("busy: {path} is asked again"));
        }
    }

    /// The time and the read units of so many pages of a list at its beginning.
    async fn pages(&self, path: &str, limit: usize, pages: u32) {
        let (begin, mut units, mut cursor) = (Stopwatch::start(), 0.0, String::new());
        for _ in 0..pages {
            let page = self.get(path, &format!("limit={limit}{cursor}")).await;
            units += consumed(&page, "read");
            cursor = match page.body["next_cursor"].as_str() {
                Some(next) => format!("&cursor={next}"),
                None => String::new(),
            };
        }
        let (time, units) = (begin.elapsed() / pages, units / f64::from(pages));
        print(format_args!("GET {path}?limit={limit}: {time:.1?}, {units:.1} read units a page"));
    }

    /// One reading of each of some devices, without a room; the read units, and the readings a second.
    async fn feed(&self, ids: &[String], minute: i64) -> (f64, f64) {
        let (begin, mut reads) = (Stopwatch::start(), 0.0);
        for ids in ids.chunks(BATCH) {
            let timestamp = at(minute * 60_000).to_string();
            let reading =
                |id| json!({"device_id": id, "timestamp": timestamp, "temperature": 21.5});
            let readings: Value = ids.iter().map(reading).collect();
            let answer = loop {
                let event = request("POST", "/readings", "", Some(&readings));
                let event = ingest::Event::Http(Box::new(event));
                let answer = self.home.send(event).await;
                if answer.status == 201 {
                    break answer;
                }
                assert_eq!(answer.status, 503, "{}", answer.body);
                print(format_args!("busy: readings are sent again"));
            };
            reads += consumed(&answer, "read");
        }
        let count = f64::from(u32::try_from(ids.len()).expect("few"));
        (reads, count / begin.elapsed().as_secs_f64())
    }
}

fn consumed(answer: &Answer, what: &str) -> f64 {
    let units = answer.headers[format!("x-consumed-{what}-units")].as_str();
    units.and_then(|units| units.parse().ok()).unwrap_or_default()
}

#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test's own switch, not the system's configuration"
)]
async fn a_fleet_beyond_memory_is_listed_whole_and_fed_without_a_read_per_reading() {
    let number: usize = std::env::var("ROOMTIDE_FLEET")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(table::MAX_CACHED_ENTRIES + 100);
    let begin = Stopwatch::start();
    let fleet = Box::pin(Fleet::of(number, "on")).await;
    print(format_args!("{number} devices in {SHARDS} partitions, made in {:.0?}", begin.elapsed()));
    print_memory("made");
    let begin = Stopwatch::start();
    fleet.home.load().await;
    print(format_args!("cold start of query and ingest: {:.0?} each", begin.elapsed() / 2));

    // What a busy machine could not load in time is read with the first request.
    Box::pin(fleet.get("/devices", "limit=1")).await;
    for (path, limit) in [("/devices", 100), ("/rooms", 100), ("/rooms/room-000007/devices", 100)] {
        Box::pin(fleet.pages(path, limit, 20)).await;
    }
    let one = Box::pin(fleet.get(&format!("/devices/{}", fleet.ids[number / 2]), "")).await;
    assert!((consumed(&one, "read") - 1.0).abs() < 0.1, "{one:?}");

    let (begin, mut units, mut pages) = (Stopwatch::start(), 0.0, 0);
    let mut found: Vec<String> = Vec::with_capacity(number);
    let mut cursor = String::new();
    loop {
        let page = Box::pin(fleet.get("/devices", &format!("limit=1000{cursor}"))).await;
        let rows = page.body["data"].as_array().expect("rows");
        found.extend(rows.iter().map(|row| row["device_id"].as_str().expect("an id").to_owned()));
        units += consumed(&page, "read");
        pages += 1;
        match page.body["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert!(found == fleet.ids, "each device once, in the order of the ids");
    let time = begin.elapsed() / pages;
    print(format_args!(
        "GET /devices?limit=1000, all {pages} pages: {time:.1?}, {:.1} read units a page",
        units / f64::from(pages)
    ));
    print_memory("listed");

    let fed = if number > MEASURED { MEASURED } else { CHECKED };
    let fed = &fleet.ids[..fed];
    let count = f64::from(u32::try_from(fed.len()).expect("few"));
    let (reads, rate) = Box::pin(fleet.feed(fed, 1)).await;
    assert!(reads <= count * 1.01, "{reads} read units");
    print(format_args!("first readings: {rate:.0} a second, {:.2} read units each", reads / count));
    for minute in [2, 3] {
        let (reads, rate) = Box::pin(fleet.feed(fed, minute)).await;
        // A few of a million share their sixteen slots with too many others.
        assert!(reads <= count * 0.02, "{reads} read units of {count} known devices");
        print(format_args!(
            "further ones: {rate:.0} a second, {:.4} read units each",
            reads / count
        ));
    }
    print_memory("fed");
    let stored = fleet.table.items(fed[fed.len() / 2].as_str()).await;
    assert_eq!(stored.len(), 3);
    let room = room_of(fed.len() / 2);
    assert!(stored.iter().all(|it| it["room"]["S"] == room.as_str()), "{stored:?}");
}

#[tokio::test]
async fn without_the_index_by_room_a_room_of_a_fleet_is_answered_by_who_was_seen_there() {
    let fleet = Box::pin(Fleet::of(table::MAX_CACHED_ENTRIES + 100, "off")).await;
    let store = fleet.table.store();
    let quarter = QuarterHour::of(at(0));
    seal(&store, "UTC", quarter.end()).await;
    // Nine of the room's ten devices, and one that is in another room now.
    let here = room_of(0);
    for id in fleet.ids[..9].iter().chain([&fleet.ids[15]]) {
        let readings = [reading_in(id, 60_000, &here), reading_in(id, 1_000_000, &here)];
        put(&store, &readings).await;
        let known = device_of(&readings[..1]);
        let rollup = Rollup::fold(&readings[..1], &FoldRules::of(&known));
        put_first(&store, &stored_quarter(known.id(), quarter, rollup)).await;
        let seen = RoomVisit::begun(room(&here), device(id), domain::Month::of(at(0)));
        note_seen(&store, &seen).await;
    }
    let past = format!("from={}&to={}", at(0), quarter.end());
    let newest = format!("from={}&to={}", at(0), at(30 * 60_000));
    let path = |of: &str| format!("/rooms/{here}/{of}");
    let each = "&every=15m&metric=temperature&devices=1";
    for (of, parameters) in [("series", each), ("conditions", "&temperature=20..22")] {
        let answer = Box::pin(fleet.get(&path(of), &format!("{past}{parameters}"))).await;
        assert!(answer.body["rooms_lack"].is_null(), "{}", answer.body);
        let body = answer.body.to_string();
        assert!(
            fleet.ids[..9].iter().chain([&fleet.ids[15]]).all(|id| body.contains(id)),
            "{body}"
        );
        // Of the newest time it is not noted who was there.
        let answer = Box::pin(fleet.get(&path(of), &format!("{newest}{parameters}"))).await;
        let lack = answer.body["rooms_lack"].as_str().unwrap_or_default();
        assert!(lack.starts_with("the devices that were seen in the rooms;"), "{}", answer.body);
    }
    let readings = Box::pin(fleet.get(&path("readings"), &past)).await;
    assert_eq!(readings.body["data"].as_array().map(Vec::len), Some(10));
    for (of, parameters) in
        [("readings", newest.as_str()), ("devices", "latest=1"), ("devices", "")]
    {
        let answer = Box::pin(fleet.ask(&path(of), parameters)).await;
        assert_eq!(answer.status, 422, "{of}: {}", answer.body);
        let detail = answer.body["detail"].as_str().unwrap_or_default();
        assert!(detail.contains("RoomIndex is off"), "{detail}");
    }
}

/// Dollars per million in us-east-1, on demand: of write units, of read units, of Lambda requests with some
/// milliseconds each, and of batches of stream records.
const WRITE: f64 = 0.625;
const READ: f64 = 0.125;
const INGEST: f64 = 0.23;
const BATCHES: f64 = 0.30;
/// Dollars for a GB of logs, of answers beyond 100 GB, of storage and of recovery.
const LOGS: f64 = 0.50;
const ANSWERS: f64 = 0.09;
const STORAGE: f64 = 0.25;
const RECOVERY: f64 = 0.20;
/// An HTTP API's requests cost 1.00 dollars per million, and beyond 300 million 0.90.
const FIRST_REQUESTS: f64 = 300.0;

/// What a month of 100,000 devices costs, each with a reading a in millions.
struct Month {
    /// The readings of a device in one request.
    batch: f64,
    room_index: bool,
    /// Whether requests go to the HTTP API, and not to function URLs.
    api: bool,
    /// Write units of a reading, with its entry in the index by room and without it.
    stored: [f64; 2],
    /// Read units of a device that is looked up.
    looked_up: f64,
}

impl Month {
    const READINGS: f64 = 100_000.0 * 60.0 * 24.0 * 30.0 / 1e6;
    /// The instances of ingest; each looks a device up once an hour.
    const INSTANCES: f64 = 10.0;
    /// The rollups of a device and a day: 96 quarters and the day itself. Each quarter is read for 1.15 units.
    const ROLLUPS: f64 = 97.0 / 1_440.0;
    const ROLLED_UP: f64 = 1.15 / 15.0;

    /// Bytes: of a reading with two metrics and of its entry in the index, with the 100 that AWS adds; of a function's
    /// line in the log, of the HTTP API's line, of an answer.
    const READING: f64 = 180.0;
    const LINE: f64 = 720.0;
    const API_LINE: f64 = 360.0;
    const ANSWER: f64 = 400.0;

    fn lines(&self) -> [(&'static str, f64); 11] {
        let requests = Self::READINGS / self.batch;
        let [with, without] = self.stored;
        let beyond = (requests - FIRST_REQUESTS).max(0.0);
        // A batch of a hundred records is of fewer devices where some readings of each come together.
        let registry = Self::READINGS / self.batch * self.looked_up;
        let hourly = 100_000.0 * 24.0 * 30.0 / 1e6 * Self::INSTANCES * self.looked_up;
        let rollup_writes = Self::READINGS * Self::ROLLUPS * WRITE;
        let index = if self.room_index { with - without } else { 0.0 };
        let (api, api_line) =
            if self.api { (requests - 0.1 * beyond, Self::API_LINE) } else { (0.0, 0.0) };
        let logged = requests * (Self::LINE + api_line) + Self::READINGS / 100.0 * Self::LINE;
        let answered = (requests * Self::ANSWER / 1e3 - 100.0).max(0.0);
        let stored = Self::READINGS * Self::READING / 1e3;
        [
            ("table: a write a reading", Self::READINGS * without * WRITE),
            ("index by room: another", Self::READINGS * index * WRITE),
            ("HTTP API", api),
            ("Lambda, ingest", requests * INGEST),
            ("ingest: each of ten instances looks each device up once an hour", hourly * READ),
            (
                "registry: batches of 100 readings, with a read of each device in one",
                Self::READINGS / 100.0 * BATCHES + registry * READ,
            ),
            ("rollups", rollup_writes + Self::READINGS * Self::ROLLED_UP * READ),
            ("logs, a line for each call", logged / 1e3 * LOGS),
            ("answers to devices", answered * ANSWERS),
            ("storage that is added each month", stored * (1.0 + index) * STORAGE),
            ("recovery that is added each month", stored * RECOVERY),
        ]
    }
}

/// Whole dollars, in thousands.
fn dollars(amount: f64) -> String {
    let text = format!("{amount:.0}");
    match text.len().checked_sub(3).filter(|n| *n > 0) {
        Some(n) => format!("{},{}", &text[..n], &text[n..]),
        None => text,
    }
}

/// What is free of a month in an account that has nothing else: of Lambda a million requests and 400,000 GB seconds, of
/// logs 5 GB, of storage 25 GB; what is free of the answers is left out above. Of the units only provisioned ones are.
fn free(lines: &[(&str, f64)]) -> f64 {
    let parts = [("Lambda", 0.20 + 0.4 * 13.3334), ("logs", 5.0 * 0.50), ("storage", 25.0 * 0.25)];
    let parts = parts.map(|(name, most)| {
        let mut lines = lines.iter().filter(|(line, _)| line.starts_with(name));
        lines.next().expect("a line of this name").1.min(most)
    });
    parts.iter().sum()
}

#[tokio::test]
async fn a_month_of_a_fleet_costs_what_its_page_says() {
    let engine = Engine::embedded().await;
    let mut stored = [0.0; 2];
    for (units, room_index) in stored.iter_mut().zip([true, false]) {
        let store = engine.table(room_index).await.store();
        let readings: Vec<_> = (0..25).map(|n| reading_in(&format!("d{n}"), 0, "room-a")).collect();
        let invocation = invocation();
        store.put_readings(&readings, None, &invocation).await;
        *units = invocation.write_units() / 25.0;
    }
    let looked_up = {
        let store = engine.table(true).await.store();
        let ids: Vec<_> = (0..10).map(|n| device(&format!("d{n}"))).collect();
        for id in &ids {
            register_devices_of(&store, &[reading_in(id.as_str(), 0, "room-a")]).await;
        }
        answer!(store.devices());
        let invocation = invocation();
        store.find_devices(&ids, &invocation).await.expect("read");
        invocation.read_units() / 10.0
    };
    let month =
        |batch, room_index, api| Month { batch, room_index, api, stored, looked_up }.lines();
    let columns = [
        month(1.0, true, true),
        month(10.0, true, true),
        month(10.0, false, true),
        month(10.0, false, false),
    ];
    let mut table = "| | each reading by itself | ten of a device together | and `RoomIndex=off` | and function URLs |\n\
                     | --- | --- | --- | --- | --- |\n"
        .to_owned();
    let mut row = |name: &str, amounts: [f64; 4]| {
        let amounts = amounts.map(dollars).join(" | ");
        fmt::Write::write_fmt(&mut table, format_args!("| {name} | {amounts} |\n"))
            .expect("writing to memory does not fail");
    };
    for (n, (name, _)) in columns[0].iter().enumerate() {
        row(name, [0, 1, 2, 3].map(|column| columns[column][n].1));
    }
    let together = |lines: &[(&str, f64)]| lines.iter().map(|(_, amount)| amount).sum::<f64>();
    row("**together**", columns.each_ref().map(|lines| together(lines)));
    row(
        "**where nothing else uses what is free**",
        columns.map(|lines| together(&lines) - free(&lines)),
    );
    assert_documented("docs/deploy/fleet.md", "fleet", &table);
}
