//! What is known of readings before they are parsed: who sends them, how large, in which format, when. Reads no
//! registry.

pub(crate) mod home_zone;
pub(crate) mod sender;
pub(crate) mod submission;
pub(crate) mod times;
mod topic;
