//! The question of a request about time: its parameters, its rows, its devices, and their groups.

pub(super) mod devices;
pub(super) mod groups;
pub(super) mod plan;
pub(super) mod request;
