//! Sources that are asked: saved with their secrets, claimed by one of several, noted by whoever has the claim.

use futures_util::future::join_all;
use outgoing::Reach;
use polling::{PolledSource, SecretTexts, SourceStatus, Spent};
use serde_json::json;
use table::{SourceSecrets, StoredSource};

use super::SourcePorts;
use crate::given::{answer, at};

fn settings(room: &str) -> PolledSource {
    let members = json!({"kind": "remo", "room": room, "rooms": {"a1": {"room": "living", "name": "リビング"}, "b2": null}});
    let members = members.as_object().expect("an object").clone();
    PolledSource::read(members, Reach::Public).expect("a source")
}

fn first(id: &str) -> StoredSource {
    StoredSource::new(id.parse().expect("an id"), None, &settings("home"), at(0))
}

fn secrets(token: &str) -> SourceSecrets {
    let texts = SecretTexts::of([("token".to_owned(), token.to_owned())].into());
    SourceSecrets::given_for(&settings("home"), texts)
}

async fn all(store: &impl SourcePorts) -> Vec<StoredSource> {
    let current = answer!(store.current_sources()).found;
    assert_eq!(answer!(store.sources()).found, current);
    current
}

async fn secret_of(store: &impl SourcePorts, source: &StoredSource) -> Option<SourceSecrets> {
    answer!(store.source_secrets(&source.id))
}

fn spent(requests: u32) -> Spent {
    Spent::default().with(requests, None, at(0)).expect("no budget")
}

pub(super) async fn a_source_and_its_secrets_are_saved_together_or_not_at_all(
    store: &impl SourcePorts,
) {
    let remo = first("remo");
    assert!(answer!(store.save_source(&remo, Some(&secrets("one")))));
    assert_eq!(all(store).await, std::slice::from_ref(&remo));
    assert!(!answer!(store.save_source(&remo, Some(&secrets("two")))), "a second first version");
    assert_eq!(secret_of(store, &remo).await, Some(secrets("one")));

    let mut second = StoredSource::new(remo.id.clone(), Some(&remo), &settings("flat"), at(1));
    for lacks_secrets in [true, false] {
        second = StoredSource { lacks_secrets, ..second };
        assert!(answer!(store.save_source(&second, None)), "the secrets stay");
        assert_eq!(all(store).await, std::slice::from_ref(&second));
        second = StoredSource::new(remo.id.clone(), Some(&second), &settings("flat"), at(1));
    }
    assert!(answer!(store.save_source(&second, None)), "a third version");
    assert_eq!(secret_of(store, &remo).await, Some(secrets("one")));
    assert_eq!(second.source(), Ok(settings("flat")));

    for _ in 0..2 {
        answer!(store.delete_source(&remo.id));
        assert_eq!(all(store).await, []);
        assert_eq!(secret_of(store, &remo).await, None);
    }
}

pub(super) async fn of_runs_begun_at_once_one_is_given(store: &impl SourcePorts) {
    let remo = first("remo");
    assert!(answer!(store.save_source(&remo, Some(&secrets("one")))));
    let mut known = remo;
    for run in 1..=3 {
        let claim = async || answer!(store.begin_source_run(&known, spent(run), Some(at(45))));
        let claims = join_all((0..8).map(|_| claim())).await;
        let claims: Vec<_> = claims.into_iter().flatten().collect();
        let [claimed] = &claims[..] else { panic!("{claims:?}") };
        let run = u64::from(run);
        assert_eq!((claimed.run, claimed.claim, claimed.lease), (run, Some(run), Some(at(45))));
        assert_eq!(all(store).await, claims);
        known = claimed.clone();
    }
}

pub(super) async fn a_run_is_noted_by_whoever_has_the_claim(store: &impl SourcePorts) {
    let remo = first("remo");
    assert!(answer!(store.save_source(&remo, Some(&secrets("one")))));
    let begin = async |known: &StoredSource| {
        answer!(store.begin_source_run(known, spent(1), Some(at(45)))).expect("nobody is faster")
    };
    let dead = begin(&remo).await;
    let claimed = begin(&dead).await;
    let mut status = SourceStatus::default().of_question("q".to_owned());
    status.error = Some("e".to_owned());
    let end =
        async |claimed: &StoredSource| answer!(store.end_source_run(claimed, at(60), &status));
    assert!(!end(&dead).await, "another run has the claim");
    // A test counts its requests, and leaves the run that is under way alone.
    let tested = answer!(store.begin_source_run(&claimed, spent(2), None)).expect("nobody else");
    assert_eq!((tested.claim, tested.lease, tested.run), (Some(2), Some(at(45)), 3));
    assert!(end(&claimed).await);
    assert!(!end(&claimed).await, "done twice");

    let noted = all(store).await.remove(0);
    let expected = StoredSource { next: at(60), lease: None, claim: None, status, ..tested };
    assert_eq!(noted, expected);
}

pub(super) async fn a_save_ends_the_run_and_keeps_what_was_counted(store: &impl SourcePorts) {
    let remo = first("remo");
    assert!(answer!(store.save_source(&remo, Some(&secrets("one")))));
    let begun = answer!(store.begin_source_run(&remo, spent(7), Some(at(45)))).expect("begun");
    let second = StoredSource::new(remo.id.clone(), Some(&begun), &settings("flat"), at(1));
    assert!(answer!(store.save_source(&second, None)));
    assert!(!answer!(store.end_source_run(&begun, at(60), &begun.status)), "an edit since");
    let saved = all(store).await.remove(0);
    assert_eq!((saved.spent, saved.claim, saved.lease, saved.run), (spent(7), None, None, 1));
    assert!(answer!(store.begin_source_run(&begun, spent(8), Some(at(90)))).is_none());

    let begun = answer!(store.begin_source_run(&saved, spent(8), Some(at(90)))).expect("begun");
    answer!(store.delete_source(&remo.id));
    assert!(!answer!(store.end_source_run(&begun, at(60), &begun.status)));
    assert!(answer!(store.begin_source_run(&begun, spent(9), Some(at(99)))).is_none());
    assert_eq!(all(store).await, [], "no note makes a source");
}
