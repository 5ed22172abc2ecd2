//! Why a series cannot be answered. Decides no status but 422.

use api::{Problem, ProblemKind};
use runtime::http::Call;
use table::StoreError;

/// A failure on the way to a series.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of the table.
    Store(StoreError),
    /// What is asked for is out of reach; the text tells the client what to ask instead.
    OutOfReach(String),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Failure {
    /// The problem that the client sees.
    pub(crate) fn problem(self, call: &mut Call<'_>) -> Problem {
        match self {
            Self::Store(error) => call.failed(&error),
            Self::OutOfReach(detail) => Problem::new(ProblemKind::Unanswerable, detail),
        }
    }
}
