//! The state that the handlers of the endpoints share. Answers nothing.

use std::fmt;
use std::sync::Arc;

use ::series::{Densities, RollupStateCache};
use judging::Judging;
use outgoing::Reach;
use rollups::{LateMarking, MARKED_AHEAD};
use runtime::clock::{Clock, SharedClock};
use runtime::invoke::{InvokeFunction, NoFunction};
use runtime::registry::CachedRegistry;

use crate::settings::Settings;
use crate::web::WebPage;

/// A permitted request with parsed parameters, and all that its handler needs.
pub(crate) type Call<'a, S> = runtime::http::Call<'a, S, SharedState>;

/// The state that the handlers share.
#[derive(Debug)]
pub(crate) struct SharedState {
    pub(crate) registry: CachedRegistry<SharedClock>,
    pub(crate) rollup_state: RollupStateCache,
    pub(crate) late: LateMarking,
    /// The known densities of the devices' readings.
    pub(crate) densities: Densities,
    pub(crate) page: WebPage,
    /// The addresses to which alert channels may connect.
    pub(crate) reach: Reach,
    /// The topic of Amazon SNS to which e-mails of alerts may be published.
    pub(crate) alert_topic: Option<String>,
    /// Judges a rule as soon as it is saved.
    pub(crate) judging: Judging,
    /// Asks a source once, for a person who tests its settings.
    pub(crate) fetching: FetchingFunction,
    pub(crate) clock: SharedClock,
}

/// The `fetching` function, which asks a source once as a test.
#[derive(Clone)]
pub(crate) struct FetchingFunction(pub(crate) Arc<dyn InvokeFunction>);

impl fmt::Debug for FetchingFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FetchingFunction")
    }
}

impl SharedState {
    pub(crate) fn new(clock: impl Clock, settings: Settings) -> Self {
        let clock = SharedClock::of(clock);
        Self {
            registry: CachedRegistry::new(settings.registry_max_age, clock.clone()),
            rollup_state: RollupStateCache::new(settings.rollup_delay),
            late: LateMarking::new(MARKED_AHEAD),
            densities: Densities::default(),
            page: WebPage::new(&settings),
            reach: settings.reach,
            alert_topic: settings.alert_topic,
            judging: Judging::default(),
            fetching: FetchingFunction(Arc::new(NoFunction)),
            clock,
        }
    }
}
