//! Instances of the functions in a model, each behind a gate: what is delivered to them, done step by step, done twice,
//! lost in a crash, or given up by whoever waited. Knows no model.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use fastrand::Rng;
use runtime::dead_letters::MemoryQueue;
use runtime::work_queue::{FoldRequest, WorkQueue as _};
use table::Invocation;
use table::memory_db::MemoryDb;

use super::rules::{Ruled, Rules};
use super::{Gated, Invoked, Step, deadline};
use crate::given::Answer;
use crate::home::{Consumer, Home, Options};
use crate::records::Stream;

/// What an instance is invoked with.
#[derive(Debug, Clone)]
pub(crate) enum Event<E> {
    /// Records of the stream, by their positions.
    Records(Consumer, Range<usize>),
    Message(FoldRequest),
    Schedule,
    /// What only the model knows.
    Own(E),
}

#[derive(Debug)]
pub(crate) enum Outcome {
    Answered(Answer),
    /// The first record to deliver again; for a message 0 if it failed.
    Handled(Option<usize>),
}

pub(crate) struct Task<E> {
    future: Invoked<Outcome>,
    pub(crate) event: Event<E>,
    /// When it was started, by the model's time.
    pub(crate) begun: i64,
    /// Nobody waits for it any more: its event was delivered again.
    is_given_up: bool,
}

/// One instance of each function, on one way to the table: one of them handles one event at a time.
pub(crate) struct Instance<R, E> {
    pub(crate) home: Arc<Home<Gated<Ruled<R>>>>,
    /// How far its clock is ahead, in milliseconds.
    pub(crate) skew: i64,
    pub(crate) task: Option<Task<E>>,
}

impl<R: Rules + Clone, E> Instance<R, E> {
    pub(crate) fn new(memory: &MemoryDb, rules: R, options: Options) -> Self {
        let store = Gated::new(Ruled::new(memory, rules));
        let home = Arc::new(Home::with(store, Options { deadline, ..options }));
        Self { home, skew: 0, task: None }
    }
}

/// The instances, with the table, the stream and the queue that they share.
pub(crate) struct Crew<R, E> {
    pub(crate) rng: Rng,
    pub(crate) memory: MemoryDb,
    pub(crate) stream: Stream,
    pub(crate) queue: MemoryQueue<FoldRequest>,
    /// Of each consumer: everything before is delivered.
    pub(crate) positions: BTreeMap<Consumer, usize>,
    pub(crate) instances: Vec<Instance<R, E>>,
    pub(crate) invocation: Invocation,
    /// The model's time.
    pub(crate) now: i64,
}

