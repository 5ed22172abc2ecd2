//! What is known of devices and rooms when readings come in, and what becomes known by them.

pub(crate) mod introduced;
pub(crate) mod known;
pub(crate) mod metric_limit;
pub(crate) mod places;
pub(crate) mod registration;
