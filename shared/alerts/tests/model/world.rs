//! The world of one schedule: a device that sends, a stream that delivers, judges that crash, lag, work at the same
//! time and have wrong clocks, and people who edit and delete. Judges what they leave.

use std::collections::{BTreeMap, VecDeque};

use alerts::{
    EpisodeState, JudgedReadings, Judgement, Limits, Message, News, NoData, Observation, Phase,
    ReadingsBefore, Rule, Scope, Start, Threshold, Watch, can_be_skipped, fold_episodes,
};
use chrono::TimeDelta;
use domain::given::{self, device, label};
use domain::{Decimal, Timestamp};
use fastrand::Rng;

use super::oracle::{Plain, truth};

/// The first minute of all schedules, since 1970.
const BEGIN: i64 = 29_000_000;
const DAY: i64 = 1_440;
/// More steps than a minute has at rest.
const MAX_STEPS: usize = 1_000;

/// A design of judgements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Design {
    /// Recompute from the anchor, swap by version, store state and messages together.
    Ours,
    /// A state is swapped if its newest reading is newer than that of the stored one.
    SwapOnNewest,
    /// Of what is read, the newest reading of the batch only.
    NewestOnly,
    /// What has not lasted fires.
    ForgottenFor,
    /// Messages go out before the state is stored.
    SendFirst,
    /// Messages go out after the state is stored.
    StateFirst,
    /// A message is the difference to what was told.
    DifferenceOnly,
    /// A batch without a breach is passed over while the state is normal.
    PassesBand,
    /// A reading ahead of the clock is judged when it comes.
    JudgesAhead,
    /// A fold begins as normal, an hour before.
    AlwaysNormal,
    /// Only readings make a judgement.
    NoDue,
    /// Who deletes readings leaves no look at them.
    NoLooks,
}

impl Design {
    pub(crate) const WRONG: [Self; 11] = [
        Self::SwapOnNewest,
        Self::NewestOnly,
        Self::ForgottenFor,
        Self::SendFirst,
        Self::StateFirst,
        Self::DifferenceOnly,
        Self::PassesBand,
        Self::JudgesAhead,
        Self::AlwaysNormal,
        Self::NoDue,
        Self::NoLooks,
    ];
}

/// The timestamp of a minute.
pub(crate) fn at(minute: i64) -> Timestamp {
    Timestamp::from_millis(minute * 60_000).expect("in range")
}

/// The minute of a timestamp.
pub(crate) fn minute(at: Timestamp) -> i64 {
    at.as_millis() / 60_000
}

fn number(value: i64) -> Decimal {
    given::number(&value.to_string())
}

/// A rule at random, as the oracle knows it.
pub(crate) fn some_rule(rng: &mut Rng) -> Plain {
    let above = (rng.u8(..6) > 0).then_some(30);
    Plain {
        above,
        clear: if rng.bool() { 30 } else { 28 },
        breach_time: if rng.bool() { 0 } else { rng.i64(1..9) },
        clear_time: if rng.bool() { 0 } else { rng.i64(1..6) },
        no_data: rng.i64(-1..2),
        silent_after: rng.i64(6..15),
    }
}

/// The rule, saved at a minute.
pub(crate) fn rule_of(plain: Plain, changed: i64) -> Rule {
    let metric = || given::metric("temperature");
    let limits = |above| {
        let threshold = Threshold { limit: number(above), clear: number(plain.clear.min(above)) };
        Limits::new(Some(threshold), None).expect("limits")
    };
    Rule {
        name: label("warm"),
        scope: Scope::Device(device("d")),
        watch: match plain.above {
            Some(above) => Watch::Metric { metric: metric(), limits: limits(above) },
            None => Watch::Silence { after: None },
        },
        breach_time: TimeDelta::minutes(plain.breach_time),
        clear_time: TimeDelta::minutes(plain.clear_time),
        no_data: match plain.no_data {
            -1 => NoData::Clear,
            0 => NoData::Keep,
            _ => NoData::Fire,
        },
        repeat: Some(TimeDelta::minutes(45)),
        sends_recovery: true,
        ignores_quiet_hours: false,
        is_on: true,
        paused_until: None,
        changed: at(changed),
    }
}

