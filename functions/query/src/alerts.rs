//! Alerts: rules, channels, what was told, who has seen it. Sends nothing and reads no secret.

pub(crate) mod acknowledge;
mod body;
pub(crate) mod channels;
mod compare;
pub(crate) mod history;
pub(crate) mod pause;
pub(crate) mod preview;
pub(crate) mod rules;
mod shown;
mod states;
mod warnings;

/// The most rules.
pub(crate) const MAX_RULES: usize = 100;
/// The most channels: each takes a part of the transaction of a message.
pub(crate) const MAX_CHANNELS: usize = 10;
