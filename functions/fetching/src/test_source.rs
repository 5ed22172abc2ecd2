//! A person tries a source: the real requests, and ingest's own reading of the answers. Stores nothing.

use std::collections::BTreeMap;

use domain::{DeviceId, PolledSourceId, Timestamp};
use polling::{AskContext, PolledSource, SecretTexts, TimeWindow};
use runtime::clock::{Clock, Deadline};
use runtime::telemetry::WideEvent;
use serde_json::Value;
use table::{Session, StoreResult, StoredSource};

use crate::ask::Question;
use crate::deliver::Delivering;
use crate::event::SourceTest;
use crate::reply::TestReply;
use crate::{Fetching, Store};

/// The most devices of a directory whose states are asked for.
const MAX_STATES: usize = 2;
/// The most numbers of an answer that are shown.
const MAX_NUMBERS: usize = 200;
/// How often a test counts its requests again, where a run is faster.
const ATTEMPTS: usize = 3;

impl<S: Store, C: Clock> Fetching<S, C> {
    /// Tries a source.
    pub(crate) async fn test(
        &self,
        session: Session<'_, S>,
        test: SourceTest,
        log: &mut WideEvent,
    ) -> StoreResult<TestReply> {
        log.set("fetching.test", test.id.as_str());
        let source = match PolledSource::read(test.settings, self.reach()) {
            Ok(source) => source,
            Err(why) => return Ok(TestReply::error(why.to_string())),
        };
        let stored = self.stored(session, &test.id).await?;

        let secrets = match test.secrets {
            Some(secrets) => secrets,
            None => {
                let stored = session.source_secrets(&test.id).await?;
                stored.map(|stored| stored.of(&source)).unwrap_or_default()
            }
        };
        if let Err(why) = source.check_secrets(&secrets) {
            return Ok(TestReply::error(why.to_string()));
        }

        let requests = if source.kind.directory.is_some() { 1 + MAX_STATES } else { 2 };
        if let Some(stored) = stored
            && let Err(why) = self.count(session, stored, &source, requests).await?
        {
            return Ok(TestReply::error(why));
        }

        let at = session.now;
        let moment = TimeWindow::moment(at);
        let trial = Trial {
            id: &test.id,
            source: &source,
            secrets: &secrets,
            window: source.history().map_or(moment, |history| history.at(None, None, at)),
            at,
            deadline: Deadline::after(session.invocation.remaining()),
            reply: TestReply::default(),
        };
        Ok(Box::pin(self.try_source(trial)).await)
    }

    async fn stored(
        &self,
        session: Session<'_, S>,
        id: &PolledSourceId,
    ) -> StoreResult<Option<StoredSource>> {
        let listing = session.sources().await?;
        Ok(listing.found.into_iter().find(|stored| stored.id == *id))
    }

    /// Counts the requests of a test among those of its source; the error says that there are too many.
    async fn count(
        &self,
        session: Session<'_, S>,
        mut stored: StoredSource,
        source: &PolledSource,
        requests: usize,
    ) -> StoreResult<Result<(), String>> {
        for _ in 0..ATTEMPTS {
            let now = stored.status.maker_now(session.now);
            let requests = u32::try_from(requests).unwrap_or(u32::MAX);
            let spent = match stored.spent.with(requests, source.budget(), now) {
                Ok(spent) => spent,
                Err(until) => {
                    let title = source.kind.title;
                    let why =
                        format!("{title} was asked as often as it may be; try again after {until}");
                    return Ok(Err(why));
                }
            };

            if session.begin_source_run(&stored, spent, None).await?.is_some() {
                return Ok(Ok(()));
            }
            match self.stored(session, &stored.id).await? {
                Some(now) => stored = now,
                None => return Ok(Ok(())),
            }
        }
        Ok(Err("the source is asked just now; try again in a minute".to_owned()))
    }

    async fn try_source(&self, mut trial: Trial<'_>) -> TestReply {
        let tried = self.try_all(&mut trial).await;
        TestReply { error: tried.err(), ..trial.reply }
    }

    /// Makes the requests of a source; the error says in words why it cannot be read.
    async fn try_all(&self, trial: &mut Trial<'_>) -> Result<(), String> {
        let askings = trial.source.askings();
        if trial.source.kind.directory.is_none() {
            for (position, asking) in askings.iter().enumerate() {
                self.try_one(Question { position, asking, device: None }, trial).await?;
            }
            return Ok(());
        }

        let [list, state, ..] = &askings[..] else { return Ok(()) };
        let question = Question { position: 0, asking: list, device: None };
        let answer = self.try_one(question, trial).await?;
        let listed = answer.and_then(|answer| trial.source.listed(&answer, trial.at));
        let devices = listed.map_or_else(Vec::new, |listed| listed.devices);
        for device in &devices {
            let Ok(id) = device.id.parse::<DeviceId>() else { continue };
            trial.reply.names.insert(id.clone(), device.name.clone());
            trial.reply.devices.insert(id);
        }
        for device in devices.iter().take(MAX_STATES) {
            let question = Question { position: 1, asking: state, device: Some(device) };
            self.try_one(question, trial).await?;
        }
        Ok(())
    }

    /// Makes one request, and has ingest read its answer. Returns the answer.
    async fn try_one(
        &self,
        question: Question<'_>,
        trial: &mut Trial<'_>,
    ) -> Result<Option<Value>, String> {
        let Trial { id, source, secrets, window, at, deadline, reply } = trial;
        let number = reply.requests.len();
        let context = AskContext {
            secrets,
            window: *window,
            maker_now: self.clock.now(),
            nonce: format!("{id}-test-{}-{number}", at.as_millis()),
            reach: self.reach(),
        };
        let asked = self.ask(id, source, question, &context).await;
        reply.requests.extend(asked.sent);
        let limited = asked.limited.map(|(_, why)| why);
        if let Some(why) = limited.or(asked.failing.map(|(why, _)| why)) {
            return Err(why);
        }

        if source.kind.name == "json" {
            let answer = asked.answer.iter();
            answer.for_each(|answer| numbers(answer, "", &mut reply.numbers));
        }
        reply.rejected.extend(asked.read.refused.into_iter().map(Value::String));
        let delivering =
            Delivering { id, source, run: 0, at: *at, is_dry: true, deadline: *deadline };
        for portion in asked.read.portions {
            let delivered = self.deliver(&portion, &delivering).await?;
            reply.devices.extend(delivered.devices);
            reply.readings.extend(delivered.readings);
            reply.rejected.extend(delivered.rejected);
            reply.ignored.extend(delivered.ignored);
        }
        Ok(asked.answer)
    }
}

/// A test under way.
struct Trial<'a> {
    id: &'a PolledSourceId,
    source: &'a PolledSource,
    secrets: &'a SecretTexts,
    window: TimeWindow,
    at: Timestamp,
    deadline: Deadline,
    reply: TestReply,
}

/// The numbers of an answer by their pointers.
fn numbers(value: &Value, place: &str, found: &mut BTreeMap<String, Value>) {
    if found.len() >= MAX_NUMBERS {
        return;
    }

    let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Number(_) => {
            found.insert(place.to_owned(), value.clone());
        }
        Value::String(text) if text.trim().parse::<f64>().is_ok() => {
            found.insert(place.to_owned(), value.clone());
        }
        Value::Array(elements) => {
            for (position, element) in elements.iter().enumerate() {
                numbers(element, &format!("{place}/{position}"), found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                numbers(member, &format!("{place}/{}", escaped(name)), found);
            }
        }
        _ => {}
    }
}
