//! What of the newest sealed quarters of an hour this process has judged. Judges none.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::Timestamp;
use table::AlertKey;

/// The progress of this process through the rules that wait for sealed quarters.
#[derive(Debug, Default)]
pub(crate) struct SealedProgress(Mutex<Progress>);

#[derive(Debug, Default)]
struct Progress {
    /// The edge up to which quarters are sealed; `None` before the first one.
    edge: Option<Timestamp>,
    /// The rules and subjects that are judged up to that edge, while others are left.
    judged: BTreeSet<AlertKey>,
    /// Whether none is left.
    is_whole: bool,
}

impl SealedProgress {
    /// Whether nothing is left to judge up to an edge.
    pub(crate) fn is_whole(&self, edge: Timestamp) -> bool {
        let progress = self.lock();
        progress.is_whole && progress.edge == Some(edge)
    }

    /// Of some rules and subjects those that this process has not judged up to an edge. A new edge begins anew.
    pub(crate) fn left(&self, edge: Timestamp, mut keys: Vec<AlertKey>) -> Vec<AlertKey> {
        let mut progress = self.lock();
        if progress.edge != Some(edge) {
            *progress = Progress { edge: Some(edge), ..Progress::default() };
        }
        keys.retain(|key| !progress.judged.contains(key));
        keys
    }

    /// Notes that a rule on a subject is judged up to the edge.
    pub(crate) fn note(&self, key: &AlertKey) {
        self.lock().judged.insert(key.clone());
    }

    /// Notes that nothing is left up to the edge.
    pub(crate) fn note_whole(&self) {
        let mut progress = self.lock();
        progress.judged.clear();
        progress.is_whole = true;
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
