//! The table in memory against the engine: random requests have the same outcomes and leave the same items.

use std::fmt::Debug;

use domain::Order;
use fastrand::Rng;
use table::db::{
    AttributeChange, Db, If, ItemQuery, Keys, Path, Write, WriteChange, WriteOutcome, above,
    absent, add, any, at_least, at_most, below, check, delete, fewer, holds, is, member, present,
    put, remove, set, set_if_absent, take, upsert,
};
use table::given::invocation;
use table::item::{Attribute, Item};
use table::keys::{PK, SK};
use table::memory_db::MemoryDb;
use table::{ItemKey, StoreError, StoreResult};

use crate::engine::{Engine, Table};
use crate::schedules::assert_right;

const SCHEDULES: u64 = 100;
/// The requests of a schedule.
const REQUESTS: usize = 60;
const SORT_KEYS: [&str; 3] = ["a", "b", "c"];
const NUMBERS: [&str; 2] = ["number", "other"];
const TEXTS: [&str; 2] = ["text", "more"];
const SET: &str = "set";
const MAP: &str = "map";
const MEMBERS: [&str; 2] = ["x", "y"];
const ELEMENTS: [&str; 3] = ["one", "three", "two"];

/// What a request is answered with, as far as memory has to be like the engine.
#[derive(Debug, PartialEq)]
enum Answer<T> {
    Done(T),
    Inapplicable,
}

impl<T: Debug> Answer<T> {
    fn of(answer: StoreResult<T>) -> Self {
        match answer {
            Ok(done) => Self::Done(done),
            Err(StoreError::Inapplicable(_)) => Self::Inapplicable,
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// One schedule: requests to the items of one partition.
struct Schedule {
    random: Rng,
    partition: String,
}

impl Schedule {
    fn key(&self, sk: &str) -> ItemKey {
        ItemKey { pk: self.partition.clone(), sk: sk.to_owned() }
    }

    fn one_of<'a>(&mut self, names: &[&'a str]) -> &'a str {
        names[self.random.usize(..names.len())]
    }

    fn number(&mut self) -> Attribute {
        Attribute::number(self.random.i64(-3..12))
    }

    fn text(&mut self) -> Attribute {
        Attribute::S(["", "a", "ab", "é", "Z"][self.random.usize(..5)].to_owned())
    }

    fn elements(&mut self) -> Attribute {
        let first = self.random.usize(..ELEMENTS.len());
        let elements = &ELEMENTS[first..first + self.random.usize(1..=ELEMENTS.len() - first)];
        Attribute::Ss(elements.iter().map(ToString::to_string).collect())
    }

    /// A path to a number: an attribute, or a member of the map.
    fn number_path(&mut self) -> Path {
        if self.random.bool() {
            NUMBERS[self.random.usize(..NUMBERS.len())].into()
        } else {
            member(MAP, self.one_of(&MEMBERS))
        }
    }

    /// A path and a value of its type.
    fn path_and_value(&mut self) -> (Path, Attribute) {
        match self.random.usize(..3) {
            0 => (TEXTS[self.random.usize(..TEXTS.len())].into(), self.text()),
            1 => (SET.into(), self.elements()),
            _ => (self.number_path(), self.number()),
        }
    }

    fn item(&mut self, sk: &str) -> Item {
        let mut item = self.key(sk).into_item();
        for name in NUMBERS {
            if self.random.bool() {
                item.insert(name.to_owned(), self.number());
            }
        }
        for name in TEXTS {
            if self.random.bool() {
                item.insert(name.to_owned(), self.text());
            }
        }
        if self.random.bool() {
            item.insert(SET.to_owned(), self.elements());
        }
        if self.random.bool() {
            let member = (self.one_of(&MEMBERS).to_owned(), self.number());
            item.insert(MAP.to_owned(), Attribute::M([member].into()));
        }
        item
    }

    fn condition(&mut self, depth: usize) -> If {
        let (path, value) = self.path_and_value();
        let kinds = if depth == 0 { 7 } else { 8 };
        match self.random.usize(..kinds) {
            0 => absent(path),
            1 => present(path),
            2 => is(path, value),
            3 => holds(SET, self.one_of(&ELEMENTS)),
            4 => fewer(SET, self.random.usize(1..4)),
            5 | 6 => {
                let (path, number) = (self.number_path(), self.number());
                let comparisons = [below, at_most, above, at_least];
                comparisons[self.random.usize(..comparisons.len())](path, number)
            }
            _ => any([self.condition(depth - 1), self.condition(depth - 1)]),
        }
    }

    fn conditions(&mut self) -> Vec<If> {
        (0..self.random.usize(..3)).map(|_| self.condition(1)).collect()
    }

    /// Changes of paths that do not overlap.
    fn changes(&mut self) -> Vec<AttributeChange> {
        let mut changes: Vec<AttributeChange> = Vec::new();
        for _ in 0..self.random.usize(..4) {
            let change = self.change();
            if changes.iter().all(|other| other.path() != change.path()) {
                changes.push(change);
            }
        }
        changes
    }

    fn change(&mut self) -> AttributeChange {
        let (path, value) = self.path_and_value();
        match self.random.usize(..5) {
            0 | 1 => set(path, value),
            2 => set_if_absent(path, value),
            3 => remove(path),
            _ => match value {
                Attribute::Ss(_) if self.random.bool() => take(path, value),
                Attribute::Ss(_) | Attribute::N(_) => add(path, value),
                text => set(path, text),
            },
        }
    }

