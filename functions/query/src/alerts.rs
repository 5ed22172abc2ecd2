//! Alerts: rules, channels, messages, acknowledgements. Sends nothing and reads no secret.

pub(crate) mod acknowledge;
mod body;
pub(crate) mod channels;
pub(crate) mod history;
pub(crate) mod pause;
pub(crate) mod preview;
pub(crate) mod rules;
mod shown;
mod states;
mod until;
mod warnings;
