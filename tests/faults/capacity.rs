//! A home on the units that the template provisions, with a burst of 300 seconds and without any: nothing is lost, and a
//! writer has its answer before it hangs up.

use std::fmt::Write as _;
use std::time::Duration;

use local::{Burst, Options, System};
use runtime::clock::Stopwatch;

use crate::client::{get, send_with};

/// After so long Home Assistant's writer hangs up.
const HANGS_UP: Duration = Duration::from_secs(10);
/// After so long every device is registered.
const REGISTERED: Duration = Duration::from_secs(300);
/// The number of entities that send states.
const ENTITIES: usize = 20;
/// More devices than the units of an attempt store.
const NEW_DEVICES: usize = 100;

async fn home(burst: Burst) -> System {
    let options = Options {
        provisioned: Some(burst),
        registry_max_age: Duration::from_secs(60),
        ..Options::default()
    };
    Box::pin(System::start(options)).await.expect("a free port and memory")
}

/// Lines as Home Assistant writes them: each state of another entity.
fn states(from: usize, count: usize) -> String {
    let mut lines = String::new();
    for n in from..from + count {
        let at = 1_700_000_000_000_000_000_u64 + n as u64 * 1_000_000;
        writeln!(lines, "°C,domain=sensor,entity_id=t{} value={}.5 {at}", n % ENTITIES, n % 30)
            .expect("a text takes everything");
    }
    lines
}

/// Writes states in batches of 100, one after the other, each until it is stored. Returns the number of requests.
async fn write(system: &System, count: usize) -> usize {
    let mut requests = 0;
    for from in (0..count).step_by(100) {
        let body = states(from, 100.min(count - from));
        loop {
            requests += 1;
            let watch = Stopwatch::start();
            let answer =
                send_with(system, "POST", "/api/v2/write?precision=ns", "", body.as_bytes()).await;
            let took = watch.elapsed();
            assert!(took < HANGS_UP, "answered {} after {took:?}", answer.status);
            match answer.status {
                204 => break,
                503 => {
                    let pause = answer.header("retry-after").expect("a time");
                    let pause = pause.parse().expect("seconds");
                    tokio::time::sleep(Duration::from_secs(pause)).await;
                }
                other => panic!("{other}: {}", String::from_utf8_lossy(&answer.body)),
            }
            assert!(requests < 40, "no end");
        }
    }
    requests
}

/// The first page of the devices; none where there are no units for it.
async fn listed(system: &System) -> Vec<String> {
    let devices = get(system, "/devices?limit=100").await.json();
    let devices = devices["data"].as_array().into_iter().flatten();
    devices.map(|device| device["device_id"].as_str().expect("an id").to_owned()).collect()
}

/// The same, once it has as many devices. What ingest has no units to register is registered from the stream, which has
/// units when nobody asks for them.
async fn listed_with(system: &System, count: usize) -> Vec<String> {
    let watch = Stopwatch::start();
    loop {
        let devices = listed(system).await;
        if devices.len() >= count || watch.elapsed() >= REGISTERED {
            return devices;
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
}

/// The number of readings of the first page of devices, which has so many.
async fn stored(system: &System, devices: usize) -> usize {
    let mut sum = 0;
    for id in listed_with(system, devices).await {
        let path = format!("/devices/{id}/readings?from=1700000000&to=1700100000&limit=1000");
        let answer = get(system, &path).await;
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        sum += answer.json()["data"].as_array().expect("a list").len();
    }
    sum
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_states_after_a_restart_fit_into_the_burst() {
    let system = home(Burst::Full).await;
    assert_eq!(write(&system, 1_000).await, 10, "each batch is stored at once");
    assert_eq!(stored(&system, ENTITIES).await, 1_000);
    system.shutdown().await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_burst_each_batch_is_stored_in_the_end() {
    let system = home(Burst::None).await;
    let requests = write(&system, 120).await;
    assert!(requests > 2, "the units bound it");
    assert_eq!(stored(&system, ENTITIES).await, 120);
    system.shutdown().await.expect("it ends");
}

/// Each device is looked up before its first reading is stored, and is registered afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_burst_more_new_devices_than_the_units_of_an_attempt_are_all_stored() {
    let system = home(Burst::None).await;
    let mut body = String::new();
    for n in 0..NEW_DEVICES {
        writeln!(body, "climate,device_id=n{n},room_id=r{n} temperature=20.5 1700000000")
            .expect("a text takes everything");
    }
    let mut left = Vec::new();
    loop {
        let answer = send_with(&system, "POST", "/write?precision=s", "", body.as_bytes()).await;
        if answer.status == 204 {
            break;
        }
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, 503, "{text}");
        let of_all = format!(" of {NEW_DEVICES} lines are not stored");
        let of_all = text.split(&of_all).next().unwrap_or_default();
        let now: usize = of_all.rsplit(' ').next().unwrap_or_default().parse().expect(&text);
        left.push(now);
        assert!(left.len() < 100, "no end: {left:?}");
    }
    assert!(left.iter().any(|left| *left < NEW_DEVICES), "an attempt stores a part: {left:?}");
    assert_eq!(stored(&system, NEW_DEVICES).await, NEW_DEVICES);
    system.shutdown().await.expect("it ends");
}
