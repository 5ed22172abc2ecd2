//! The work queue in memory, which fails on demand: for tests. Delivers nothing by itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use table::Invocation;

use super::{FoldRequest, NotSent, WorkQueue};

/// A queue in memory, from which a test takes the messages.
#[derive(Debug, Clone, Default)]
pub struct MemoryWorkQueue {
    messages: Arc<Mutex<Vec<FoldRequest>>>,
    full: Arc<AtomicBool>,
}

impl MemoryWorkQueue {
    /// The messages that were sent and not taken, oldest first.
    #[must_use]
    pub fn messages(&self) -> Vec<FoldRequest> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes all messages, to deliver them.
    #[must_use]
    pub fn take(&self) -> Vec<FoldRequest> {
        std::mem::take(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on takes nothing, or everything again.
    pub fn fail(&self, fails: bool) {
        self.full.store(fails, Ordering::SeqCst);
    }
}

impl WorkQueue for MemoryWorkQueue {
    async fn send(&self, messages: &[FoldRequest], _: &Invocation) -> Result<(), NotSent> {
        if self.full.load(Ordering::SeqCst) {
            return Err(NotSent::because("the test wants it so"));
        }
        let mut kept = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(messages);
        Ok(())
    }

    async fn depth(&self, _: &Invocation) -> Result<u64, NotSent> {
        if self.full.load(Ordering::SeqCst) {
            return Err(NotSent::because("the test wants it so"));
        }
        Ok(self.messages().len() as u64)
    }
}
