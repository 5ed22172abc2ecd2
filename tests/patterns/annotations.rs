//! What annotations and new tokens cost: a home with ten notes a day for a month, and an admin who makes a token.

use domain::{Annotation, Scope, Token, TokenHash};
use dynamodb::DynamoStore;
use table::given;
use table::{
    AddToken as _, AnnotationQuery, EditAnnotations as _, ReadAnnotations as _,
    RemoveBelongings as _,
};

use super::{DAY, Row, cost, costs, row};
use crate::engine::Engine;
use crate::given::{annotation, device, invocation, range};

async fn noted(store: &DynamoStore, query: AnnotationQuery, count: usize) -> (f64, f64) {
    cost(async |invocation| {
        let page = store.annotations(&query, invocation).await.expect("read");
        assert_eq!(page.items.len(), count);
    })
    .await
}

pub(super) async fn rows() -> Vec<Row> {
    let engine = Engine::embedded().await;
    let store = engine.table(true).await.store();
    let given = invocation();
    let all: Vec<Annotation> = (0..300)
        .map(|n| annotation(n * DAY / 10, if n % 2 == 0 { "meter" } else { "plug" }))
        .collect();
    for annotation in &all {
        store.put_annotation(annotation, &given).await.expect("written");
    }
    let of = |from, to| AnnotationQuery {
        range: range(from, to),
        about: None,
        after: None,
        limit: 1_000,
    };
    let of_plug = AnnotationQuery { about: Some(annotation(0, "plug").about), ..of(0, 30 * DAY) };
    let token = Token {
        issued_by: Some(TokenHash::of("admin")),
        ..given::token("new", Scope::Write([device("plug")].into()))
    };
    vec![
        costs("9a", "keep a new access token, which replaces none", async |invocation| {
            store.add_token(&token, invocation).await.expect("kept");
        })
        .await,
        row(
            "23a",
            "the notes of a day, of 300 in a month",
            noted(&store, of(29 * DAY, 30 * DAY), 10).await,
        ),
        row("23b", "those of the month", noted(&store, of(0, 30 * DAY), 300).await),
        row("23c", "those of one device", noted(&store, of_plug, 150).await),
        costs("23d", "keep a note", async |invocation| {
            store.put_annotation(&annotation(7, "plug"), invocation).await.expect("written");
        })
        .await,
        costs("23e", "delete a note", async |invocation| {
            let id = annotation(7, "plug").id;
            assert!(store.delete_annotation(&id, invocation).await.expect("asked"));
        })
        .await,
        costs(
            "23f",
            "find the notes of a device that is deleted, and that it has nothing else",
            async |invocation| {
                let found = store.belongings(&device("plug"), 1_000, invocation).await;
                assert_eq!(found.expect("read").found.len(), 150);
            },
        )
        .await,
    ]
}