impl<R: Rules + Clone + 'static, E: Clone> Crew<R, E> {
    /// Without any instance.
    pub(crate) fn new(seed: u64, now: i64) -> Self {
        Self {
            rng: Rng::with_seed(seed),
            memory: MemoryDb::default(),
            stream: Stream::default(),
            queue: MemoryQueue::default(),
            positions: BTreeMap::new(),
            instances: Vec::new(),
            invocation: Invocation::until(deadline()),
            now,
        }
    }

    pub(crate) fn position(&self, consumer: Consumer) -> usize {
        self.positions.get(&consumer).copied().unwrap_or(0)
    }

    /// One of the instances that are busy, or are not.
    pub(crate) fn any(&mut self, is_busy: bool) -> Option<usize> {
        let all = self.instances.iter().enumerate();
        let all: Vec<usize> =
            all.filter(|(_, one)| one.task.is_some() == is_busy).map(|(n, _)| n).collect();
        (!all.is_empty()).then(|| all[self.rng.usize(..all.len())])
    }

    // ---- Deliveries ----------------------------------------------------------------------------

    /// Begins what every model has.
    pub(crate) fn start(&mut self, n: usize, event: Event<E>) {
        let home = Arc::clone(&self.instances[n].home);
        let future: Invoked<Outcome> = match &event {
            Event::Records(consumer, positions) => {
                let (consumer, records) = (*consumer, self.stream.records(positions.clone()));
                Box::pin(async move { Outcome::Handled(home.hand(consumer, &records).await) })
            }
            Event::Message(message) => {
                let message = message.clone();
                Box::pin(async move {
                    let is_done = home.fold(&message).await;
                    Outcome::Handled((!is_done).then_some(0))
                })
            }
            Event::Schedule => Box::pin(async move {
                // An error is answered by the next invocation.
                let _ = home.schedule().await;
                Outcome::Handled(None)
            }),
            Event::Own(_) => panic!("the model says what it is"),
        };
        self.begin(n, event, future);
    }

    /// Begins what the model says.
    pub(crate) fn begin(&mut self, n: usize, event: Event<E>, future: Invoked<Outcome>) {
        let begun = self.now;
        self.instances[n].task = Some(Task { future, event, begun, is_given_up: false });
    }

    /// Whether somebody waits for a batch.
    pub(crate) fn is_delivering(&self) -> bool {
        let mut tasks = self.instances.iter().filter_map(|instance| instance.task.as_ref());
        tasks.any(|task| !task.is_given_up && matches!(task.event, Event::Records(..)))
    }

    /// An instance, and a batch for it from the position on, sometimes from so many records before.
    pub(crate) fn any_batch(
        &mut self,
        consumer: Consumer,
        back: usize,
        most: usize,
    ) -> Option<(usize, Event<E>)> {
        let position = self.position(consumer);
        let from = position - self.rng.usize(..=position.min(back)) * self.rng.usize(..2);
        let left = self.stream.len() - from;
        let n = self.any(false).filter(|_| left > 0)?;
        let count = self.rng.usize(1..=left.min(most));
        Some((n, Event::Records(consumer, from..from + count)))
    }

    /// An instance, and a message of the queue for it; one of four stays there, if any may.
    pub(crate) async fn any_message(&mut self, may_stay: bool) -> Option<(usize, Event<E>)> {
        let mut messages = self.queue.take();
        let mut taken = None;
        if let Some(n) = self.any(false).filter(|_| !messages.is_empty()) {
            let one = messages.swap_remove(self.rng.usize(..messages.len()));
            if may_stay && self.rng.u8(..4) == 0 {
                messages.push(one.clone());
            }
            taken = Some((n, Event::Message(one)));
        }
        self.queue.send(&messages, &self.invocation).await.expect("memory");
        taken
    }

    // ---- Steps ---------------------------------------------------------------------------------

    /// A step of an instance that is busy. Returns the event that is over, and what came of it.
    pub(crate) async fn step_any(
        &mut self,
        may_be_impossible: bool,
    ) -> Option<(Event<E>, Outcome)> {
        let n = self.any(true)?;
        let step = Step::any(&mut self.rng, may_be_impossible);
        self.step(n, step).await
    }

    /// Runs an instance up to its next operation.
    pub(crate) async fn step(&mut self, n: usize, step: Step) -> Option<(Event<E>, Outcome)> {
        let Instance { home, task, .. } = &mut self.instances[n];
        let outcome = home.store.gate.run(&mut task.as_mut()?.future, step).await?;
        let Task { event, is_given_up, .. } = task.take().expect("it runs");
        if !is_given_up {
            self.settle(&event, &outcome).await;
        }
        Some((event, outcome))
    }

    async fn settle(&mut self, event: &Event<E>, outcome: &Outcome) {
        match (event, outcome) {
            (Event::Records(consumer, records), Outcome::Handled(failed)) => {
                let position = self.positions.entry(*consumer).or_default();
                if records.start <= *position {
                    *position = (*position).max(failed.unwrap_or(records.end));
                }
            }
            (Event::Message(message), Outcome::Handled(Some(_))) => self.send_back(message).await,
            _ => {}
        }
    }

    async fn send_back(&self, message: &FoldRequest) {
        let messages = std::slice::from_ref(message);
        self.queue.send(messages, &self.invocation).await.expect("memory");
    }

    /// An instance dies, and another one is started. Records are delivered again, because the position stays; a message
    /// comes back.
    pub(crate) async fn crash(&mut self, n: usize, other: Instance<R, E>) {
        self.give_up(n).await;
        self.instances[n] = other;
    }

    /// Nobody waits for an invocation any more, if somebody did; it goes on.
    pub(crate) async fn give_up(&mut self, n: usize) {
        let Some(task) = &mut self.instances[n].task else { return };
        if std::mem::replace(&mut task.is_given_up, true) {
            return;
        }
        if let Event::Message(message) = &task.event {
            let message = message.clone();
            self.send_back(&message).await;
        }
    }

    /// Nobody waits for one of those that are busy.
    pub(crate) async fn give_up_any(&mut self) {
        if let Some(n) = self.any(true) {
            self.give_up(n).await;
        }
    }

    /// Lets an instance end what it is at. Returns what is over, and what came of it.
    pub(crate) async fn finish(&mut self, n: usize) -> Option<(Event<E>, Outcome)> {
        let mut over = None;
        while self.instances[n].task.is_some() {
            over = self.step(n, Step::Done).await;
        }
        over
    }
}
