//! Answers lists, ranges, latest values, series and energy; edits the registry, annotations and alerts; makes tokens;
//! serves the web page. Stores no reading.
//!
//! A call comes here with its token and its parameters checked. Each handler takes the ports that it uses:
//! `lists`, `homes`, `latest`, `ranges`, `series`, `influxql`, `edit`, `remove` and
//! `deletion` are one file per kind of question; `mcp` asks the others.

mod alerts;
mod annotations;
mod answer;
mod body;
mod conditions_schema;
mod failure;
mod health;
mod influxql;
mod mcp;
mod openapi;
mod ports;
mod readings;
mod registry;
mod series;
#[cfg(test)]
mod tests;
mod tokens;
mod web;

use std::pin::Pin;
use std::time::Duration;

use ::alerts::Reach;
use api::endpoints::{Function, Operation};
use api::{FrameAncestors, Problem, Response};
use aws_lambda_events::event::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use rollups::{Following, LateMarking, MARKED_AHEAD};
use runtime::auth::Auth;
use runtime::clock::{Clock, Deadline};
use runtime::config::{Config, MaxUnits};
use runtime::http::{Call, Handler, HttpFunction};
use runtime::registry::CachedRegistry;
use runtime::telemetry::Telemetry;

use crate::series::About;
use ::series::{Densities, KnownState};
use judging::Judging;
use registry::deletion::Quiet;

pub use ports::Store;

use crate::alerts::{acknowledge, channels, history, pause, preview, rules};
use readings::newest::Rollups;
use readings::{latest, ranges, remove};
use registry::{deletion, edit, homes, lists, search, stays};

/// The settings of the function.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The age at which the cached registry is read again.
    pub registry_max_age: Duration,
    /// Who needs an access token.
    pub auth: Auth,
    /// The origin at which readings are stored, where it is another one than the page's.
    pub ingest_url: Option<String>,
    /// The origins whose pages may show the web page in a frame.
    pub frame_ancestors: FrameAncestors,
    /// How soon rollups follow.
    pub following: Following,
    /// The table's largest numbers of units a second; none where nothing bounds them.
    pub max_units: Option<MaxUnits>,
    /// How far the channels of alerts may go.
    pub reach: Reach,
    /// The topic of Amazon SNS to which e-mails of alerts may be published.
    pub alert_topic: Option<String>,
}

impl Default for Settings {
    /// The settings of a deployed function whose environment says nothing else.
    fn default() -> Self {
        let registry_max_age = Duration::from_secs(60);
        let (auth, following) = (Auth::On, Following::default());
        let (frame_ancestors, reach) = (FrameAncestors::default(), Reach::Public);
        Self {
            registry_max_age,
            auth,
            ingest_url: None,
            frame_ancestors,
            following,
            max_units: None,
            reach,
            alert_topic: None,
        }
    }
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        Self {
            registry_max_age: config.registry_max_age,
            auth: config.auth,
            ingest_url: config.ingest_url.clone(),
            frame_ancestors: config.frame_ancestors.clone(),
            following: Following::gathering_for(config.rollup_window),
            max_units: Some(config.max_units),
            reach: Reach::Public,
            alert_topic: config.alert_topic.clone(),
        }
    }
}

/// The function.
#[derive(Debug)]
pub struct Query<S, C> {
    http: HttpFunction<C>,
    handlers: Handlers<S, C>,
    telemetry: Telemetry,
}

/// The state that the handlers share.
#[derive(Debug)]
struct Handlers<S, C> {
    store: S,
    registry: CachedRegistry<C>,
    known_state: KnownState,
    late: LateMarking,
    /// What is known of how dense the readings of devices are.
    densities: Densities,
    /// The times without anything of a deleted device after which its deletion ends.
    quiet: Quiet,
    page: web::Page,
    /// How far channels may go.
    reach: Reach,
    /// The topic to which e-mails may be published.
    alert_topic: Option<String>,
    /// Judges a rule as soon as it is saved.
    judging: Judging,
    clock: C,
}

