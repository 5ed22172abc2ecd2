//! Notes every five minutes that the system runs, and the pauses when it did not. So no device counts as silent because
//! a laptop slept.

use chrono::TimeDelta;
use domain::{TimeRange, Timestamp};
use runtime::clock::Clock;
use runtime::telemetry::WideEvent;
use table::{Expected, RunningNote, Session, StoreError, StoreResult};

use crate::Alerting;
use crate::ports::Store;

/// The time between two notes.
const EVERY: TimeDelta = TimeDelta::minutes(5);
/// How long pauses are kept: longer than the week from which silence limits are learned.
const KEPT: TimeDelta = TimeDelta::days(8);
/// The largest number of pauses that are kept. The oldest are dropped.
const MAX_PAUSES: usize = 200;

impl<S: Store, C: Clock> Alerting<S, C> {
    /// Notes that the system runs, if the last note is old enough. A damaged note is replaced.
    pub(crate) async fn note_running(
        &self,
        session: Session<'_, S>,
        log: &mut WideEvent,
    ) -> StoreResult<()> {
        if self.running.get(session.now, |()| EVERY).is_some() {
            return Ok(());
        }

        let (known, damaged) = match session.running_note().await {
            Ok(known) => (known, None),
            Err(StoreError::Unreadable(damaged)) => (None, Some(damaged)),
            Err(error) => return Err(error),
        };
        let expected = match (&known, &damaged) {
            (Some(known), _) => Expected::Version(known.version),
            (None, Some(_)) => Expected::Present,
            (None, None) => Expected::Absent,
        };

        // If the table refuses the write, another process has noted the same.
        let note = next(known.as_ref(), session.now);
        session.put_running_note(&note, expected).await?;
        self.running.keep((), session.now);
        if let Some(damaged) = &damaged {
            log.warn("alerting.damaged_mark", damaged);
        }
        Ok(())
    }
}

/// The note that follows the `known` one.
fn next(known: Option<&RunningNote>, now: Timestamp) -> RunningNote {
    let Some(known) = known else {
        return RunningNote { version: 1, at: now, pauses: Vec::new() };
    };
    let oldest = now.saturating_add(-KEPT);
    let kept = known.pauses.iter().filter(|pause| pause.to() > oldest);
    // A pause that was noted while the clock was ahead may end in the future. Its part in the past is kept.
    let past = kept.filter_map(|pause| TimeRange::new(pause.from(), pause.to().min(now)).ok());
    let mut pauses: Vec<_> = past.collect();
    pauses.extend(known.pause_until(now));

    let spare = pauses.len().saturating_sub(MAX_PAUSES);
    pauses.drain(..spare);
    RunningNote { version: known.version + 1, at: now, pauses }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::MIN.saturating_add(TimeDelta::days(20) + TimeDelta::minutes(minutes))
    }

    #[test]
    fn a_longer_time_without_a_note_is_a_pause() {
        let first = next(None, at(0));
        assert_eq!(first, RunningNote { version: 1, at: at(0), pauses: Vec::new() });
        let second = next(Some(&first), at(7));
        assert_eq!((second.version, second.pauses.len()), (2, 0));
        let third = next(Some(&second), at(60));
        let pause = TimeRange::new(at(7), at(60)).expect("a range");
        assert_eq!((third.at, &third.pauses[..]), (at(60), &[pause][..]));
        let fourth = next(Some(&third), at(65));
        assert_eq!(fourth.pauses, [pause]);
        assert_eq!(next(Some(&fourth), at(9 * 24 * 60)).pauses.len(), 1, "the old one is gone");
        let back = next(Some(&third), at(30));
        let past = TimeRange::new(at(7), at(30)).expect("a range");
        assert_eq!((back.at, &back.pauses[..]), (at(30), &[past][..]), "of a clock that was ahead");
        assert!(next(Some(&third), at(5)).pauses.is_empty(), "all of it is ahead");
    }

    #[test]
    fn the_newest_pauses_are_kept() {
        let mut note = next(None, at(0));
        for n in 1..=300 {
            note = next(Some(&note), at(n * 10));
        }
        assert_eq!(note.pauses.len(), MAX_PAUSES);
        assert_eq!(note.pauses.last().map(|pause| pause.to()), Some(at(3_000)));
    }
}
