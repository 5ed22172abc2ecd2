//! Sends the messages of alerts, each minute and at hints that messages wait; judges rules. Takes in no reading.
//!
//! Messages are sent first, because that needs only the table and the receivers: a judgement that fails delays no
//! message.

mod carrier;
mod event;
mod minute;
mod names;
mod paged;
mod ports;
mod post;
mod read_about;
mod round;
mod run;
mod running;
mod send;
mod sent;
mod settings;
mod sns;
mod storm;
#[cfg(test)]
mod tests;
mod waiting;

use runtime::clock::Clock;
use runtime::telemetry::Telemetry;

pub use carrier::{Carrier, NoEmail, NotCarried, PublishEmail, Publishing};
pub use event::Event;
pub use ports::Store;
pub use runtime::queue::Failure;
pub use settings::Settings;
pub use sns::Sns;

use chrono::TimeDelta;
use domain::ChannelId;
use judging::{Judging, RequestThrottle};
use paged::ReadPositions;
use storm::BegunStorms;
use table::{BoundedMemory, MessageKey, Recheck, Remembered, StoredAlertState, WaitingMessage};

/// How long a delivered message is remembered that the table could not delete.
const UNDELETED_AGE: TimeDelta = TimeDelta::days(1);
/// The largest number of delivered messages that are remembered. With more, all are forgotten and sent once more.
const MAX_UNDELETED: usize = 10_000;

/// The function.
#[derive(Debug)]
pub struct Alerting<S, C> {
    store: S,
    carrier: Carrier,
    clock: C,
    telemetry: Telemetry,
    settings: Settings,
    judging: Judging,
    /// The last note of this process that the system runs.
    running: Remembered<()>,
    /// The last heartbeat of this process.
    heartbeat: Remembered<()>,
    due: ReadPositions<StoredAlertState>,
    rechecks: ReadPositions<Recheck>,
    /// Limits the request that removes a recheck or notes its last judged device.
    recheck_note_throttle: RequestThrottle,
    waiting_positions: ReadPositions<WaitingMessage>,
    begun_storms: BegunStorms,
    /// Delivered messages that the table could not delete. A later round deletes them and sends none again.
    undeleted: BoundedMemory<(ChannelId, MessageKey), ()>,
}

impl<S: Store, C: Clock> Alerting<S, C> {
    /// The function on a table.
    pub fn new(
        store: S,
        carrier: Carrier,
        clock: C,
        telemetry: Telemetry,
        settings: Settings,
    ) -> Self {
        Self {
            store,
            carrier,
            clock,
            telemetry,
            settings,
            judging: Judging::default(),
            running: Remembered::default(),
            heartbeat: Remembered::default(),
            due: ReadPositions::default(),
            rechecks: ReadPositions::default(),
            recheck_note_throttle: RequestThrottle::default(),
            waiting_positions: ReadPositions::default(),
            begun_storms: storm::none_begun(),
            undeleted: BoundedMemory::new(MAX_UNDELETED, UNDELETED_AGE),
        }
    }
}
