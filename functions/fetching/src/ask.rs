//! Makes one request to a maker, interprets the answer, and delivers it to ingest. Stores nothing itself.

use std::sync::Arc;

use domain::Timestamp;
use outgoing::{Fetched, Request};
use polling::{
    AnswerOutcome, AskContext, DirectoryListing, FailurePause, Question, ReadAnswer, SecretTexts,
    SourceStatus, TimeWindow,
};
use runtime::clock::{Clock, Stopwatch};
use serde_json::Value;

use crate::deliver::Delivering;
use crate::reply::{Delivered, TriedRequest};
use crate::{Fetching, Store};

/// The context that all questions of a run or a test share.
pub(crate) struct Errand<'a> {
    pub(crate) to: Delivering<'a>,
    pub(crate) secrets: &'a SecretTexts,
    /// The source's status, with the digests of earlier answers.
    pub(crate) status: &'a SourceStatus,
    pub(crate) window: TimeWindow,
}

/// The result of a question.
#[derive(Debug, Default)]
pub(crate) struct Answered {
    pub(crate) sent: Option<TriedRequest>,
    /// The answer, if it can be read.
    pub(crate) answer: Option<Value>,
    /// The list of devices, if the question was for the list.
    pub(crate) listed: Option<DirectoryListing>,
    /// The reply of ingest.
    pub(crate) delivered: Delivered,
    /// The key and the digest of each portion of the answer that ingest has stored. An equal timed portion is not sent
    /// again.
    pub(crate) stored: Vec<(String, String)>,
    pub(crate) limited: Option<(Timestamp, String)>,
    pub(crate) failing: Option<(String, FailurePause)>,
    pub(crate) reserved_until: Option<Timestamp>,
    /// The maker's clock minus the clock here, in milliseconds.
    pub(crate) clock_ahead: Option<i64>,
}

impl<S: Store, C: Clock> Fetching<S, C> {
    /// Makes one request to a maker, and delivers the answer to ingest, without timed parts that ingest has stored
    /// already.
    pub(crate) async fn ask(&self, errand: &Errand<'_>, question: &Question) -> Answered {
        let Delivering { id, source, run, .. } = &errand.to;
        let Question { position, device } = question;
        let device = device.as_ref().map_or("", |device| &device.id);
        let context = AskContext {
            secrets: errand.secrets,
            window: errand.window,
            maker_now: errand.status.maker_now(self.clock.now()),
            nonce: format!("{id}-{run}-{position}{device}"),
            reach: self.outside.reach,
        };
        let request = match source.request(question, &context) {
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
        let now = self.clock.now();
        let answered = self.understand(errand, question, &fetched, now).await;
        Answered {
            sent: Some(sent),
            reserved_until: source.reserved_until(&fetched, now),
            clock_ahead: fetched.date().map(|date| date.since(now).num_milliseconds()),
            ..answered
        }
    }

    /// Sends a request. The client blocks, so it runs in a thread of its own.
    async fn fetch(&self, request: Request) -> Result<Fetched, (String, FailurePause)> {
        let (http, maker) = (Arc::clone(&self.outside.http), request.maker());
        let fetched = tokio::task::spawn_blocking(move || http.fetch(&request)).await;
        match fetched {
            Ok(Ok(fetched)) => Ok(fetched),
            Ok(Err(error)) => {
                let pause = match error.verdict() {
                    outgoing::AnswerVerdict::Failing { .. } => FailurePause::Mend,
                    _ if error.cause == sending::Cause::TooLarge => FailurePause::Mend,
                    _ => FailurePause::Transient,
                };
                Err((format!("{maker}: {}", error.cause), pause))
            }
            Err(_) => Err(("the code of the client panicked".to_owned(), FailurePause::Transient)),
        }
    }

    async fn understand(
        &self,
        errand: &Errand<'_>,
        question: &Question,
        fetched: &Fetched,
        now: Timestamp,
    ) -> Answered {
        let Delivering { id, source, at, .. } = errand.to;
        let answer = match source.outcome(fetched, errand.secrets, now) {
            AnswerOutcome::Nothing => return Answered::default(),
            AnswerOutcome::Limited { until, why } => {
                return Answered { limited: Some((until, why)), ..Answered::default() };
            }
            AnswerOutcome::Failing { why, pause } => return Answered::failing(why, pause),
            AnswerOutcome::Read(answer) => answer,
        };

        // A list of devices has no readings.
        let listed = source.listed(question, &answer, at);
        if listed.is_some() {
            return Answered { listed, ..Answered::default() };
        }

        match source.read_answer(id, question, &answer, now) {
            Ok(read) => {
                let delivered = self.deliver_new(errand, read).await;
                Answered { answer: Some(answer), ..delivered }
            }
            Err(why) => Answered::failing(why, FailurePause::Mend),
        }
    }

    /// Delivers portions. A timed portion that equals the last stored portion of its key is left out.
    async fn deliver_new(&self, errand: &Errand<'_>, read: ReadAnswer) -> Answered {
        let mut answered = Answered::default();
        answered.delivered.rejected = read.refused;

        for portion in read.portions {
            let digest = portion.digest();
            if portion.is_timed && errand.status.has_seen(&portion.key, &digest) {
                continue;
            }
            match self.deliver(&portion, &errand.to).await {
                Ok(delivered) => {
                    answered.delivered.add(delivered);
                    answered.stored.push((portion.key, digest));
                }
                Err(why) => {
                    answered.failing.get_or_insert((why, FailurePause::Transient));
                }
            }
        }

        answered
    }
}

impl Answered {
    fn failing(why: String, pause: FailurePause) -> Self {
        Self { failing: Some((why, pause)), ..Self::default() }
    }

    /// Whether the maker answered without an error or a limit, and ingest has stored the readings.
    pub(crate) const fn is_good(&self) -> bool {
        self.limited.is_none() && self.failing.is_none()
    }
}
