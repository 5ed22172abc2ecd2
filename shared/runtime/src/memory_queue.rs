//! A queue in memory for tests, which can be made to fail. Delivers nothing by itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use table::Invocation;

use crate::dead_letters::{DeadLetter, DeadLetterQueue};
use crate::not_sent::NotSent;
use crate::work_queue::{FoldRequest, WorkQueue};

/// A queue that keeps sent messages in memory.
#[derive(Debug, Clone)]
pub struct MemoryQueue<T> {
    sent: Arc<Mutex<Vec<T>>>,
    full: Arc<AtomicBool>,
    is_depth_secret: Arc<AtomicBool>,
}

// A derived implementation would require a default message.
impl<T> Default for MemoryQueue<T> {
    fn default() -> Self {
        Self { sent: Arc::default(), full: Arc::default(), is_depth_secret: Arc::default() }
    }
}

impl<T: Clone> MemoryQueue<T> {
    /// The messages that were sent and not taken yet, oldest first.
    pub fn messages(&self) -> Vec<T> {
        self.sent().clone()
    }

    /// Takes all messages, so that a test can deliver them.
    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.sent())
    }

    /// From now on all sending fails, or succeeds again.
    pub fn fail(&self, fails: bool) {
        self.full.store(fails, Ordering::SeqCst);
    }

    /// From now on the number of messages is unknown, or known again. Messages are taken in both cases.
    pub fn fail_depth(&self, fails: bool) {
        self.is_depth_secret.store(fails, Ordering::SeqCst);
    }

    fn put(&self, messages: &[T]) -> Result<(), NotSent> {
        self.ensure_not_full()?;
        self.sent().extend_from_slice(messages);
        Ok(())
    }

    fn ensure_not_full(&self) -> Result<(), NotSent> {
        let is_full = self.full.load(Ordering::SeqCst);
        if is_full { Err(NotSent::because("the test wants it so")) } else { Ok(()) }
    }

    fn sent(&self) -> MutexGuard<'_, Vec<T>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeadLetterQueue for MemoryQueue<DeadLetter> {
    async fn send(&self, letters: &[DeadLetter], _: &Invocation) -> Result<(), NotSent> {
        self.put(letters)
    }
}

impl WorkQueue for MemoryQueue<FoldRequest> {
    async fn send(&self, messages: &[FoldRequest], _: &Invocation) -> Result<(), NotSent> {
        self.put(messages)
    }

    async fn depth(&self, _: &Invocation) -> Result<u64, NotSent> {
        self.ensure_not_full()?;
        if self.is_depth_secret.load(Ordering::SeqCst) {
            return Err(NotSent::because("the test wants no depth"));
        }
        Ok(self.messages().len() as u64)
    }
}