    fn write(&mut self, sk: &str) -> Write {
        let write = match self.random.usize(..6) {
            0 => put(self.item(sk)),
            1 => delete(self.key(sk)),
            _ => {
                let changes = self.changes();
                upsert(self.key(sk)).with(changes)
            }
        };
        write.when(self.conditions())
    }

    /// A write that a transaction takes: an update of it changes something.
    fn part(&mut self, sk: &str) -> Write {
        let write = self.write(sk);
        match &write.change {
            WriteChange::Update(_, changes) if changes.is_empty() => {
                let number = self.number();
                write.with([set(NUMBERS[0], number)])
            }
            _ => write,
        }
    }

    fn transaction(&mut self) -> Vec<Write> {
        let first = self.random.usize(..SORT_KEYS.len());
        let mut writes: Vec<Write> = SORT_KEYS[first..].iter().map(|sk| self.part(sk)).collect();
        if first > 0 {
            let condition = self.condition(1);
            writes.push(check(self.key(SORT_KEYS[0])).when([condition]));
        }
        writes
    }

    fn query(&mut self) -> ItemQuery {
        let bounds = [self.one_of(&SORT_KEYS), self.one_of(&SORT_KEYS)];
        let keys = match self.random.usize(..3) {
            0 => Keys::All,
            1 => Keys::From(bounds[0].to_owned()),
            _ => {
                let [first, last] = bounds;
                Keys::between(first.min(last).to_owned()..=first.max(last).to_owned())
            }
        };
        let order = if self.random.bool() { Order::Ascending } else { Order::Descending };
        let limit = self.random.bool().then(|| self.random.usize(1..4));
        let filter = if self.random.bool() { vec![self.condition(1)] } else { Vec::new() };
        ItemQuery { keys, order, limit, filter, ..ItemQuery::of(self.partition.as_str()) }
    }
}

/// An item with its sets in order.
fn in_order(mut item: Item) -> Item {
    for value in item.values_mut() {
        if let Attribute::Ss(elements) = value {
            elements.sort_unstable();
        }
    }
    item
}

fn outcome_in_order(outcome: WriteOutcome) -> WriteOutcome {
    match outcome {
        WriteOutcome::Done(item) => WriteOutcome::Done(item.map(in_order)),
        WriteOutcome::Refused(item) => WriteOutcome::Refused(item.map(in_order)),
    }
}

async fn written(db: &impl Db, write: Write) -> Answer<WriteOutcome> {
    Answer::of(db.write(write, &invocation()).await.map(outcome_in_order))
}

/// Makes one transaction. Returns for each write `None` if it was not refused, else the stored item, if there is one.
/// An empty list if all were made.
async fn transacted(db: &impl Db, writes: Vec<Write>) -> Answer<Vec<Option<Option<Item>>>> {
    let count = writes.len();
    Answer::of(db.transact(writes, &invocation()).await.map(|outcome| {
        let Err(mut refused) = outcome else { return Vec::new() };
        let of = |position| refused.at(position).then(|| refused.take(position).map(in_order));
        (0..count).map(of).collect()
    }))
}

/// The items of a page, and where the next one begins.
async fn page(db: &impl Db, query: &ItemQuery) -> (Vec<Item>, Option<Item>) {
    let mut items = Vec::new();
    let mut each = |attributes: &mut dyn Iterator<Item = (String, Attribute)>| {
        items.push(in_order(attributes.collect()));
    };
    let next = db.query(query, &invocation(), &mut each).await.expect("a page");
    (items, next)
}

/// Sends random requests to both tables; returns where the one in memory has another answer.
async fn run(seed: u64, table: &Table) -> Vec<String> {
    let stored = table.store();
    let memory = MemoryDb::of(table.layout());
    let mut schedule =
        Schedule { random: Rng::with_seed(seed), partition: format!("partition{seed}") };
    let mut wrong = Vec::new();
    for number in 0..REQUESTS {
        let request = if schedule.random.usize(..4) == 0 {
            let writes = schedule.transaction();
            let expected = transacted(&stored, writes.clone()).await;
            let found = transacted(&memory, writes.clone()).await;
            (found != expected).then(|| format!("{writes:#?}: {found:?}, not {expected:?}"))
        } else {
            let sk = schedule.one_of(&SORT_KEYS);
            let write = schedule.write(sk);
            let expected = written(&stored, write.clone()).await;
            let found = written(&memory, write.clone()).await;
            (found != expected).then(|| format!("{write:#?}: {found:?}, not {expected:?}"))
        };
        let query = schedule.query();
        let (found, expected) = (page(&memory, &query).await, page(&stored, &query).await);
        let page = (found != expected).then(|| format!("{query:#?}: {found:?}, not {expected:?}"));
        let both = request.into_iter().chain(page);
        wrong.extend(both.map(|what| format!("request {number}: {what}")));
        // What follows a difference differs too.
        if !wrong.is_empty() {
            return wrong;
        }
    }

    let whole = ItemQuery::of(schedule.partition.as_str());
    if page(&memory, &whole).await != page(&stored, &whole).await {
        wrong.push("other items in the end".to_owned());
    }
    let is_keyed = |item: &Item| item.contains_key(PK) && item.contains_key(SK);
    if !memory.items().iter().all(is_keyed) {
        wrong.push("an item without its key".to_owned());
    }
    wrong
}

#[test]
fn memory_answers_as_the_engine_does() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime starts");
    let table = runtime.block_on(async { Engine::embedded().await.table_of(&[]).await });
    assert_right(SCHEDULES, |seed| runtime.block_on(run(seed, &table)));
}
