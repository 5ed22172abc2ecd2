//! The registry as ingest meets it: what a request names is found, what is new is registered, and both are remembered.

pub(crate) mod attached;
pub(crate) mod found;
pub(crate) mod look_up;
pub(crate) mod place_cache;
pub(crate) mod registration;
pub(crate) mod remembered;
