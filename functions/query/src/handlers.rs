//! The trait and the state that the handlers of the endpoints share. Answers nothing.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use ::series::{Densities, RollupStateCache};
use api::{Problem, Response};
use judging::Judging;
use outgoing::Reach;
use rollups::LateMarking;
use runtime::http::Call;
use runtime::invoke::InvokeFunction;
use runtime::registry::CachedRegistry;

use crate::readings::newest::NewestReader;
use crate::web::WebPage;

/// The operations of the API, each answered by its handler.
pub(crate) trait Operations<S>: Send + Sync {
    /// Answers a call. The future is a boxed type, because a handler may call this method itself.
    fn answer<'a>(
        &'a self,
        call: &'a mut Call<'_, S>,
    ) -> Pin<Box<dyn Future<Output = Result<Response, Problem>> + Send + 'a>>;
}

/// The state that the handlers share.
#[derive(Debug)]
pub(crate) struct Handlers<C> {
    pub(crate) registry: CachedRegistry<C>,
    pub(crate) known_state: RollupStateCache,
    pub(crate) late: LateMarking,
    /// How dense the readings of devices are, as far as known.
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
    pub(crate) clock: C,
}

/// The `fetching` function, which asks a source once as a test.
#[derive(Clone)]
pub(crate) struct FetchingFunction(pub(crate) Arc<dyn InvokeFunction>);

impl fmt::Debug for FetchingFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FetchingFunction")
    }
}

impl<C> Handlers<C> {
    /// The reader of devices' newest values.
    pub(crate) fn newest_reader<'a, S>(&'a self, call: &Call<'a, S>) -> NewestReader<'a, S> {
        NewestReader { session: call.session, known_state: &self.known_state }
    }
}
