//! Sends the body of a request to `DynamoDB`, and keeps the body of its answer. Knows no operation.
//!
//! Every request goes as a `Query` of the SDK whose target and body are replaced. The SDK would make a map of each
//! item, with its own type for each value, only to write JSON, and would read every answer into such maps. This took a
//! third of the time for storing readings, and most of the time for a chart. The SDK still does the work that all
//! operations share: signing, endpoints, retries, time limits and connections.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::config::interceptors::BeforeSerializationInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept};
use aws_sdk_dynamodb::error::{BoxError, ErrorMetadata, ProvideErrorMetadata as _, SdkError};
use aws_sdk_dynamodb::operation::query::{QueryError, QueryOutput};
use aws_smithy_runtime_api::client::interceptors::context::{Error, Input, Output};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse, OrchestratorError};
use aws_smithy_runtime_api::client::ser_de::{
    DeserializeResponse, SerializeRequest, SharedRequestSerializer, SharedResponseDeserializer,
};
use aws_smithy_types::body::SdkBody;
use serde::{Deserialize, Serialize};

use crate::DynamoStore;
use crate::body::CountedBody;
use crate::pause::send_while_throttled;
use table::{Invocation, StoreResult};

/// The SDK's error of an attempt. Its code says why `DynamoDB` refuses; the body of the answer says more.
pub(super) type SendError = SdkError<QueryError, HttpResponse>;

/// A request to the table. All attempts send the same body, which is not copied.
pub(super) struct TableRequest {
    operation: &'static str,
    body: SdkBody,
}

impl TableRequest {
    /// A request for an operation, by the operation's name in the API.
    pub(super) fn new(operation: &'static str, body: &impl Serialize) -> Self {
        let body = serde_json::to_string(&CountedBody::of(body))
            .expect("maps of texts, with names that are texts");
        Self { operation, body: body.into() }
    }
}

impl DynamoStore {
    /// Sends a request, and sends it again while the table throttles. Returns the answer.
    pub(super) async fn ask(
        &self,
        request: &TableRequest,
        invocation: &Invocation,
    ) -> StoreResult<AnswerBody> {
        send_while_throttled(invocation, || self.send(request)).await
    }

    /// Sends a request once, with the SDK's retries.
    pub(super) async fn send(&self, request: &TableRequest) -> Result<AnswerBody, SendError> {
        let exchange = SdkExchange::of(request);
        // The SDK does not send the name of the table, but may choose the endpoint by it.
        let query = self.client.query().table_name(&self.table);
        query.customize().interceptor(exchange.clone()).send().await?;
        Ok(exchange.taken())
    }
}

pub(super) struct AnswerBody(SdkBody);

impl AnswerBody {
    pub(super) fn bytes(&self) -> &[u8] {
        self.0.bytes().unwrap_or_default()
    }
}

/// The code of an error in `DynamoDB`'s answer.
pub(super) fn code(error: &SendError) -> Option<&str> {
    error.as_service_error()?.code()
}

/// The body of an answer that is an error.
pub(super) fn error_body(error: &SendError) -> &[u8] {
    error.raw_response().and_then(|answer| answer.body().bytes()).unwrap_or_default()
}

/// The bodies of a request and of its answer. The SDK carries both without writing or reading their JSON.
#[derive(Clone)]
struct SdkExchange(Arc<Bodies>);

struct Bodies {
    operation: &'static str,
    request: SdkBody,
    answer: Mutex<SdkBody>,
}

impl SdkExchange {
    fn of(request: &TableRequest) -> Self {
        let TableRequest { operation, body } = request;
        let answer = Mutex::new(SdkBody::empty());
        Self(Arc::new(Bodies { operation, request: shared(body), answer }))
    }

    fn taken(&self) -> AnswerBody {
        let mut answer = self.0.answer.lock().unwrap_or_else(PoisonError::into_inner);
        AnswerBody(std::mem::replace(&mut answer, SdkBody::empty()))
    }
}

/// The same body. Its bytes are not copied.
fn shared(body: &SdkBody) -> SdkBody {
    body.try_clone().expect("a body in memory")
}

impl fmt::Debug for SdkExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Exchange").field(&self.0.operation).finish()
    }
}

#[aws_smithy_runtime_api::client::interceptors::dyn_dispatch_hint]
impl Intercept for SdkExchange {
    fn name(&self) -> &'static str {
        "Exchange"
    }

    fn read_before_execution(
        &self,
        _: &BeforeSerializationInterceptorContextRef<'_>,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let state = config.interceptor_state();
        state.store_put(SharedRequestSerializer::new(self.clone()));
        state.store_put(SharedResponseDeserializer::new(self.clone()));
        Ok(())
    }
}

impl SerializeRequest for SdkExchange {
    /// The HTTP form of a request:
    /// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.LowLevelAPI.html>
    fn serialize_input(&self, _: Input, _: &mut ConfigBag) -> Result<HttpRequest, BoxError> {
        let Bodies { operation, request: body, .. } = &*self.0;
        let length = body.content_length().unwrap_or_default();

        let mut request = HttpRequest::new(shared(body));
        request.set_method("POST")?;
        request.set_uri("/")?;
        let headers = request.headers_mut();
        headers.try_insert("content-type", "application/x-amz-json-1.0")?;
        headers.try_insert("x-amz-target", format!("DynamoDB_20120810.{operation}"))?;
        headers.try_insert("content-length", length.to_string())?;
        Ok(request)
    }
}

impl DeserializeResponse for SdkExchange {
    fn deserialize_nonstreaming_with_config(
        &self,
        response: &HttpResponse,
        _: &ConfigBag,
    ) -> Result<Output, OrchestratorError<Error>> {
        if !response.status().is_success() {
            return Err(OrchestratorError::operation(Error::erase(refusal(response))));
        }

        let mut answer = self.0.answer.lock().unwrap_or_else(PoisonError::into_inner);
        *answer = shared(response.body());
        Ok(Output::erase(QueryOutput::builder().build()))
    }
}

/// The error in an answer. The SDK decides by its code whether to retry.
///
/// Form: <https://smithy.io/2.0/aws/protocols/aws-json-1_0-protocol.html#operation-error-serialization>
fn refusal(response: &HttpResponse) -> QueryError {
    let body = response.body().bytes().unwrap_or_default();
    let RefusedRequest { kind, message } = serde_json::from_slice(body).unwrap_or_default();
    // The name of the error comes last, after that of the service.
    let is_between = |character: char| !character.is_ascii_alphanumeric();
    let code = kind.as_deref().and_then(|kind| kind.rsplit(is_between).next()).unwrap_or_default();

    let mut metadata = ErrorMetadata::builder().code(code).message(message.unwrap_or_default());
    // AWS can find the request in its own logs by this id.
    if let Some(id) = response.headers().get("x-amzn-requestid") {
        metadata = metadata.custom("aws_request_id", id);
    }
    QueryError::generic(metadata.build())
}

#[derive(Deserialize, Default)]
struct RefusedRequest {
    #[serde(rename = "__type")]
    kind: Option<String>,
    #[serde(alias = "Message")]
    message: Option<String>,
}
