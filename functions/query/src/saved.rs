//! What people save under ids: how many there may be, and what is said where somebody else is faster. Stores nothing.

use api::{Problem, ProblemKind};

/// Refuses more than so many things, such as `channels`. A save checks before and after: several people may save at the
/// same moment.
pub(crate) fn ensure_at_most(most: usize, things: &str, count: usize) -> Result<(), Problem> {
    if count <= most {
        return Ok(());
    }
    let detail = format!("There are {most} {things}, and there can be no more.");
    Err(Problem::new(ProblemKind::Conflict, detail))
}

/// The problem of a save in the place of something that is no longer as it was read.
pub(crate) fn contended(thing: &str) -> Problem {
    let detail = format!(
        "The {thing} was saved or deleted at the same moment; read it, and send this again."
    );
    Problem::new(ProblemKind::Contended, detail)
}
