//! The table as one invocation uses it: the ports of a function's store as methods. Decides nothing.

use domain::Timestamp;

use crate::Invocation;

/// The table, the time that is left, and the timestamp that counts as now. `S` is the function's own store: a port that
/// this store does not name cannot be called.
#[derive(Debug)]
#[must_use]
pub struct Session<'a, S> {
    pub(crate) store: &'a S,
    /// The time that is left, and the units that were consumed.
    pub invocation: &'a Invocation,
    /// The instant at which the invocation began.
    pub now: Timestamp,
}

/// A copy stands for the same table and invocation.
impl<S> Clone for Session<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Session<'_, S> {}

impl<'a, S> Session<'a, S> {
    /// The table during this invocation.
    pub const fn new(store: &'a S, invocation: &'a Invocation, now: Timestamp) -> Self {
        Self { store, invocation, now }
    }

    /// The session at a later instant, for work that takes as long as an invocation may.
    pub const fn at(self, now: Timestamp) -> Self {
        Self { now, ..self }
    }

    /// The session with a part of the invocation.
    pub const fn within(self, invocation: &'a Invocation) -> Self {
        Self { invocation, ..self }
    }
}
