//! What sources that are asked cost: a home that asks four makers.

use outgoing::Reach;
use polling::{PolledSource, SecretTexts, Spent};
use serde_json::json;
use table::{
    EditSources as _, ReadSourceSecrets as _, ReadSources as _, RunSources as _, SourceSecrets,
    StoredSource,
};

use super::{Row, costs};
use crate::engine::Engine;
use crate::given::{at, invocation};

pub(super) async fn rows() -> Vec<Row> {
    let engine = Engine::embedded().await;
    let store = engine.table(true).await.store();
    let given = invocation();
    let nothing =
        costs("24a", "the sources that are due, where there are none", async |invocation| {
            assert!(store.sources(invocation).await.expect("read").found.is_empty());
        });
    let nothing = nothing.await;

    let members = json!({"kind": "remo", "rooms": {"a1": {"room": "living"}}});
    let members = members.as_object().expect("an object").clone();
    let source = PolledSource::read(members, Reach::Public).expect("a source");
    let secrets = [("token".to_owned(), "t".repeat(64))];
    let secrets = SourceSecrets::given_for(&source, SecretTexts::of(secrets.into()));
    let of = |id: &str| StoredSource::new(id.parse().expect("an id"), None, &source, at(0));
    for id in ["a", "b", "c"] {
        assert!(store.save_source(&of(id), Some(&secrets), &given).await.expect("saved"));
    }

    let remo = of("remo");
    let saved =
        costs("24b", "save a source with its secrets, both or neither", async |invocation| {
            let saved = store.save_source(&remo, Some(&secrets), invocation).await;
            assert!(saved.expect("saved"));
        });
    let saved = saved.await;
    let (lease, spent) = (Some(at(45)), Spent::default().with(2, None, at(0)).expect("no budget"));
    vec![
        nothing,
        saved,
        costs("24c", "the sources that are due, of 4", async |invocation| {
            assert_eq!(store.sources(invocation).await.expect("read").found.len(), 4);
        })
        .await,
        costs(
            "24d",
            "claim a source, read its secrets, and note what it answered",
            async |invocation| {
                let begun = store.begin_source_run(&remo, spent, lease, invocation).await;
                let begun = begun.expect("asked").expect("nobody is faster");
                assert!(store.source_secrets(&remo.id, invocation).await.expect("read").is_some());
                let ended = store.end_source_run(&begun, at(60), &begun.status, invocation).await;
                assert!(ended.expect("asked"));
            },
        )
        .await,
    ]
}
