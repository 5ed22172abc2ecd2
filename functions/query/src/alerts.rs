//! Alerts: rules, channels, messages, acknowledgements. Sends nothing and reads no secret.

pub(crate) mod acknowledge;
pub(crate) mod channels;
pub(crate) mod history;
pub(crate) mod pause;
pub(crate) mod preview;
pub(crate) mod rules;
mod shown;
mod states;
mod until;
mod warnings;

/// The maximum size of a request body after decompression, in bytes.
const MAX_BODY: usize = 64 << 10;
/// The field of the log that names items that cannot be read.
const UNREADABLE: &str = "alerts.unreadable";
