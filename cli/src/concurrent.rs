//! Runs several requests at once, until one fails. Knows no request.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Calls `work` with each item, `concurrency` items at once, and `done` with each result. Stops at the first error.
pub(crate) fn concurrently<T: Sync, R: Send>(
    concurrency: usize,
    all: &[T],
    work: impl Fn(&T, &AtomicBool) -> anyhow::Result<R> + Sync,
    mut done: impl FnMut(&T, R),
) -> anyhow::Result<()> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (results, sent) = mpsc::channel();
    let mut outcome = Ok(());

    thread::scope(|scope| {
        for _ in 0..concurrency.min(all.len()) {
            let (results, next, stop, work) = (results.clone(), &next, &stop, &work);
            scope.spawn(move || {
                while let Some(item) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = work(item, stop);
                    let failed = result.is_err();
                    drop(results.send((item, result)));
                    if failed {
                        // Set after the error is sent, so that the first error received is the cause.
                        stop.store(true, Ordering::Release);
                        return;
                    }
                }
            });
        }
        drop(results);

        for (item, result) in sent {
            match result {
                Ok(result) => done(item, result),
                Err(error) => outcome = std::mem::replace(&mut outcome, Ok(())).and(Err(error)),
            }
        }
    });
    outcome
}
