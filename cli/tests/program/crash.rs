//! The server is killed with SIGKILL while it stores: every acknowledged reading must be there afterwards, and
//! in the rollups. Checks no sums but counts.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use domain::given;
use domain::{DeviceId, Timestamp};
use dynamodb::DynamoStore;
use local::{Data, Options, System};
use runtime::clock::Deadline;
use table::layout::Layout;
use table::{Invocation, ReadRollups as _, ReadStoredReadings as _};

use crate::server::ServerProcess;

#[test]
fn no_acknowledged_reading_is_lost_by_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(20)));
    let agent = ureq::Agent::new_with_config(config.build());
    let mut acknowledged = 0;
    for round in 0..4 {
        let server = ServerProcess::start(directory.path(), &[]);
        let url = format!("{}/readings", server.url);
        let (posting, client) = (url.clone(), agent.clone());
        let before = acknowledged;
        let (stores, has_stored) = mpsc::channel();
        let writer = std::thread::spawn(move || {
            let mut acknowledged = before;
            loop {
                let body: Vec<String> = (0..50)
                    .map(|n| {
                        let at = 1_768_147_200 + acknowledged + n;
                        format!(
                            r#"{{"device_id": "d", "room": "r", "timestamp": {at}, "t": {at}}}"#
                        )
                    })
                    .collect();
                match client.post(&posting).send(body.join("\n")) {
                    Ok(answer) if answer.status() == 201 => {
                        acknowledged += 50;
                        let _ = stores.send(());
                    }
                    // The machine is busy.
                    Err(ureq::Error::StatusCode(503)) => {}
                    _ => return acknowledged,
                }
            }
        });
        has_stored.recv().unwrap_or_else(|_| panic!("round {round} stored nothing"));
        std::thread::sleep(Duration::from_millis(200 + 150 * round));
        server.kill();
        acknowledged = writer.join().unwrap();
    }

    let server = ServerProcess::start(directory.path(), &[]);
    let mut found = 0;
    let from = 1_768_147_200;
    for start in (0..acknowledged).step_by(10_000) {
        let end = acknowledged.min(start + 10_000);
        let url = format!(
            "{}/devices/d/readings?from={}&to={}&limit=10000&format=ndjson",
            server.url,
            from + start,
            from + end
        );
        let text = agent.get(&url).call().unwrap().body_mut().read_to_string().unwrap();
        found += i64::try_from(text.lines().count()).unwrap();
    }
    server.kill();
    assert_eq!(found, acknowledged, "every reading that was acknowledged");
    let (stored, rolled_up) = counts(directory.path(), from);
    assert!(stored >= acknowledged, "the last request may be stored without an answer");
    assert_eq!(rolled_up, stored, "each of them in its rollup");
}

/// The number of readings since `from`, and what the rollups of 15 minutes say that it is, when all work is done.
#[tokio::main]
async fn counts(directory: &Path, from: i64) -> (i64, i64) {
    let data = Data::Dir(directory.to_owned());
    let options = Options { data, listens: false, ..Options::default() };
    let system = Box::pin(System::start(options)).await.unwrap();
    system.settle().await.unwrap();
    let store = DynamoStore::connect(system.store_config(), Layout::default());
    let device: DeviceId = given::device("d");
    let from = Timestamp::from_millis(from * 1_000).unwrap();
    let range = given::range(from, Timestamp::MAX);
    let invocation = Invocation::until(Deadline::after(Duration::from_mins(1)));
    let quarters = store.quarters(&device, range, true, &invocation).await.unwrap();
    let readings = store.stored_readings(&device, range, &invocation).await.unwrap();
    let counts = quarters.iter().map(|stored| stored.rollup.metrics.values().next().unwrap().count);
    let rolled_up = i64::try_from(counts.sum::<u64>()).unwrap();
    drop(store);
    system.shutdown().await.unwrap();
    (i64::try_from(readings.len()).unwrap(), rolled_up)
}
