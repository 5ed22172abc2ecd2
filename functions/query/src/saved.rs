//! Limits the number of things that people save under ids, and refuses saves at the same moment. Stores nothing.

use api::{Problem, ProblemKind};

/// Refuses more than `most` things, such as `channels`. A save checks this before and after it writes, because several
/// people may save at the same moment.
pub(crate) fn ensure_at_most(most: usize, things: &str, count: usize) -> Result<(), Problem> {
    if count <= most {
        return Ok(());
    }
    let detail = format!("There are {most} {things}, and there can be no more.");
    Err(Problem::new(ProblemKind::Conflict, detail))
}

/// The problem of a save if somebody else has changed or deleted the stored thing since the request read it.
pub(crate) fn contended(thing: &str) -> Problem {
    let detail = format!(
        "The {thing} was saved or deleted at the same moment; read it, and send this again."
    );
    Problem::new(ProblemKind::Contended, detail)
}
