//! A played maker with a limit of its own, and a played ingest behind a gate. Judges each request, and what is stored at
//! rest.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta};
use domain::Timestamp;
use fastrand::Rng;
use outgoing::{Fetched, Request};
use runtime::clock::{Clock, Deadline, Stopwatch};
use runtime::invoke::{InvokeFunction, Invoking, NotInvoked};
use sending::{FetchAnswer, Unanswered};
use serde_json::{Value, json};

use super::steps::Log;
use crate::gate::Gate;
use crate::given::at;

/// The source's id, which is the device of what Octopus tells.
pub(super) const ID: &str = "asked";
/// The most requests in a window of Nature Remo, of all programs of an account together.
const LIMIT: u32 = 30;
const WINDOW: i64 = 5 * 60_000;
/// The values of Octopus: so many in so much time before the schedule begins, and further ones behind.
const VALUES: i32 = 500;
const BEFORE: TimeDelta = TimeDelta::days(60);
const BETWEEN: TimeDelta = TimeDelta::hours(6);

/// A clock: the time of the schedule, and how far it is ahead.
#[derive(Clone)]
pub(super) struct SkewedClock {
    pub(super) watch: Stopwatch,
    pub(super) ahead: TimeDelta,
}

impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.watch.elapsed().as_millis()).expect("a short schedule");
        at(passed).saturating_add(self.ahead)
    }
}

/// The maker of a source, which has a limit and fails now and then.
pub(super) struct Maker {
    /// Nature Remo, else Octopus.
    pub(super) is_remo: bool,
    pub(super) clock: SkewedClock,
    pub(super) is_well: AtomicBool,
    pub(super) log: Arc<Mutex<Log>>,
    pub(super) rng: Mutex<Rng>,
    /// By window the requests of Roomtide, and those of other programs.
    pub(super) used: Mutex<BTreeMap<i64, (u32, u32)>>,
}

/// When a value of Octopus is measured, when its maker tells it, and what is stored of it.
fn value(n: i32) -> (Timestamp, Timestamp, String) {
    let start = at(0).saturating_add(BETWEEN * n - BEFORE);
    let late = if n % 11 == 0 { TimeDelta::days((n % 8 + 1).into()) } else { TimeDelta::zero() };
    (start, start.saturating_add(TimeDelta::days(1) + late), (n * 2).to_string())
}

impl FetchAnswer for Maker {
    fn fetch(&self, request: &Request) -> Result<Fetched, Unanswered> {
        let now = self.clock.now();
        self.log.lock().expect("no panic while it is held").ask();
        let (left, reset) = self.use_up(now);
        let chance = self.rng.lock().expect("no panic while it is held").u8(..100);
        let (status, body) = match chance {
            0..8 if !self.is_well.load(Ordering::SeqCst) => (503, json!({})),
            _ if left < 0 => (429, json!({})),
            _ if self.is_remo => (200, remo(now)),
            _ => (200, octopus(request, now)),
        };
        let headers = vec![
            ("date", http_date(now)),
            ("x-rate-limit-remaining", left.max(0).to_string()),
            ("x-rate-limit-reset", (reset / 1_000).to_string()),
        ];
        let headers = if self.is_remo { headers } else { Vec::new() };
        Ok(Fetched { status, headers, body: body.to_string().into_bytes() })
    }
}

impl Maker {
    /// Counts a request. Returns how many are left in the window, and when it ends. Other programs take half of some
    /// windows at once.
    fn use_up(&self, now: Timestamp) -> (i64, i64) {
        let window = now.as_millis().div_euclid(WINDOW);
        let mut used = self.used.lock().expect("no panic while it is held");
        let others = if window % 3 == 0 { LIMIT / 2 } else { 0 };
        let (own, others) = used.entry(window).or_insert((0, others));
        *own += 1;
        let left = i64::from(LIMIT) - i64::from(*own + *others);
        if self.is_remo && left < 0 {
            let mut log = self.log.lock().expect("no panic while it is held");
            log.wrong.push(format!("{own} and {others} requests in five minutes"));
        }
        (if self.is_remo { left } else { 1 }, (window + 1) * WINDOW)
    }
}

/// A value that changes each three minutes.
fn remo(now: Timestamp) -> Value {
    let changed = now.as_millis().div_euclid(180_000);
    let created = Timestamp::from_millis(changed * 180_000).expect("a time");
    json!([{"id": "a1", "newest_events": {"te": {"val": changed % 50, "created_at": created}}}])
}

