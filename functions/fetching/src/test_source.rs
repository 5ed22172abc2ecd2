//! The test of a source by a person: makes the real requests, and ingest reads the answers. Stores nothing.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use domain::{DeviceId, Timestamp};
use polling::{DirectoryListing, PolledSource, Question, SourceStatus, TimeWindow};
use runtime::clock::{Clock, Deadline};
use runtime::telemetry::WideEvent;
use serde_json::Value;
use table::{Session, StoreResult, StoredSource};

use crate::ask::{Answered, Errand};
use crate::deliver::Delivering;
use crate::event::SourceTest;
use crate::reply::TestReply;
use crate::{Fetching, Store};

/// The maximum number of listed devices whose states a test requests.
const MAX_STATES: usize = 2;
/// The maximum number of numbers that are shown of an answer.
const MAX_NUMBERS: usize = 200;

impl<S: Store, C: Clock> Fetching<S, C> {
    /// Tries a source.
    pub(crate) async fn test(
        &self,
        session: Session<'_, S>,
        test: SourceTest,
        log: &mut WideEvent,
    ) -> StoreResult<TestReply> {
        log.set("fetching.test", test.id.as_str());
        let source = match PolledSource::read(test.settings, self.outside.reach) {
            Ok(source) => source,
            Err(why) => return Ok(TestReply::error(why.to_string())),
        };
        let stored = session.sources().await?.found.into_iter().find(|stored| stored.id == test.id);

        let are_given = test.secrets.is_some();
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

        let questions = source.questions(&SourceStatus::default(), session.now);
        let of_devices = if source.kind.directory.is_some() { MAX_STATES } else { 0 };
        let requests = u32::try_from(questions.len() + of_devices).unwrap_or(u32::MAX);
        let counted = match &stored {
            Some(stored) => count(session, stored, &source, requests).await?,
            None => self.count_unsaved(&source, requests, session.now),
        };
        if let Err(why) = counted {
            return Ok(TestReply::error(why));
        }
        let status = stored.map(|stored| stored.status).unwrap_or_default();

        let at = session.now;
        let moment = TimeWindow::moment(at);
        let run = format!("test-{}", at.as_millis());
        let deadline = Deadline::after(session.invocation.remaining());
        let errand = Errand {
            to: Delivering { id: &test.id, source: &source, run, at, is_dry: true, deadline },
            secrets: &secrets,
            // A status without earlier answers, so that everything is shown. Of the stored status, only the maker's
            // clock matters.
            status: &status.of_question(String::new()),
            window: source.history().map_or(moment, |history| history.at(None, None, at)),
        };
        let mut reply = TestReply::default();
        let tried = Box::pin(self.try_all(&errand, &questions, &mut reply)).await;
        if !are_given && !source.needed_secrets().is_empty() {
            // The answer may repeat a number that is a stored secret. The person who tries the source need not know
            // this secret.
            reply.numbers.clear();
        }
        Ok(TestReply { error: tried.err(), ..reply })
    }

    /// Counts requests towards the budget of all unsaved sources of this kind; fails beyond it. Only this process has
    /// the count: an account is not known before it is saved.
    fn count_unsaved(
        &self,
        source: &PolledSource,
        requests: u32,
        now: Timestamp,
    ) -> Result<(), String> {
        let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        let spent = tried.entry(source.kind.name).or_default();
        *spent = spent
            .with(requests, source.budget(), now)
            .map_err(|until| asked_until(source, until))?;
        Ok(())
    }

    /// Makes the requests of a source. The error says in words why the source cannot be read.
    async fn try_all(
        &self,
        errand: &Errand<'_>,
        questions: &[Question],
        reply: &mut TestReply,
    ) -> Result<(), String> {
        for question in questions {
            let listed = self.try_one(errand, question, reply).await?;
            let Some(listed) = listed else { continue };

            for device in &listed.devices {
                let Ok(id) = device.id.parse::<DeviceId>() else { continue };
                reply.names.insert(id.clone(), device.name.clone());
                reply.delivered.devices.insert(id);
            }
            for question in listed.questions().iter().take(MAX_STATES) {
                self.try_one(errand, question, reply).await?;
            }
        }
        Ok(())
    }

    /// Makes one request, and lets ingest read the answer. If the request was for the list of devices, returns this
    /// list.
    async fn try_one(
        &self,
        errand: &Errand<'_>,
        question: &Question,
        reply: &mut TestReply,
    ) -> Result<Option<DirectoryListing>, String> {
        let Answered { sent, answer, listed, delivered, limited, failing, .. } =
            self.ask(errand, question).await;
        reply.requests.extend(sent);
        let limited = limited.map(|(_, why)| why);
        if let Some(why) = limited.or(failing.map(|(why, _)| why)) {
            return Err(why);
        }

        if errand.to.source.kind.is_json() {
            let answer = answer.iter();
            answer.for_each(|answer| numbers(answer, "", &mut reply.numbers));
        }
        reply.delivered.add(delivered);
        Ok(listed)
    }
}

/// Adds the requests of a test to the count of its source. The inner error says in words why the test has to wait.
async fn count(
    session: Session<'_, impl Store>,
    stored: &StoredSource,
    source: &PolledSource,
    requests: u32,
) -> StoreResult<Result<(), String>> {
    if let Err(why) = stored.ensure_same_kind(source) {
        return Ok(Err(why.to_string()));
    }
    if let Some(until) = stored.pause_of(source, session.now) {
        let title = source.kind.title;
        return Ok(Err(format!("{title} takes no more requests now; try again after {until}")));
    }

    let now = stored.status.maker_now(session.now);
    let spent = match stored.spent.with(requests, source.budget(), now) {
        Ok(spent) => spent,
        Err(until) => return Ok(Err(asked_until(source, until))),
    };
    let begun = session.begin_source_run(stored, spent, None).await?;
    let why = "the source is asked, tested or changed at this moment; try again in a few seconds";
    Ok(begun.map(drop).ok_or_else(|| why.to_owned()))
}

/// Says that the requests of a period are used up.
fn asked_until(source: &PolledSource, until: Timestamp) -> String {
    format!("{} was asked as often as it may be; try again after {until}", source.kind.title)
}

/// Collects the numbers of an answer by their pointers.
fn numbers(value: &Value, pointer: &str, found: &mut BTreeMap<String, Value>) {
    if found.len() >= MAX_NUMBERS {
        return;
    }

    let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Number(_) => {
            found.insert(pointer.to_owned(), value.clone());
        }
        Value::String(text) if text.trim().parse::<f64>().is_ok() => {
            found.insert(pointer.to_owned(), value.clone());
        }
        Value::Array(elements) => {
            for (position, element) in elements.iter().enumerate() {
                numbers(element, &format!("{pointer}/{position}"), found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                numbers(member, &format!("{pointer}/{}", escaped(name)), found);
            }
        }
        _ => {}
    }
}