/// The table of readings, as the judge reads it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Readings(pub(crate) BTreeMap<i64, Option<i64>>);

impl Readings {
    fn observation((&minute, value): (&i64, &Option<i64>)) -> Observation {
        Observation { at: at(minute), value: value.map(number) }
    }

    /// What a start asks for.
    fn asked(&self, start: &Start) -> Vec<Observation> {
        let from = minute(start.from());
        let number = match start.before() {
            ReadingsBefore::None => 0,
            ReadingsBefore::Newest => 1,
            // The fold takes those from the newest decisive one on.
            ReadingsBefore::Decisive => usize::MAX,
        };
        let mut asked: Vec<_> = self.0.range(..=from).rev().take(number).collect();
        asked.reverse();
        asked.into_iter().chain(self.0.range(from + 1..)).map(Self::observation).collect()
    }

    pub(crate) fn batch(&self, minutes: &[i64]) -> Vec<Observation> {
        self.0.range(..).filter(|(at, _)| minutes.contains(at)).map(Self::observation).collect()
    }
}

/// One judgement by a design, from a state that was read.
pub(crate) fn judged(
    design: Design,
    rule: &Rule,
    plain: Plain,
    state: Option<&EpisodeState>,
    (readings, batch): (&Readings, &[i64]),
    touched: Option<i64>,
    now: i64,
) -> Judgement {
    let (known, touched) = match design {
        Design::AlwaysNormal => (None, touched.or(Some(now))),
        _ => (state, touched),
    };
    let start = Start::of(rule, known, touched.map(at), at(now));
    let mut asked = readings.asked(&start);
    if design == Design::NewestOnly {
        let newest = batch.iter().max().copied();
        asked.retain(|it| newest.is_none_or(|newest| minute(it.at) == newest));
    }
    let mut rule = rule.clone();
    if design == Design::ForgottenFor {
        rule.breach_time = TimeDelta::zero();
    }
    let newest = asked.last().map_or(now, |it| minute(it.at));
    let now = if design == Design::JudgesAhead { now.max(newest) } else { now };
    let judged = JudgedReadings {
        readings: asked,
        silent_after: TimeDelta::minutes(plain.silent_after),
        pauses: Vec::new(),
        has_left: false,
    };
    let mut judgement = fold_episodes(&rule, state, &start, &judged, at(now));
    if design == Design::DifferenceOnly {
        let was_firing = state.is_some_and(|it| it.told.is_firing);
        let is_different = was_firing != judgement.state.told.is_firing;
        let last = judgement.messages.pop().filter(|_| is_different);
        judgement.messages = last.into_iter().collect();
        let before = state.map_or(0, |state| state.number);
        for message in judgement.messages.iter_mut().filter(|_| before > 0) {
            message.number = before + 1;
        }
        judgement.state.number = judgement.messages.last().map_or(before, |message| message.number);
    }
    judgement
}

/// Whether a design passes over a batch.
pub(crate) fn is_passed(
    design: Design,
    rule: &Rule,
    plain: Plain,
    state: Option<&EpisodeState>,
    batch: &[Observation],
    now: i64,
) -> bool {
    let is_normal = || state.is_none_or(|it| matches!(it.fold.phase, Phase::Normal { .. }));
    if design == Design::PassesBand && is_normal() {
        let limit = plain.above.map(number);
        return batch.iter().all(|it| it.value <= limit);
    }
    can_be_skipped(rule, state, batch, at(now))
}

/// Whether messages follow one another as they must, and what the last one says.
pub(crate) fn follow(messages: &[Message]) -> Result<bool, String> {
    let mut is_firing = false;
    let numbers = messages.first().into_iter().flat_map(|first| first.number..);
    for (position, (message, number)) in messages.iter().zip(numbers).enumerate() {
        let follows = match message.news {
            News::Fired | News::Passed => !is_firing,
            News::Recovered | News::Repeated | News::TakenBack | News::Edited => is_firing,
            News::Test => false,
        };
        if !follows || message.number != number {
            return Err(format!("message {} does not follow: {messages:#?}", position + 1));
        }
        is_firing = message.news.is_firing();
    }
    Ok(is_firing)
}

