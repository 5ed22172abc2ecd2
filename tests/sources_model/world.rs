//! The world of one schedule: a source, people who edit, test and delete it, and instances of the function that asks, which
//! crash, lag, work at the same time and have clocks of their own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::TimeDelta;
use domain::Timestamp;
use fastrand::Rng;
use fetching::{Event, Fetching, Outside, SourceTest};
use outgoing::Reach;
use polling::{PolledSource, SecretTexts};
use runtime::clock::{Clock as _, Deadline, Stopwatch};
use runtime::telemetry::Telemetry;
use serde_json::{Map, Value, json};
use table::memory_db::MemoryDb;
use table::{EditSources as _, SourceSecrets, StoredSource};

use super::outside::{GatedIngest, ID, Kept, Maker, SkewedClock};
use super::steps::{Asked, Design, LoggedDesign};
use crate::gate::rules::Ruled;
use crate::gate::{Gate, Gated, Invoked, Step};
use crate::given::{at, invocation};

const INSTANCES: usize = 4;
/// How long an invocation may take, as the template says.
const TIMEOUT: Duration = Duration::from_secs(55);

type Table = Ruled<LoggedDesign>;

/// An instance of the function that asks.
struct Instance {
    fetching: Arc<Fetching<Gated<Table>, SkewedClock>>,
    gate: Gate,
    task: Option<Task>,
}

struct Task {
    future: Invoked<()>,
    begun: Stopwatch,
}

pub(super) struct World {
    rng: Rng,
    table: Table,
    maker: Arc<Maker>,
    kept: Arc<Kept>,
    instances: Vec<Instance>,
    /// The source as somebody has read it who saves it later.
    read: Option<StoredSource>,
}

impl World {
    pub(super) async fn new(seed: u64, design: Design) -> Self {
        let mut rng = Rng::with_seed(seed);
        let rules = LoggedDesign { design, log: Arc::default() };
        rules.log().tasks = vec![Asked::default(); INSTANCES];
        let clock = SkewedClock { watch: Stopwatch::start(), ahead: TimeDelta::zero() };
        let maker = Arc::new(Maker {
            is_remo: rng.bool(),
            clock,
            is_well: AtomicBool::new(false),
            log: Arc::clone(&rules.log),
            rng: Mutex::new(rng.fork()),
            used: Mutex::new(BTreeMap::new()),
        });

        let table = Ruled::new(&MemoryDb::default(), rules);
        let (kept, instances, read) = (Arc::default(), Vec::new(), None);
        let mut world = Self { rng, table, maker, kept, instances, read };
        for _ in 0..INSTANCES {
            let ahead = world.any_skew();
            let instance = world.instance(ahead);
            world.instances.push(instance);
        }
        world.make().await;
        world
    }

    fn any_skew(&mut self) -> TimeDelta {
        TimeDelta::seconds([-600, 0, 0, 600][self.rng.usize(..4)])
    }

    fn instance(&self, ahead: TimeDelta) -> Instance {
        let store = Gated::new(self.table.clone());
        let gate = store.gate.clone();
        let ingest = GatedIngest { kept: Arc::clone(&self.kept), gate: gate.clone() };
        let http = Arc::clone(&self.maker) as Arc<dyn sending::FetchAnswer>;
        let outside = Outside { http, ingest: Arc::new(ingest), reach: Reach::Public };
        let clock = SkewedClock { ahead, ..self.maker.clock.clone() };
        let fetching = Fetching::new(store, outside, clock, Telemetry::silent());
        Instance { fetching: Arc::new(fetching), gate, task: None }
    }

    fn now(&self) -> Timestamp {
        self.maker.clock.now()
    }

    // ---- Life ----------------------------------------------------------------------------------

    /// A random schedule.
    pub(super) async fn live(&mut self) {
        for _ in 0..self.rng.usize(60..240) {
            match self.rng.u8(..100) {
                0..14 => self.begin(false),
                14..17 => self.begin(true),
                17..25 => self.advance().await,
                25..27 => self.read.clone_from(&self.table.rules.log().source),
                27..30 => self.edit().await,
                30..31 => self.delete().await,
                31..33 => self.make().await,
                33..35 => self.crash(),
                _ => self.step_any().await,
            }
        }
    }

    /// The settings that somebody writes. What is asked is always the same.
    fn settings(&mut self) -> Map<String, Value> {
        let every = ["15m", "1h", "3h"][self.rng.usize(..3)];
        let room = ["home", "cellar"][self.rng.usize(..2)];
        let since = at(0).saturating_add(-TimeDelta::days(60));
        let settings = if self.maker.is_remo {
            json!({"kind": "remo", "meter": false, "room": room})
        } else {
            json!({"kind": "octopus", "mpan": "1000000000000", "serial": "1", "since": since, "every": every, "room": room})
        };
        settings.as_object().expect("an object").clone()
    }

    fn secrets(&self) -> SecretTexts {
        let name = if self.maker.is_remo { "token" } else { "key" };
        SecretTexts::of([(name.to_owned(), "geheim".to_owned())].into())
    }

