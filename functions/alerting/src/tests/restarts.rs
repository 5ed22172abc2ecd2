//! The system stands still and comes back as a new process, which remembers nothing.

use chrono::TimeDelta;
use serde_json::{Value, json};
use table::given;

use super::World;

/// What channel `a` is told of the freezer, whose last reading is two minutes old, in some minutes and, after a pause of ten
/// minutes, in a quarter of an hour by a new process.
async fn told_around_a_restart(rule: Value, minutes_before: i64) -> Vec<String> {
    let world = World::new();
    world.channel("a", None).await;
    world.put_rule("r", rule).await;
    let last = world.now().saturating_add(-TimeDelta::minutes(2));
    world.measured(&[given::reading("freezer", last, None, &[("temperature", "9")])]).await;
    for _ in 0..minutes_before {
        world.scheduled().await.expect("done");
        world.pass(TimeDelta::minutes(1));
    }

    world.pass(TimeDelta::minutes(10));
    let restarted = world.another();
    for _ in 0..15 {
        restarted.scheduled().await.expect("done");
        restarted.pass(TimeDelta::minutes(1));
    }
    let bodies = world.receiver.bodies();
    let messages = bodies.iter().flat_map(|body| body["messages"].as_array().expect("messages"));
    messages.map(|message| message["news"].as_str().expect("a text").to_owned()).collect()
}

/// The system is noted to run every five minutes, so a pause seems to begin up to five minutes before it does.
#[tokio::test]
async fn what_a_silence_brought_about_stays_however_soon_a_pause_follows() {
    let silence = || json!({"name": "Gone", "device": "freezer", "silent_for": "10m"});
    let warm = |no_data| {
        json!({
            "name": "Warm", "device": "freezer", "metric": "temperature", "above": 8,
            "no_data": no_data,
        })
    };
    for minutes_before in 9..20 {
        let told = told_around_a_restart(silence(), minutes_before).await;
        assert_eq!(told, ["fired"], "{minutes_before} minutes");
    }
    for minutes_before in 60..66 {
        let told = told_around_a_restart(warm("clear"), minutes_before).await;
        assert_eq!(told, ["fired", "recovered"], "{minutes_before} minutes");
    }
}