fn octopus(request: &Request, now: Timestamp) -> Value {
    let query = request.uri().query().expect("a query").replace("%3A", ":");
    let time = |name: &str| {
        let found = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        time_of(found.expect("a time"))
    };
    let asked = time("period_from")..time("period_to");
    let rows = (0..VALUES).filter(|n| {
        let (start, told, _) = value(*n);
        told <= now && asked.contains(&start)
    });
    let rows = rows.map(|n| {
        json!({"consumption": f64::from(n) / 1_000.0, "interval_start": value(n).0.to_string()})
    });
    json!({"next": null, "results": rows.collect::<Vec<_>>()})
}

fn time_of(text: &str) -> Timestamp {
    Timestamp::parse_absolute(text).expect("a time")
}

fn http_date(at: Timestamp) -> String {
    let date = DateTime::from_timestamp_millis(at.as_millis()).expect("a date");
    date.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// A value: its device, its time, and what is stored of it.
type Told = ((String, Timestamp), String);

/// What Octopus has told by a time.
fn told_by_octopus(now: Timestamp) -> Box<dyn Iterator<Item = Told>> {
    let told = (0..VALUES).map(value).filter(move |(_, told, _)| *told <= now);
    Box::new(told.map(|(start, _, number)| ((ID.to_owned(), start), number)))
}

/// What Nature Remo has told in the days before a time, the newest first.
fn told_by_remo(now: Timestamp) -> Box<dyn Iterator<Item = Told>> {
    let three_minutes = TimeDelta::minutes(3);
    let told = (0..400).map(move |n| {
        let told = remo(now.saturating_add(-three_minutes * n));
        let event = &told[0]["newest_events"]["te"];
        let time = time_of(event["created_at"].as_str().expect("a time"));
        (("a1".to_owned(), time), event["val"].to_string())
    });
    Box::new(told)
}

/// The function ingest: what it stores, by device and time.
#[derive(Default)]
pub(super) struct Kept(Mutex<BTreeMap<(String, Timestamp), String>>);

impl Kept {
    fn keep(&self, event: &str) -> String {
        let event: Value = serde_json::from_str(event).expect("JSON");
        let body = STANDARD.decode(event["data"].as_str().expect("data")).expect("Base64");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        if event["dry"] == true {
            return "{}".to_owned();
        }

        let rows = body.as_array().expect("rows");
        for row in rows {
            let told = row["newest_events"]["te"].as_object();
            let (device, time, number) = match told {
                Some(told) => (&row["id"], &told["created_at"], &told["val"]),
                None => (&row["device_id"], &row["timestamp"], &row["current_w"]),
            };
            let device = device.as_str().expect("a device").to_owned();
            if !device.starts_with("source:") {
                let time = time_of(time.as_str().expect("a time"));
                self.0
                    .lock()
                    .expect("no panic while it is held")
                    .insert((device, time), number.to_string());
            }
        }
        json!({"accepted": rows.len(), "devices": [ID]}).to_string()
    }

    /// Why what is stored is not what the maker has told: what it told by `asked` is there, and nothing that it has not
    /// told by `now`.
    pub(super) fn wrong(&self, is_remo: bool, asked: Timestamp, now: Timestamp) -> Vec<String> {
        let told: BTreeMap<_, _> =
            if is_remo { told_by_remo(now) } else { told_by_octopus(now) }.collect();
        let needed: Vec<_> = if is_remo {
            told_by_remo(now).take(1).collect()
        } else {
            told_by_octopus(asked).collect()
        };

        let kept = self.0.lock().expect("no panic while it is held").clone();
        let lost = needed.iter().filter(|(key, _)| !kept.contains_key(key));
        let lost = lost.map(|(key, _)| format!("{key:?} is not there"));
        let invented = kept.iter().filter(|(key, number)| told.get(key) != Some(number));
        let invented = invented.map(|(key, number)| format!("{key:?} is {number}"));
        lost.chain(invented).take(5).collect()
    }
}

/// Ingest, as one instance of the function that asks invokes it.
pub(super) struct GatedIngest {
    pub(super) kept: Arc<Kept>,
    pub(super) gate: Gate,
}

impl InvokeFunction for GatedIngest {
    fn invoke(&self, event: String, _: Deadline) -> Invoking<'_> {
        Box::pin(async move {
            let kept = self.gate.step(async { Ok(self.kept.keep(&event)) }).await;
            kept.map_err(|why| NotInvoked(why.to_string()))
        })
    }
}
