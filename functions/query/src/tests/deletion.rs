//! DELETE of devices, rooms and homes as a client sees it. Whole deletions with faults are the workspace's tests.

use std::collections::BTreeMap;

use table::{MarkDeletions as _, StoreError};

use super::*;

impl Bench {
    async fn delete(&self, url: &str) -> Answer {
        self.send("DELETE", url, json!({}), "").await
    }

    /// The answer to a DELETE without the begin of the deletion.
    async fn progress(&self, url: &str) -> (i64, Value) {
        let answer = self.delete(url).await;
        let mut body = answer.json();
        body.as_object_mut().expect("an object").remove("begun");
        (answer.status, body)
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

#[tokio::test]
async fn a_device_is_hidden_at_once_and_gone_when_the_wait_is_over() {
    let bench = Bench::new().await;
    bench.query.load().await;
    assert_eq!(bench.delete("/devices/nobody").await.status, 404);
    let first = bench.delete("/devices/a").await;
    let begun = bench.clock.now();
    let expected = json!({
        "begun": begun, "deleted": 10, "has_more": true, "left": 0, "wait_seconds": 361,
    });
    assert_eq!((first.status, first.json()), (202, expected));
    assert_eq!(first.header("retry-after"), "361");
    let listed = bench.get("/devices?latest=true").await.text;
    assert!(!listed.contains("\"a\"") && listed.contains("\"b\""), "{listed}");
    assert!(!bench.get("/rooms/r/devices?latest=1").await.text.contains("\"a\""));
    for path in ["", "/readings", "/latest", "/series", "/energy", "/events"] {
        let answer = bench.get(&format!("/devices/a{path}")).await;
        assert_eq!(answer.status, 410, "{path}: {}", answer.text);
    }
    assert_eq!(bench.patch("/devices/a", r#"{"name": "x"}"#).await.status, 410);

    bench.pass(100);
    let expected = json!({"deleted": 0, "has_more": true, "left": 0, "wait_seconds": 261});
    assert_eq!(bench.progress("/devices/a").await, (202, expected));
    // An instance that did not know has stored one more: the wait begins anew.
    let late = reading("a", 11, "r");
    bench.store.put_readings(std::slice::from_ref(&late), None, &invocation()).await;
    assert_eq!(bench.delete("/devices/a").await.json()["deleted"], 1);
    bench.pass(359);
    assert_eq!(bench.delete("/devices/a").await.status, 202);
    bench.pass(1);
    let over = json!({"deleted": 0, "has_more": false, "left": 0});
    for _ in 0..2 {
        let answer = bench.delete("/devices/a").await;
        assert_eq!((answer.status, answer.json()), (200, over.clone()));
    }
    assert_eq!(bench.get("/devices/a").await.status, 404);
    assert_eq!(bench.patch("/devices/a", r#"{"name": "x"}"#).await.status, 404);
    let others: Vec<_> = bench.store.readings().into_iter().map(|it| it.device).collect();
    assert_eq!(others.len(), 20, "those of b and c");
}

#[tokio::test]
async fn a_large_device_takes_several_requests_that_tell_what_is_left() {
    let bench = Bench::new().await;
    let readings: Vec<Reading> = (10..25_000).map(|minute| reading("a", minute, "r")).collect();
    bench.store.put_readings(&readings, None, &invocation()).await;
    for expected in [
        json!({"deleted": 10_000, "has_more": true, "left_at_least": 10_000}),
        json!({"deleted": 10_000, "has_more": true, "left": 5_000}),
        json!({"deleted": 5_000, "has_more": true, "left": 0, "wait_seconds": 361}),
    ] {
        assert_eq!(bench.progress("/devices/a").await, (202, expected));
    }
}

#[tokio::test]
async fn a_deletion_that_fails_goes_on_with_the_next_request() {
    let bench = Bench::new().await;
    // The registry's lists, the mark, the belongings, the note, the removal: each fails once.
    for calls in 0..8 {
        bench.store.fail_after(calls, [StoreError::Throttled("test".into())]);
        let answer = bench.delete("/devices/a").await;
        assert!([202, 503].contains(&answer.status), "{calls}: {}", answer.text);
        bench.store.end_troubles();
    }
    assert_eq!(bench.delete("/devices/a").await.status, 202);
    bench.pass(360);
    assert_eq!(bench.delete("/devices/a").await.status, 200);
}

#[tokio::test]
async fn who_ends_a_deletion_saw_what_the_other_found() {
    let bench = Bench::new().await;
    bench.delete("/devices/a").await;
    bench.pass(360);
    let id = "a".parse().expect("an id");
    let known = bench.store.deletion(&id, &invocation()).await.expect("memory").expect("a mark");
    let now = Timestamp::from_millis(known.found.as_millis() + 360_000).expect("a timestamp");
    bench.store.note_found(&id, now, &invocation()).await.expect("memory");
    let ended = bench.store.end_deletion(&id, &known, now, &invocation()).await.expect("memory");
    assert!(!ended);
    let answer = bench.delete("/devices/a").await.json();
    assert_eq!((&answer["has_more"], &answer["wait_seconds"]), (&json!(true), &json!(361)));
}

#[tokio::test]
async fn the_meter_of_others_is_not_deleted_before_they_are_behind_none() {
    let bench = Bench::new().await;
    for device in ["b", "c"] {
        let url = format!("/devices/{device}");
        assert_eq!(bench.patch(&url, r#"{"behind": "a"}"#).await.status, 200);
    }
    let refused = bench.delete("/devices/a").await;
    assert_eq!(refused.status, 409);
    let detail = refused.json()["detail"].to_string();
    assert!(detail.contains("The devices b, c are behind the meter a"), "{detail}");
    assert_eq!(bench.get("/devices/a").await.status, 200, "nothing is marked");
    for device in ["b", "c"] {
        bench.patch(&format!("/devices/{device}"), r#"{"behind": null}"#).await;
    }
    assert_eq!(bench.delete("/devices/a").await.status, 202);
}

#[tokio::test]
async fn a_room_goes_when_its_devices_have_and_comes_with_a_reading() {
    let bench = Bench::new().await;
    assert_eq!(bench.delete("/rooms/nowhere").await.status, 404);
    let refused = bench.delete("/rooms/r").await;
    assert_eq!(refused.status, 409);
    let detail = refused.json()["detail"].to_string();
    assert!(detail.contains("The devices a, b are in the room r"), "{detail}");
    bench.delete("/devices/a").await;
    bench.patch("/devices/b", r#"{"room": "s"}"#).await;
    let answer = bench.delete("/rooms/r").await;
    assert_eq!((answer.status, &answer.json()["deleted"]), (200, &json!(1)));
    assert_eq!(bench.get("/rooms/r").await.status, 404);
    assert!(!bench.get("/rooms").await.text.contains("\"r\""));
    assert_eq!(bench.delete("/rooms/r").await.status, 404);
    bench.patch("/devices/b", r#"{"room": "r"}"#).await;
    assert_eq!(bench.get("/rooms/r").await.status, 200);
}

#[tokio::test]
async fn a_home_loses_its_rooms_and_is_none() {
    let bench = Bench::new().await;
    for room in ["r", "s"] {
        bench.patch(&format!("/rooms/{room}"), r#"{"home": "h"}"#).await;
    }
    let answer = bench.delete("/homes/h").await;
    let expected = json!({"deleted": 2, "has_more": false, "left": 0});
    assert_eq!((answer.status, answer.json()), (200, expected));
    assert_eq!(bench.get("/homes/h").await.status, 404);
    assert_eq!(bench.delete("/homes/h").await.status, 404);
    let rooms = bench.get("/rooms").await.json();
    let homes: BTreeMap<_, _> = rooms["data"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|room| (room["room_id"].as_str().expect("an id"), &room["home"]))
        .collect();
    assert_eq!(homes, [("r", &Value::Null), ("s", &Value::Null)].into());
}

#[tokio::test]
async fn who_has_not_heard_that_a_deletion_is_over_does_not_delete_the_device_that_came_again() {
    let bench = Bench::new().await;
    let first = bench.delete("/devices/a").await.json();
    let begun = format!("/devices/a?begun={}", first["begun"].as_str().expect("a timestamp"));
    assert_eq!(bench.delete(&begun).await.status, 202);
    bench.pass(361);
    assert_eq!(bench.delete("/devices/a").await.status, 200, "somebody else ends it");
    let again = reading("a", 20, "r");
    bench.store(std::slice::from_ref(&again)).await;
    assert_eq!(bench.delete(&begun).await.status, 404, "that deletion is forgotten");
    assert!(bench.store.readings().contains(&again));
    assert_eq!(bench.get("/devices/a").await.status, 200);
    for wrong in ["yesterday", "-1d", ""] {
        let refused = bench.delete(&format!("/devices/a?begun={wrong}")).await;
        assert_eq!(refused.status, 400, "{wrong}: {}", refused.text);
    }
}

#[tokio::test]
async fn a_time_at_which_no_deletion_began_does_not_pass_for_one_that_is_over() {
    let bench = Bench::new().await;
    let none = bench.delete("/devices/a?begun=2020-01-01T00:00:00Z").await;
    assert_eq!(none.status, 404, "{}", none.text);
    assert_eq!(bench.get("/devices/a").await.status, 200);
    // Not at a whole second, as most deletions.
    bench.clock.advance(Duration::from_millis(123));
    let first = bench.delete("/devices/a").await.json();
    let begun = first["begun"].as_str().expect("a timestamp");
    let cut = begun.replace(".123Z", "Z");
    assert_ne!(cut, begun);
    let wrong = [cut.as_str(), "2020-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"];
    for (state, status) in [("goes on", 202), ("is over", 200)] {
        for wrong in wrong {
            let refused = bench.delete(&format!("/devices/a?begun={wrong}")).await;
            assert_eq!(refused.status, 409, "{wrong}: {}", refused.text);
            let said = refused.json()["detail"].as_str().expect("a text").to_owned();
            assert!(said.contains(&format!("began at {begun} {state}")), "{said}");
        }
        let right = format!("/devices/a?begun={begun}");
        assert_eq!(bench.delete(&right).await.status, status);
        bench.pass(361);
        assert_eq!(bench.delete(&right).await.status, 200);
        assert_eq!(bench.delete(&right).await.status, 200, "asked again");
    }
}