impl<S: Store, C: Clock> Query<S, C> {
    /// The function on a table.
    #[must_use]
    pub fn new(store: S, clock: C, telemetry: Telemetry, settings: Settings) -> Self {
        let Settings {
            registry_max_age,
            auth,
            ingest_url,
            frame_ancestors,
            following,
            max_units,
            reach,
            alert_topic,
        } = settings;
        let registry = CachedRegistry::new(registry_max_age, clock.clone());
        let known_state = KnownState::new(following);
        let late = LateMarking::new(MARKED_AHEAD);
        let http = HttpFunction::new(Function::Query, auth, clock.clone(), telemetry.clone())
            .with_max_units(max_units);
        let densities = Densities::default();
        let quiet = Quiet::of(registry_max_age);
        let page = web::Page::new(ingest_url.as_deref(), &frame_ancestors);
        let judging = Judging::new();
        let handlers = Handlers {
            store,
            registry,
            known_state,
            late,
            densities,
            quiet,
            page,
            reach,
            alert_topic,
            judging,
            clock,
        };
        Self { http, handlers, telemetry }
    }

    /// Reads the registry, at cold start. Where that fails the first request tries again. An index of attributes
    /// that lacks nothing yet is noted to be complete.
    pub async fn load(&self) {
        let Handlers { store, registry, clock, .. } = &self.handlers;
        registry.load(store, "query.load", &self.telemetry).await;
        Box::pin(search::mark_indexed(registry, store, clock, &self.telemetry)).await;
    }

    /// Answers a request. There is always an answer, also where the code panics.
    pub async fn handle(
        &self,
        event: ApiGatewayV2httpRequest,
        deadline: Deadline,
    ) -> ApiGatewayV2httpResponse {
        self.http.handle(event, deadline, &self.handlers.store, &self.handlers).await
    }
}

impl<S: Store, C: Clock> Handler for Handlers<S, C> {
    async fn answer(&self, mut call: Call<'_>) -> Result<Response, Problem> {
        mcp::Api::answer(self, &mut call).await
    }
}

