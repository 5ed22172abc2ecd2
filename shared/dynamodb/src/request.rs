//! A request whose body is written here, in the place of the SDK's. Knows no attribute by name.
//!
//! The SDK takes a map of each item and a type of its own of each value in it, only to write their JSON: that was a third
//! of what storing readings took. Everything else of the request stays the SDK's: signing, retries, time limits and the
//! answer.

use std::fmt;
use std::sync::Arc;

use aws_sdk_dynamodb::config::interceptors::BeforeSerializationInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept};
use aws_sdk_dynamodb::error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::Input;
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::ser_de::{SerializeRequest, SharedRequestSerializer};
use aws_smithy_types::body::SdkBody;
use serde::Serialize;

/// Sends a body with a request that has none.
#[derive(Clone)]
pub(super) struct SendBody {
    target: &'static str,
    body: Arc<str>,
}

impl SendBody {
    /// The body of an operation, which is called `target` in a request.
    pub(super) fn new(target: &'static str, body: &impl Serialize) -> Self {
        let body = serde_json::to_string(body).expect("maps of texts, with names that are texts");
        Self { target, body: body.into() }
    }
}

impl fmt::Debug for SendBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendBody").field("target", &self.target).finish_non_exhaustive()
    }
}

#[aws_smithy_runtime_api::client::interceptors::dyn_dispatch_hint]
impl Intercept for SendBody {
    fn name(&self) -> &'static str {
        "SendBody"
    }

    /// Writes the request in the place of the writer that the operation brings.
    fn read_before_execution(
        &self,
        _: &BeforeSerializationInterceptorContextRef<'_>,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        config.interceptor_state().store_put(SharedRequestSerializer::new(self.clone()));
        Ok(())
    }
}

impl SerializeRequest for SendBody {
    /// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.LowLevelAPI.html>
    fn serialize_input(&self, _: Input, _: &mut ConfigBag) -> Result<HttpRequest, BoxError> {
        let mut request = HttpRequest::new(SdkBody::from(&*self.body));
        request.set_method("POST")?;
        request.set_uri("/")?;
        let headers = request.headers_mut();
        headers.try_insert("content-type", "application/x-amz-json-1.0")?;
        headers.try_insert("x-amz-target", self.target)?;
        headers.try_insert("content-length", self.body.len().to_string())?;
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use aws_sdk_dynamodb::types::{
        AttributeValue, BatchStatementRequest, PutRequest, ReturnConsumedCapacity, WriteRequest,
    };
    use chrono::TimeDelta;
    use table::item;
    use table::{Deadline, Invocation, PutReadings as _};

    use crate::attribute::{to_sdk, value_to_sdk};
    use crate::canned::Canned;
    use domain::{Decimal, Reading, Timestamp};

    const ANSWER: &str = "{\"UnprocessedItems\":{},\"Responses\":[]}";

    fn readings(count: usize) -> Vec<Reading> {
        let start = Timestamp::parse_absolute("2026-01-11T16:00:00Z").expect("a timestamp");
        let decimal = |text: String| Decimal::parse(&text).expect("a number");
        (0..count)
            .map(|n| {
                let at = start.saturating_add(TimeDelta::seconds(i64::try_from(n).expect("few")));
                let metrics = [("t", format!("-{n}.5")), ("long", format!("1.{n}e-120"))];
                let metrics =
                    metrics.map(|(name, it)| (name.parse().expect("a name"), decimal(it)));
                let room = (n % 3 > 0).then(|| "kitchen:1".parse().expect("an id"));
                let device = format!("d.{n}").parse().expect("an id");
                let mut reading =
                    Reading::new(device, at, room, metrics.into()).expect("a reading");
                if n % 3 == 1 {
                    reading.named_room = None;
                }
                reading
            })
            .collect()
    }

    fn invocation() -> Invocation {
        Invocation::until(Deadline::after(Duration::from_secs(60)))
    }

    #[tokio::test]
    async fn readings_are_put_as_the_sdk_puts_them() {
        for (count, retention) in [(1, None), (25, Some(TimeDelta::days(1)))] {
            let canned = Canned::new(200, ANSWER);
            let readings = readings(count);
            let outcome = canned.store().put_readings(&readings, retention, &invocation()).await;
            assert!(outcome.not_stored.is_empty());
            let ours = canned.last();
            let puts = readings.iter().map(|reading| {
                let item = to_sdk(item::from_reading(reading, retention));
                let put = PutRequest::builder().set_item(Some(item)).build().expect("an item");
                WriteRequest::builder().put_request(put).build()
            });
            let request = canned.client().batch_write_item();
            let request = request.request_items("t\"", puts.collect());
            request
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await
                .expect("it");
            assert_eq!(ours, canned.last());
        }
    }

    #[tokio::test]
    async fn readings_are_inserted_as_the_sdk_inserts_them() {
        let canned = Canned::new(200, ANSWER);
        let readings = readings(25);
        canned.store().insert_readings(&readings, None, &invocation()).await;
        let ours = canned.last();
        let statements = readings.iter().map(|reading| {
            let (names, values): (Vec<_>, Vec<AttributeValue>) = item::from_reading(reading, None)
                .map(|(name, value)| (format!("'{name}': ?"), value_to_sdk(value)))
                .unzip();
            let statement = format!("INSERT INTO \"t\"\" VALUE {{{}}}", names.join(", "));
            let request = BatchStatementRequest::builder().statement(statement);
            request.set_parameters(Some(values)).build().expect("a statement")
        });
        let request = canned.client().batch_execute_statement();
        let request = request.set_statements(Some(statements.collect()));
        request.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await.expect("it");
        assert_eq!(ours, canned.last());
    }
}