/// A judge on its way.
#[derive(Debug)]
struct Task {
    rule: Rule,
    plain: Plain,
    /// Minutes by which its clock is ahead.
    skew: i64,
    batch: Vec<i64>,
    touched: Option<i64>,
    /// The position in the stream that it moves on, and the looks that it takes.
    moves: Option<usize>,
    looks: usize,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Begun,
    HasState(Option<Box<(u64, EpisodeState)>>),
    Judged(Option<u64>, Box<Judgement>),
    /// The state is stored, the messages are not sent: a wrong design.
    Stored(Vec<Message>),
}

pub(crate) struct World {
    rng: Rng,
    design: Design,
    plain: Plain,
    rule: Rule,
    readings: Readings,
    /// Batches that the stream has not delivered for good; the first one is `delivered`.
    stream: VecDeque<Vec<i64>>,
    delivered: usize,
    looks: Vec<i64>,
    state: Option<(u64, EpisodeState)>,
    messages: Vec<Message>,
    tasks: Vec<Task>,
    value: i64,
    now: i64,
    has_bad_clocks: bool,
    /// Whether each judge ends before the next one begins, and none dies.
    is_calm: bool,
    wrong: Vec<String>,
}

impl World {
    pub(crate) fn new(seed: u64, design: Design) -> Self {
        let mut rng = Rng::with_seed(seed);
        let plain = some_rule(&mut rng);
        Self {
            design,
            plain,
            rule: rule_of(plain, BEGIN),
            readings: Readings::default(),
            stream: VecDeque::new(),
            delivered: 0,
            looks: Vec::new(),
            state: None,
            messages: Vec::new(),
            tasks: Vec::new(),
            value: 27,
            now: BEGIN,
            has_bad_clocks: rng.u8(..5) == 0,
            is_calm: rng.u8(..3) == 0,
            wrong: Vec::new(),
            rng,
        }
    }

    /// Some hours in which everything happens.
    pub(crate) fn live(&mut self) {
        let end = BEGIN + self.rng.i64(60..400);
        while self.now < end {
            match self.rng.u8(..12) {
                0..4 => self.send(),
                4..8 => self.step_some(),
                8 => self.change(),
                _ => self.pass_minute(),
            }
        }
    }

    /// Nobody sends or edits, and nothing fails: the clock goes on until everything is judged.
    pub(crate) fn come_to_rest(&mut self) {
        self.has_bad_clocks = false;
        let end = self.now + 20;
        while self.now <= end {
            self.now += 1;
            self.settle();
        }
        self.compare();
    }

    /// Ends everything that is under way or has a reason.
    fn settle(&mut self) {
        // A wrong design may never come to rest.
        let mut steps = 0..MAX_STEPS;
        while steps.next().is_some() && (!self.tasks.is_empty() || self.spawn()) {
            self.step(0);
        }
    }

    pub(crate) fn wrong(self) -> Vec<String> {
        self.wrong
    }

    /// Compares what is stored and told with the truth.
    fn compare(&mut self) {
        let mut admitted = self.readings.0.clone();
        admitted.retain(|at, _| *at <= self.now + 2);
        let newest = admitted.last_key_value().map_or(self.now, |(at, _)| self.now.max(*at));
        let truth = truth(&admitted, self.plain, newest);
        let (phase, since) = match self.state.as_ref().map(|(_, it)| it.fold.phase) {
            None | Some(Phase::Normal { .. }) => ("normal", None),
            Some(Phase::Pending { since }) => ("pending", Some(since)),
            Some(Phase::Firing { since, .. }) => ("firing", Some(since)),
            Some(Phase::Recovering { since, .. }) => ("recovering", Some(since)),
        };
        let is_right = phase == truth.phase && since.is_none_or(|it| minute(it) == truth.since);
        if !is_right {
            self.wrong.push(format!("{phase} since {since:?}, but {truth:?}"));
        }
        let is_true = matches!(truth.phase, "firing" | "recovering");
        match follow(&self.messages) {
            Ok(is_told) if is_told != is_true => {
                self.wrong.push(format!("told {is_told}: {truth:?} {:#?}", self.messages));
            }
            Ok(_) => {}
            Err(why) => self.wrong.push(why),
        }
    }

