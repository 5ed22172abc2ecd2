//! The table as one invocation uses it: the ports of a function's store as methods. Decides nothing.

use domain::Timestamp;

use crate::Invocation;

/// The table, the time that is left, and the time that counts as now. `S` is the function's own store. A port that this
/// store does not have cannot be called.
#[derive(Debug)]
#[must_use]
pub struct Session<'a, S> {
    pub(crate) store: &'a S,
    /// The time that is left, and the consumed units.
    pub invocation: &'a Invocation,
    /// The time that counts as now: the beginning of the invocation, or a later time ([`at`](Self::at)).
    pub now: Timestamp,
}

/// A copy has the same table and invocation.
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

    /// The same session with a later `now`, for work that takes long.
    pub const fn at(self, now: Timestamp) -> Self {
        Self { now, ..self }
    }

    /// The same session with a part of the invocation.
    pub const fn within(self, invocation: &'a Invocation) -> Self {
        Self { invocation, ..self }
    }
}
