//! Invokes a function whenever its schedule is due, in `EventBridge`'s place. Reads no template.

use std::time::Duration;

use domain::Timestamp;
use runtime::clock::{Clock as _, Deadline, SystemClock};
use tokio::sync::{oneshot, watch};

use crate::function_run::run_function;
use crate::functions::ScheduledFunction;
use crate::schedule::Schedule;
use crate::stop::{is_stopped, pause};
use crate::warning::warn;

/// The longest sleep before the clock is read again: the clock goes on while a laptop is suspended, but a timer does
/// not.
const MAX_SLEEP: Duration = Duration::from_secs(60);

/// Invokes `function` until it is stopped, and signals `first` after the first invocation.
///
/// The schedule is due at the start of the system, because it may have been due while the system was off. All times
/// that were missed while the laptop slept become one invocation. A failed invocation is repeated only when the
/// schedule is due again.
pub(crate) async fn run(
    schedule: Schedule,
    function: ScheduledFunction,
    first: oneshot::Sender<()>,
    mut stop: watch::Receiver<bool>,
) {
    let mut first = Some(first);
    let mut due = SystemClock.now();
    while !is_stopped(&stop) {
        let now = SystemClock.now();
        due = due_by(now, due, &schedule);
        let left = due.as_millis() - now.as_millis();
        if let Ok(left @ 1..) = u64::try_from(left) {
            pause(Duration::from_millis(left).min(MAX_SLEEP), &mut stop).await;
        } else {
            let deadline = Deadline::after(schedule.timeout);
            let function = function(schedule.event(due), deadline);
            let ended = run_function(function, schedule.timeout).await;
            if let Err(error) = ended.flatten() {
                warn(format_args!("{schedule}: {error:#}"));
            }

            due = schedule.next(SystemClock.now());
            if let Some(first) = first.take() {
                // The waiting start may have timed out already.
                let _ = first.send(());
            }
        }
    }
}

/// When the schedule is due next; at most one period from now, because a clock that was set back leaves `due` too far
/// ahead.
fn due_by(now: Timestamp, due: Timestamp, schedule: &Schedule) -> Timestamp {
    due.min(schedule.next(now))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::Value;

    use super::*;

    #[test]
    fn a_clock_that_is_set_back_delays_a_schedule_by_one_period_at_most() {
        let schedule = Schedule::every(Duration::from_secs(60));
        let now = SystemClock.now();
        let later = |seconds| now.saturating_add(chrono::TimeDelta::seconds(seconds));
        let due = |seconds| due_by(now, later(seconds), &schedule);
        assert_eq!(
            [due(-5), due(30), due(60), due(10_800)],
            [later(-5), later(30), later(60), later(60)]
        );
    }

    #[tokio::test]
    async fn a_function_is_invoked_each_time_though_it_fails() {
        let events = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&events);
        let function: ScheduledFunction = Arc::new(move |event: Value, _| {
            let number = {
                let mut seen = seen.lock().unwrap();
                seen.push(event);
                seen.len()
            };
            Box::pin(async move {
                assert!(number != 2, "the second one panics");
                anyhow::ensure!(number != 1, "the first one fails");
                Ok(())
            })
        });
        let stop = watch::Sender::new(false);
        let schedule = Schedule::every(Duration::from_millis(50));
        let (first, invoked) = oneshot::channel();
        let running = tokio::spawn(run(schedule, function, first, stop.subscribe()));
        invoked.await.expect("it is invoked at once");
        assert_eq!(events.lock().unwrap().len(), 1);
        let three = async {
            while events.lock().unwrap().len() < 3 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), three).await.expect("three invocations");
        assert_eq!(events.lock().unwrap()[0]["source"], "aws.events");
        stop.send_replace(true);
        tokio::time::timeout(Duration::from_secs(10), running).await.expect("it stops").unwrap();
    }
}