    fn send(&mut self) {
        // Most batches are current; some are late, ahead, or doubled.
        let late = if self.rng.u8(..4) == 0 { self.rng.i64(0..40) } else { 0 };
        let ahead = match self.rng.u8(..40) {
            0 => DAY,
            1 => 3,
            2 => 2,
            3 => 1,
            _ => 0,
        };
        let newest = self.now - late + ahead;
        let minutes: Vec<i64> =
            (0..self.rng.i64(1..5)).map(|_| newest - self.rng.i64(0..4)).collect();
        for minute in &minutes {
            self.value = (self.value + self.rng.i64(-2..3)).clamp(25, 34);
            let value = (self.rng.u8(..12) > 0).then_some(self.value);
            self.readings.0.insert(*minute, value);
        }
        if self.rng.u8(..8) == 0 {
            self.stream.push_back(minutes.clone());
        }
        self.stream.push_back(minutes);
    }

    /// A person or a repair changes what is there.
    fn change(&mut self) {
        match self.rng.u8(..8) {
            0 => {
                if self.is_calm {
                    self.settle();
                }
                self.plain = some_rule(&mut self.rng);
                self.rule = rule_of(self.plain, self.now);
                self.begin(Vec::new(), None, None, 0);
            }
            1 => {
                if let Some((version, state)) = &mut self.state {
                    *version += 1;
                    state.acknowledge();
                }
            }
            2..5 => {
                let near: Vec<i64> =
                    self.readings.0.range(self.now - 90..).map(|it| *it.0).collect();
                if !near.is_empty() {
                    let gone = near[self.rng.usize(..near.len())];
                    self.readings.0.remove(&gone);
                    self.looks.extend((self.design != Design::NoLooks).then_some(gone));
                }
            }
            _ => {
                let near: Vec<i64> =
                    self.readings.0.range(self.now - 40..).map(|it| *it.0).collect();
                if !near.is_empty() {
                    let again = near[self.rng.usize(..near.len())];
                    let value = self.rng.i64(26..34);
                    self.readings.0.insert(again, Some(value));
                    self.stream.push_back(vec![again]);
                }
            }
        }
    }

    fn pass_minute(&mut self) {
        if self.is_calm && self.rng.u8(..4) == 0 {
            // No stale judgement has to be found by its time: the last reading settles it.
            self.settle();
            // A late reading can show that there was a silence before it, which is over: it is passed over.
            if !self.minds_silence() {
                self.compare();
            }
        }
        // The stream does not lag for long, or its batches would be history.
        let (minutes, lag) = if self.rng.u8(..20) == 0 { (self.rng.i64(1..30), 0) } else { (1, 3) };
        while self.stream.len() > lag {
            self.step_some();
        }
        self.now += minutes;
    }

    fn begin(&mut self, batch: Vec<i64>, touched: Option<i64>, moves: Option<usize>, looks: usize) {
        let is_odd = self.has_bad_clocks && !self.is_calm && moves.is_none();
        let skew = match self.rng.u8(..12) {
            0 if is_odd => DAY,
            1 if is_odd => -DAY,
            _ => 0,
        };
        let (rule, plain) = (self.rule.clone(), self.plain);
        let step = Step::Begun;
        self.tasks.push(Task { rule, plain, skew, batch, touched, moves, looks, step });
    }

