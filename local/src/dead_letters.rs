//! The dead-letter queue of one machine: written to standard error, and kept until the process ends.

use std::sync::{Arc, Mutex, PoisonError};

use runtime::dead_letters::{DeadLetter, DeadLetterQueue, NotSent};
use table::Invocation;

use crate::warning::warn;

/// Records and messages that no function could process.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeadLetters(Arc<Mutex<Vec<DeadLetter>>>);

impl DeadLetters {
    /// Adds a dead letter, and writes a warning.
    pub(crate) fn push(&self, letter: DeadLetter) {
        let mut letters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let DeadLetter { pk, sk, reason } = &letter;
        let so_far = letters.len() + 1;
        warn(format_args!("gave up {pk} {sk}: {reason}; {so_far} given up so far"));
        letters.push(letter);
    }

    /// Returns all dead letters, oldest first.
    pub(crate) fn all(&self) -> Vec<DeadLetter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl DeadLetterQueue for DeadLetters {
    async fn send(&self, letters: &[DeadLetter], _: &Invocation) -> Result<(), NotSent> {
        letters.iter().cloned().for_each(|letter| self.push(letter));
        Ok(())
    }
}
