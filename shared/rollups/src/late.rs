//! Marks changes of past readings before an instance makes them, with few writes. Makes no change.

use chrono::TimeDelta;
use domain::{DeviceId, TimeRange, Timestamp};
use table::{
    DeviceGroups, LateChanges, LateMark, MarkLateChanges, MarksOutcome, Session, StoreError,
    StoreResult,
};
use tokio::sync::Mutex;

use crate::rollup_delay::is_late;

/// The largest number of attempts to store marks while others store marks too.
const MAX_ATTEMPTS: usize = 20;
/// The milliseconds of a day.
const DAY_MILLIS: i64 = 86_400_000;

/// The marks of one instance.
///
/// A mark is valid for some seconds, and changes that it covers need no further write meanwhile. The first mark is of
/// whole days. A second mark within this time is of all time, and a third is of all devices. So there are at most three
/// marks, whatever an import sends.
#[derive(Debug)]
pub struct LateMarking {
    ahead: TimeDelta,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    /// The marks in the table when the instance last wrote.
    stored: LateChanges,
    /// The instance's last mark.
    mine: Option<LateMark>,
}

impl LateMarking {
    /// Makes marks that are valid for `ahead`, at most [`MARKED_AHEAD`](crate::MARKED_AHEAD).
    pub fn new(ahead: TimeDelta) -> Self {
        Self { ahead, memory: Mutex::default() }
    }

    /// Announces changes of past readings. Returns the end of the mark; `None` if no change is of the past. The caller
    /// must mark again if its writes go on after the end of the mark.
    pub async fn mark<'a>(
        &self,
        session: Session<'_, impl MarkLateChanges>,
        changed: impl IntoIterator<Item = (&'a DeviceId, Timestamp)>,
    ) -> StoreResult<Option<Timestamp>> {
        let now = session.now;
        let Some(needed) = mark_for(changed, now) else { return Ok(None) };

        // Other tasks of the process wait here, and then may find that the new mark covers their changes too.
        let mut memory = self.memory.lock().await;
        let Memory { stored, mine } = &mut *memory;
        // A mark that ends more than `ahead` from now was made before the clock was set back, and is not used.
        let valid = mine.filter(|mine| now < mine.until && mine.until.since(now) <= self.ahead);
        if let Some(mine) = valid.filter(|mine| mine.covers(&needed)) {
            return Ok(Some(mine.until));
        }

        let mut new = widened(needed, valid);
        new.until = now.saturating_add(self.ahead);
        for _ in 0..MAX_ATTEMPTS {
            let marks = stored.marks_with(new, now);
            match session.put_late_marks(&marks, stored.version).await? {
                MarksOutcome::Stored => {
                    *stored = LateChanges { version: stored.version + 1, marks, backlog: None };
                    *mine = Some(new);
                    return Ok(Some(new.until));
                }
                // Another instance was faster, or this mark is stored and the answer was lost.
                MarksOutcome::Outdated(now_stored) => *stored = now_stored,
            }
            if stored.marks.iter().any(|mark| mark.covers(&new)) {
                *mine = Some(new);
                return Ok(Some(new.until));
            }
        }

        Err(StoreError::Contended("the marks of late changes".to_owned()))
    }
}

/// The mark that changes of past readings need, in whole days. The caller sets its end.
fn mark_for<'a>(
    changed: impl IntoIterator<Item = (&'a DeviceId, Timestamp)>,
    now: Timestamp,
) -> Option<LateMark> {
    let marks = changed.into_iter().filter(|(_, at)| is_late(*at, now)).map(|(device, at)| {
        let start = at.as_millis().div_euclid(DAY_MILLIS) * DAY_MILLIS;
        let instant = |millis| Timestamp::from_millis(millis).ok();
        let from = instant(start).unwrap_or(Timestamp::MIN);
        let to = instant(start + DAY_MILLIS).unwrap_or(Timestamp::MAX);
        let range = TimeRange::new(from, to).expect("a day is longer than nothing");
        LateMark { range, groups: DeviceGroups::of(device), until: now }
    });
    marks.reduce(|a, b| a.with(&b))
}

fn all_time() -> TimeRange {
    TimeRange::new(Timestamp::MIN, Timestamp::MAX).expect("not empty")
}

