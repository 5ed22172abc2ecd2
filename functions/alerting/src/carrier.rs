//! Delivers a request or an e-mail to a service elsewhere, and returns the result. Builds and chooses no message.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use alerts::{Email, Outgoing};
use chrono::TimeDelta;
use outgoing::{AnswerVerdict, Request};
use runtime::clock::Clock;
use sending::SendRequest;

/// The future result of publishing an e-mail.
pub type Publishing<'a> = Pin<Box<dyn Future<Output = Result<(), NotCarried>> + Send + 'a>>;

/// Publishes e-mails.
pub trait PublishEmail: Send + Sync {
    /// Publishes an e-mail once.
    fn publish<'a>(&'a self, email: &'a Email) -> Publishing<'a>;
}

/// A request or an e-mail that was not delivered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NotCarried {
    /// The reason, in words for people.
    pub reason: String,
    /// Whether a person has to mend something.
    pub is_lasting: bool,
    /// The pause that the receiver asks for.
    pub retry_after: Option<TimeDelta>,
    /// Whether the request may have arrived all the same.
    pub may_have_arrived: bool,
}

impl NotCarried {
    /// A delivery that fails until a person mends something.
    pub(crate) fn lasting(reason: &str) -> Self {
        let reason = reason.to_owned();
        Self { reason, is_lasting: true, retry_after: None, may_have_arrived: false }
    }
}

/// Delivers requests by HTTP, and e-mails.
#[derive(Clone)]
pub struct Carrier {
    http: Arc<dyn SendRequest>,
    email: Arc<dyn PublishEmail>,
}

impl Carrier {
    /// A carrier for both ways of delivery.
    pub fn new(http: impl SendRequest + 'static, email: impl PublishEmail + 'static) -> Self {
        Self { http: Arc::new(http), email: Arc::new(email) }
    }

    /// Delivers a request or an e-mail, in one attempt.
    pub(crate) async fn carry(
        &self,
        outgoing: Outgoing,
        clock: &impl Clock,
    ) -> Result<(), NotCarried> {
        match outgoing {
            Outgoing::Http(request) => self.send(request, clock).await,
            Outgoing::Email(email) => self.email.publish(&email).await,
        }
    }

    /// Sends a request. The client blocks, so it runs in a thread of its own.
    pub(crate) async fn send(
        &self,
        request: Request,
        clock: &impl Clock,
    ) -> Result<(), NotCarried> {
        let http = Arc::clone(&self.http);
        let sent = tokio::task::spawn_blocking(move || (http.send(&request), request)).await;
        let (verdict, reason, may_have_arrived) = match sent {
            Ok((Ok(answer), request)) => {
                (answer.verdict(clock.now()), answer.reason(&request), answer.may_have_arrived())
            }
            Ok((Err(error), _)) => (error.verdict(), error.to_string(), error.may_have_arrived),
            Err(_) => {
                (AnswerVerdict::UNANSWERED, "the code of the client panicked".to_owned(), true)
            }
        };
        let (is_lasting, retry_after) = match verdict {
            AnswerVerdict::Delivered => return Ok(()),
            AnswerVerdict::Later { retry_after } => (false, retry_after),
            AnswerVerdict::Failing { retry_after } => (true, retry_after),
        };
        Err(NotCarried { reason, is_lasting, retry_after, may_have_arrived })
    }
}

impl fmt::Debug for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Carrier")
    }
}

/// Refuses all e-mails, for a system that is not deployed.
#[derive(Debug, Clone, Copy)]
pub struct NoEmail;

impl PublishEmail for NoEmail {
    fn publish<'a>(&'a self, _: &'a Email) -> Publishing<'a> {
        let reason = "e-mail is sent by Amazon SNS, for a deployed server only";
        Box::pin(async { Err(NotCarried::lasting(reason)) })
    }
}
