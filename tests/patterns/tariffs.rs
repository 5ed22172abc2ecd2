//! What tariffs cost: a home with three of them.

use table::{EditTariffs as _, Expected, ReadTariffs as _, StoredTariff};

use super::{Row, costs};
use crate::engine::Engine;
use crate::given::{at, invocation};

pub(super) async fn rows() -> Vec<Row> {
    let engine = Engine::embedded().await;
    let store = engine.table(true).await.store();
    let given = invocation();
    let nothing = costs("25a", "the tariffs, where there are none", async |invocation| {
        assert!(store.tariffs(invocation).await.expect("read").found.is_empty());
    });
    let nothing = nothing.await;

    let of = |id: &str| StoredTariff {
        id: id.parse().expect("an id"),
        version: 1,
        edited: at(0),
        written: "x".repeat(900),
    };
    for id in ["grid", "offer"] {
        assert!(store.save_tariff(&of(id), Expected::Absent, &given).await.expect("saved"));
    }
    vec![
        nothing,
        costs("25b", "save a tariff of 900 bytes, unless somebody else has", async |invocation| {
            let spot = of("spot");
            let saved = store.save_tariff(&spot, Expected::Absent, invocation);
            assert!(saved.await.expect("saved"));
        })
        .await,
        costs("25c", "the tariffs, of 3", async |invocation| {
            assert_eq!(store.tariffs(invocation).await.expect("read").found.len(), 3);
        })
        .await,
        costs("25d", "one of them", async |invocation| {
            let grid = store.tariff(&of("grid").id, invocation).await;
            assert!(grid.expect("read").is_some());
        })
        .await,
        costs("25e", "delete one", async |invocation| {
            assert!(store.delete_tariff(&of("grid"), invocation).await.expect("deleted"));
        })
        .await,
    ]
}
