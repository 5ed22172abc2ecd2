//! The dead-letter queue in memory, which fails on demand: for tests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use table::Invocation;

use super::{DeadLetter, DeadLetterQueue, NotSent};

/// A queue that keeps what it is given.
#[derive(Debug, Clone, Default)]
pub struct MemoryQueue {
    letters: Arc<Mutex<Vec<DeadLetter>>>,
    full: Arc<AtomicBool>,
}

impl MemoryQueue {
    /// The letters that were sent, oldest first.
    #[must_use]
    pub fn letters(&self) -> Vec<DeadLetter> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on takes nothing, or everything again.
    pub fn fail(&self, fails: bool) {
        self.full.store(fails, Ordering::SeqCst);
    }
}

impl DeadLetterQueue for MemoryQueue {
    async fn send(&self, letters: &[DeadLetter], _: &Invocation) -> Result<(), NotSent> {
        if self.full.load(Ordering::SeqCst) {
            return Err(NotSent::because("the test wants it so"));
        }
        self.letters.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(letters);
        Ok(())
    }
}
