//! One request to a maker, and what its answer means. Stores nothing.

use std::sync::Arc;

use domain::{PolledSourceId, Timestamp};
use outgoing::{Fetched, Request};
use polling::{
    AnswerOutcome, AskContext, Asking, DirectoryDevice, FailurePause, PolledSource, ReadAnswer,
    SecretTexts,
};
use runtime::clock::{Clock, Stopwatch};
use serde_json::Value;

use crate::reply::TriedRequest;
use crate::{Fetching, Store};

/// A request of a source: its place among the requests, and the device that it is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) position: usize,
    pub(crate) asking: &'a Asking,
    pub(crate) device: Option<&'a DirectoryDevice>,
}

/// What came of a question.
#[derive(Debug, Default)]
pub(crate) struct Answered {
    pub(crate) sent: Option<TriedRequest>,
    /// The answer, if it can be read.
    pub(crate) answer: Option<Value>,
    /// What ingest is to take of it.
    pub(crate) read: ReadAnswer,
    pub(crate) limited: Option<(Timestamp, String)>,
    pub(crate) failing: Option<(String, FailurePause)>,
    pub(crate) reserved_until: Option<Timestamp>,
    /// How far the maker's clock is ahead, in milliseconds.
    pub(crate) clock_ahead: Option<i64>,
}

impl<S: Store, C: Clock> Fetching<S, C> {
    /// Asks a maker once.
    pub(crate) async fn ask(
        &self,
        id: &PolledSourceId,
        source: &PolledSource,
        question: Question<'_>,
        context: &AskContext<'_>,
    ) -> Answered {
        let request = match source.request(question.asking, question.device, context) {
            Ok(request) => request,
            Err(why) => return Answered::failing(why, FailurePause::Mend),
        };

        let host = request.uri().host().unwrap_or_default().to_owned();
        let permit = self.permits.acquire().await;
        let watch = Stopwatch::start();
        let fetched = self.fetch(request).await;
        drop(permit);
        let fetched = match fetched {
            Ok(fetched) => fetched,
            Err((why, pause)) => return Answered::failing(why, pause),
        };

        let ms = u64::try_from(watch.elapsed().as_millis()).unwrap_or(u64::MAX);
        let sent = TriedRequest { host, status: fetched.status, ms, bytes: fetched.body.len() };
        Answered {
            sent: Some(sent),
            ..self.understand(id, source, question, &fetched, context.secrets)
        }
    }

    /// Sends a request. The client blocks, so it has a thread of its own.
    async fn fetch(&self, request: Request) -> Result<Fetched, (String, FailurePause)> {
        let http = Arc::clone(&self.outside.http);
        let fetched = tokio::task::spawn_blocking(move || http.fetch(&request)).await;
        match fetched {
            Ok(Ok(fetched)) => Ok(fetched),
            Ok(Err(error)) => {
                let pause = match error.verdict() {
                    outgoing::Verdict::Failing { .. } => FailurePause::Mend,
                    _ if error.cause == sending::Cause::TooLarge => FailurePause::Mend,
                    _ => FailurePause::Transient,
                };
                Err((error.to_string(), pause))
            }
            Err(_) => Err(("the code of the client panicked".to_owned(), FailurePause::Transient)),
        }
    }

    fn understand(
        &self,
        id: &PolledSourceId,
        source: &PolledSource,
        question: Question<'_>,
        fetched: &Fetched,
        secrets: &SecretTexts,
    ) -> Answered {
        let now = self.clock.now();
        let clock_ahead = fetched.date().map(|date| date.since(now).num_milliseconds());
        let reserved_until = source.reserved_until(fetched, now);

        let asked = match source.outcome(fetched, now) {
            AnswerOutcome::Nothing => Answered::default(),
            AnswerOutcome::Limited { until, why } => {
                Answered { limited: Some((until, why)), ..Answered::default() }
            }
            AnswerOutcome::Failing { why, pause } => Answered::failing(why, pause),
            AnswerOutcome::Read(answer) => {
                let answer = secrets.hide_in(answer);
                let Question { position, device, .. } = question;
                // A list of devices has no readings.
                let is_list = source.kind.directory.is_some() && device.is_none();
                let read = if is_list {
                    Ok(ReadAnswer::default())
                } else {
                    source.read_answer(id, position, device, &answer, now)
                };
                match read {
                    Ok(read) => Answered { answer: Some(answer), read, ..Answered::default() },
                    Err(why) => Answered::failing(why.to_string(), FailurePause::Mend),
                }
            }
        };
        Answered { reserved_until, clock_ahead, ..asked }
    }
}

impl Answered {
    fn failing(why: String, pause: FailurePause) -> Self {
        Self { failing: Some((why, pause)), ..Self::default() }
    }
}