/// Widens the needed mark to all time if the last mark is still valid, and to all devices if that mark was of all time.
/// The caller sets its end.
fn widened(needed: LateMark, valid: Option<LateMark>) -> LateMark {
    let Some(valid) = valid else { return needed };
    let both = valid.with(&needed);
    let is_third = valid.range == all_time();
    let groups = if is_third { DeviceGroups::ALL } else { both.groups };
    LateMark { range: all_time(), groups, ..both }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex as Cell;
    use std::time::Duration;

    use domain::given::at_second;

    use super::*;
    use crate::{MARKED_AHEAD, RollupDelay};
    use futures_util::FutureExt as _;
    use table::given::invocation;
    use table::memory_db::MemoryDb;
    use table::{Invocation, ReadLateChanges as _};

    /// A table that counts what is stored, and sometimes loses the answer, so that the SDK repeats the request.
    #[derive(Default)]
    struct Counted {
        memory: MemoryDb,
        stored: Cell<VecDeque<usize>>,
        loses: Cell<bool>,
    }

    impl MarkLateChanges for Counted {
        async fn put_late_marks(
            &self,
            marks: &[LateMark],
            expected: u64,
            invocation: &Invocation,
        ) -> StoreResult<MarksOutcome> {
            let answer = self.memory.put_late_marks(marks, expected, invocation).await?;
            if answer == MarksOutcome::Stored {
                self.stored.lock().expect("unharmed").push_back(marks.len());
            }
            if *self.loses.lock().expect("unharmed") {
                return self.memory.put_late_marks(marks, expected, invocation).await;
            }
            Ok(answer)
        }
    }

    /// Several instances, whatever they send: whoever asks right after a change hears of it, and an instance
    /// writes three times within a mark's time at most.
    #[test]
    fn every_change_is_told_from_before_it_is_made_at_few_writes() {
        let devices: Vec<DeviceId> =
            ["a", "b", "c", "d"].map(|id| id.parse().expect("an id")).to_vec();
        let rollup_delay = RollupDelay::gathering_for(Duration::from_secs(60));
        for seed in 0..100 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let store = Counted::default();
            let instances = [(); 3].map(|()| LateMarking::new(MARKED_AHEAD));
            let mut writes: Vec<Vec<i64>> = vec![Vec::new(); 3];
            let mut made: Vec<(i64, DeviceId, Timestamp)> = Vec::new();
            for second in 0..150 {
                *store.loses.lock().expect("unharmed") = rng.u8(..4) == 0;
                let n = rng.usize(..3);
                let device = &devices[rng.usize(..4)];
                let reading = at_second(second - rng.i64(1_600..4_000_000));
                let before = store.stored.lock().expect("unharmed").len();
                let changed = [(device, reading), (device, at_second(second))];
                let (now, invocation) = (at_second(second), invocation());
                let until = instances[n].mark(Session::new(&store, &invocation, now), changed);
                let until = until.now_or_never().expect("memory").expect("marked");
                assert!(until.is_some_and(|until| until > at_second(second)), "seed {seed}");
                writes[n].extend(
                    (before < store.stored.lock().expect("unharmed").len()).then_some(second),
                );
                made.push((second, device.clone(), reading));
                let late = store.memory.late_changes(&invocation).now_or_never().expect("memory");
                let late = late.expect("stored");
                for (when, device, reading) in &made {
                    let range =
                        TimeRange::new(*reading, reading.saturating_add(TimeDelta::seconds(1)));
                    let (range, group) = (range.expect("a range"), DeviceGroups::of(device));
                    let told = rollup_delay.lacking_since(&late, range, group, at_second(second));
                    let is_due = second - when < 90;
                    assert!(
                        !is_due || told.is_some_and(|it| it <= at_second(*when)),
                        "seed {seed}"
                    );
                }
            }
            for of_instance in writes {
                for (n, first) in of_instance.iter().enumerate() {
                    let within = of_instance[n..].iter().filter(|it| **it < first + 10).count();
                    assert!(within <= 3, "seed {seed}: {of_instance:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_of_now_is_not_marked() {
        let store = Counted::default();
        let (device, invocation) = ("a".parse().expect("an id"), invocation());
        let marking = LateMarking::new(MARKED_AHEAD);
        let session = Session::new(&store, &invocation, at_second(0));
        let marked = marking.mark(session, [(&device, at_second(0))]);
        assert_eq!(marked.now_or_never().expect("memory").expect("no error"), None);
        assert!(store.stored.lock().expect("unharmed").is_empty());
    }

    #[test]
    fn an_instance_whose_clock_was_ahead_marks_again() {
        let store = Counted::default();
        let (device, invocation) = ("a".parse().expect("an id"), invocation());
        let marking = LateMarking::new(MARKED_AHEAD);
        for now in [at_second(32_400), at_second(0)] {
            let marked = marking
                .mark(Session::new(&store, &invocation, now), [(&device, at_second(-9_000))]);
            let until = marked.now_or_never().expect("memory").expect("no error");
            assert_eq!(until, Some(now.saturating_add(MARKED_AHEAD)));
        }
    }
}
