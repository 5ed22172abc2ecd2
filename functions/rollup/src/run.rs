//! What all the work of one invocation by the schedule needs, and how large a home is.

use table::{RollupState, Session};

use crate::log::Done;
use crate::pace::Pace;

/// The part of an invocation by the schedule that all of its work needs.
pub(crate) struct Run<'a, S> {
    /// The table, without the last seconds of the invocation.
    pub(crate) session: Session<'a, S>,
    /// The table for the whole invocation, for noting what is done.
    pub(crate) noting: Session<'a, S>,
    pub(crate) pace: Pace,
    pub(crate) done: Done,
    /// How far the sweeps came, once it is read.
    pub(crate) state: Option<RollupState>,
}

/// The most devices of a home: they are swept at once, and listed each minute.
pub(crate) const MAX_HOME: usize = 100;
