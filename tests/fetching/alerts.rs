//! A rule on the device of a source: when it tells that the maker fails, and what its preview makes of the same time.

use chrono::TimeDelta;
use domain::Timestamp;

use super::*;
use crate::home::Consumer;
use crate::records;

/// A maker that answers with an error for some time.
struct Unsteady {
    clock: TestClock,
    fails: std::ops::Range<Timestamp>,
    status: u16,
}

impl FetchAnswer for Unsteady {
    fn fetch(&self, _: &Request) -> Result<Fetched, Unanswered> {
        let status = if self.fails.contains(&self.clock.now()) { self.status } else { 200 };
        Ok(Fetched { status, headers: Vec::new(), body: b"[]".to_vec() })
    }
}

/// Each minute: sources are asked, the stream is delivered, and alerts are judged and sent.
struct Minutes<'a> {
    home: &'a Home<MemoryDb>,
    fetching: Fetching<MemoryDb, TestClock>,
    delivered: usize,
}

impl Minutes<'_> {
    async fn pass(&mut self) {
        let Self { home, fetching, delivered } = self;
        home.clock.advance(Duration::from_secs(60));
        Box::pin(fetching.handle(Event::Schedule, minute())).await.expect("done");

        let readings = home.store.readings();
        let records = records::all_stored(*delivered, &readings[*delivered..]);
        *delivered = readings.len();
        assert_eq!(home.hand(Consumer::Registry, &records).await, None);
        home.alert(alerting::Event::Schedule, minute()).await.expect("done");
    }
}

/// As `docs/connect/sources.md` and the page save it.
fn rule() -> Value {
    json!({"name": "Remo fails", "device": "source:remo", "metric": "failing", "above": 0, "for": "30m"})
}

#[tokio::test(start_paused = true)]
async fn a_rule_on_a_source_fires_half_an_hour_after_its_maker_fails_and_its_preview_agrees() {
    // A refused secret is a failure at once and tried again each hour; without an answer a source fails from the
    // second time on, and is asked again after 1, 2, 4 and so on minutes.
    for (status, failing_from, answered_again) in [(401, 60, 180), (503, 61, 183)] {
        let home = Home::at(MemoryDb::default(), at(0));
        let after = |minutes: i64| at(0).saturating_add(TimeDelta::minutes(minutes));
        let (clock, fails) = (home.clock.clone(), after(60)..after(150));
        let fetching = asking(&home, Arc::new(Unsteady { clock, fails, status }));
        let secrets = [("token".to_owned(), "geheim".to_owned())];
        save(&home, "remo", json!({"kind": "remo", "meter": false}), secrets.into()).await;
        let channel = json!({"kind": "ntfy", "name": "Phone", "topic": "a-topic-of-a-test"});
        for (path, body) in [("/channels/phone", &channel), ("/alerts/remo-fails", &rule())] {
            let saved = home.ask("PUT", path, "", Some(body)).await;
            assert_eq!(saved.status, 200, "{}", saved.body);
        }

        let mut minutes = Minutes { home: &home, fetching, delivered: 0 };
        let mut sent_at = Vec::new();
        for minute in 1..=240 {
            minutes.pass().await;
            let sent = home.receiver.messages().len();
            sent_at.extend((sent_at.len()..sent).map(|_| minute));
        }
        assert_eq!(sent_at, [failing_from + 30, answered_again], "{:?}", home.receiver.messages());
        let [fired, recovered] = &home.receiver.messages()[..] else { panic!("two messages") };
        assert!(fired.contains("Remo fails"), "{fired}");
        assert!(recovered.contains("Remo fails"), "{recovered}");

        let asked = json!({"rule": rule(), "from": "-4h"});
        let preview = home.ask("POST", "/alerts/preview", "", Some(&asked)).await;
        assert_eq!(preview.status, 200, "{}", preview.body);
        let episodes = &preview.body["subjects"][0]["episodes"];
        let (since, told) = (after(failing_from), after(failing_from + 30));
        let expected = json!([{"since": since, "fired": told, "ended": after(answered_again)}]);
        assert_eq!(*episodes, expected, "{}", preview.body);
    }
}
