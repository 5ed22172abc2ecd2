//! The failures queue in memory, which fails on demand: for tests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use table::Invocation;

use super::{DeadLetter, DeadLetters, NotPut};

/// A queue that keeps what it is given.
#[derive(Debug, Clone, Default)]
pub struct MemoryQueue {
    letters: Arc<Mutex<Vec<DeadLetter>>>,
    full: Arc<AtomicBool>,
}

impl MemoryQueue {
    /// What was put, oldest first.
    #[must_use]
    pub fn letters(&self) -> Vec<DeadLetter> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on takes nothing, or everything again.
    pub fn fail(&self, fails: bool) {
        self.full.store(fails, Ordering::SeqCst);
    }
}

impl DeadLetters for MemoryQueue {
    async fn put(&self, letters: &[DeadLetter], _budget: &Invocation) -> Result<(), NotPut> {
        if self.full.load(Ordering::SeqCst) {
            return Err(NotPut::because("the test wants it so"));
        }
        self.letters.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(letters);
        Ok(())
    }
}
