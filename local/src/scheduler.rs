//! Invokes a function whenever its schedule is due, in `EventBridge`'s place. Decides no period.

use std::time::Duration;

use chrono::TimeDelta;
use domain::Timestamp;
use runtime::clock::{Clock as _, SystemClock};
use tokio::sync::{oneshot, watch};

use crate::hosted_function::HostedFunction;
use crate::stop::{is_stopped, pause};
use crate::warning::warn;

/// A function that a schedule invokes. The schedule's event has no content.
pub(crate) type ScheduledFunction = HostedFunction<(), anyhow::Result<()>>;

/// The longest sleep before the clock is read again: the clock goes on while a laptop is suspended, but a timer does
/// not.
const MAX_SLEEP: Duration = Duration::from_secs(60);

/// Invokes `function` in each `period` until it is stopped, and signals `first` after the first invocation.
///
/// The schedule is due at the start of the system, because it may have been due while the system was off. All times
/// that were missed while the laptop slept become one invocation. A failed invocation is repeated only when the
/// schedule is due again.
pub(crate) async fn run(
    period: TimeDelta,
    function: ScheduledFunction,
    first: oneshot::Sender<()>,
    mut stop: watch::Receiver<bool>,
) {
    let mut first = Some(first);
    let mut due = SystemClock.now();

    while !is_stopped(&stop) {
        let now = SystemClock.now();
        due = due_by(now, due, period);
        let left = due.as_millis() - now.as_millis();
        if let Ok(left @ 1..) = u64::try_from(left) {
            pause(Duration::from_millis(left).min(MAX_SLEEP), &mut stop).await;
            continue;
        }

        if let Err(error) = function.invoke(()).await.flatten() {
            warn(format_args!("the schedule of {}: {error:#}", function.name()));
        }
        due = SystemClock.now().saturating_add(period);
        if let Some(first) = first.take() {
            // The waiting start may have timed out already.
            let _ = first.send(());
        }
    }
}

/// When the schedule is due next; at most one period from now, because a clock that was set back leaves `due` too far
/// ahead.
fn due_by(now: Timestamp, due: Timestamp, period: TimeDelta) -> Timestamp {
    due.min(now.saturating_add(period))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::deployment::ROLLUP;

    #[test]
    fn a_clock_that_is_set_back_delays_a_schedule_by_one_period_at_most() {
        let now = SystemClock.now();
        let later = |seconds| now.saturating_add(TimeDelta::seconds(seconds));
        let due = |seconds| due_by(now, later(seconds), TimeDelta::minutes(1));
        assert_eq!(
            [due(-5), due(30), due(60), due(10_800)],
            [later(-5), later(30), later(60), later(60)]
        );
    }

    #[tokio::test]
    async fn a_function_is_invoked_each_time_though_it_fails() {
        let invocations = Arc::new(AtomicUsize::new(0));
        let function = HostedFunction::new(ROLLUP, &invocations, |invocations, (), _| async move {
            let number = invocations.fetch_add(1, Ordering::SeqCst) + 1;
            assert!(number != 2, "the second one panics");
            anyhow::ensure!(number != 1, "the first one fails");
            Ok(())
        });

        let stop = watch::Sender::new(false);
        let (first, invoked) = oneshot::channel();
        let period = TimeDelta::milliseconds(50);
        let running = tokio::spawn(run(period, function, first, stop.subscribe()));
        invoked.await.expect("it is invoked at once");
        assert_eq!(invocations.load(Ordering::SeqCst), 1);

        let three = async {
            while invocations.load(Ordering::SeqCst) < 3 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), three).await.expect("three invocations");

        stop.send_replace(true);
        tokio::time::timeout(Duration::from_secs(10), running).await.expect("it stops").unwrap();
    }
}