    /// Begins a judgement for which there is a reason; returns whether there was one.
    fn spawn(&mut self) -> bool {
        if let Some(batch) = self.stream.front().cloned() {
            let touched = batch.iter().min().copied();
            self.begin(batch, touched, Some(self.delivered), 0);
            return true;
        }
        if let Some(touched) = self.looks.iter().min().copied() {
            self.begin(Vec::new(), Some(touched), None, self.looks.len());
            return true;
        }
        if self.design == Design::NoDue {
            return false;
        }
        let state = self.state.as_ref().map(|(_, it)| it);
        if state.is_some_and(|it| it.is_due(at(self.now)) || it.changed != self.rule.changed) {
            self.begin(Vec::new(), None, None, 0);
            return true;
        }
        // What has no state is watched for silence alone.
        let newest = self.readings.0.range(..=self.now).next_back().map(|it| *it.0);
        if self.minds_silence()
            && state.is_none_or(|it| it.due.is_none())
            && let Some(newest) = newest
            && newest + self.plain.silent_after <= self.now
        {
            self.begin(Vec::new(), Some(newest), None, 0);
            return true;
        }
        false
    }

    fn minds_silence(&self) -> bool {
        self.plain.above.is_none() || self.plain.no_data == 1
    }

    /// A judge goes on, begins, dies, or is thought dead and goes on later.
    fn step_some(&mut self) {
        let has_room = !self.is_calm && self.tasks.len() < 4;
        if self.tasks.is_empty() || has_room && self.rng.u8(..6) == 0 {
            self.spawn();
        }
        if self.tasks.is_empty() {
            return;
        }
        let task = self.rng.usize(..self.tasks.len());
        if !self.is_calm && self.rng.u8(..10) == 0 {
            self.tasks.remove(task);
        } else {
            self.step(task);
        }
    }

    fn step(&mut self, position: usize) {
        let mut task = self.tasks.remove(position);
        let now = self.now + task.skew;
        match std::mem::replace(&mut task.step, Step::Begun) {
            Step::Begun => {
                let state = self.state.as_ref().map(|(_, it)| it);
                let batch = self.readings.batch(&task.batch);
                let passes = task.moves.is_some()
                    && is_passed(self.design, &task.rule, task.plain, state, &batch, now);
                if passes {
                    return self.finish(&task);
                }
                task.step = Step::HasState(self.state.clone().map(Box::new));
            }
            Step::HasState(state) => {
                let known = state.as_ref().map(|it| &it.1);
                let read = (&self.readings, task.batch.as_slice());
                let judgement =
                    judged(self.design, &task.rule, task.plain, known, read, task.touched, now);
                if self.design == Design::SendFirst {
                    self.messages.extend(judgement.messages.iter().cloned());
                }
                task.step = Step::Judged(state.map(|it| it.0), Box::new(judgement));
            }
            Step::Judged(version, judgement) => {
                let Judgement { state, messages } = *judgement;
                let stored = self.state.as_ref();
                let is_taken = task.rule.changed == self.rule.changed
                    && match self.design {
                        Design::SwapOnNewest => {
                            stored.is_none_or(|(_, it)| it.judged_until < state.judged_until)
                        }
                        _ => stored.map(|it| it.0) == version,
                    };
                if !is_taken {
                    // The reason for the judgement is still there, and begins it again.
                    if self.design == Design::SwapOnNewest {
                        self.finish(&task);
                    }
                    return;
                }
                self.state = Some((version.unwrap_or_default() + 1, state));
                match self.design {
                    Design::SendFirst => return self.finish(&task),
                    Design::StateFirst => {
                        task.step = Step::Stored(messages);
                    }
                    _ => {
                        self.messages.extend(messages);
                        return self.finish(&task);
                    }
                }
            }
            Step::Stored(messages) => {
                self.messages.extend(messages);
                return self.finish(&task);
            }
        }
        self.tasks.push(task);
    }

    fn finish(&mut self, task: &Task) {
        if task.moves == Some(self.delivered) {
            self.stream.pop_front();
            self.delivered += 1;
        }
        self.looks.drain(..task.looks.min(self.looks.len()));
        let Some((_, state)) = &self.state else { return };
        let told = follow(&self.messages);
        // What is told and what is stored agree at every moment.
        if told.is_ok_and(|is_firing| is_firing != state.told.is_firing)
            || state.number != self.messages.last().map_or(0, |message| message.number)
        {
            self.wrong.push(format!("{} messages, but {state:?}", self.messages.len()));
        }
    }
}