    fn source(&mut self, before: Option<&StoredSource>) -> StoredSource {
        let source = PolledSource::read(self.settings(), Reach::Public).expect("a source");
        StoredSource::new(ID.parse().expect("an id"), before, &source, self.now())
    }

    /// Makes the source, if there is no source.
    async fn make(&mut self) {
        let source = self.source(None);
        let settings = source.source().expect("a source");
        let secrets = SourceSecrets::given_for(&settings, self.secrets());
        let saved = self.table.save_source(&source, Some(&secrets), &invocation()).await;
        if saved.expect("memory") {
            self.table.rules.log().replace(Some(source));
        }
    }

    /// Saves the source in the place of what was read, perhaps long ago.
    async fn edit(&mut self) {
        let Some(before) = self.read.clone() else { return };
        let source = self.source(Some(&before));
        self.table.save_source(&source, None, &invocation()).await.expect("memory");
    }

    async fn delete(&mut self) {
        self.table.delete_source(&ID.parse().expect("an id"), &invocation()).await.expect("memory");
        self.table.rules.log().replace(None);
    }

    /// Whoever takes longer than the function may is killed.
    async fn advance(&mut self) {
        let seconds = if self.maker.is_remo { [1, 20, 61, 200] } else { [20, 61, 4_000, 90_000] };
        tokio::time::advance(Duration::from_secs(seconds[self.rng.usize(..4)])).await;
        for n in 0..INSTANCES {
            let task = self.instances[n].task.as_ref();
            if task.is_some_and(|task| task.begun.elapsed() >= TIMEOUT) {
                self.kill(n);
            }
        }
    }

    // ---- Invocations ---------------------------------------------------------------------------

    /// One of the instances that are busy, or are not.
    fn any(&mut self, is_busy: bool) -> Option<usize> {
        let all = (0..INSTANCES).filter(|n| self.instances[*n].task.is_some() == is_busy);
        let all: Vec<_> = all.collect();
        (!all.is_empty()).then(|| all[self.rng.usize(..all.len())])
    }

    fn begin(&mut self, is_test: bool) {
        let Some(n) = self.any(false) else { return };
        let event = if is_test {
            let is_saved = self.table.rules.log().source.is_some();
            let (settings, secrets) = (self.settings(), (!is_saved).then(|| self.secrets()));
            let id = ID.parse().expect("an id");
            Event::Test(Box::new(SourceTest { id, settings, secrets }))
        } else {
            Event::Schedule
        };
        self.start(n, event, is_test);
    }

    fn start(&mut self, n: usize, event: Event, is_test: bool) {
        self.table.rules.log().begin(n, is_test);
        let fetching = Arc::clone(&self.instances[n].fetching);
        let future = Box::pin(async move {
            // A minute that fails is followed by another.
            let _ = fetching.handle(event, Deadline::after(TIMEOUT)).await;
        });
        self.instances[n].task = Some(Task { future, begun: Stopwatch::start() });
    }

    async fn step_any(&mut self) {
        if let Some(n) = self.any(true) {
            let step = Step::any(&mut self.rng, false);
            self.step(n, step).await;
        }
    }

    /// Runs an instance up to its next operation.
    async fn step(&mut self, n: usize, step: Step) {
        self.table.rules.log().stepping = n;
        let Instance { gate, task, .. } = &mut self.instances[n];
        let Some(Task { future, .. }) = task else { return };
        if gate.run(future, step).await.is_some() {
            *task = None;
        }
    }

    fn crash(&mut self) {
        if let Some(n) = self.any(true) {
            self.kill(n);
        }
    }

    fn kill(&mut self, n: usize) {
        let ahead = self.any_skew();
        self.instances[n] = self.instance(ahead);
    }

    // ---- Rest ----------------------------------------------------------------------------------

    /// Nobody edits, nothing fails, and the clock is right: in some hours all is asked that was not.
    pub(super) async fn come_to_rest(&mut self) {
        self.maker.is_well.store(true, Ordering::SeqCst);
        self.instances = (0..INSTANCES).map(|_| self.instance(TimeDelta::zero())).collect();
        self.make().await;
        for _ in 0..12 {
            tokio::time::advance(Duration::from_secs(3_600)).await;
            self.whole_minute().await;
        }
        for _ in 0..3 {
            tokio::time::advance(Duration::from_secs(61)).await;
            self.whole_minute().await;
        }
    }

    async fn whole_minute(&mut self) {
        self.start(0, Event::Schedule, false);
        while self.instances[0].task.is_some() {
            self.step(0, Step::Done).await;
        }
    }

    /// What was wrong on the way, or is at rest.
    pub(super) fn wrong(&self) -> Vec<String> {
        let mut wrong = self.table.rules.log().wrong.clone();
        // Octopus is asked each three hours.
        let asked = if self.maker.is_remo { TimeDelta::zero() } else { TimeDelta::hours(4) };
        wrong.extend(self.kept.wrong(
            self.maker.is_remo,
            self.now().saturating_add(-asked),
            self.now(),
        ));
        wrong
    }
}
