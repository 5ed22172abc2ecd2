//! Schedules in order and without failures: each reading is judged before anything later is known. Compares the
//! messages with the turns that are true.

use fastrand::Rng;

use alerts::{EpisodeState, News, Past, SilenceLimit};
use chrono::TimeDelta;

use super::oracle::truth;
use super::world::{Design, Readings, at, follow, is_passed, judged, minute, rule_of, some_rule};

const BEGIN: i64 = 29_000_000;

/// Runs a schedule; returns what was wrong.
pub(crate) fn run(seed: u64, design: Design) -> Vec<String> {
    let mut rng = Rng::with_seed(seed);
    let plain = some_rule(&mut rng);
    let rule = rule_of(plain, BEGIN);
    let (mut readings, mut state) = (Readings::default(), None::<EpisodeState>);
    let (mut messages, mut batch) = (Vec::new(), Vec::new());
    let (mut value, mut density) = (27, 4);
    let end = BEGIN + rng.i64(30..500);
    for now in BEGIN..=end {
        let mut reason = None;
        // The minute's judge comes before what the minute brings; it knows nothing of a batch under way.
        if batch.is_empty() && design != Design::NoDue {
            let newest = readings.0.last_key_value().map(|it| *it.0);
            let is_silent = newest.is_some_and(|it| it + plain.silent_after <= now);
            if state.as_ref().is_some_and(|it| it.is_due(at(now))) {
                reason = Some(None);
            } else if is_silent && state.as_ref().is_none_or(|it| it.due.is_none()) {
                reason = Some(newest);
            }
        }
        if let Some(touched) = reason {
            let read = (&readings, &[][..]);
            let judgement = judged(design, &rule, plain, state.as_ref(), read, touched, now);
            messages.extend(judgement.messages);
            state = Some(judgement.state);
        }
        if rng.u8(..30) == 0 {
            density = rng.u8(..5);
        }
        if rng.u8(..5) < density {
            value = (value + rng.i64(-2..3)).clamp(25, 34);
            readings.0.insert(now, (rng.u8(..12) > 0).then_some(value));
            batch.push(now);
        }
        if !batch.is_empty() && (rng.u8(..3) > 0 || now == end) {
            let observations = readings.batch(&batch);
            if !is_passed(design, &rule, plain, state.as_ref(), &observations, now) {
                let (read, touched) = ((&readings, &batch[..]), batch.first().copied());
                let judgement = judged(design, &rule, plain, state.as_ref(), read, touched, now);
                messages.extend(judgement.messages);
                state = Some(judgement.state);
            }
            batch.clear();
        }
    }
    let truth = truth(&readings.0, plain, end);
    let told: Vec<(bool, i64)> = messages
        .iter()
        .flat_map(|it| {
            let fires = || (true, minute(it.fired));
            let ends = || (false, it.ended.map_or(0, minute));
            match it.news {
                News::Fired => vec![fires()],
                News::Recovered => vec![ends()],
                News::Passed => vec![fires(), ends()],
                News::Repeated | News::Test => vec![],
                News::TakenBack | News::Edited => vec![(false, 0)],
            }
        })
        .collect();
    let mut wrong: Vec<String> = follow(&messages).err().into_iter().collect();
    if told != truth.turns {
        wrong.push(format!("{plain:?} told {told:?}, but {truth:?}"));
    }
    let all = readings.batch(&readings.0.keys().copied().collect::<Vec<_>>());
    let silent_after = TimeDelta::minutes(plain.silent_after);
    let from = all.first().map_or(at(0), |it| it.at);
    let mut past = Past::begin(&rule, SilenceLimit::new(silent_after, &[]), from, true);
    past.take(&all, at(end));
    let shown: Vec<(bool, i64)> = past
        .episodes()
        .iter()
        .flat_map(|it| [Some((true, minute(it.fired))), it.ended.map(|at| (false, minute(at)))])
        .flatten()
        .collect();
    if shown != truth.turns {
        wrong.push(format!("{plain:?} shows {shown:?}, but {truth:?}"));
    }
    wrong
}
