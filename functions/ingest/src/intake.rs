//! Facts about readings before they are parsed: their sender, size, format and time of arrival. Reads no registry.

pub(crate) mod home_zone;
pub(crate) mod sender;
pub(crate) mod submission;
pub(crate) mod times;
mod topic;
