//! Sends what alerts tell, each minute and whenever somebody hints at it. Takes in no reading.
//!
//! Sending needs the table and the world outside and nothing else, so it comes first: a judgement that fails holds no
//! message up.

mod carrier;
mod event;
mod heartbeat;
mod names;
mod ports;
mod post;
mod run;
mod send;
mod settings;
mod sns;
#[cfg(test)]
mod tests;
mod waiting;

use runtime::clock::Clock;
use runtime::telemetry::Telemetry;

pub use carrier::{Carrier, NoEmail, NotCarried, PublishEmail};
pub use event::Event;
pub use ports::Store;
pub use run::NotDone;
pub use settings::Settings;
pub use sns::Sns;

use heartbeat::Heartbeat;

/// The function.
#[derive(Debug)]
pub struct Alerting<S, C> {
    store: S,
    carrier: Carrier,
    clock: C,
    telemetry: Telemetry,
    settings: Settings,
    heartbeat: Heartbeat,
}

impl<S: Store, C: Clock> Alerting<S, C> {
    /// The function on a table.
    #[must_use]
    pub fn new(
        store: S,
        carrier: Carrier,
        clock: C,
        telemetry: Telemetry,
        settings: Settings,
    ) -> Self {
        Self { store, carrier, clock, telemetry, settings, heartbeat: Heartbeat::default() }
    }
}
