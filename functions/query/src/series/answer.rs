//! The answer to a question about time, as the API shows it: the columns and rows of a series, and energy.

pub(super) mod columns;
pub(crate) mod energy;
mod rest;
pub(crate) mod rows;
pub(super) mod write;
