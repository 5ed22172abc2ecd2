//! Invokes another function by its name, and waits for the answer or not. Knows no event.

use std::pin::Pin;
use std::time::{Duration, SystemTime};

use aws::{Reply, Service, ServiceCall, ServiceConfig};
use chrono::DateTime;

use crate::clock::{Clock, Deadline};

/// How long an invocation may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The future answer of an invoked function.
pub type Invoking<'a> = Pin<Box<dyn Future<Output = Result<String, NotInvoked>> + Send + 'a>>;

/// Invokes another function, and waits for its answer.
pub trait InvokeFunction: Send + Sync {
    /// Invokes the function with an event in JSON. Returns the answer, also in JSON.
    fn invoke(&self, event: String, deadline: Deadline) -> Invoking<'_>;
}

/// The reason why a function has not answered. Contains no part of the event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotInvoked(pub String);

/// A function of the same stack, by its name.
#[derive(Debug)]
pub struct LambdaFunction<C> {
    /// The service and the path of the function; `None` if there is no such function.
    target: Option<(Service, String)>,
    clock: C,
}

impl<C: Clock> LambdaFunction<C> {
    /// A client that invokes a function by its name; nothing is sent yet.
    pub fn connect(config: &ServiceConfig, name: Option<&str>, clock: C) -> Self {
        Self::connect_within(TIMEOUT, config, name, clock)
    }

    /// Like `connect`, with another time limit for an invocation.
    pub(crate) fn connect_within(
        timeout: Duration,
        config: &ServiceConfig,
        name: Option<&str>,
        clock: C,
    ) -> Self {
        let target = name.map(|name| {
            let path = format!("/2015-03-31/functions/{name}/invocations");
            (Service::connect("lambda", config, timeout), path)
        });
        Self { target, clock }
    }

    /// Whether the function has a name, so that it can be invoked.
    pub(crate) const fn is_there(&self) -> bool {
        self.target.is_some()
    }

    /// Invokes the function with an invocation type of the API:
    /// <https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html>.
    pub(crate) async fn call(
        &self,
        kind: &'static str,
        event: &str,
        deadline: Deadline,
    ) -> Result<Reply, String> {
        let Some((service, path)) = &self.target else {
            return Err("this system does not have the function".to_owned());
        };

        let now = DateTime::from_timestamp_millis(self.clock.now().as_millis()).unwrap_or_default();
        let call = ServiceCall {
            path,
            headers: &[("content-type", "application/json"), ("x-amz-invocation-type", kind)],
            body: event,
            now: SystemTime::from(now),
        };

        let answered = tokio::time::timeout(deadline.remaining(), service.post(call)).await;
        let reply = answered.map_err(|_| "the invocation's time is over".to_owned())?;
        reply.map_err(|error| error.to_string())
    }
}

impl<C: Clock> InvokeFunction for LambdaFunction<C> {
    /// Lambda reports an error of the invoked function with the status 200 and a header.
    fn invoke(&self, event: String, deadline: Deadline) -> Invoking<'_> {
        Box::pin(async move {
            let reply = self.call("RequestResponse", &event, deadline).await.map_err(NotInvoked)?;
            let Reply { status, headers, body } = reply;
            if status != 200 {
                return Err(NotInvoked(format!("Lambda answers {status}")));
            }

            match headers.iter().find(|(name, _)| name == "x-amz-function-error") {
                Some((_, kind)) => {
                    Err(NotInvoked(format!("the function ended in an error ({kind})")))
                }
                None => Ok(body),
            }
        })
    }
}

/// Stands for a missing function: each invocation fails.
#[derive(Debug, Clone, Copy)]
pub struct NoFunction;

impl InvokeFunction for NoFunction {
    fn invoke(&self, _: String, _: Deadline) -> Invoking<'_> {
        Box::pin(async { Err(NotInvoked("this system does not have the function".to_owned())) })
    }
}