impl<S: Store, C: Clock> mcp::Api for Handlers<S, C> {
    #[expect(clippy::too_many_lines, reason = "one arm for each operation, and nothing else")]
    fn answer<'a>(&'a self, call: &'a mut Call<'_>) -> Answer<'a> {
        let Self {
            store,
            registry,
            known_state,
            late,
            densities,
            quiet,
            page,
            reach,
            alert_topic,
            judging,
            clock,
        } = self;
        let (known, asked) = ((registry, known_state), (registry, known_state, densities));
        let newest = (store, Rollups { known_state, now: clock.now() });
        // On the heap: a debug build would keep the futures of all arms on the stack at once.
        match call.endpoint.operation {
            Operation::ListDevices => Box::pin(lists::devices(registry, newest, clock.now(), call)),
            Operation::ShowDevice => Box::pin(lists::device(registry, store, call)),
            Operation::EditDevice => Box::pin(edit::device(known, store, clock.now(), call)),
            Operation::DeviceReadings => {
                Box::pin(ranges::of_device(registry, store, clock.now(), call))
            }
            Operation::DeviceStays => {
                Box::pin(stays::of_device(registry, store, clock.now(), call))
            }
            Operation::RoomStays => Box::pin(stays::in_room(registry, store, clock.now(), call)),
            Operation::DeviceLatest => Box::pin(latest::of_device(registry, newest, call)),
            Operation::DeleteDevice => {
                Box::pin(deletion::device(registry, store, clock, *quiet, call))
            }
            Operation::DeleteRoom => Box::pin(deletion::room(registry, store, call)),
            Operation::DeleteHome => Box::pin(deletion::home(registry, store, call)),
            Operation::ListRooms => Box::pin(lists::rooms(registry, store, call)),
            Operation::ShowRoom => Box::pin(lists::room(registry, store, call)),
            Operation::EditRoom => Box::pin(edit::room(registry, store, call)),
            Operation::RoomDevices => Box::pin(lists::devices_of_room(registry, newest, call)),
            Operation::RoomReadings => Box::pin(ranges::of_room(known, store, clock.now(), call)),
            Operation::ListHomes => Box::pin(homes::homes(registry, store, call)),
            Operation::ShowHome => Box::pin(homes::home(registry, store, call)),
            Operation::HomeRooms => Box::pin(homes::rooms(registry, store, call)),
            Operation::HomeDevices => Box::pin(lists::devices_of_home(registry, newest, call)),
            Operation::DeleteReadings => {
                Box::pin(remove::readings(registry, (store, late), clock, call))
            }
            Operation::DeviceSeries => {
                Box::pin(series::series(About::Device, asked, store, clock.now(), call))
            }
            Operation::RoomSeries => {
                Box::pin(series::series(About::Room, asked, store, clock.now(), call))
            }
            Operation::HomeSeries => {
                Box::pin(series::series(About::Home, asked, store, clock.now(), call))
            }
            Operation::AllSeries => {
                Box::pin(series::series(About::All, asked, store, clock.now(), call))
            }
            Operation::DeviceEnergy => {
                Box::pin(series::energy(About::Device, asked, store, clock.now(), call))
            }
            Operation::RoomEnergy => {
                Box::pin(series::energy(About::Room, asked, store, clock.now(), call))
            }
            Operation::HomeEnergy => {
                Box::pin(series::energy(About::Home, asked, store, clock.now(), call))
            }
            Operation::AllEnergy => {
                Box::pin(series::energy(About::All, asked, store, clock.now(), call))
            }
            Operation::DeviceEvents => {
                Box::pin(series::device_events(known, store, clock.now(), call))
            }
            Operation::DeviceConditions => {
                Box::pin(series::conditions(About::Device, known, store, clock.now(), call))
            }
            Operation::RoomConditions => {
                Box::pin(series::conditions(About::Room, known, store, clock.now(), call))
            }
            Operation::HomeConditions => {
                Box::pin(series::conditions(About::Home, known, store, clock.now(), call))
            }
            Operation::ShowConditionsSchema => Box::pin(conditions_schema::show(store, call)),
            Operation::PutConditionsSchema => Box::pin(conditions_schema::put(store, call)),
            Operation::ListAnnotations => Box::pin(annotations::list(store, clock.now(), call)),
            Operation::PutAnnotation => Box::pin(annotations::put(registry, store, call)),
            Operation::DeleteAnnotation => Box::pin(annotations::delete(store, call)),
            Operation::IssueToken => Box::pin(tokens::issue(store, clock.now(), call)),
            Operation::ListAlerts => Box::pin(rules::list(store, call)),
            Operation::ShowAlert => Box::pin(rules::show(judging, store, clock.now(), call)),
            Operation::PutAlert => {
                Box::pin(rules::put(registry, judging, store, clock.now(), call))
            }
            Operation::DeleteAlert => Box::pin(rules::delete(store, call)),
            Operation::AlertHistory => Box::pin(history::history(known, store, clock.now(), call)),
            Operation::PauseAlert => Box::pin(pause::pause(judging, store, clock.now(), call)),
            Operation::AcknowledgeAlert => {
                Box::pin(acknowledge::by_token(store, clock.now(), call))
            }
            Operation::AcknowledgeByLink => {
                Box::pin(acknowledge::by_link(store, clock.now(), call))
            }
            Operation::PreviewAlert => {
                Box::pin(preview::preview((judging, known_state), store, clock.now(), call))
            }
            Operation::ListChannels => Box::pin(channels::list(store, call)),
            Operation::ShowChannel => Box::pin(channels::show(store, call)),
            Operation::PutChannel => {
                Box::pin(channels::put(*reach, alert_topic.as_deref(), store, clock.now(), call))
            }
            Operation::DeleteChannel => Box::pin(channels::delete(store, call)),
            Operation::TestChannel => Box::pin(channels::test(store, clock.now(), call)),
            Operation::InfluxQl => Box::pin(influxql::query(asked, store, clock.now(), call)),
            Operation::Health => Box::pin(health::health(known_state, store, clock.now(), call)),
            Operation::Mcp => Box::pin(mcp::answer(self, (known_state, store), clock.now(), call)),
            Operation::OpenApi => done(Ok(Response::json(200, &openapi::document()))),
            Operation::InfluxPing => done(Ok(influxdb::ping(call.request))),
            Operation::InfluxReady => done(Ok(influxdb::ready(clock.now()))),
            Operation::InfluxBuckets => done(Ok(influxdb::buckets(call.request))),
            Operation::InfluxOrgs => done(Ok(influxdb::orgs(call.request))),
            Operation::InfluxFlux => done(Ok(influxdb::flux())),
            Operation::WebPage => done(Ok(page.answer(call.request))),
            Operation::WebFile => done(web::asset(call.request, &call.id)),
            Operation::PostReadings | Operation::WriteLines | Operation::Payload(_) => {
                unreachable!("the table of endpoints gives it to ingest")
            }
        }
    }
}

/// A handler at work.
type Answer<'a> = Pin<Box<dyn Future<Output = Result<Response, Problem>> + Send + 'a>>;

/// The answer of a handler that waits for nothing.
fn done(answer: Result<Response, Problem>) -> Answer<'static> {
    Box::pin(std::future::ready(answer))
}
