//! The server is killed with SIGKILL while it stores: every acknowledged reading must be there afterwards.

use std::time::Duration;

use crate::server::Server;

#[test]
fn no_acknowledged_reading_is_lost_by_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(20)));
    let agent = ureq::Agent::new_with_config(config.build());
    let mut acknowledged = 0;
    for round in 0..4 {
        let server = Server::start(directory.path(), &[]);
        let url = format!("{}/readings", server.url);
        let (posting, client) = (url.clone(), agent.clone());
        let before = acknowledged;
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
                    Ok(answer) if answer.status() == 201 => acknowledged += 50,
                    _ => return acknowledged,
                }
            }
        });
        std::thread::sleep(Duration::from_millis(400 + 150 * round));
        server.kill();
        acknowledged = writer.join().unwrap();
        assert!(acknowledged > before, "round {round} stored nothing");
    }

    let server = Server::start(directory.path(), &[]);
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
}
