//! Another function, invoked by its name: with its answer, or without waiting for it. Knows no event.

use std::pin::Pin;
use std::time::{Duration, SystemTime};

use aws::{Call, Reply, Service, ServiceConfig};
use chrono::DateTime;

use crate::clock::{Clock, Deadline};

/// How long an invocation may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// What becomes of an invocation.
pub type Invoking<'a> = Pin<Box<dyn Future<Output = Result<String, NotInvoked>> + Send + 'a>>;

/// Invokes another function, and waits for its answer.
pub trait InvokeFunction: Send + Sync {
    /// Invokes it with an event of JSON. Returns its answer, which is JSON too.
    fn invoke(&self, event: String, deadline: Deadline) -> Invoking<'_>;
}

/// Why a function has not answered. It repeats nothing of its event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotInvoked(pub String);

/// A function of the same stack, by its name.
#[derive(Debug)]
pub struct LambdaFunction<C> {
    /// The service and the path of the function; `None` where there is no such function.
    target: Option<(Service, String)>,
    clock: C,
}

impl<C: Clock> LambdaFunction<C> {
    /// A client that invokes a function by its name; nothing is sent yet.
    pub fn connect(config: &ServiceConfig, name: Option<&str>, clock: C) -> Self {
        Self::connect_within(TIMEOUT, config, name, clock)
    }

    /// The same with another time for an invocation.
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

    /// Whether there is such a function.
    pub(crate) const fn is_there(&self) -> bool {
        self.target.is_some()
    }

    /// Invokes it in a way that the API names:
    /// <https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html>.
    pub(crate) async fn call(
        &self,
        kind: &'static str,
        event: &str,
        deadline: Deadline,
    ) -> Result<Reply, String> {
        let Some((service, path)) = &self.target else {
            return Err("there is no such function here".to_owned());
        };
        let now = DateTime::from_timestamp_millis(self.clock.now().as_millis()).unwrap_or_default();
        let call = Call {
            path,
            headers: &[("content-type", "application/json"), ("x-amz-invocation-type", kind)],
            body: event,
            now: SystemTime::from(now),
        };
        let asked = tokio::time::timeout(deadline.remaining(), service.post(call)).await;
        let reply = asked.map_err(|_| "the invocation's time is over".to_owned())?;
        reply.map_err(|error| error.to_string())
    }
}

impl<C: Clock> InvokeFunction for LambdaFunction<C> {
    /// An error of the function itself has the status 200 and a header.
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

/// No function: nobody can be asked.
#[derive(Debug, Clone, Copy)]
pub struct NoFunction;

impl InvokeFunction for NoFunction {
    fn invoke(&self, _: String, _: Deadline) -> Invoking<'_> {
        Box::pin(async { Err(NotInvoked("there is no such function here".to_owned())) })
    }
}
