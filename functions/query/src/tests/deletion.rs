//! Deletions that fail or are ended by another. All else is in `tests/cases/deletion.txt`.

use table::{MarkDeletions as _, StoreError};

use super::*;

impl Bench {
    async fn delete(&self, url: &str) -> Answer {
        self.send("DELETE", url, json!({}), "").await
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
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
