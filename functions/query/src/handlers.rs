//! What the handlers of the endpoints share. Answers nothing.

use std::time::Duration;

use ::series::{Densities, RollupStateCache};
use alerts::Reach;
use chrono::TimeDelta;
use judging::Judging;
use rollups::LateMarking;
use runtime::http::Call;
use runtime::registry::{CachedRegistry, PLACE_AGE_FACTOR};

use crate::readings::newest::NewestReader;
use crate::web::Page;

/// The longest time in which an invocation that stores readings ends, beyond the age of its registry.
const MAX_INVOCATION: TimeDelta = TimeDelta::minutes(1);

/// The state that the handlers share.
#[derive(Debug)]
pub(crate) struct Handlers<C> {
    pub(crate) registry: CachedRegistry<C>,
    pub(crate) known_state: RollupStateCache,
    pub(crate) late: LateMarking,
    /// What is known of how dense the readings of devices are.
    pub(crate) densities: Densities,
    /// The times without anything of a deleted device after which its deletion ends.
    pub(crate) quiet: Quiet,
    pub(crate) page: Page,
    /// How far channels may go.
    pub(crate) reach: Reach,
    /// The topic to which e-mails may be published.
    pub(crate) alert_topic: Option<String>,
    /// Judges a rule as soon as it is saved.
    pub(crate) judging: Judging,
    pub(crate) clock: C,
}

impl<C> Handlers<C> {
    /// What reads the newest values of devices.
    pub(crate) fn newest_reader<'a, S>(&'a self, call: &Call<'a, S>) -> NewestReader<'a, S> {
        NewestReader { session: call.session, known_state: &self.known_state }
    }
}

/// The times without anything of a device after which its deletion ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quiet {
    /// Where memory holds the registry.
    pub(crate) known: TimeDelta,
    /// Where it does not, and ingest remembers for longer that a device is registered.
    pub(crate) remembered: TimeDelta,
}

impl Quiet {
    /// The times where the registry in memory has at most this age.
    pub(crate) fn of(registry_max_age: Duration) -> Self {
        let beyond = |age: Duration| {
            let age = TimeDelta::from_std(age).unwrap_or(TimeDelta::MAX);
            domain::DELETION_QUIET.max(age.checked_add(&MAX_INVOCATION).unwrap_or(age))
        };
        let remembered = registry_max_age.saturating_mul(PLACE_AGE_FACTOR);
        Self { known: beyond(registry_max_age), remembered: beyond(remembered) }
    }
}
