//! The edge up to which all sealed quarters of an hour have been judged. Judges none.

use std::sync::{Mutex, PoisonError};

use domain::Timestamp;

/// The edge up to which this process has judged all sealed quarters.
#[derive(Debug, Default)]
pub(crate) struct JudgedEdge(Mutex<Option<Timestamp>>);

impl JudgedEdge {
    pub(crate) fn get(&self) -> Option<Timestamp> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, edge: Timestamp) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(edge);
    }
}
