//! Tariffs that people save at the same moment: each save does an operation in turn. Knows no price.

use std::sync::Arc;

use serde_json::{Value, json};
use table::memory_db::MemoryDb;

use crate::gate::{Gate, Gated, Invoked, Step};
use crate::given::{Answer, at};
use crate::home::Home;

/// A request, with the gate of its instance.
struct Save {
    gate: Gate,
    future: Invoked<Answer>,
}

impl Save {
    fn of(memory: &MemoryDb, id: &str, body: Value) -> Self {
        let home = Arc::new(Home::at(Gated::new(memory.clone()), at(0)));
        let (gate, path) = (home.store.gate.clone(), format!("/tariffs/{id}"));
        let future = Box::pin(async move { home.ask("PUT", &path, "", Some(&body)).await });
        Self { gate, future }
    }
}

/// The answers of saves in lockstep, in the order in which they come.
async fn answers(mut saves: Vec<Save>) -> Vec<Answer> {
    let mut answers = Vec::new();
    while !saves.is_empty() {
        let mut running = Vec::new();
        for mut save in saves {
            match save.gate.run(&mut save.future, Step::Done).await {
                Some(answer) => answers.push(answer),
                None => running.push(save),
            }
        }
        saves = running;
    }
    answers
}

fn tariff(price: usize, version: Option<u64>) -> Value {
    let lines = json!([{"name": "Energy", "price": price}]);
    let mut tariff = json!({"name": "X", "currency": "EUR", "lines": lines});
    if let Some(version) = version {
        tariff["version"] = json!(version);
    }
    tariff
}

fn count(answers: &[Answer], status: i64) -> usize {
    answers.iter().filter(|answer| answer.status == status).count()
}

#[tokio::test]
async fn of_many_tariffs_that_are_saved_at_once_twenty_stay() {
    let memory = MemoryDb::default();
    let save = |n: usize| Save::of(&memory, &format!("t{n}"), tariff(n, None));
    let answers = answers((0..25).map(save).collect()).await;
    assert_eq!((count(&answers, 200), count(&answers, 409)), (20, 5), "{answers:?}");

    let home = Home::at(memory, at(0));
    let stored = home.get("/tariffs", "").await.body["data"].as_array().map(Vec::len);
    assert_eq!(stored, Some(20));
}

#[tokio::test]
async fn of_those_who_save_over_one_version_one_does_and_the_others_are_told_to_read() {
    let memory = MemoryDb::default();
    let mut version = 0;
    for prices in [1..9, 11..19] {
        let save = |price| Save::of(&memory, "home", tariff(price, Some(version)));
        let answers = answers(prices.map(save).collect()).await;
        assert_eq!((count(&answers, 200), count(&answers, 409)), (1, 7), "{answers:?}");
        let saved = answers.iter().find(|answer| answer.status == 200).expect("one is saved");
        version = saved.body["version"].as_u64().expect("a number");
    }
}
