//! A gate before the calls of a table in memory: each waits until the schedule of a test lets it go on, and
//! happens, fails, or happens and seems to fail, as the schedule says. Knows no port.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;

use table::{StoreError, StoreResult};

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It happens.
    Done,
    /// It does not happen, and may later.
    Failed,
    /// It happens, and its answer is lost.
    AnswerLost,
    /// It does not happen, and never would.
    Impossible,
}

/// The gate of one instance of a function. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// The number of calls that wait: a task may have several under way.
    waiting: usize,
    granted: Option<Step>,
}

/// A call that waits, until it goes on or its task is dropped.
struct Waiting<'a>(&'a Gate);

impl<'a> Waiting<'a> {
    fn begin(gate: &'a Gate) -> Self {
        gate.state().waiting += 1;
        Self(gate)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.waiting = state.waiting.saturating_sub(1);
    }
}

impl Gate {
    /// Whether a call waits. A task that is not done and has no such call is asleep.
    pub(crate) fn is_waiting(&self) -> bool {
        self.state().waiting > 0
    }

    /// Lets the call that waits go on.
    pub(crate) fn grant(&self, step: Step) {
        self.state().granted = Some(step);
    }

    /// Takes back what was granted to a task that was dropped.
    pub(crate) fn reset(&self) {
        self.state().granted = None;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics while it holds the gate")
    }

    /// A call, as one step.
    pub(crate) async fn step<T>(
        &self,
        call: impl Future<Output = StoreResult<T>> + Send,
    ) -> StoreResult<T> {
        let waiting = Waiting::begin(self);
        let step = poll_fn(|context| match self.state().granted.take() {
            Some(step) => Poll::Ready(step),
            None => {
                // Of several calls that wait at once, each is asked again whenever the task is.
                context.waker().wake_by_ref();
                Poll::Pending
            }
        });
        let step = step.await;
        drop(waiting);
        let lost = || StoreError::Unavailable("the schedule wants it so".into());
        match step {
            Step::Done => call.await,
            Step::Failed => Err(lost()),
            Step::AnswerLost => call.await.and_then(|_| Err(lost())),
            Step::Impossible => Err(StoreError::Inapplicable("the schedule wants it so".into())),
        }
    }
}
