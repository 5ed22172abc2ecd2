//! Sends e-mail by a topic of Amazon SNS. Creates no topic and no subscription: the template does.

use std::time::{Duration, SystemTime};

use alerts::Email;
use aws::{Reply, Service, ServiceCall, ServiceConfig};
use chrono::DateTime;
use runtime::clock::Clock;

use crate::carrier::{NotCarried, PublishEmail, Publishing};

/// The longest time for one request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Amazon SNS.
#[derive(Debug)]
pub struct Sns<C> {
    service: Service,
    clock: C,
}

impl<C: Clock> Sns<C> {
    /// Creates a client. Nothing is sent yet.
    pub fn connect(config: &ServiceConfig, clock: C) -> Self {
        Self { service: Service::connect("sns", config, TIMEOUT), clock }
    }

    /// <https://docs.aws.amazon.com/sns/latest/api/API_Publish.html>
    async fn publish_once(&self, email: &Email) -> Result<(), NotCarried> {
        let body = form_urlencoded::Serializer::new(String::new())
            .append_pair("Action", "Publish")
            .append_pair("Version", "2010-03-31")
            .append_pair("TopicArn", &email.topic_arn)
            .append_pair("Subject", &email.subject)
            .append_pair("Message", &email.text)
            .finish();
        let now = DateTime::from_timestamp_millis(self.clock.now().as_millis()).unwrap_or_default();
        let call = ServiceCall {
            path: "/",
            headers: &[("content-type", "application/x-www-form-urlencoded; charset=utf-8")],
            body: &body,
            now: SystemTime::from(now),
        };

        let reply = self.service.post(call).await.map_err(|error| NotCarried {
            reason: error.to_string(),
            is_lasting: false,
            retry_after: None,
            may_have_arrived: error.may_have_arrived,
        })?;
        if (200..300).contains(&reply.status) { Ok(()) } else { Err(refused(&reply)) }
    }
}

/// The failure of a request that SNS refused. Its reason has only the error's code, because the error's text names the
/// topic.
///
/// <https://docs.aws.amazon.com/sns/latest/api/CommonErrors.html>
fn refused(Reply { status, body, .. }: &Reply) -> NotCarried {
    let code = body.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    let code = code.map_or("no code", |(code, _)| code);
    let is_throttled = code.contains("Throttl");
    NotCarried {
        reason: format!("Amazon SNS answers {status}: {}", domain::excerpt(code)),
        is_lasting: (400..500).contains(status) && !is_throttled,
        retry_after: None,
        may_have_arrived: *status >= 500,
    }
}

impl<C: Clock> PublishEmail for Sns<C> {
    fn publish<'a>(&'a self, email: &'a Email) -> Publishing<'a> {
        Box::pin(self.publish_once(email))
    }
}
