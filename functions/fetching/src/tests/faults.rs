//! One source and what goes wrong: unchanged answers, edits and kills in between, two instances, errors and limits.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use futures_util::FutureExt as _;

use super::*;

const PUMP: &str = "api.example.org";

fn pump(time: bool) -> Value {
    let mut settings = json!({
        "kind": "json", "url": "https://api.example.org/v1/pump", "headers": {"x-api-key": "{key}"},
        "every": "1m", "device": "pump", "metrics": {"temperature": "/flow"},
    });
    if time {
        settings["time"] = "/at".into();
    }
    settings
}

async fn with_pump(time: bool) -> World {
    let world = World::new();
    world.play(PUMP, |asked| {
        answer(asked.at, 200, &json!({"at": "2026-03-10T11:59:00Z", "flow": 21.5}))
    });
    world.save("pump", pump(time), &[("key", SECRET)]).await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_value_with_its_time_is_delivered_once_and_one_without_each_time() {
    for (has_time, expected) in [(true, 1), (false, 10)] {
        let world = with_pump(has_time).await;
        world.minutes(10).await;
        assert_eq!(world.values().len(), expected, "{:?}", world.values());
        assert_eq!(world.asked().len(), 10);
        assert_eq!(world.state("pump").await, SourceState::Ok);
        assert_eq!(world.told("pump"), ["0"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_in_its_request_and_nowhere_else() {
    let world = with_pump(false).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let headers = Arc::clone(&seen);
    world.play(PUMP, move |asked| {
        headers.lock().expect("no panic").push(asked.headers["x-api-key"].clone());
        // A maker that repeats the secret, in an answer and in an error.
        let status = if headers.lock().expect("no panic").len() > 2 { 500 } else { 200 };
        answer(asked.at, status, &json!({"flow": 1, "echo": SECRET}))
    });
    world.minutes(5).await;
    world.try_source("pump", pump(false), None).await;
    assert!(seen.lock().expect("no panic").iter().all(|header| header == SECRET));
    let stored = format!("{:?}", world.stored("pump").await);
    for text in [world.lines(), world.events().join(""), stored] {
        assert!(!text.contains(SECRET) && !text.contains(&STANDARD.encode(SECRET)), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_three_instances_one_asks() {
    let world = with_pump(false).await;
    let others = [world.another(), world.another()];
    for _ in 0..10 {
        for instance in [&world, &others[0], &others[1]] {
            instance.clock.advance(Duration::from_secs(60));
        }
        tokio::join!(world.minute(), others[0].minute(), others[1].minute());
    }
    // The slots of ten minutes, and the one at which it was saved.
    assert!((10..=11).contains(&world.asked().len()), "{}", world.asked().len());
}

/// A minute is dropped at each of its steps: what it had asked is counted, and the next minutes ask again.
#[tokio::test(start_paused = true)]
async fn a_kill_at_any_step_loses_no_value_and_stores_none_twice() {
    for step in 0..60 {
        let world = with_pump(true).await;
        world.clock.advance(Duration::from_secs(60));
        let mut minute = Box::pin(world.minute());
        for _ in 0..step {
            if minute.as_mut().now_or_never().is_some() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(minute);
        world.minutes(3).await;
        assert_eq!(world.values().len(), 1, "killed at step {step}");
        let stored = world.stored("pump").await;
        assert!(stored.lease.is_none() && stored.claim.is_none(), "killed at step {step}");
        let spent = stored.spent.today(world.clock.now()) as usize;
        assert!(spent >= world.asked().len(), "killed at step {step}: {spent}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_edit_or_a_deletion_meanwhile_is_not_overwritten() {
    let world = with_pump(true).await;
    let (store, clock) = (world.store.clone(), world.clock.clone());
    let is_edited = AtomicUsize::new(0);
    world.play(PUMP, move |asked| {
        if is_edited.fetch_add(1, Ordering::SeqCst) == 0 {
            let store = store.clone();
            let now = clock.now();
            let edit = async move {
                let listing = store.sources(&invocation()).await.expect("read");
                let before = listing.found.into_iter().next().expect("a source");
                let mut settings = pump(true);
                settings["room"] = "cellar".into();
                let edited = source(settings);
                let stored = StoredSource::new(before.id.clone(), Some(&before), &edited, now);
                assert!(store.save_source(&stored, None, &invocation()).await.expect("saved"));
            };
            edit.now_or_never().expect("a table in memory");
        }
        answer(asked.at, 200, &json!({"at": "2026-03-10T11:59:00Z", "flow": 21.5}))
    });
    world.minutes(1).await;
    let stored = world.stored("pump").await;
    assert_eq!((stored.version, stored.settings["room"].as_str()), (2, Some("cellar")));
    assert!(stored.status.last_success.is_none(), "the note of the old run is refused");
    world.minutes(1).await;
    let stored = world.stored("pump").await;
    assert!(stored.status.last_success.is_some());
    assert_eq!(stored.spent.today(world.clock.now()), 2, "an edit resets no count");

    world.store.delete_source(&stored.id, &invocation()).await.expect("deleted");
    world.minutes(2).await;
    assert_eq!(world.asked().len(), 2);
    assert!(world.find("pump").await.is_none(), "a note makes no source");
}

#[tokio::test(start_paused = true)]
async fn what_ingest_does_not_store_is_sent_again_under_the_same_run() {
    let world = with_pump(false).await;
    world.fail_ingest(&[true]);
    world.minutes(1).await;
    let events: Vec<Value> =
        world.events().iter().map(|event| serde_json::from_str(event).expect("JSON")).collect();
    assert_eq!(events[0], events[1], "the same event");
    assert_eq!(world.values().len(), 1);

    world.fail_ingest(&[false, false]);
    world.minutes(1).await;
    assert_eq!(world.state("pump").await, SourceState::Ok, "once is told to nobody");
    world.fail_ingest(&[false; 2]);
    world.minutes(1).await;
    let stored = world.stored("pump").await;
    assert_eq!(
        stored.status.error.as_deref(),
        Some("the readings are not stored: Lambda answers 429")
    );
    world.minutes(4).await;
    assert_eq!(world.state("pump").await, SourceState::Ok);
    assert_eq!(world.told("pump"), ["0", "1", "0"]);
}

#[tokio::test(start_paused = true)]
async fn each_error_has_its_words_and_its_pause() {
    for (status, body, words, minutes) in [
        (401, json!({}), "The address answers 401: it wants a secret, or another one", 60),
        (404, json!({}), "The address answers 404", 15),
        (302, json!({}), "The address answers 302; redirects are not followed", 15),
        (200, json!("geheim"), "nothing is at \"/at\" of the answer", 15),
        (200, json!({"at": "2026-03-10T11:59:00Z"}), "no metric has a number in the answer", 15),
        (
            429,
            json!({}),
            "The address takes no more requests now; asked again at 2026-03-10 13:01 UTC",
            60,
        ),
    ] {
        let world = with_pump(true).await;
        world.play(PUMP, move |asked| answer(asked.at, status, &body));
        world.minutes(1).await;
        let asked_at = world.clock.now();
        let stored = world.stored("pump").await;
        let error = stored.status.error.clone().unwrap_or_default();
        assert!(error.starts_with(words), "{status}: {error}");
        assert_eq!(stored.next.since(asked_at).num_minutes(), minutes, "{status}");
        let state = if status == 429 { SourceState::Limited } else { SourceState::Failing };
        assert_eq!(world.state("pump").await, state);
        assert_eq!(world.told("pump"), ["1"]);
        world.minutes(minutes - 2).await;
        assert_eq!(world.asked().len(), 1, "{status}");
        world.minutes(2).await;
        assert_eq!(world.asked().len(), 2, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn transient_errors_are_asked_again_sooner_and_later_and_told_from_the_second_on() {
    let world = with_pump(true).await;
    world.play(PUMP, |asked| answer(asked.at, 503, &json!({})));
    world.minutes(1).await;
    assert_eq!(world.state("pump").await, SourceState::Waiting, "once is told to nobody");
    world.minutes(150).await;
    let times: Vec<_> = world.asked().iter().map(|(_, at, _)| *at).collect();
    let pauses: Vec<_> =
        times.windows(2).map(|pair| pair[1].since(pair[0]).num_minutes()).collect();
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60]);
    assert_eq!(world.state("pump").await, SourceState::Failing);
}

/// The clock here is ten minutes slow or fast: Reset and Retry-After are kept by the maker's own.
#[tokio::test(start_paused = true)]
async fn a_reset_is_kept_to_the_second_by_the_clock_of_the_maker() {
    for skew in [-600, 0, 600] {
        for header in ["x-rate-limit-reset", "retry-after", "ratelimit-reset"] {
            let world = with_pump(true).await;
            let free_at = Arc::new(AtomicI64::new(i64::MAX));
            let reset = Arc::clone(&free_at);
            world.play(PUMP, move |asked| {
                let maker_now = asked.at.saturating_add(TimeDelta::seconds(skew));
                let now = maker_now.as_millis() / 1_000;
                let free = reset.load(Ordering::SeqCst);
                if free == i64::MAX {
                    reset.store(now + 137, Ordering::SeqCst);
                    let value =
                        if header == "x-rate-limit-reset" { now + 137 } else { 137 }.to_string();
                    let headers = vec![("date", http_date(maker_now)), (header, value)];
                    return Fetched { status: 429, headers, body: b"{}".to_vec() };
                }
                assert!(now >= free, "{header} {skew}: {} s too early", free - now);
                answer(maker_now, 200, &json!({"at": "2026-03-10T11:59:00Z", "flow": 21.5}))
            });
            world.minutes(6).await;
            assert!(world.asked().len() >= 2, "{header} {skew}");
            assert_eq!(world.values().len(), 1, "{header} {skew}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_clock_is_named_where_the_secret_is_refused() {
    let world = with_pump(true).await;
    world.play(PUMP, |asked| {
        answer(asked.at.saturating_add(TimeDelta::minutes(10)), 401, &json!({}))
    });
    world.minutes(1).await;
    let error = world.stored("pump").await.status.error.unwrap_or_default();
    assert!(
        error.contains("its clock differs from the one here by 600 s: set the clock"),
        "{error}"
    );
}

/// What became of the old source says nothing of the new one, whose rule would tell of a failure for an hour.
#[tokio::test(start_paused = true)]
async fn a_run_of_a_source_that_is_saved_meanwhile_tells_nothing() {
    let world = with_pump(true).await;
    let (saver, runtime) = (world.another(), tokio::runtime::Handle::current());
    world.play(PUMP, move |asked| {
        runtime.block_on(saver.save("pump", pump(true), &[("key", SECRET)]));
        answer(asked.at, 401, &json!({}))
    });
    world.minutes(1).await;
    assert!(world.lines().contains("pump: was changed while it was asked"), "{}", world.lines());
    assert!(world.told("pump").is_empty());

    world.play(PUMP, |asked| {
        answer(asked.at, 200, &json!({"at": "2026-03-10T11:59:00Z", "flow": 21.5}))
    });
    world.minutes(1).await;
    assert_eq!(world.told("pump"), ["0"]);
}

#[tokio::test(start_paused = true)]
async fn a_source_without_its_secret_and_one_that_is_off_are_not_asked() {
    let world = with_pump(true).await;
    world.save("other", pump(true), &[("wrong", SECRET)]).await;
    let mut off = pump(true);
    off["on"] = false.into();
    world.save("off", off, &[("key", SECRET)]).await;
    world.minutes(2).await;
    assert_eq!(world.asked().len(), 2, "the pump alone");
    let error = world.stored("other").await.status.error.unwrap_or_default();
    assert!(error.starts_with("secrets.key: is missing: give it with the source"), "{error}");
    assert_eq!(world.state("off").await, SourceState::Waiting);
}

/// A clock is ahead for a minute, by as long as a laptop's may be.
#[tokio::test(start_paused = true)]
async fn a_clock_that_was_ahead_for_a_minute_stops_no_source() {
    for hours in [12, 24 * 400] {
        let world = with_pump(true).await;
        world.minutes(3).await;
        world.clock.set(world.clock.now().saturating_add(TimeDelta::hours(hours)));
        world.minutes(1).await;
        world.clock.set(world.clock.now().saturating_add(-TimeDelta::hours(hours)));
        let asked = world.asked().len();
        world.minutes(10).await;
        let more = world.asked().len() - asked;
        assert!((9..=10).contains(&more), "{hours}: {more} in ten minutes");
    }
}

/// A source is due early only if a wrong clock has stored when.
#[tokio::test(start_paused = true)]
async fn a_pause_of_hours_is_kept_to_its_end() {
    for (status, headers) in [(429, vec![("retry-after", "7200")]), (401, vec![])] {
        let world = World::new();
        world.play(PUMP, move |asked| {
            let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned()));
            let body = br#"{"at": "2026-03-10T11:59:00Z", "flow": 21.5}"#.to_vec();
            let headers = headers.chain([("date", http_date(asked.at))]).collect();
            Fetched { status, headers, body }
        });
        world.save("pump", pump(true), &[("key", SECRET)]).await;
        world.minutes(1).await;
        let stored = world.stored("pump").await;
        let pause = stored.next.since(world.clock.now()).num_minutes();
        world.minutes(pause - 1).await;
        assert_eq!(world.asked().len(), 1, "{status}: {pause}");
    }
}
